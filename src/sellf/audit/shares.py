"""Shares of people: exact intervals for one, and a provably valid one for a difference of two.

Where every value is 0 or 1, a group's utility is a binomial share: acceptance, and the other
notions where the outcome of everyone is known or where nothing is assumed about the rejected.
Opportunity is a share of those it is about, given how many they are.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from sellf.audit.tails import Spread, quantile

BOX = 0.01
"""The part of alpha for each end of the two intervals that bound the variance."""


class Share(NamedTuple):
    """How many of how many."""

    count: float  # pyright: ignore[reportIncompatibleMethodOverride]
    people: float

    @property
    def value(self) -> float:
        """The share; a half of nobody."""
        return self.count / self.people if self.people else 0.5


def lower(share: Share, alpha: float) -> float:
    """Return a number that the true share is below with probability alpha at most.

    Clopper and Pearson (1934).
    """
    k, n = share
    return float(betaincinv(k, n - k + 1, alpha)) if k > 0 else 0.0


def upper(share: Share, alpha: float) -> float:
    """Return a number that the true share is above with probability alpha at most."""
    k, n = share
    return float(betaincinv(k + 1, n - k, 1 - alpha)) if k < n else 1.0


def lower_difference(first: Share, second: Share, alpha: float) -> float:
    """Return a number that first minus second is below with probability alpha at most.

    The tail of the difference is bounded for all pairs of shares within two exact intervals, which
    have a part of alpha.
    """
    if not first.people or not second.people:
        return -1.0
    boxes = [(lower(share, BOX * alpha), upper(share, BOX * alpha)) for share in (first, second)]
    apart = boxes[0][0] - boxes[1][1]
    moments = _spread(boxes, (first.people, second.people))
    within = first.value - second.value - quantile(moments, (1 - 4 * BOX) * alpha)
    return max(apart, within)


def _spread(boxes: list[tuple[float, float]], people: tuple[float, float]) -> Spread:
    """Return bounds on the moments of the error of a difference, for all shares in the boxes."""
    least = most = fourth = largest = 0.0
    for (low, high), n in zip(boxes, people, strict=True):
        ends = np.array([low, high, min(max(0.5, low), high)])
        variance = ends * (1 - ends)
        least += variance[:2].min() / n
        most += variance.max() / n
        # p (1 - p) (1 - 3 p (1 - p)) is largest where p (1 - p) = 1/6.
        inner = np.append(variance, 1 / 6) if variance.min() < 1 / 6 < variance.max() else variance
        fourth += (inner * (1 - 3 * inner)).max() / n**3
        largest = max(largest, max(1 - low, high) / n)
    return Spread(least, most, fourth, largest, sum(people))
