"""Betting intervals hold at every sample size: by enumeration, by hand, and by simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellf.audit.betting import climb, lower_bound, lower_ratio, upper_ratio


@pytest.mark.parametrize("mean", [0.03, 0.2, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("anytime", [False, True])
def test_the_exact_chance_of_missing_a_coin_is_at_most_alpha(mean, anytime):
    """Every sequence of ten tosses is tried, so nothing is left to chance."""
    alpha, missed = 0.1, 0.0
    for tosses in product([0.0, 1.0], repeat=10):
        values = np.array(tosses)
        chance = np.prod(np.where(values == 1, mean, 1 - mean))
        low = lower_bound(values, floor=0.0, alpha=alpha, anytime=anytime)
        missed += chance * (low > mean)
    assert missed <= alpha


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5])
def test_the_exact_chance_of_missing_a_ratio_is_at_most_alpha(ratio):
    """Rows are accepted positives, accepted negatives and rejected people, as (part, whole)."""
    rows = np.array([(1.0, 2.0), (0.0, -1.0), (0.0, 0.5)])
    # E[part] / E[whole] = ratio: p1 = ratio (2 p1 - p2 + p3 / 2), p2 = 0.1.
    p1 = ratio * (-0.1 + 0.9 / 2) / (1 - ratio * 1.5)
    chances = np.array([p1, 0.1, 0.9 - p1])
    assert chances @ rows[:, 0] / (chances @ rows[:, 1]) == pytest.approx(ratio)
    alpha, low_missed, high_missed = 0.1, 0.0, 0.0
    for kinds in product(range(3), repeat=7):
        part, whole = rows[list(kinds)].T
        chance = np.prod(chances[list(kinds)])
        low_missed += chance * (lower_ratio(part, whole, loss=1.0, alpha=alpha) > ratio)
        high_missed += chance * (upper_ratio(part, whole, loss=1.0, alpha=alpha) < ratio)
    assert low_missed <= alpha
    assert high_missed <= alpha


def capital_by_hand(values, mean, floor, alpha, anytime):
    """Return the largest capital of whoever bets against one mean, row by row."""
    capital = best = 1.0
    seen: list[float] = []
    for t, value in enumerate(values):
        spread = (0.25 + len(seen) * np.var(seen)) / (len(seen) + 1) if seen else 0.25
        rows = (t + 1) * np.log(t + 2) if anytime else 0.75 * len(values)
        stake = min(np.sqrt(2 * np.log(1 / alpha) / (spread * rows)), 0.75 / (mean - floor))
        capital *= 1 + stake * (value - mean)
        best = max(best, capital)
        seen.append(value)
    return best


@given(
    values=st.lists(st.floats(-0.5, 3), min_size=2, max_size=30),
    alpha=st.sampled_from([0.01, 0.05, 0.3]),
    anytime=st.booleans(),
)
def test_the_bound_is_where_capital_by_hand_reaches_one_over_alpha(values, alpha, anytime):
    values = np.array(values)
    low = lower_bound(values, floor=-0.5, alpha=alpha, anytime=anytime)
    grid = np.linspace(1e-6, 1, 201)
    out = [capital_by_hand(values, mean, -0.5, alpha, anytime) >= 1 / alpha for mean in grid]
    # The bound is rounded down a little, never up.
    slack = values.std() / len(values) ** 0.5 / 50 + 1e-6
    for mean, ruled_out in zip(grid, out, strict=True):
        if mean < low:
            assert ruled_out
        if mean > low + slack:
            assert not ruled_out


def test_logarithms_do_not_overflow_where_capital_would():
    values = np.ones(100_000)
    assert lower_bound(values, floor=0.0, alpha=1e-12) > 0.999
    huge = np.concatenate([np.zeros(5), np.full(50, 1e9)])
    assert 0 <= lower_bound(huge, floor=0.0, alpha=0.05) <= 1


def test_an_anytime_bound_never_falls_as_the_log_grows_and_holds_at_every_look():
    rng = np.random.default_rng(0)
    values = rng.random(400)
    looks = [lower_bound(values[:n], floor=0.0, alpha=0.05, anytime=True) for n in range(1, 400, 9)]
    # Each is rounded down by a fiftieth of a standard error.
    assert np.all(np.diff(looks) > -0.3 / 50)
    missed = 0
    for _ in range(1000):
        values = (rng.random(300) < 0.3).astype(float)
        missed += lower_bound(values, floor=0.0, alpha=0.05, anytime=True) > 0.3
    assert missed <= 65  # a miss at the last look is a miss at any: 50 are allowed, plus noise


def test_nobody_says_nothing():
    nobody = np.empty(0)
    assert lower_bound(nobody, floor=-3.0, alpha=0.05) == 0
    assert lower_ratio(nobody, nobody, loss=1.0, alpha=0.05) == 0
    assert upper_ratio(nobody, nobody, loss=1.0, alpha=0.05) == 1


@given(
    end=st.floats(0, 1), guess=st.floats(-1, 2), step=st.floats(1e-9, 1), low=st.sampled_from([0.0])
)
def test_the_search_finds_the_end_from_any_guess(end, guess, step, low):
    found = climb(lambda m: m <= end, low, 1.0, guess=guess, step=step)
    assert found <= end
    assert end - found <= max(step / 50, 1e-8) + 1e-12
