"""How much capital is rare: never less than what can be worked out exactly."""

import numpy as np
import pytest
from scipy.stats import binom, multinomial, norm

from sellf.audit.capital import (
    LARGEST_STAKE,
    Term,
    bounds,
    chance,
    fitted_stake,
    radius,
    threshold,
)

TARGETS = np.array([0.7, 1.4, 2.2, 3.0, 4.0, 6.0])


def stakes(size):
    """Return shares of the capital at stake, for the terms' largest size."""
    return [share / size for share in (0.01, 0.05, 0.15, 0.3, 0.59)]


@pytest.mark.parametrize("n", [2, 10, 60, 300, 3000])
@pytest.mark.parametrize("p", [0.001, 0.02, 0.1, 0.3, 0.5, 0.7, 0.95, 0.999])
def test_the_chance_of_capital_on_coins_is_above_the_exact_one(p, n):
    """The capital depends on the number of heads alone, so its tail is a binomial one."""
    values, chances = np.array([1 - p, -p]), np.array([p, 1 - p])
    heads = np.arange(n + 1)
    pmf = binom.pmf(heads, n, p)
    for stake in stakes(np.abs(values).max()):
        win, lose = np.log1p(stake * values)
        log_capital = heads * win + (n - heads) * lose
        if n < 500:
            assert pmf @ np.exp(log_capital) == pytest.approx(1)
        share = stake * np.abs(values).max()
        cubes = n * stake**3 * (chances @ np.abs(values) ** 3)
        for target in TARGETS:
            exact = pmf[log_capital >= target].sum()
            assert exact <= chance(target, share, cubes) + 1e-12
            assert exact <= chance(target, share, np.inf) + 1e-12
            known = n * stake**2 * (chances @ values**2)
            fourth = n * stake**4 * (chances @ values**4)
            if known > 0.02:
                near = (known * 0.97, known * 1.02)
                assert exact <= chance(target, share, cubes, fourth, near) + 1e-12


@pytest.mark.parametrize("n", [4, 20, 70])
def test_the_chance_of_capital_on_three_values_is_above_the_exact_one(n):
    k = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    rng = np.random.default_rng(n)
    for _ in range(25):
        chances = rng.dirichlet([0.5, 1, 2])
        values = rng.standard_normal(3) * rng.choice([1, 5], 3)
        values = values - chances @ values
        pmf = multinomial.pmf(k, n, chances)
        for stake in stakes(np.abs(values).max()):
            log_capital = k @ np.log1p(stake * values)
            share = stake * np.abs(values).max()
            cubes = n * stake**3 * (chances @ np.abs(values) ** 3)
            for target in TARGETS:
                exact = pmf[log_capital >= target - 1e-12].sum()
                assert exact <= chance(target, share, cubes) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("alpha", [0.1, 0.025, 0.0005])
def test_the_threshold_is_markov_s_at_worst_and_that_of_a_normal_sum_in_the_limit(alpha):
    wide, markov, z = (0.02, 80.0), np.log(1 / alpha), norm.isf(alpha)
    for share in (1e-5, 1e-3, 0.1, LARGEST_STAKE):
        for third in (1e-5, 0.01, 0.5, np.inf):
            assert z**2 / 2 * 0.999 <= threshold(share, third, np.inf, wide, alpha) <= markov
    assert threshold(1e-5, 1e-5, np.inf, wide, alpha) == pytest.approx(z**2 / 2, rel=0.02)
    assert threshold(LARGEST_STAKE, np.inf, np.inf, wide, alpha) == markov
    # The logarithm of the capital is normal with variance s and mean -s / 2.
    for s in (0.5, 2.0, 6.0):
        exact = z * s**0.5 - s / 2
        found = threshold(1e-5, 1e-6, 1e-9, (s * 0.9999, s * 1.0001), alpha)
        assert found == pytest.approx(max(exact, 0), abs=0.03)


def test_the_threshold_grows_with_every_bound():
    base = {"share": 0.1, "third": 0.05, "fourth": 0.004, "scale": (2.0, 4.0), "alpha": 0.025}
    least = threshold(**base)
    for more in ({"share": 0.2}, {"third": 0.2}, {"fourth": 0.02}, {"scale": (1.0, 9.0)}):
        assert threshold(**{**base, **more}) >= least


def test_stakes_do_not_depend_on_what_is_then_seen():
    rng = np.random.default_rng(0)
    fixed = {"scale": 0.01, "n": 100, "reach": 2.0, "guess": 0.7}
    found = {
        fitted_stake([Term(**fixed, variance=v, third=k, fourth=f, cube=c, seen_cube=d)], 0.025)
        for v, k, f, c, d in rng.random((20, 5))
    }
    assert len(found) == 1


@pytest.mark.parametrize("n", [50, 500, 5000])
@pytest.mark.parametrize("chances", [(0.01, 0.3), (0.2, 0.5), (0.002, 0.9)])
def test_bounds_on_moments_fail_no_more_often_than_they_say(n, chances):
    rng = np.random.default_rng(n)
    values, weights = np.array([6.0, 1.0, -0.5]), np.array([*chances, 1 - sum(chances)])
    mean = values @ weights
    second, third, fourth = (n * weights @ np.abs(values - mean) ** k for k in (2, 3, 4))
    reach, alpha, failed = np.abs(values - mean).max(), 0.02, np.zeros(4)
    logs = 400
    for _ in range(logs):
        share = rng.multinomial(n, weights) / n
        off = values - share @ values
        moments = (float(share @ off**k) for k in (2, 3, 4))
        cube = float(share @ np.abs(off) ** 3)
        found = bounds([Term(1.0, n, *moments, reach, 1.0, seen_cube=cube)], alpha)
        failed += [
            second < found.low,
            second > found.high,
            third > found.third,
            fourth > found.fourth,
        ]
    # Two kinds enter each: how far the mean is off, and the moment itself.
    assert (failed <= binom.isf(1e-5, logs, 4 * alpha)).all()


@pytest.mark.parametrize("n", [30, 200, 1500])
@pytest.mark.parametrize("guess", [0.3, 1.0, 3.0])
def test_the_exact_chance_that_a_share_is_off_by_the_radius_is_at_most_alpha(n, guess):
    """Every count with its probability; guesses of the spread that are right, and wrong."""
    k = np.arange(n + 1)
    share = k / n
    variance = share * (1 - share)
    third, fourth = variance * (1 - 2 * share), variance * (1 - 3 * variance)
    for p in (0.002, 0.03, 0.2, 0.5, 0.9, 0.998):
        pmf = binom.pmf(k, n, p)
        near = pmf > 1e-7
        spread = guess * (p * (1 - p)) ** 0.5
        for cube in (np.inf, p * (1 - p) * (p**2 + (1 - p) ** 2)):
            for alpha in (0.05, 0.01):
                missed = np.zeros(2)
                for i in k[near]:
                    for side, sign in enumerate((1, -1)):
                        term = Term(
                            1 / n, n, variance[i], sign * third[i], fourth[i], 1.0, spread, cube
                        )
                        # Only counts on the far side can miss.
                        if sign * (share[i] - p) > 0:
                            far = sign * (share[i] - p) >= radius([term], alpha)
                            missed[side] += pmf[i] * far
                assert missed.max() <= alpha


def weighted(rng, n, sign):
    """Return scores A Y / p - E[Y] with propensities down to 0.02, and what bounds E|x|^3."""
    p = rng.choice([0.02, 0.1, 0.5, 1.0], n, p=[0.05, 0.15, 0.4, 0.4])
    x = (rng.random(n) < 0.4 * p) / p - 0.4
    cube = (1 - p) * 0.4**3 + p * np.maximum((1 / p - 0.4) ** 3, 0.4**3)
    return sign * x, float(cube.mean())


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [60, 600, 6000])
def test_sums_of_weighted_outcomes_exceed_the_radius_no_more_often_than_it_says(n, sign):
    alpha, logs, missed = 0.05, 250, 0
    guess = float(weighted(np.random.default_rng(0), 10**5, 1)[0].std())
    for seed in range(logs):
        x, cube = weighted(np.random.default_rng([seed, n]), n, sign)
        off = x - x.mean()
        two, three, four = (float(np.mean(off**k)) for k in (2, 3, 4))
        term = Term(1 / n, n, two, three, four, 50.0, guess, cube)
        missed += x.mean() >= radius([term], alpha)
    assert missed <= binom.isf(1e-6, logs, alpha)


def test_one_person_says_nothing_and_a_constant_is_known():
    term = Term(1.0, 1, 0.0, 0.0, 0.0, 1.0, 0.5)
    assert radius([term], 0.05) == np.inf
    assert radius([term._replace(n=10, reach=0.0)], 0.05) == 0
