"""How far a sum of independent terms can be from 0, with a variance nobody knows beforehand.

T is a sum of n independent terms with mean 0, each at most h in size. A gambler who stakes a fixed
l on every term ends with the capital M = prod(1 + l x), whose mean is 1 whatever the order.
Markov's inequality says P(M >= 1 / alpha) <= alpha; betting intervals are made of that
(Waudby-Smith and Ramdas 2024). But M is nearly lognormal, and then far less capital is enough.
`threshold` returns the smallest L for which P(ln M >= L) <= alpha is proven, from l h and, if it is
known, a bound on the third absolute moment; the variance is not needed. L is ln(1 / alpha) at worst
and half the squared normal quantile in the limit.

The proof. Let V = ln M, y = l x, and let Q have density M. Then P(V >= L) = E_Q[e^-V; V >= L].
Under Q the V_i are independent. With s, k and f the sums of the second, third and fourth moments of
y, and e = l h, Taylor's formula gives

    E_Q V = s / 2 - k / 6 + a,   0 <= a <= f / (12 (1 - e)^3)
    Var_Q V = s + b,   -f (H / 24 + 1 / (4 (1 - e)^2)) <= b <= 0
    H = (2 - 4 ln(1 - e)) / (1 - e)^3

where |k| <= t and f <= e t for the sum t of third absolute moments, t <= e s. Berry and Esseen
(constant 0.56, Shevtsova 2010) and integration by parts give P(V >= L) <= E[e^-N; N >= L] + 1.12 d
e^-L for a normal N with that mean and variance, d being the sum of third absolute moments under Q,
a multiple of t, over the variance to the power 3/2. Chebyshev's inequality does where the variance
is small. The worst case over s, k, a and b counts.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri

from sellf.audit.tails import BERRY_ESSEEN

LARGEST_STAKE = 0.6
"""The largest share of the capital that one term can win or lose."""
FINE = 25
"""Arguments are rounded up to e^(k / 25), which costs a few thousandths of a width."""
SCALES = np.exp(np.linspace(np.log(0.02), np.log(80.0), 120))[:, None]
SKEWS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
BOX = 0.02
"""The part of alpha for how far the sample's mean is from the true one."""


class Term(NamedTuple):
    """One group's part of T: its rows' values less their mean, each times `scale`."""

    scale: float
    n: float
    variance: float
    """Central moments of the sample."""
    third: float
    fourth: float
    reach: float
    """The most that a value can differ from the mean, fixed before these rows were seen."""
    guess: float
    """Of the standard deviation, likewise: stakes are fitted to it."""
    cube: float = float("inf")
    """The mean over the rows of what bounds E|x|^3 given the features; infinite if not known."""


def radius(terms: Sequence[Term], alpha: float) -> float:
    """Return q with P(T >= q) <= alpha, T being the sum of all terms.

    Args:
        terms: one for each group.
        alpha: the chance that T reaches q.
    """
    if any(term.n < 2 for term in terms):
        return float("inf")
    largest = max(term.scale * term.reach for term in terms)
    guess = sum(term.scale**2 * term.n * term.guess**2 for term in terms) ** 0.5
    if largest <= 0:
        return 0.0
    guess = max(guess, 1e-12 * largest)
    cubes = sum(_cubes(term, BOX * alpha / len(terms)) for term in terms)
    main = (1 - 2 * BOX) * alpha
    log_capital, share = threshold(largest / guess, cubes / guess**3, main)
    stake = share / largest
    return _needed(terms, stake, share, log_capital, BOX * alpha / len(terms))


def _cubes(term: Term, alpha: float) -> float:
    """Return a bound on the sum of E|x|^3 over the rows.

    Given the features a value as large as h has a chance of 1 / h at most, as it is weighted by the
    inverse of that chance; so what bounds its E|x|^3 is at most h^2 + 1. A nonnegative Z <= c falls
    short of its mean by y with probability exp(-n y^2 / (2 c E Z)) at most.
    """
    slack = (term.reach**2 + 1) * np.log(1 / alpha) / (2 * term.n)
    mean = ((term.cube + slack) ** 0.5 + slack**0.5) ** 2
    return float(term.scale**3 * term.n * mean)


def _needed(
    terms: Sequence[Term], stake: float, share: float, log_capital: float, alpha: float
) -> float:
    """Return the smallest sum with which the capital is sure to reach what it must.

    ln(1 + y) is bounded from below by four terms of its series, or by two, whichever is more. The
    sample's moments are about its own mean; how far that may be from the true one (Maurer and
    Pontil 2009) has a part of alpha.
    """
    log = np.log(4 / alpha)
    second = third = fourth = 0.0
    for scale, n, variance, skew, kurt, reach, *_ in terms:
        unbiased = variance * n / (n - 1)
        off = (2 * unbiased * log / n) ** 0.5 + 14 * reach * log / (3 * (n - 1))
        off = min(off, reach)
        second += scale**2 * n * (variance + off**2)
        third += scale**3 * n * (skew - 3 * variance * off - off**3)
        fourth += scale**4 * n * (kurt**0.25 + off) ** 4
    series = stake / 2 * second - stake**2 / 3 * third
    series += stake**3 / 4 * fourth / (1 - share) ** 4
    two = stake * second * -(np.log1p(-share) + share) / share**2
    return log_capital / stake + float(min(series, two))


def threshold(ratio: float, cubes: float, alpha: float) -> tuple[float, float]:
    """Return ln M that has probability alpha at most, and the share of capital at stake for it.

    Args:
        ratio: the largest term over the guess of T's standard deviation.
        cubes: the sum of third absolute moments over the cube of that guess, at most.
        alpha: the chance that the capital reaches M.
    """
    # Rounded up, so that few have to be computed: more never needs less.
    cubes = min(cubes, 10.0)
    keys = (int(np.ceil(FINE * np.log(max(x, 1e-6)))) for x in (ratio, cubes))
    found = _threshold(*keys, float(alpha))
    if found is not None:
        return found
    markov = float(np.log(1 / alpha))
    return markov, min(float((2 * markov) ** 0.5 * ratio), LARGEST_STAKE)


@lru_cache(maxsize=20_000)
def _threshold(ratio_key: int, cubes_key: int, alpha: float) -> tuple[float, float] | None:
    ratio, cubes = np.exp(ratio_key / FINE), np.exp(cubes_key / FINE)
    least, most = float(ndtri(alpha) ** 2 / 2), float(np.log(1 / alpha))

    def holds(log_capital: float) -> bool:
        # The stake that fits a capital L is sqrt(2 L) over the standard deviation.
        scale = (2 * log_capital) ** 0.5
        share = scale * ratio
        return share <= LARGEST_STAKE and chance(log_capital, share, cubes * scale**3) <= alpha

    if not holds(most * 0.99):
        return None
    low, high = least, most * 0.99
    while high - low > 0.004 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high, float((2 * high) ** 0.5 * ratio)


def chance(log_capital: float, share: float, cubes: float) -> float:
    """Return a bound on P(ln M >= log_capital).

    Args:
        log_capital: L.
        share: the most that one term wins or loses of the capital, e, below 1.
        cubes: a bound on the sum of third absolute moments of what the terms win.
    """
    s, e = SCALES, share
    third = np.minimum(e * s, cubes)
    fourth = e * third
    spread_low = fourth * ((2 - 4 * np.log1p(-e)) / (1 - e) ** 3 / 24 + 1 / (4 * (1 - e) ** 2))
    shape = max(1.0, (1 - e) * (-np.log1p(-e) / e) ** 3)
    bent = third * (np.cbrt(shape) + e / (2 * (1 - e))) ** 3
    worst = np.zeros(s.shape)
    for mean_off in (0.0, 1 / (12 * (1 - e) ** 3)):
        for variance in (s, s - spread_low):
            v = np.maximum(variance, 1e-9)
            mean = s / 2 - third * SKEWS / 6 + mean_off * fourth
            tail = np.exp(v / 2 - mean + log_ndtr((mean - v - log_capital) / v**0.5))
            error = 2 * BERRY_ESSEEN * bent / v**1.5 * np.exp(-log_capital)
            gap = np.maximum(log_capital - mean, 1e-9)
            chebyshev = np.exp(-log_capital) * np.where(mean < log_capital, s / gap**2, 1.0)
            total = np.minimum(tail + error, np.minimum(chebyshev, np.exp(-log_capital)))
            worst = np.maximum(worst, total.max(axis=1, keepdims=True))
    return float(worst.max())
