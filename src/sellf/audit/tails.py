"""Tail bounds for a sum of independent terms, valid at every sample size.

T is a sum of independent terms with mean 0, such as the error of a mean or of a difference of two
means. `radius` returns q with P(T >= q) <= alpha. Nothing here depends on the order of the rows.
Three bounds on the tail are used, each proven for every number of terms; since all of them bound
the same probability, the smallest is taken:

- Bentkus (2004): from the variance and the largest term, at most 1.26 times the normal quantile in
  the limit;
- Berry and Esseen, with Shevtsova's (2010) constant 0.56: the normal tail plus an error;
- the same after exponential tilting (Cramer's change of measure), where the error is multiplied by
  the tail itself. `_tilted` has the derivation.

The required moments are unknown. They are bounded from the sample, each with a small share of
alpha: the mean of n nonnegative terms Z is below E Z by y or more with probability at most
exp(-n y^2 / (2 E Z^2)). With Z^2 at most Z times its range, this bounds second and fourth moments
from above.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, log_ndtr, ndtri

BERRY_ESSEEN = 0.56
"""Shevtsova's (2010) constant, for terms that need not be identically distributed."""
SHARE = 0.02
"""The share of alpha for each of four bounds on moments."""
GRID = np.linspace(0.0, 1.0, 72) ** 1.6 * 1.8
"""Distances beyond the normal quantile at which the tilted bound is evaluated."""
TILTS = np.linspace(-1.0, 1.0, 7)


class Term(NamedTuple):
    """One group's part of T: its rows' values minus their mean, times `scale`."""

    scale: float
    n: float
    variance: float
    """The sample variance with divisor n."""
    fourth: float
    """The fourth central moment of the sample, or a bound on the true one: see `bounded`."""
    reach: float
    """The largest possible distance of a value from the mean, fixed before seeing the data."""
    bounded: bool = False
    """Whether `fourth` is already a bound on the true moment."""


class Spread(NamedTuple):
    """Bounds on the moments of T; all hold together with high probability."""

    low: float
    """Lower bound on the variance; `high` is the upper bound."""
    high: float
    fourth: float
    """Upper bound on the sum of the terms' fourth moments."""
    largest: float
    """The largest contribution of one row."""
    rows: float


def radius(terms: Sequence[Term], alpha: float, *, sharp: bool = True) -> float:
    """Return q with P(T >= q) <= alpha, where T is the sum of all terms.

    Args:
        terms: one term per group.
        alpha: the bound on the probability that T reaches q.
        sharp: whether to try all bounds; else only Bentkus', which is as good for very small alpha.
    """
    if any(term.n < 2 for term in terms):
        return float("inf")
    return quantile(spread(terms, SHARE * alpha), (1 - 4 * SHARE) * alpha, sharp=sharp)


def spread(terms: Sequence[Term], alpha: float) -> Spread:
    """Return four bounds on moments of T; each fails with probability at most alpha."""
    log, log_each = np.log(1 / alpha), np.log(2 * len(terms) / alpha)
    seen = known = fourth = largest = rows = 0.0
    for scale, n, variance, moment, reach, bounded in terms:
        # The error of the sample mean (Maurer and Pontil 2009): moments are about the true mean.
        unbiased = variance * n / (n - 1)
        off = (2 * unbiased * log_each / n) ** 0.5 + 14 * reach * log_each / (3 * (n - 1))
        off = min(off, reach)
        if not bounded:
            about_mean = (moment**0.25 + off) ** 4
            slack = reach**4 * log_each / (2 * n)
            moment = min(((about_mean + slack) ** 0.5 + slack**0.5) ** 2, reach**4)
        known += scale**2 * n * variance
        seen += scale**2 * n * (variance + off * off)
        fourth += scale**4 * n * moment
        largest = max(largest, scale * reach)
        rows += n
    slack = (2 * log * fourth) ** 0.5
    return Spread(known - slack - 2 * largest**2 * log / 3, seen + slack, fourth, largest, rows)


def quantile(moments: Spread, alpha: float, *, sharp: bool = True) -> float:
    """Return q with P(T >= q) <= alpha for every T with such moments."""
    low, high, fourth, largest, rows = moments
    if high <= 0 or largest <= 0:
        return 0.0
    best = _bentkus(high, largest, rows, alpha)
    if sharp and low > 0:
        best = min(best, high**0.5 * _standard(fourth / low**2, largest / low**0.5, alpha))
    return best


def _bentkus(variance: float, largest: float, rows: float, alpha: float) -> float:
    """Return the quantile by Bentkus (2004), Theorem 1.1: E(T - t)+^2 <= E(S - t)+^2.

    S is a sum of equally many independent terms with the same variance and two values each,
    `largest` and one below 0. So P(T >= q) <= E(S - t)+^2 / (q - t)^2 for every t < q.
    """
    n = float(np.ceil(rows))
    each = variance / n
    chance = each / (each + largest * largest)
    step, start = largest + each / largest, -variance / largest
    t = np.linspace(-1.0, 7.0, 161) * variance**0.5
    u = (t - start) / step
    k = np.maximum(np.floor(u), -1.0)

    def above(count: np.ndarray, trials: float) -> np.ndarray:
        inside = np.clip(count, 0.0, max(trials - 1, 0.0))
        tail = betainc(inside + 1, trials - inside, chance)
        return np.where(count < 0, 1.0, np.where(count >= trials, 0.0, tail))

    first = n * chance * above(k - 1, n - 1)
    second = n * (n - 1) * chance**2 * above(k - 2, n - 2)
    square = np.maximum(second + (1 - 2 * u) * first + u * u * above(k, n), 0.0) * step**2
    return float(np.min(t + (square / alpha) ** 0.5))


def _standard(fourth: float, largest: float, alpha: float) -> float:
    """Return the quantile of a sum with variance 1 by Berry and Esseen, plain or tilted."""
    third = fourth**0.5  # Cauchy and Schwarz, since the variance is 1
    best = float("inf")
    error = BERRY_ESSEEN * third
    if error < alpha:
        best = float(-ndtri(alpha - error))
    y = -ndtri(alpha) + GRID
    fine = np.flatnonzero(_tilted(y, fourth, third, largest) <= alpha)
    return min(best, float(y[fine[0]])) if len(fine) else best


def _tilted(y: np.ndarray, fourth: float, third: float, largest: float) -> np.ndarray:
    """Return upper bounds on P(S >= y), where S is a sum with variance 1.

    With the law tilted by exp(l s), P(S >= y) = e^K E_l[e^(-l S); S >= y], K = ln E e^(l S). Under
    the tilted law S has mean m = K'(l), variance v = K''(l) and a Berry-Esseen error d, and
    integration by parts gives at most e^K (E[e^(-l N); N >= y] + 2 d e^(-l y)) for a normal N with
    mean m and variance v. For terms within h = largest, Taylor's formula with k the sum of the
    third moments, |k| <= `third`, gives K = l^2 / 2 + l^3 k / 6, m = l + l^2 k / 2 and v = 1 + l k,
    each up to a multiple of `fourth` that is bounded in the code below. The result is the worst
    case over k and those remainders. The choice l = y makes the error smallest.
    """
    tilt = y[:, None]
    grown = np.exp(np.minimum(tilt * largest, 50.0))
    k = third * TILTS
    log_mgf = tilt**2 / 2 + tilt**3 * k / 6 + tilt**4 * fourth * grown / 24
    drift = (np.cbrt(grown) + tilt * largest * grown) ** 3
    worst = np.zeros(len(y))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for mean_off in (-(tilt**3) * fourth * grown**2 / 2, tilt**3 * fourth * grown / 6):
            for variance_off in (-1.5 * tilt**2 * fourth * grown**2, tilt**2 * fourth * grown / 2):
                mean = tilt + tilt**2 * k / 2 + mean_off
                variance = 1 + tilt * k + variance_off
                possible = variance > 0.05
                v = np.where(possible, variance, 1.0)
                normal = log_mgf - tilt * mean + tilt**2 * v / 2
                normal = normal + log_ndtr((mean - tilt - tilt * v) / v**0.5)
                error = 2 * BERRY_ESSEEN * third * drift / v**1.5
                total = np.exp(normal) + error * np.exp(log_mgf - tilt**2)
                worst = np.maximum(worst, np.where(possible, total, np.inf).max(axis=1))
    return worst
