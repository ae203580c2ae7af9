"""Scores stand in for hidden labels: right on average, and never beyond what they promise."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sellf.audit.scores import (
    Side,
    averaged,
    best_share,
    by_unit,
    extremes,
    furthest_averaged,
    mixed,
    reach,
    running_prediction,
    scores,
    sides,
)
from sellf.fairness.notions import TABLE, define
from sellf.logs.person import Person

TAU = 0.01
RATES = [name for name, definition in TABLE.items() if len(definition.rates) == 1]
chance = st.floats(0, 1)
rows = st.lists(st.tuples(chance, chance, chance), min_size=1, max_size=6)
KINDS = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
"""Whether somebody is accepted, and with a good outcome."""


def outcomes(people):
    """Return p, f, P(Y = 1), and for every kind of row its chance."""
    p, f, good = np.array(people).T
    return p, f, good, [1 - p, p * (1 - good), p * good]


def of_kind(kind, p, f, **more):
    one = np.ones(len(p))
    return Person(kind[0] * one, kind[1] * one, p, f, **more)


@given(people=rows, below=st.floats(0, 50), above=st.floats(0, 50), clip=st.booleans())
def test_scores_bracket_the_label_on_average_and_meet_in_it_unless_they_are_cut(
    people, below, above, clip
):
    p, f, good, weights = outcomes(people)
    low, high = np.zeros(len(p)), np.zeros(len(p))
    for kind, weight in zip(KINDS, weights, strict=True):
        found = scores(of_kind(kind, p, f), TAU, f, below, above, clip=clip)
        low, high = low + weight * found.low0, high + weight * found.high0
        assert np.array_equal(found.low0, found.low1)
        assert np.array_equal(found.high0, found.high1)
    assert np.all(low <= good + 1e-9 * (1 + below))
    assert np.all(high >= good - 1e-9 * (1 + above))
    if not clip:
        strong = p >= TAU
        assert low[strong] == pytest.approx(good[strong], abs=1e-9 * (1 + below + above))
        assert high[strong] == pytest.approx(good[strong], abs=1e-9 * (1 + below + above))
    elif below >= 1 / TAU and above >= 1 / TAU:
        assert low == pytest.approx(high)


@given(people=rows, below=st.floats(0, 50), above=st.floats(0, 50), clip=st.booleans())
def test_scores_stay_within_their_reach(people, below, above, clip):
    p, f, _, _ = outcomes(people)
    for kind in KINDS:
        if kind[0] and not np.all(p > 0):
            continue
        found = scores(of_kind(kind, p, f), TAU, f, below, above, clip=clip)
        assert np.all(found.low0 >= -below - 1e-9)
        assert np.all(found.high0 <= 1 + above + 1e-9)
        if clip:
            assert np.all(found.low0 <= 1 + below + 1e-9)
            assert np.all(found.high0 >= -above - 1e-9)


@given(people=rows, k=st.floats(0.1, 30), share=st.sampled_from([0.0, 0.4, 1.0]))
def test_cut_sides_stay_within_the_reach_that_moments_take_for_granted(people, k, share):
    """What `pilot` promises of every notion, whatever happens: |part - u whole - mean| <= h."""
    from sellf.audit.moments import Sample
    from sellf.audit.pilot import Prepared

    p, f, _, _ = outcomes(people)
    assume(np.all(p > 0))
    nobody = of_kind((0.0, 0.0), p[:0], f[:0])
    ready = Prepared(nobody, nobody, np.zeros(10), k, TAU, share)
    for notion in RATES:
        limits = extremes(define(notion).alone, k, smooth=share > 0)
        for at in (0, 1):
            for kind, pending in [*((kind, None) for kind in KINDS), ((1.0, 0.0), np.ones(len(p)))]:
                side = ready._sides(define(notion).alone, of_kind(kind, p, f, pending=pending))[at]
                mean, waiting = side.whole is None, pending is not None
                made = Sample(10.0, np.ones((5, 5)), limits, mean, pending=waiting)
                for u in (0.0, 0.3, 1.0):
                    if side.whole is None:  # the mean is somewhere in [0, 1]
                        off = np.maximum(np.abs(side.part), np.abs(side.part - 1))
                    else:
                        off = np.abs(side.part - u * side.whole)
                    assert np.all(off <= made.largest(u) + 1e-9), (notion, kind)


@given(people=rows, below=st.floats(1, 50), above=st.floats(1, 50), clip=st.booleans())
def test_an_outcome_that_is_not_known_yet_takes_its_worse_value(people, below, above, clip):
    """For every utility t that is possible: part - t whole is no more than with either outcome."""
    p, f, _, _ = outcomes(people)
    assume(np.all(p > 0))
    unknown = of_kind((1.0, 0.0), p, f, pending=np.ones(len(p)))
    how = (TAU, f, below, above)
    for notion in RATES:
        mine = sides(define(notion).alone, unknown, scores(unknown, *how, clip=clip))
        for y in (0.0, 1.0):
            known = of_kind((1.0, y), p, f)
            truth = sides(define(notion).alone, known, scores(known, *how, clip=clip))
            for t in np.linspace(0, 1, 11):
                less, more = (
                    [
                        side.part - t * (1.0 if side.whole is None else side.whole)
                        for side in (found.low, found.high)
                    ]
                    for found in (mine, truth)
                )
                size = 1e-9 * (1 + below + above)
                assert np.all(less[0] <= more[0] + size), (notion, y, t)
                assert np.all(less[1] >= more[1] - size), (notion, y, t)


@given(people=rows, t=chance, share=st.sampled_from([0.0, 0.4, 1.0]))
def test_sides_are_right_on_average_at_the_true_utility_of_every_row(people, t, share):
    """As decisions are, and averaged over their chance, wherever the score is not cut."""
    p, f, good, weights = outcomes(people)
    assume(np.all(p >= TAU))
    truth = {
        "qualification": good,
        "accuracy": p * good + (1 - p) * (1 - good),
        "demographic": p,
        "opportunity": p * good - t * good,
        "predictive-parity": p * good - t * p,
        "false-positive-rate": p * (1 - good) - t * (1 - good),
    }
    assert set(truth) == set(RATES)
    for notion, expected in truth.items():
        means = np.zeros((2, len(p)))
        for kind, weight in zip(KINDS, weights, strict=True):
            person = of_kind(kind, p, f)
            score = scores(person, TAU, f, 200.0, 200.0)
            smooth = averaged(person, TAU, f, 200.0, 200.0)
            plain, other = (sides(define(notion).alone, who, score) for who in (person, smooth))
            for i, side in enumerate(mixed(plain, other, (share, share))):
                means[i] += weight * (
                    side.part if side.whole is None else side.part - t * side.whole
                )
        for mean in means:
            assert mean == pytest.approx(expected, abs=1e-7)


@given(people=rows, below=st.floats(0, 20), above=st.floats(0, 20))
def test_averaged_rows_are_between_the_people_furthest_out(people, below, above):
    """So no sum of p, p s and s is larger for any of them: a convex hull, in every direction."""
    p, f, _, _ = outcomes(people)
    assume(np.all(p > 0))
    corners = np.array(furthest_averaged(below, above))
    directions = np.random.default_rng(0).standard_normal((200, 3))
    most = (corners @ directions.T).max(axis=0)
    for kind in KINDS:
        person = of_kind(kind, p, f)
        rows = averaged(person, TAU, f, below, above)
        score = scores(person, TAU, f, below, above)
        done = rows.accepted != person.accepted
        for label in (score.low0, score.high0):
            points = np.stack([rows.accepted, rows.positive, label], axis=1)[done]
            assert np.all(points @ directions.T <= most + 1e-9 * (1 + below + above))
            assert rows.positive[done] == pytest.approx((p * label)[done], abs=1e-9)


@given(people=rows, k=st.floats(0.1, 10))
def test_rows_are_not_averaged_without_overlap_or_where_scores_are_cut(people, k):
    p, f, _, _ = outcomes(people)
    for kind in KINDS:
        person = of_kind(kind, p, f)
        rows = averaged(person, TAU, f, k, k)
        cut = (p < TAU) | (np.maximum(f, 1 - f) * (1 - p) > (k + 1e-9) * p)
        assert np.array_equal(rows.accepted[cut], person.accepted[cut])
        assert np.array_equal(rows.positive[cut], person.positive[cut])
    unknown = of_kind((1.0, 1.0), p, f)._replace(propensity=None)
    assert averaged(unknown, TAU, f, k, k) is unknown


@pytest.mark.parametrize("notion", ["accuracy", "opportunity", "false-positive-rate"])
@pytest.mark.parametrize("guess", ["right", "constant", "reversed"])
def test_averaged_rows_count_as_much_as_makes_estimates_vary_least(notion, guess):
    rng = np.random.default_rng(3)
    p, good = rng.uniform(0.2, 0.9, 4000), rng.uniform(0.0, 0.5, 4000)
    f = {"right": good, "constant": np.full(4000, 0.5), "reversed": 1 - good}[guess]
    accepted = (rng.random(4000) < p) * 1.0
    person = Person(accepted, accepted * (rng.random(4000) < good), p, None)
    rate, score = define(notion).alone, scores(person, TAU, f, 50.0, 50.0)
    smooth = averaged(person, TAU, f, 50.0, 50.0)
    plain, other = (sides(rate, who, score) for who in (person, smooth))
    u = plain.low.part.mean() / (1.0 if plain.low.whole is None else plain.low.whole.mean())

    def variance(share):
        side = mixed(plain, other, (share, share)).low
        return float(np.var(side.part - (0.0 if side.whole is None else u * side.whole)))

    found = best_share(plain.low, other.low)
    assert variance(found) <= 1.01 * min(variance(share) for share in np.linspace(0, 1, 41))
    if guess == "right":
        assert found >= 0.9


@pytest.mark.parametrize("known", ["nothing", "everything"])
def test_without_propensities_labels_of_the_rejected_are_free_unless_they_are_known(known):
    accepted = np.array([1.0, 1.0, 0.0, 0.0])
    label = np.array([1.0, 0.0, 1.0, 0.0])
    trusted = (1 - accepted) * label if known == "everything" else None
    person = Person(accepted, accepted * label, None, None, trusted)
    found = scores(person, TAU, 0.0, 0.0, 0.0)
    assert np.all((found.low0 <= label) & (label <= found.high0))
    assert np.array_equal(found.low0, found.high0) == (known == "everything")


def test_a_running_prediction_knows_the_past_alone():
    rng = np.random.default_rng(1)
    accepted, label, p = (rng.random(50) < 0.6) * 1.0, (rng.random(50) < 0.4) * 1.0, rng.random(50)
    person = Person(accepted, accepted * label, p, None)
    before = running_prediction(person, 0.0)
    for row in range(50):
        seen = np.flatnonzero(accepted[:row] == 1)
        alike = [i for i in seen if int(p[i] * 10) == int(p[row] * 10)]
        overall = (label[seen].sum() + 0.5) / (len(seen) + 1)
        assert before[row] == pytest.approx((label[alike].sum() + 2 * overall) / (len(alike) + 2))


def test_more_rows_bear_a_longer_reach():
    assert reach(10, 0.01) == 1.0
    assert reach(200, 0.01) < reach(20_000, 0.01)


def test_the_rows_of_one_person_count_by_their_mean():
    unit = np.array([4, 4, 7, 9, 9, 9])
    side = by_unit(Side(np.array([1.0, 0, 1, 0, 0, 3]), np.arange(6.0)), unit)
    assert side.part == pytest.approx([0.5, 1, 1])
    assert side.whole == pytest.approx([0.5, 2, 4])
    plain = Side(np.ones(2), None)
    assert by_unit(plain, None) is plain


def test_a_running_prediction_knows_nothing_of_the_same_person():
    """Somebody's rows may share one decision, so that one of them would tell of the others."""
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(12), 4)
    p, accepted = rng.random(48), (rng.random(48) < 0.6) * 1.0
    label = (rng.random(48) < 0.4) * 1.0
    found = running_prediction(Person(accepted, accepted * label, p, None, unit=unit), 0.0)
    for row in range(48):
        start = 4 * unit[row]
        alone = np.r_[np.arange(start), row]
        before = Person(accepted[alone], (accepted * label)[alone], p[alone], None)
        assert found[row] == pytest.approx(running_prediction(before, 0.0)[-1])
