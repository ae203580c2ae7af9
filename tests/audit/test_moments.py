"""Intervals from moments hold: NumPy's moments, and simulated groups with a known truth."""

import numpy as np
import pytest
from scipy.stats import binom

from sellf.audit import moments, pilot
from sellf.audit.scores import Side
from sellf.audit.sums import sample
from sellf.fairness.notions import define
from sellf.logs.person import Person
from sellf.logs.sums import add_up
from tests.audit.plain import draw, truths

HIDDEN = ("qualification", "accuracy", "opportunity")
TAU = 0.01


@pytest.mark.parametrize("u", [0.0, 0.3, 1.0])
def test_central_moments_are_numpy_s(u):
    rng = np.random.default_rng(0)
    part, whole = rng.exponential(1, 500), rng.standard_normal(500) + 2
    values = part - u * whole
    off = values - values.mean()
    found = moments.central(moments.means(Side(part, whole)), u)
    assert found == pytest.approx([np.mean(off**k) for k in (2, 3, 4)])
    alone = moments.central(moments.means(Side(part, None)), 0.0)
    assert alone[0] == pytest.approx(part.var())


def test_means_are_numpy_s_with_weights_and_without():
    rng = np.random.default_rng(1)
    part, whole, weights = rng.standard_normal((3, 200))
    weights = np.abs(weights)
    for i, j in moments.POWERS:
        both = part**i * whole**j
        assert moments.means(Side(part, whole))[i, j] == pytest.approx(both.mean())
        found = moments.means(Side(part, whole), weights)[i, j]
        assert found == pytest.approx(np.average(both, weights=weights))
        assert moments.means(Side(part, None))[i, j] == pytest.approx((part**i).mean())
        found = moments.means(Side(part, None), weights)[i, j]
        assert found == pytest.approx(np.average(part**i, weights=weights))


def from_rows(notion, person, seed):
    return pilot.prepare(person, TAU, np.random.default_rng(seed)).samples(define(notion).alone)


def from_sums(notion, person, seed):
    codes = np.zeros(len(person.accepted), dtype=np.intp)
    total = add_up(codes, 1, person, TAU).by_group().group(0)
    return sample(define(notion).alone, total, TAU, person.prediction is not None)


@pytest.mark.parametrize("made", [from_rows, from_sums])
@pytest.mark.parametrize("score", [True, False])
def test_bounds_miss_no_more_often_than_they_say(made, score):
    """One group's ends and a difference, from below and from above, for means and for ratios."""
    logs, alpha, true = 60, 0.1, truths(2)
    missed = {notion: np.zeros(4, dtype=int) for notion in HIDDEN}
    told = 0
    for log in range(logs):
        rng = np.random.default_rng([log, score])
        people = [draw(rng, 0, 900, score), draw(rng, 1, 500, score)]
        for notion in HIDDEN:
            (low1, high1), (low0, high0) = (made(notion, who, log) for who in people)
            u1, u0 = true[notion][:2]
            ends = moments.lower(low1, alpha), moments.upper(high1, alpha)
            first = moments.lower_difference(low1, high0, alpha)
            second = moments.lower_difference(low0, high1, alpha)
            missed[notion] += [ends[0] > u1, ends[1] < u1, first > u1 - u0, second > u0 - u1]
            told += ends[1] - ends[0] < 0.5
    for notion, found in missed.items():
        assert found.max() <= binom.isf(1e-6, logs, alpha), (notion, found)
    if made is from_rows:
        assert told > 2 * logs


@pytest.mark.parametrize("notion", HIDDEN)
def test_outcomes_to_come_and_missing_overlap_leave_the_truth_inside(notion):
    """A fifth of outcomes pending, a tenth of people without overlap."""
    x = (np.arange(100_000) + 0.5) / 100_000
    logs, alpha, missed = 60, 0.1, np.zeros(2, dtype=int)
    good = 0.3 + 0.5 * x
    p = np.where(x < 0.1, 0.005, 0.1 + 0.8 * x)
    right = p * good
    true = {
        "qualification": good.mean(),
        "accuracy": (right + (1 - p) * (1 - good)).mean(),
        "opportunity": right.mean() / good.mean(),
    }[notion]
    for log in range(logs):
        rng = np.random.default_rng(log)
        rows = rng.integers(0, len(x), 1200)
        accepted = (rng.random(1200) < p[rows]) * 1.0
        label = accepted * (rng.random(1200) < good[rows])
        pending = accepted * (rng.random(1200) < 0.2)
        person = Person(accepted, label * (1 - pending), p[rows], good[rows], pending=pending)
        for made in (from_rows, from_sums):
            low, high = made(notion, person, log)
            missed += [moments.lower(low, alpha) > true, moments.upper(high, alpha) < true]
    assert missed.max() <= 2 * binom.isf(1e-6, logs, alpha)


def test_a_pilot_is_left_out_and_people_stay_whole():
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(300), 1 + np.arange(300) % 4)
    n = len(unit)
    accepted = (rng.random(n) < 0.5) * 1.0
    person = Person(accepted, accepted, np.full(n, 0.5), np.full(n, 0.6), unit=unit)
    ready = pilot.prepare(person, TAU, np.random.default_rng(0))
    few, rest = set(ready.pilot.unit), set(ready.rest.unit)
    assert len(few) == pilot.PILOT
    assert not few & rest
    assert len(few | rest) == 300
    assert ready.samples(define("qualification").alone)[0].n == len(rest)
