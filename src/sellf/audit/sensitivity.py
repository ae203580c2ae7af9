"""Sensitivity to hidden confounding by information about the outcome that is not in the log.

In the marginal sensitivity model (Tan 2006) with L >= 1, the odds of acceptance of two people who
look alike in the log differ by a factor of at most L. If m is the share of good outcomes among the
accepted, the share among the rejected then lies in
[max(m / L, 1 - L (1 - m)), min(L m, 1 - (1 - m) / L)].
"""

from typing import NamedTuple

import numpy as np

from sellf.fairness.arrays import divide
from sellf.fairness.notions import Counts, Rate
from sellf.logs.person import Floats
from sellf.logs.sums import Sums

LEVELS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
"""The values of L that are reported."""
LARGEST = 100.0
"""The largest value of L at which verdicts are tested."""


class Shift(NamedTuple):
    """The largest shifts of each group's utility under hidden confounding."""

    down: Floats
    up: Floats


def rejected_share(m: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest share of positives among the rejected.

    Args:
        m: P(Y = 1 | A = 1, x).
        level: L, the factor by which the odds of acceptance may differ; 1 means no confounding.
    """
    low = np.maximum(m / level, 1 - level * (1 - m))
    high = np.minimum(level * m, 1 - (1 - m) / level)
    return low, high


def shift(rate: Rate, sums: Sums, level: float) -> Shift:
    """Return how far utilities can differ from those without hidden confounding.

    People of the same group and stratum count as alike. Without overlap m is unknown; there the
    other intervals already allow every outcome, and nothing is added.
    """
    accepted = sums.accepted - sums.weak_accepted
    rejected = sums.people - sums.weak - accepted
    m = divide(sums.positive - sums.weak_positive, accepted, empty=0.0)
    usable = accepted > 0
    low, high = rejected_share(m, level)
    total = sums.by_group()

    def measure(share: Floats) -> Floats:
        hidden = np.where(usable, share * rejected, 0.0).sum(axis=-1)
        counts = Counts(total.people, total.accepted, total.positive, hidden)
        result = rate.utility(counts)
        return np.where(np.isnan(result), 0.0, result)

    centre, ends = measure(m), (measure(low), measure(high))
    return Shift(centre - np.minimum(*ends), np.maximum(*ends) - centre)
