"""Tail bounds for a sum of independent terms with unknown variance, by betting with fixed stakes.

T is a sum of n independent terms with mean 0, each at most h in size. Betting a fixed stake l on
every term gives the final capital M = prod(1 + l x), whose mean is 1 in any order. Betting
intervals (Waudby-Smith and Ramdas 2024) use Markov's inequality, P(M >= 1 / alpha) <= alpha. But M
is nearly lognormal, so a much smaller threshold suffices. `threshold` returns the smallest L for
which P(ln M >= L) <= alpha is proven, from l h and bounds on moments. L is ln(1 / alpha) at worst,
and half the squared normal quantile in the limit if l is chosen well.

Proof. Let V = ln M, y = l x, and let Q have density M. Then P(V >= L) = E_Q[e^-V; V >= L].
Under Q the V_i are independent. With s, k and f the sums of the second, third and fourth moments of
y, and e = l h, Taylor's formula gives

    E_Q V = s / 2 - k / 6 + a,   0 <= a <= f / (12 (1 - e)^3)
    Var_Q V = s + b,   -f (H / 24 + 1 / (4 (1 - e)^2)) <= b <= 0
    H = (2 - 4 ln(1 - e)) / (1 - e)^3

where |k| <= t and f <= e t for the sum t of third absolute moments, t <= e s. Berry and Esseen
(constant 0.56, Shevtsova 2010) and integration by parts give P(V >= L) <= E[e^-N; N >= L] + 1.12 d
e^-L for a normal N with that mean and variance, d being the sum of third absolute moments under Q
over the variance to the power 3/2. One such moment is at most c (g + c / (2 (1 - e)))^3 / c with c
the root of E|y|^3 and g^3 = (1 - e) (ln(1 - e) / e)^3 or 1, since (1 + y) |ln(1 + y)|^3 is at most
g^3 |y|^3 and E_Q V_i is between 0 and E y^2 / (2 (1 - e)); a group's rows have the same law, so c^3
is at most t over the number of rows in the smallest group. Where the variance is small, Chebyshev's
inequality is used. The bound is the worst case over s, k, a and b.

The stake l is fixed beforehand, so s, t and f are unknown constants. They are bounded from the
sample, each bound with a small share of alpha. L grows with the range of s and with the bounds on t
and f; so where these bounds hold, the L that is used is no smaller than the correct one.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri

from sellf.audit import tails
from sellf.audit.tails import BERRY_ESSEEN

LARGEST_STAKE = 0.6
"""The largest share of the capital that one term can win or lose."""
FINE = 40
"""Bounds are rounded conservatively to e^(k / 40), which limits the number of thresholds."""
LEAST_SCALE, LARGEST_SCALE = 0.02, 80.0
"""The range of variances of ln M to consider: outside it, large capital is less likely."""
SKEWS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
MOMENT_SHARE = 0.003
"""The share of alpha for each of six kinds of bounds on moments."""
BOX = 0.005
"""The share of alpha for the distance between the sample mean and the true mean."""


class Term(NamedTuple):
    """One group's part of T: its rows' values minus their mean, times `scale`."""

    scale: float
    n: float
    variance: float
    """The sample variance; `third` and `fourth` are the next central moments of the sample."""
    third: float
    fourth: float
    reach: float
    """The largest possible distance of a value from the mean, fixed before seeing these rows."""
    guess: float
    """A guess of the standard deviation, also fixed beforehand, to which stakes are fitted."""
    cube: float = float("inf")
    """The mean over the rows of a bound on E|x|^3 given the features; infinite if not known."""
    seen_cube: float = float("inf")
    """The mean of |x|^3 over the rows; infinite if not known."""
    centred: bool = False
    """Whether `cube` and `seen_cube` are about the true mean; else about the sample mean."""


class Bounds(NamedTuple):
    """Bounds on the moments of T that hold with high probability."""

    low: float
    """Lower bound on the variance; `high` is the upper bound."""
    high: float
    third: float
    """Upper bound on the sum of third absolute moments; `fourth` is that on fourth moments."""
    fourth: float


def radius(terms: Sequence[Term], alpha: float) -> float:
    """Return q with P(T >= q) <= alpha, where T is the sum of all terms.

    Args:
        terms: one term per group.
        alpha: the bound on the probability that T reaches q.
    """
    if any(term.n < 2 for term in terms):
        return float("inf")
    largest = max(term.scale * term.reach for term in terms)
    if largest <= 0:
        return 0.0
    main = (1 - 6 * MOMENT_SHARE - BOX) * alpha
    stake = fitted_stake(terms, main)
    share = stake * largest
    low, high, third, fourth = bounds(terms, MOMENT_SHARE * alpha)
    log_capital = threshold(
        share,
        stake**3 * third,
        stake**4 * fourth,
        (stake**2 * low, stake**2 * high),
        main,
        min(term.n for term in terms),
    )
    return _needed(terms, stake, share, log_capital, BOX * alpha / len(terms))


def fitted_stake(terms: Sequence[Term], alpha: float) -> float:
    """Return the stake, chosen only from quantities that are fixed beforehand.

    If terms are small, stakes somewhat below the normal quantile are best, since variances are
    known well and remainders matter; if terms are large, stakes that suit Markov's inequality are.
    """
    largest = max(term.scale * term.reach for term in terms)
    guess = sum(term.scale**2 * term.n * term.guess**2 for term in terms) ** 0.5
    ratio = largest / max(guess, 1e-12 * largest)
    normal, markov = 0.7 * float(ndtri(alpha)) ** 2 / 2, float(np.log(1 / alpha))
    log_capital = normal + (markov - normal) * min(1.0, (3.5 * ratio) ** 2)
    return min(float((2 * log_capital) ** 0.5) * ratio, LARGEST_STAKE) / largest


def bounds(terms: Sequence[Term], alpha: float) -> Bounds:
    """Return bounds on moments of T, of six kinds; each fails with probability at most alpha.

    Given the features, a value as large as h has probability at most 1 / h, since it is weighted by
    the inverse of that probability; so the bound on E|x|^3 given the features is at most h^2 + 1.
    """
    log = float(np.log(2 * len(terms) / alpha))
    largest = max(term.scale * term.reach for term in terms)
    rows = sum(term.n for term in terms)
    given = seen = fourth = given_most = 0.0
    for scale, n, variance, _, moment, reach, _, cube, seen_cube, centred in terms:
        off = _off(n, variance, reach, log)
        apart = 0.0 if centred else off
        given += scale**3 * n * (cube ** (1 / 3) + apart) ** 3
        given_most = max(given_most, scale**3 * (reach**2 + 1))
        seen += scale**3 * n * (seen_cube ** (1 / 3) + apart) ** 3
        fourth += scale**4 * n * (moment**0.25 + off) ** 4
    # The terms of all groups are independent, so one bound on their sum is enough.
    log = float(np.log(1 / alpha))
    third = rows * min(
        mean_bound(given / rows, given_most, rows, log),
        mean_bound(seen / rows, largest**3, rows, log),
    )
    fourth = min(rows * mean_bound(fourth / rows, largest**4, rows, log), largest * third)
    known = [
        tails.Term(scale, n, variance, fourth / (len(terms) * scale**4 * n), reach, bounded=True)
        for scale, n, variance, _, _, reach, *_ in terms
    ]
    spread = tails.spread(known, alpha)
    third = min(third, (spread.high * spread.fourth) ** 0.5)
    return Bounds(spread.low, spread.high, third, spread.fourth)


def mean_bound(mean: float, largest: float, n: float, log: float) -> float:
    """Return an upper bound on E Z for 0 <= Z <= largest, from the mean of n such values.

    Hoeffding (1963), Theorem 1: a mean as small as x has probability at most exp(-n kl(x, E Z)).
    """
    x = mean / largest
    if x >= 1:
        return largest
    each, low, high = log / n, x, 1.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        apart = x * math.log(x / middle) if x > 0 else 0.0
        apart += (1 - x) * math.log((1 - x) / (1 - middle))
        low, high = (low, middle) if apart >= each else (middle, high)
    return largest * high


def _off(n: float, variance: float, reach: float, log: float) -> float:
    """Return a bound on the error of the sample mean (Maurer and Pontil 2009)."""
    unbiased = variance * n / (n - 1)
    off = (2 * unbiased * log / n) ** 0.5 + 14 * reach * log / (3 * (n - 1))
    return float(min(off, reach))


def _needed(
    terms: Sequence[Term], stake: float, share: float, log_capital: float, alpha: float
) -> float:
    """Return the smallest sum for which the capital is certain to reach its threshold.

    ln(1 + y) is bounded from below by four terms of its series or by two, whichever is larger. The
    sample moments are about the sample mean, which may differ from the true mean.
    """
    log = float(np.log(4 / alpha))
    second = third = fourth = 0.0
    for scale, n, variance, skew, kurt, reach, *_ in terms:
        off = _off(n, variance, reach, log)
        second += scale**2 * n * (variance + off**2)
        third += scale**3 * n * (skew - 3 * variance * off - off**3)
        fourth += scale**4 * n * (kurt**0.25 + off) ** 4
    series = stake / 2 * second - stake**2 / 3 * third
    series += stake**3 / 4 * fourth / (1 - share) ** 4
    two = stake * second * -(np.log1p(-share) + share) / share**2
    return log_capital / stake + float(min(series, two))


def threshold(
    share: float,
    third: float,
    fourth: float,
    scale: tuple[float, float],
    alpha: float,
    rows: float = 1.0,
) -> float:
    """Return the value that ln M reaches with probability at most alpha.

    Args:
        share: e, the largest share of the capital that one term wins or loses, below 1.
        third: an upper bound on the sum of third absolute moments of the terms' gains.
        fourth: an upper bound on the sum of their fourth moments.
        scale: the smallest and the largest sum of their second moments.
        alpha: the error probability.
        rows: the smallest number of identically distributed terms of one kind.
    """
    low, high = (min(max(x, LEAST_SCALE), LARGEST_SCALE) for x in scale)
    keys = [_up(x) for x in (share, min(third, 1e3), min(fourth, 1e3), high)]
    return _threshold(*keys[:3], -_up(1 / low), keys[3], -_up(1 / rows), float(alpha))


def _up(x: float) -> int:
    return int(np.ceil(FINE * np.log(max(x, 1e-12))))


@lru_cache(maxsize=50_000)
def _threshold(
    share: int, third: int, fourth: int, low: int, high: int, rows: int, alpha: float
) -> float:
    share_, third_, fourth_, low_, high_, rows_ = np.exp(
        np.array([share, third, fourth, low, high, rows]) / FINE
    ).tolist()
    share_ = min(share_, LARGEST_STAKE)
    probability = _Tail(share_, third_, fourth_, (low_, high_), rows_)
    below, above = 0.0, float(np.log(1 / alpha))
    while above - below > 0.004 * above:
        middle = (below + above) / 2
        if probability(middle) <= alpha:
            above = middle
        else:
            below = middle
    return above


def chance(
    log_capital: float,
    share: float,
    cubes: float,
    fourths: float = float("inf"),
    scale: tuple[float, float] = (LEAST_SCALE, LARGEST_SCALE),
    rows: float = 1.0,
) -> float:
    """Return an upper bound on P(ln M >= log_capital).

    Args:
        log_capital: L.
        share: e, the largest share of the capital that one term wins or loses, below 1.
        cubes: an upper bound on the sum of third absolute moments of the terms' gains.
        fourths: an upper bound on the sum of their fourth moments.
        scale: the smallest and the largest sum of their second moments.
        rows: the smallest number of identically distributed terms of one kind.
    """
    return _Tail(share, cubes, fourths, scale, rows)(log_capital)


class _Tail:
    """The bound of `chance` as a function of ln M.

    All that does not depend on ln M is computed once, for every variance of the grid, both ends of
    the remainders a and b, and every skewness: axes (a, b, variance, skewness).
    """

    def __init__(
        self, e: float, cubes: float, fourths: float, scale: tuple[float, float], rows: float
    ) -> None:
        steps = int(math.log(scale[1] / scale[0]) / 0.07) + 5
        s = np.exp(np.linspace(math.log(scale[0]), math.log(scale[1]), steps))[:, None]
        third = np.minimum(e * s, cubes)
        fourth = np.minimum(e * third, fourths)
        spread_low = fourth * (
            (2 - 4 * math.log1p(-e)) / (1 - e) ** 3 / 24 + 1 / (4 * (1 - e) ** 2)
        )
        shape = max(1.0, (1 - e) * (-math.log1p(-e) / e) ** 3)
        size = np.minimum(np.cbrt(third / rows), e)
        bent = third * (math.cbrt(shape) + size / (2 * (1 - e))) ** 3
        off = np.array([0.0, 1 / (12 * (1 - e) ** 3)])[:, None, None, None]
        self.mean = s / 2 - third * SKEWS / 6 + off * fourth
        v = np.maximum(np.stack([s, s - spread_low]), 1e-9)
        self.deviation = v**0.5
        self.centre = self.mean - v
        self.base = v / 2 - self.mean
        self.error = 2 * BERRY_ESSEEN * bent / v**1.5
        self.scale = s

    def __call__(self, log_capital: float) -> float:
        """Return the bound on P(ln M >= log_capital)."""
        markov = math.exp(-log_capital)
        gap = np.maximum(log_capital - self.mean, 1e-9)
        chebyshev = markov * np.where(self.mean < log_capital, self.scale / gap**2, 1.0)
        least = np.minimum(chebyshev, markov)
        tail = np.exp(self.base + log_ndtr((self.centre - log_capital) / self.deviation))
        return float(np.minimum(tail + self.error * markov, least).max())
