"""Shares of people: textbook intervals, and differences whose chance to miss is worked out."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from sellf.audit.shares import Share, lower, lower_difference, upper


@pytest.mark.parametrize("n", [1, 7, 50, 1000])
def test_a_share_s_interval_is_clopper_and_pearson_s(n):
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        for alpha in (0.1, 0.025, 1e-4):
            known = binomtest(k, n).proportion_ci(1 - 2 * alpha, method="exact")
            share = Share(k, n)
            assert lower(share, alpha) == pytest.approx(known.low, abs=1e-9)
            assert upper(share, alpha) == pytest.approx(known.high, abs=1e-9)


CHANCES = np.concatenate([[0.001, 0.01, 0.99, 0.999], np.linspace(0.03, 0.97, 20)])


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (10, 10), (25, 40), (6, 90)])
@pytest.mark.parametrize("alpha", [0.2, 0.025])
def test_the_exact_chance_to_miss_a_difference_is_at_most_alpha(sizes, alpha):
    """Every pair of counts with its probability, for every pair of true shares of a grid."""
    first, second = sizes
    bound = np.array(
        [
            [lower_difference(Share(i, first), Share(j, second), alpha) for j in range(second + 1)]
            for i in range(first + 1)
        ]
    )
    one = binom.pmf(np.arange(first + 1), first, CHANCES[:, None])
    two = binom.pmf(np.arange(second + 1), second, CHANCES[:, None])
    missed = np.zeros((len(CHANCES), len(CHANCES)))
    for a, p1 in enumerate(CHANCES):
        for b, p0 in enumerate(CHANCES):
            missed[a, b] = one[a] @ (bound > p1 - p0 + 1e-12) @ two[b]
    assert missed.max() <= alpha
    if min(sizes) >= 10:
        assert bound.max() > 0.2  # something is ruled out


def test_the_difference_of_large_shares_is_nearly_the_normal_one():
    n, p1, p0 = 100_000, 0.6, 0.3
    error = ((p1 * (1 - p1) + p0 * (1 - p0)) / n) ** 0.5
    found = lower_difference(Share(p1 * n, n), Share(p0 * n, n), 0.025)
    assert p1 - p0 - 1.05 * 1.96 * error < found < p1 - p0 - 1.96 * error


def test_a_share_of_nobody_says_nothing():
    assert Share(0, 0).value == 0.5
    assert lower_difference(Share(0, 0), Share(3, 9), 0.05) == -1
    assert (lower(Share(0, 0), 0.05), upper(Share(0, 0), 0.05)) == (0, 1)
