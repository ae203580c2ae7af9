"""Intervals from sums alone, for logs too long to bet on row by row: empirical Bernstein.

Maurer and Pontil (2009): for n values within a range R the mean is at least
x - sqrt(2 V ln(2 / alpha) / n) - 7 R ln(2 / alpha) / (3 (n - 1)) with probability 1 - alpha, V
being the sample variance. R comes from the smallest propensity that is weighted by, which is fixed
before the data are seen. A ratio's candidates t are ruled out by the same bound on E[A Y - t s];
that bound is concave in t, so the end is found by bisection.
"""

from typing import NamedTuple

import numpy as np

from sellf.audit.betting import climb
from sellf.audit.sums import Sums
from sellf.fairness.notions import Notion

CONSTANTS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
"""Predictions that are tried where a log has none; each gets its share of alpha."""


class Moments(NamedTuple):
    """Sums of one of the scores of E[Y], with what it goes together with."""

    n: float
    accepted: float
    positive: float
    total: float
    """Of the score x."""
    square: float
    """Of x^2."""
    with_positive: float
    """Of A Y x."""
    with_accepted: float
    """Of A x."""


def interval(
    notion: Notion,
    sums: Sums,
    *,
    alpha: float,
    overlap: float,
    predicted: bool,
    trusted: bool,
    weighted: bool = True,
) -> tuple[float, float]:
    """Return both ends of one group's utility; together they fail with probability alpha.

    Args:
        notion: what is measured.
        sums: of the group, over all its strata.
        alpha: the chance that the interval misses.
        overlap: the smallest propensity that is weighted by.
        predicted: whether the log has predictions.
        trusted: whether the outcomes of the rejected are known.
        weighted: whether the log has propensities.
    """
    n, side = float(sums.people), alpha / 2
    if n < 2:
        return 0.0, 1.0
    if notion == "demographic":
        a = float(sums.accepted)
        return _mean_ends((a, a, n), (a, a, n), 1.0, side)
    if trusted or not weighted:
        choices, scale = [None], 1.0
    elif predicted:
        choices, scale = [None], 2 / overlap - 1
    else:
        choices, scale = list(CONSTANTS), 1 / overlap
    lows, highs = [], []
    for constant in choices:
        lower, upper = moments(sums, constant, trusted)
        low, high = _ends(notion, lower, upper, scale, side / len(choices))
        lows.append(low)
        highs.append(high)
    low, high = max(0.0, *lows), min(1.0, *highs)
    return (low, high) if low <= high else (0.0, 1.0)


def moments(sums: Sums, constant: float | None, trusted: bool) -> tuple[Moments, Moments]:
    """Return the moments of the lower and of the upper score of E[Y].

    Args:
        sums: of one group.
        constant: predict this for everyone, instead of what the log predicts.
        trusted: whether the outcomes of the rejected are known.
    """
    n, a, ay = float(sums.people), float(sums.accepted), float(sums.positive)
    if trusted:
        y = ay + float(sums.rejected_positive)
        same = Moments(n, a, ay, y, y, ay, ay)
        return same, same
    if constant is None:
        strong = (sums.score, sums.score_square, sums.score_positive, sums.score_accepted)
    else:
        c, w, ww = constant, sums.weight, sums.weight_square
        wy, wwy = sums.weight_positive, sums.weight_square_positive
        people, accepted = sums.people - sums.weak, sums.accepted - sums.weak_accepted
        positive = sums.positive - sums.weak_positive
        # s = A Y / p + c (1 - A / p), and (A Y)^2 = A Y.
        strong = (
            wy + c * (people - w),
            wwy + 2 * c * (wy - wwy) + c * c * (people - 2 * w + ww),
            wy + c * (positive - wy),
            wy + c * (accepted - w),
        )
    score, square, with_positive, with_accepted = map(float, strong)
    seen, hidden = float(sums.weak_positive), float(sums.weak - sums.weak_accepted)
    lower = Moments(
        n, a, ay, score + seen, square + seen, with_positive + seen, with_accepted + seen
    )
    # A rejected person's label may be 1: it adds to the score where A = 0.
    return lower, lower._replace(total=lower.total + hidden, square=lower.square + hidden)


def _ends(
    notion: Notion, lower: Moments, upper: Moments, scale: float, side: float
) -> tuple[float, float]:
    if notion == "qualification":
        return _mean_ends(
            (lower.total, lower.square, lower.n), (upper.total, upper.square, upper.n), scale, side
        )
    if notion == "accuracy":
        return _mean_ends(accuracy_moments(upper), accuracy_moments(lower), scale, side)
    return _ratio_low(upper, scale, side), 1 - _ratio_gap(lower, scale, side)


def accuracy_moments(x: Moments) -> tuple[float, float, float]:
    """Return sum, sum of squares and number of 2 A Y + 1 - A - x."""
    total = 2 * x.positive + x.n - x.accepted - x.total
    without = x.total - x.with_accepted
    square = 4 * x.positive + x.n - x.accepted + x.square - 4 * x.with_positive - 2 * without
    return total, square, x.n


def _mean_ends(
    lower: tuple[float, float, float], upper: tuple[float, float, float], scale: float, side: float
) -> tuple[float, float]:
    low = lower[0] / lower[2] - radius(*lower, scale, side)
    return low, upper[0] / upper[2] + radius(*upper, scale, side)


def radius(total: float, square: float, n: float, scale: float, alpha: float) -> float:
    """Return how far the mean can be to one side of the sample's, but for a chance of alpha."""
    variance = max(square - total * total / n, 0.0) / (n - 1)
    log = np.log(2 / alpha)
    return float((2 * variance * log / n) ** 0.5 + 7 * scale * log / (3 * (n - 1)))


def _ratio_low(x: Moments, scale: float, side: float) -> float:
    def ruled_out(t: float) -> bool:
        total = x.positive - t * x.total
        square = x.positive - 2 * t * x.with_positive + t * t * x.square
        return total / x.n > radius(total, square, x.n, scale, side)

    return climb(ruled_out, 0.0, 1.0, guess=0.5, step=1e-6)


def _ratio_gap(x: Moments, scale: float, side: float) -> float:
    def ruled_out(gap: float) -> bool:
        t = 1 - gap
        total = t * x.total - x.positive
        square = x.positive - 2 * t * x.with_positive + t * t * x.square
        return total / x.n > radius(total, square, x.n, scale, side)

    return climb(ruled_out, 0.0, 1.0, guess=0.5, step=1e-6)
