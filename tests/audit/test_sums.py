"""Figures from sums agree with figures from rows."""

from itertools import product

import duckdb
import numpy as np
import polars as pl
import pytest

import sellf
from coverage_study.cells import STUDIED as NOTIONS
from sellf.audit import methods, moments, tails
from sellf.audit.estimate import views
from sellf.audit.group import Group
from sellf.audit.scores import scores, sides
from sellf.audit.sums import sample, score_moments
from sellf.fairness.notions import define
from sellf.logs.columns import Columns
from sellf.logs.limits import Limits
from sellf.logs.person import Person
from sellf.logs.reading import open_log
from sellf.logs.sums import Sums, add_up, fourth_moment, miss_fourth_moment
from tests.audit.logs import lending

N = 5000
TAU = 0.01
HIDDEN = ("qualification", "accuracy", "opportunity")


def people(predicted=True, weak=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(N)
    p = np.where(x < weak, 0.0, 0.05 + 0.9 * x)
    accepted = (rng.random(N) < p) * 1.0
    positive = accepted * (rng.random(N) < 0.2 + 0.6 * x)
    return Person(accepted, positive, p, 0.1 + 0.8 * x if predicted else None)


def total(person):
    return add_up(np.zeros(N, dtype=np.intp), 1, person, TAU).by_group().group(0)


def plain_scores(person, constant):
    """Return both scores of every row, as the formulas are printed."""
    a, ay, p, f, *_ = person
    f = np.full(N, constant) if constant is not None else f
    strong = p >= TAU
    s = f + (ay - a * f) / np.where(strong, p, 1)
    return np.where(strong, s, ay), np.where(strong, s, ay + 1 - a)


def plain_sides(notion, person, constant):
    """Return part and whole of both sides, row by row."""
    lower, upper = plain_scores(person, constant)
    seen = 2 * person.positive + 1 - person.accepted
    return {
        "qualification": [(lower, None), (upper, None)],
        "accuracy": [(seen - upper, None), (seen - lower, None)],
        "opportunity": [(person.positive, upper), (person.positive, lower)],
    }[notion]


@pytest.mark.parametrize("weak", [0.0, 0.3])
@pytest.mark.parametrize("constant", [None, 0.0, 0.25, 1.0])
def test_moments_are_those_of_the_scores(constant, weak):
    person = people(predicted=constant is None, weak=weak)
    found = score_moments(total(person), constant)
    for score, mine in zip(plain_scores(person, constant), found, strict=True):
        a, ay = person.accepted, person.positive
        expected = (N, a.sum(), ay.sum(), score.sum(), (score**2).sum(), (ay * score).sum(),
                    (a * score).sum())  # fmt: skip
        assert tuple(mine) == pytest.approx(expected)


@pytest.mark.parametrize("notion", HIDDEN)
@pytest.mark.parametrize("weak", [0.0, 0.3])
@pytest.mark.parametrize("predicted", [True, False])
def test_a_sample_from_sums_has_the_moments_of_its_rows(notion, weak, predicted):
    person = people(predicted, weak)
    constant = None if predicted else person.positive.sum() / person.accepted.sum()
    found = sample(define(notion).alone, total(person), TAU, predicted)
    for side, (part, whole) in zip(found, plain_sides(notion, person, constant), strict=True):
        expected = moments.means(moments.Side(part, whole))
        assert (side.n, side.mean) == (N, whole is None)
        for i, j in ((1, 0), (2, 0), (0, 1), (0, 2), (1, 1)):
            assert side.raw[i, j] == pytest.approx(expected[i, j]), (i, j)
        assert side.shift == 0 or not predicted
        for u in (0.2, 0.9):
            values = part - u * (1.0 if whole is None else whole)
            fourth = side.term(u, 1.0).fourth
            assert fourth >= np.mean((values - values.mean()) ** 4)
            assert moments.central(side.raw, u)[0] == pytest.approx(values.var())


@pytest.mark.parametrize("notion", HIDDEN)
@pytest.mark.parametrize("weak", [0.0, 0.3])
def test_an_interval_from_sums_is_the_tail_s_of_the_rows(notion, weak):
    """The radius of the rows' own variance, by hand; ratios candidate by candidate."""
    person = people(weak=weak)
    found = sample(define(notion).alone, total(person), TAU, True)
    rows = plain_sides(notion, person, None)
    alpha = 0.025

    def radius(values, side, u):
        reach = {
            "qualification": 1 + 1 / TAU,
            "accuracy": 1 / TAU,
            "opportunity": max(1.0, u / TAU),
        }[notion]
        fourth = side.term(u, 1.0).fourth
        term = tails.Term(1 / N, N, values.var(), fourth, reach, bounded=True)
        return tails.radius([term], alpha)

    low, high = moments.lower(found[0], alpha), moments.upper(found[1], alpha)
    if notion != "opportunity":
        (first, _), (second, _) = rows
        assert low == pytest.approx(first.mean() - radius(first, found[0], 0.0))
        assert high == pytest.approx(second.mean() + radius(second, found[1], 0.0))
        return
    for t in np.linspace(0.01, 0.99, 99):
        first, second = (part - t * whole for part, whole in rows)
        # What is found is rounded outwards, by a few thousandths of the width.
        out = first.mean() > radius(first, found[0], t)
        assert out if t < low else t < low + 0.003 or not out
        out = -second.mean() > radius(second, found[1], t)
        assert out if t > high else t > high - 0.003 or not out


def test_without_predictions_the_share_of_the_accepted_is_predicted_and_its_error_counts():
    person = people(predicted=False)
    share = person.positive.sum() / person.accepted.sum()
    low, high = sample(define("qualification").alone, total(person), TAU, False)
    assert low.value == pytest.approx(plain_scores(person, share)[0].mean())
    # Whatever the true share is, the mean moves no further than the shift.
    for off in (-0.03, 0.03):  # four standard errors
        moved = plain_scores(person, share + off)[0].mean()
        assert abs(moved - low.value) <= low.shift
    assert low.shift == high.shift < 0.01


@pytest.mark.parametrize("notion", HIDDEN)
@pytest.mark.parametrize("predicted", [True, False])
def test_the_range_that_sums_take_for_granted_holds(notion, predicted):
    """For every score, p and u that can occur: the extremes are at the corners."""
    side = sample(define(notion).alone, total(people(predicted)), TAU, predicted)[0]
    for u in (0.0, 0.3, 1.0):
        values = []
        for f, p, (a, y) in product((0.0, 0.4, 1.0), (TAU, 0.3, 1.0), ((0, 0), (1, 0), (1, 1))):
            s = f + a * (y - f) / p
            values.append(
                {
                    "qualification": s,
                    "accuracy": 2 * a * y + 1 - a - s,
                    "opportunity": a * y - u * s,
                }[notion]
            )
        # A mean is somewhere in [0, 1]; a ratio's is 0 where u is the utility.
        means = (0.0, 1.0) if notion != "opportunity" else (0.0,)
        for mean in means:
            assert np.abs(np.array(values) - mean).max() <= side.largest(u) + 1e-9


@pytest.mark.parametrize("f", [None, 0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.99, 1.0])
def test_the_fourth_moment_of_a_score_is_bounded_whatever_the_outcomes(p, f):
    bound = fourth_moment(p, f)
    for good, guess in product(np.linspace(0, 1, 11), np.linspace(0, 1, 11) if f is None else [f]):
        values = np.array([guess, guess + (1 - guess) / p, guess - guess / p])
        exact = np.array([1 - p, p * good, p * (1 - good)]) @ values**4
        assert exact <= bound * (1 + 1e-12)


@pytest.mark.parametrize("f", [None, 0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.99, 1.0])
def test_so_is_that_of_what_the_score_misses(p, f):
    bound = miss_fourth_moment(p, f)
    for good, guess in product(np.linspace(0, 1, 11), np.linspace(0, 1, 11) if f is None else [f]):
        values = np.array([-guess, 1 - guess - (1 - guess) / p, guess / p - guess])
        exact = np.array([1 - p, p * good, p * (1 - good)]) @ values**4
        assert exact <= bound * (1 + 1e-12)


def with_pending(rows=3000, seed=1):
    log = lending(rows, seed)
    rng = np.random.default_rng(seed)
    late = (rng.random(rows) < 0.3) & (log["approved"] == 1)
    return {**log, "repaid": np.where(late, np.nan, log["repaid"])}, late


@pytest.mark.parametrize("overlap", [0.01, 0.3])
@pytest.mark.parametrize("score", ["score", None])
def test_engines_add_up_outcomes_that_are_not_known_yet_as_a_plain_loop_does(overlap, score):
    import pandas as pd

    log, late = with_pending()
    columns = Columns(("race",), "approved", "repaid", "p", score)
    expected = np.zeros((4, 2))
    for race, p, f, pending in zip(log["race"], log["p"], log["score"], late, strict=True):
        group, weight = int(race == "b"), 1 / p if p >= overlap else 1.0
        guess = f if score else None
        four = fourth_moment(p, guess) if p >= overlap else 1.0
        miss = miss_fourth_moment(p, guess) if p >= overlap else 1.0
        expected[:, group] += (four, miss, pending * weight, pending * weight**2)
    rows = open_log(log, columns)
    frame = pd.DataFrame(log)
    found = [add_up(rows.codes, 2, rows.person, overlap)]
    for same in (duckdb.from_df(frame), pl.from_pandas(frame, nan_to_null=True).lazy()):
        found.append(open_log(same, columns, Limits(in_memory=10)).sums(overlap)[1])
    for sums in found:
        assert sums.pending.sum() == late.sum() > 100
        four = (
            sums.fourth,
            sums.miss_fourth,
            sums.pending_weight,
            sums.pending_weight_square,
        )
        for mine, theirs in zip(four, expected, strict=True):
            assert mine.sum(axis=-1) == pytest.approx(theirs)
    for sums in found[1:]:
        for name, mine, theirs in zip(Sums._fields, found[0], sums, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("notion", HIDDEN)
def test_outcomes_that_are_not_known_yet_move_a_sample_no_further_than_its_shift(notion):
    """Whichever of them turn out good: all, none or some at random."""
    log, late = with_pending()
    person = open_log(log, Columns(("race",), "approved", "repaid", "p", "score")).person
    codes = np.zeros(len(late), dtype=np.intp)
    sums = add_up(codes, 1, person, TAU).by_group().group(0)
    low, high = sample(define(notion).alone, sums, TAU, True)
    rng = np.random.default_rng(3)
    for chance in (0.0, 0.5, 1.0):
        good = late & (rng.random(len(late)) < chance)
        told = person._replace(positive=np.where(good, 1.0, person.positive), pending=None)
        truth = sides(
            define(notion).alone, told, scores(told, TAU, told.prediction, 1 / TAU, 1 / TAU)
        )
        for u in np.linspace(0, 1, 5):
            whole = 1.0 if truth.low.whole is None else truth.low.whole
            value = (truth.low.part - u * whole).mean()
            first, second = (side.raw[1, 0] - u * side.raw[0, 1] for side in (low, high))
            assert first - low.shift <= value + 1e-12
            assert value <= second + high.shift + 1e-12


def test_normal_intervals_are_the_textbook_s():
    person = people()
    s = plain_scores(person, None)[0]
    group = Group(
        total=total(person),
        person=person,
        seed=(0, 0),
        overlap=TAU,
        known=False,
        trusted=False,
        estimated=True,
        predicted=True,
    )
    assert (
        methods.kind(define("qualification").alone, group)
        == methods.kind(define("opportunity").alone, group)
        == "normal"
    )
    low, high = methods.interval(define("qualification").alone, group, 0.05)
    half = 1.959964 * s.std(ddof=1) / np.sqrt(N)
    assert (low, high) == pytest.approx((s.mean() - half, s.mean() + half))
    low, high = methods.interval(define("opportunity").alone, group, 0.05)
    ratio = person.positive.sum() / s.sum()
    half = 1.959964 * (person.positive - ratio * s).std(ddof=1) / np.sqrt(N) / s.mean()
    assert (low, high) == pytest.approx((ratio - half, ratio + half), rel=1e-4)


def test_views_are_those_of_the_rows():
    person = people()
    log = {
        "group": np.arange(N) % 2,
        "action": person.accepted,
        "label": np.where(person.accepted == 1, person.positive, np.nan),
    }
    sums = add_up((np.arange(N) % 2).astype(np.intp), 2, person, 0.01)
    for notion in NOTIONS:
        found = views(define(notion).alone, sums, predicted=True, trusted=False)
        imputed = sellf.disparity(notion, **log, prediction=person.prediction, view="imputed")
        assert found.imputed == pytest.approx(list(imputed.by_group.values()))
        if notion != "demographic":
            naive = sellf.disparity(notion, **log, view="accepted")
            assert found.naive == pytest.approx(list(naive.by_group.values()))
        assert np.all(found.low == found.high)


@pytest.mark.parametrize("predicted", [True, False])
def test_estimates_average_over_decisions_where_their_chance_is_known(predicted):
    """p in place of A and p s in place of A Y, by hand; f is the share by stratum if not given."""
    person = people() if predicted else people()._replace(prediction=None)
    codes = (np.arange(N) % 2).astype(np.intp)
    sums = add_up(codes, 2, person, 0.01)
    p, f = person.propensity, person.prediction
    if f is None:
        bins = np.minimum((p * 10).astype(int), 9) + 10 * codes
        seen, good = (np.bincount(bins, x, 20) for x in (person.accepted, person.positive))
        f = (good / np.maximum(seen, 1))[bins]
    both = p * f + person.positive - person.accepted * f
    s = both / p
    expected = {
        "qualification": (s, 1.0),
        "accuracy": (1 - p + 2 * both - s, 1.0),
        "opportunity": (both, s),
        "false-positive-rate": (p - both, 1 - s),
        "demographic": (person.accepted, 1.0),
        "predictive-parity": (person.positive, person.accepted),
    }
    for notion, (part, whole) in expected.items():
        found = views(define(notion).alone, sums, predicted=predicted, trusted=False, averaged=True)
        for group in (0, 1):
            mine = codes == group
            below = np.broadcast_to(whole, N)[mine].sum()
            assert found.value[group] == pytest.approx(part[mine].sum() / below), notion
