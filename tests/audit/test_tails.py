"""Bounds on tails are never below the exact tail of any sum that can be worked out exactly."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from sellf.audit import tails
from sellf.audit.tails import BERRY_ESSEEN, Spread, Term, quantile, radius

LAWS = {
    "fair coin": ([0, 1], [0.5, 0.5]),
    "rare win": ([0, 1], [0.97, 0.03]),
    "rare loss": ([0, 1], [0.1, 0.9]),
    "skewed to the right": ([-1, 0, 6], [0.5, 0.45, 0.05]),
    "skewed to the left": ([-8, 0, 1], [0.02, 0.48, 0.5]),
    "heavy on both sides": ([-5, 0, 5], [0.02, 0.96, 0.02]),
}
SIZES = (5, 30, 200, 2000)


class Exact:
    """The sum of n independent draws from a law on whole numbers, divided by its deviation."""

    def __init__(self, law, n):
        values, chances = (np.array(x, dtype=float) for x in LAWS[law])
        mean = chances @ values
        self.sigma = (n * (chances @ (values - mean) ** 2)) ** 0.5
        self.fourth = n * (chances @ (values - mean) ** 4) / self.sigma**4
        self.third = n * (chances @ np.abs(values - mean) ** 3) / self.sigma**3
        self.largest = np.abs(values - mean).max() / self.sigma
        steps = (values - values.min()).astype(int)
        one = np.bincount(steps, chances)
        size = n * steps.max() + 1
        chance = np.fft.irfft(np.fft.rfft(one, size) ** n, size)
        self.at = (np.arange(size) + n * (values.min() - mean)) / self.sigma
        self.above = np.cumsum(chance[::-1])[::-1]

    def tail(self, y):
        """Return P(S >= y)."""
        place = np.searchsorted(self.at, np.asarray(y) - 1e-9)
        return np.append(self.above, 0.0)[place]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS)
def test_the_tilted_bound_is_above_the_exact_tail(law, n):
    exact = Exact(law, n)
    y = np.linspace(0.2, 5, 60)
    bound = tails._tilted(y, exact.fourth, exact.fourth**0.5, exact.largest)
    assert np.all(bound >= exact.tail(y) - 1e-12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS)
def test_berry_and_esseen_s_error_is_above_the_exact_one(law, n):
    exact = Exact(law, n)
    assert exact.third <= exact.fourth**0.5 + 1e-12
    y = np.concatenate([exact.at, exact.at + 1e-6])
    off = np.abs(exact.tail(y) - norm.sf(y))
    assert off.max() <= BERRY_ESSEEN * exact.third


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS)
def test_a_quantile_from_the_true_moments_has_at_most_its_chance(law, n):
    exact = Exact(law, n)
    for alpha in (0.1, 0.025, 0.003, 1e-5):
        q = tails._standard(exact.fourth, exact.largest, alpha)
        assert exact.tail(q) <= alpha + 1e-12
        moments = Spread(1.0, 1.0, exact.fourth, exact.largest, n)
        for sharp in (True, False):
            assert exact.tail(quantile(moments, alpha, sharp=sharp)) <= alpha + 1e-12
        assert quantile(moments, alpha) <= quantile(moments, alpha, sharp=False)
        # No better than the best that is possible, and not absurd.
        assert quantile(moments, alpha) < 4 * norm.isf(alpha) + 20 * exact.largest


def two_point(variance, largest, n):
    """Return the values and the chances of Bentkus' sum S."""
    each = variance / n
    chance = each / (each + largest**2)
    k = np.arange(n + 1)
    return k * largest - (n - k) * each / largest, binom.pmf(k, n, chance)


@given(
    n=st.integers(2, 200),
    share=st.floats(1e-4, 1),
    largest=st.floats(0.01, 20),
    alpha=st.sampled_from([0.1, 0.01, 1e-4]),
)
def test_bentkus_quantile_is_that_of_his_sum_by_direct_summation(n, share, largest, alpha):
    variance = share * n * largest**2  # no more, as no term is larger
    values, chances = two_point(variance, largest, n)
    assert chances @ values == pytest.approx(0, abs=1e-6 * (variance**0.5 + largest))
    assert chances @ values**2 == pytest.approx(variance)
    q = tails._bentkus(variance, largest, n, alpha)
    t = np.linspace(-1, 7, 161)[:, None] * variance**0.5
    beyond = np.maximum(values - t, 0) ** 2 @ chances
    assert q == pytest.approx((t[:, 0] + (beyond / alpha) ** 0.5).min(), rel=1e-5)
    # The largest value that the sum can take is a quantile of any level: nothing is beyond.
    assert chances[values > q * (1 + 1e-9)].sum() <= alpha


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.005])
def test_bentkus_holds_for_every_sum_of_few_unlike_terms_by_enumeration(alpha):
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(2, 10))
        up = rng.uniform(0.05, 1, n)
        down = rng.uniform(0.02, 3, n)
        chance = down / (up + down)  # of the win, so that the mean is 0
        variance, largest = float((up * down).sum()), float(up.max())
        q = tails._bentkus(variance, largest, n, alpha)
        tail = 0.0
        for wins in product([True, False], repeat=n):
            if np.where(wins, up, -down).sum() > q * (1 + 1e-9):
                tail += np.where(wins, chance, 1 - chance).prod()
        assert tail <= alpha


def weighted(rng, size, p):
    """Return A Y / p: rare and large values."""
    return (rng.random(size) < 0.5 * p) / p


SKEWED = {
    "rare": (lambda rng, n: (rng.random(n) < 0.01) * 1.0, 0.01, 1.0),
    "weighted": (lambda rng, n: weighted(rng, n, 0.05), 0.5, 20.0),
    "mixed weights": (
        lambda rng, n: weighted(rng, n, rng.choice([0.02, 0.2, 1.0], n, p=[0.05, 0.35, 0.6])),
        0.5,
        50.0,
    ),
    "all but a few": (lambda rng, n: (rng.random(n) < 0.99) * 1.0, 0.99, 1.0),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [40, 400, 4000])
@pytest.mark.parametrize("law", SKEWED)
def test_the_radius_of_a_sample_is_exceeded_no_more_often_than_it_says(law, n, sign):
    draw, mean, reach = SKEWED[law]
    alpha, logs, missed = 0.05, 150, 0
    for seed in range(logs):
        values = sign * draw(np.random.default_rng([seed, n]), n)
        off = values - values.mean()
        term = Term(1 / n, n, float(np.mean(off**2)), float(np.mean(off**4)), reach)
        missed += values.mean() - sign * mean >= radius([term], alpha)
    assert missed <= binom.isf(1e-6, logs, alpha)


def test_the_radius_of_a_difference_is_exceeded_no_more_often_than_it_says():
    alpha, logs, missed, widths = 0.05, 300, 0, []
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        terms, difference = [], 0.0
        for (draw, mean, reach), n, sign in (
            (SKEWED["mixed weights"], 2000, 1),
            (SKEWED["rare"], 300, -1),
        ):
            values = draw(rng, n)
            off = values - values.mean()
            moments = float(np.mean(off**2)), float(np.mean(off**4))
            terms.append(Term(1 / n, n, *moments, reach))
            difference += sign * (values.mean() - mean)
        q = radius(terms, alpha)
        widths.append(q)
        missed += difference >= q
    assert missed <= binom.isf(1e-6, logs, alpha)
    assert max(widths) < 1


def test_a_sum_of_very_many_terms_is_nearly_normal_and_one_person_says_nothing():
    term = Term(1e-7, 1e7, 0.25, 0.0625, 1.0)
    assert radius([term], 0.025) == pytest.approx(1.96 * 0.5 / 1e7**0.5, rel=0.05)
    assert radius([term._replace(n=1)], 0.025) == np.inf
    assert quantile(Spread(0.0, 0.0, 0.0, 0.0, 10), 0.05) == 0
