"""Binomial shares: exact intervals for one share, and valid bounds on a difference of two.

Where every value is 0 or 1, a group's utility is a binomial share. This holds for acceptance, and
for the other notions if everyone's outcome is known or nothing is assumed about the rejected.
Opportunity is a share of the qualified, conditional on their number.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from sellf.audit.tails import Spread, quantile

BOX = 0.01
"""The share of alpha for each end of the two intervals that bound the variance."""


class Share(NamedTuple):
    """A count out of a number of people."""

    count: float  # pyright: ignore[reportIncompatibleMethodOverride]
    people: float

    @property
    def value(self) -> float:
        """The share; 1/2 if there are no people."""
        return self.count / self.people if self.people else 0.5


def lower(share: Share, alpha: float) -> float:
    """Return a lower bound on the true share that fails with probability at most alpha.

    Clopper and Pearson (1934).
    """
    k, n = share
    return float(betaincinv(k, n - k + 1, alpha)) if k > 0 else 0.0


def upper(share: Share, alpha: float) -> float:
    """Return an upper bound on the true share that fails with probability at most alpha."""
    k, n = share
    return float(betaincinv(k + 1, n - k, 1 - alpha)) if k < n else 1.0


def lower_difference(first: Share, second: Share, alpha: float) -> float:
    """Return a lower bound on first minus second that fails with probability at most alpha.

    The tail of the difference is bounded for all pairs of shares within two exact intervals, which
    use a small share of alpha.
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
