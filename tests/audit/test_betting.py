"""Betting: a fair game by enumeration, stakes that know the past alone, bounds that hold."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from coverage_study.cells import STUDIED as NOTIONS
from sellf.audit import betting
from sellf.audit.betting import LARGEST_LOSS, lower, lower_difference
from sellf.audit.candidates import climb, corners
from sellf.audit.games import games, orders, prediction
from sellf.fairness.notions import Counts, define, utility
from sellf.logs.person import Person
from tests.audit.plain import draw, truths

TAU = 0.01
STRATA = np.array([(0.25, 0.3), (0.8, 0.7)])
"""The chances of acceptance and of a good outcome of two kinds of people, equally many."""
KINDS = [(x, a, y) for x in (0, 1) for a, y in ((0, 0), (1, 0), (1, 1))]


def truth(notion, strata):
    p, good = strata.T
    both = (p * good).mean()
    return float(utility(notion, Counts(1.0, p.mean(), both, good.mean() - both)))


def person_of(kinds, strata, predicted=False):
    x, a, y = np.array(kinds).T
    guess = np.full(len(x), 0.4) if predicted else None
    return Person(a * 1.0, a * y * 1.0, strata[x, 0], guess)


def chance_of(kinds, strata):
    x, a, y = np.array(kinds).T
    p, good = strata[x].T
    return np.prod(np.where(a, p * np.where(y, good, 1 - good), 1 - p) / len(strata))


def both_games(notion, person):
    order = np.arange(person.units)[None, :]
    return games(define(notion).alone, person, order, alpha=0.05, overlap=TAU)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("predicted", [True, False])
def test_capital_is_one_on_average_for_the_truth_and_less_for_candidates_above(notion, predicted):
    """Every sequence of three or four people of six kinds, with its probability."""
    u = truth(notion, STRATA)
    average = np.zeros((2, 3))
    for kinds in product(KINDS, repeat=3 if predicted else 4):
        chance = chance_of(kinds, STRATA)
        found = both_games(notion, person_of(kinds, STRATA, predicted))
        for side, (game, m) in enumerate(zip(found, (u, 1 - u), strict=True)):
            size = betting._stakes(game, 3.0)
            for k, more in enumerate((0.0, 0.05, 0.2)):
                bet = np.minimum(size, LARGEST_LOSS / np.maximum(game.loss(m + more), 1e-300))
                factors = 1 + bet * (game.part - (m + more) * game.whole)
                assert np.all(factors >= 1 - LARGEST_LOSS - 1e-9)
                average[side, k] += chance * factors.prod()
    assert average[:, 0] == pytest.approx(1)
    assert np.all(average[:, 1:] <= 1)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("sizes", [(3, 2), (2, 3), (1, 4)])
def test_capital_on_two_groups_together_is_one_on_average(notion, sizes):
    """Whatever one group's stakes take from the other's rows lies in the past of both."""
    worlds = [STRATA[:1], np.array([(0.6, 0.5)])]
    u1, u0 = (truth(notion, world) for world in worlds)
    kinds = [(0, a, y) for a, y in ((0, 0), (1, 0), (1, 1))]
    average = 0.0
    for rows in product(kinds, repeat=sum(sizes)):
        parts = rows[: sizes[0]], rows[sizes[0] :]
        both = [both_games(notion, person_of(*one)) for one in zip(parts, worlds, strict=True)]
        first, second = both[0].low, both[1].high
        capital = 1.0
        stakes, _ = betting._joint_stakes(first, second, 3.0)
        for game, size, m in zip((first, second), stakes, (u1, 1 - u0), strict=True):
            bet = np.minimum(size, LARGEST_LOSS / np.maximum(game.loss(1.0), 1e-300))
            capital *= (1 + bet * (game.part - m * game.whole)).prod()
        average += capital * np.prod(
            [chance_of(part, world) for part, world in zip(parts, worlds, strict=True)]
        )
    assert average == pytest.approx(1)


def changed(person, row, everything):
    a, y = person.accepted.copy(), person.positive.copy()
    p = person.propensity.copy()
    a[row:], y[row:] = 1 - a[row:], (1 - a[row:]) * 1.0
    if everything:
        p[row + 1 :] = 0.03
    return person._replace(accepted=a, positive=y, propensity=p)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("score", [True, False])
def test_later_rows_change_no_stake_no_reach_and_no_prediction(notion, score):
    person = draw(np.random.default_rng(0), 0, 60, score)
    for row in (0, 1, 7, 30, 59):
        other = changed(person, row, everything=True)
        for mine, theirs in zip(both_games(notion, person), both_games(notion, other), strict=True):
            for a, b in (
                (betting._stakes(mine, 3.0), betting._stakes(theirs, 3.0)),
                (mine.loss(0.5), theirs.loss(0.5)),
            ):
                assert np.array_equal(a[..., : row + 1], b[..., : row + 1])
            assert np.array_equal(mine.part[..., :row], theirs.part[..., :row])
        before, after = (np.broadcast_to(prediction(who, TAU), 60) for who in (person, other))
        assert np.array_equal(before[: row + 1], after[: row + 1])


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_rows_of_one_person_are_one_draw(notion):
    rng = np.random.default_rng(1)
    unit = np.repeat(np.arange(20), 1 + rng.integers(0, 4, 20))
    person = draw(rng, 0, len(unit), score=True)._replace(unit=unit)
    order = orders(20, 3, rng)
    found = games(define(notion).alone, person, order, alpha=0.05, overlap=TAU)
    assert found.low.part.shape == found.high.part.shape == (3, 20)
    if notion == "demographic":
        means = np.array([person.accepted[unit == i].mean() for i in range(20)])
        assert found.low.part == pytest.approx(means[order])
    # Neither stakes nor limits on a person know any of that person's rows.
    place = 12
    for line in range(3):
        rows = np.isin(unit, order[line][place:])
        flipped = np.where(rows, 1 - person.accepted, person.accepted)
        label = np.where(rows, flipped, person.positive)
        other = games(
            define(notion).alone,
            person._replace(accepted=flipped, positive=label),
            order,
            alpha=0.05,
            overlap=TAU,
        )
        for mine, theirs in zip(found, other, strict=True):
            a, b = (betting._stakes(game, 3.0)[line] for game in (mine, theirs))
            assert np.array_equal(a[: place + 1], b[: place + 1])
            assert np.array_equal(
                mine.loss(0.3)[line, : place + 1], theirs.loss(0.3)[line, : place + 1]
            )


def several(notion, person, rng, alpha):
    return games(
        define(notion).alone, person, orders(person.units, 3, rng), alpha=alpha, overlap=TAU
    )


@pytest.mark.parametrize("score", [pytest.param(True, marks=pytest.mark.slow), False])
def test_bounds_miss_no_more_often_than_they_say(score):
    logs, alpha, true = 60, 0.1, truths(2)
    missed = {notion: np.zeros(3, dtype=int) for notion in NOTIONS}
    for log in range(logs):
        rng = np.random.default_rng([log, score, 1])
        people = [draw(rng, 0, 200, score), draw(rng, 1, 120, score)]
        for notion in NOTIONS:
            one, two = (several(notion, who, rng, alpha) for who in people)
            u1, u0 = true[notion][:2]
            together = lower_difference(one.low, two.high, (0.0, 1.0), (0.0, 1.0), alpha)
            missed[notion] += [
                lower(one.low, alpha) > u1,
                1 - lower(one.high, alpha) < u1,
                together > u1 - u0,
            ]
    for notion, found in missed.items():
        assert found.max() <= binom.isf(1e-6, logs, alpha), (notion, found)


@pytest.mark.parametrize("good", [0.001, 0.999])
def test_bounds_hold_where_nearly_all_or_nearly_none_are_good(good):
    logs, alpha = 80, 0.1
    missed = {notion: np.zeros(2, dtype=int) for notion in NOTIONS}
    for log in range(logs):
        rng = np.random.default_rng([log, 2])
        p = rng.choice([0.1, 0.5, 0.9], 300)
        accepted = (rng.random(300) < p) * 1.0
        person = Person(accepted, accepted * (rng.random(300) < good), p, None)
        true = {
            "qualification": good,
            "accuracy": 0.5,
            "opportunity": 0.5,
            "demographic": 0.5,
        }
        for notion, u in true.items():
            found = several(notion, person, rng, alpha)
            missed[notion] += [lower(found.low, alpha) > u, 1 - lower(found.high, alpha) < u]
    for notion, found in missed.items():
        assert found.max() <= binom.isf(1e-6, logs, alpha), (notion, found)


@given(
    ends=st.lists(st.floats(0, 1), min_size=4, max_size=4), share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_corners_span_everything_below_a_difference(ends, share, seed):
    first, second = tuple(sorted(ends[:2])), tuple(sorted(ends[2:]))
    lowest, highest = first[0] - second[1], first[1] - second[0]
    d = lowest + share * (highest - lowest)
    found = np.array(corners(first, second, d))
    assert len(found)
    rng = np.random.default_rng(seed)
    m1, m0 = rng.uniform(*first, 300), rng.uniform(*second, 300)
    below = m1 - m0 <= d
    # Whatever is linear is nowhere larger than at a corner.
    for slope in rng.standard_normal((20, 2)):
        inside = slope[0] * m1[below] + slope[1] * m0[below]
        assert inside.max(initial=-np.inf) <= (found @ slope).max() + 1e-9


@given(end=st.floats(0, 1), guess=st.floats(-1, 2), step=st.floats(1e-9, 1))
def test_the_search_finds_the_end_from_any_guess(end, guess, step):
    found = climb(lambda m: m <= end, 0.0, 1.0, guess=guess, step=step)
    assert found <= end
    assert end - found <= max(step / 25, 1e-8) + 1e-12


def test_logarithms_do_not_overflow_where_capital_would_and_nobody_says_nothing():
    many = betting.Game(np.ones((1, 100_000)), np.ones((1, 100_000)), np.zeros(1), np.ones(1))
    assert lower(many, 1e-12) > 0.999
    nobody = betting.Game(*(np.empty((1, 0)) for _ in range(4)))
    assert lower(nobody, 0.05) == 0
    assert lower_difference(nobody, many, (0.1, 0.9), (0.2, 0.3), 0.05) == pytest.approx(-0.2)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("constant", [None, 0.02, 0.97])
def test_no_row_costs_more_than_was_known_before_it(notion, constant):
    """At any candidate, with propensities from the overlap up and scores that are wrong."""
    rng = np.random.default_rng(7)
    p = np.where(rng.random(400) < 0.3, 0.01, rng.random(400))
    accepted = (rng.random(400) < p) * 1.0
    positive = accepted * (rng.random(400) < 0.3)
    pending = accepted * (1 - positive) * (rng.random(400) < 0.2)
    score = None if constant is None else np.full(400, constant)
    person = Person(accepted, positive, p, score, pending=pending)
    order = np.stack([rng.permutation(400) for _ in range(5)])
    for game in games(define(notion).alone, person, order, alpha=0.05, overlap=TAU):
        for m in (0.0, 0.05, 0.4, 1.0):
            assert np.all(m * game.whole - game.part <= game.loss(m) + 1e-9)
