"""Finite-sample intervals of one group's utility, row by row, by betting."""

from typing import NamedTuple

import numpy as np

from sellf.audit.betting import Floats, lower_bound, lower_ratio, upper_ratio
from sellf.audit.scores import Person, Scores, reach, scores
from sellf.fairness.notions import Notion

SHUFFLE_SEED = 20_260_715
"""Rows are put into one fixed random order, so that the same log gives the same interval."""
ANYTIME_ROWS = 1000
"""Logs that grow get the reach of a log of this size."""


class Interval(NamedTuple):
    """A range for an unknown number, and the estimate within it."""

    low: float
    value: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


def shuffled(person: Person) -> Person:
    """Return the rows in an order that depends on nothing but how many there are.

    First sorted, then permuted from a fixed seed: given the values, every order is equally likely,
    as betting asks; and a log gives the same interval however its rows were stored.
    """
    keys = [field for field in person if field is not None]
    order = np.lexsort(keys[::-1])
    return person.take(order[np.random.default_rng(SHUFFLE_SEED).permutation(len(order))])


def interval(
    notion: Notion, person: Person, *, alpha: float, overlap: float, anytime: bool = False
) -> tuple[float, float]:
    """Return both ends; together they fail with probability alpha at most.

    Args:
        notion: what is measured.
        person: the group's rows in betting order (`shuffled`, or by time if `anytime`).
        alpha: the chance that the interval misses the group's utility.
        overlap: the smallest propensity at which weighting is trusted.
        anytime: whether it must hold at every row at once.
    """
    side = alpha / 2
    n = len(person.accepted)
    how = {"alpha": side, "anytime": anytime}
    if notion == "demographic":
        low = lower_bound(person.accepted, floor=0, **how)
        return low, 1 - lower_bound(1 - person.accepted, floor=0, **how)
    # What keeps coming has no number of rows that stakes could be fitted to.
    both = scores(person, overlap, reach(ANYTIME_ROWS if anytime else n, side))
    if notion == "qualification":
        return _mean(both.lower, -both.below, both.upper, 1 + both.above, **how)
    if notion == "accuracy":
        # A wrongly accepted person counts -upper >= 0, a rightly accepted one 2 - upper.
        seen = 2 * person.positive + 1 - person.accepted
        low, high = seen - both.upper, seen - both.lower
        return _mean(low, np.minimum(1 - both.above, 0), high, np.maximum(both.below, 1), **how)
    return _ratio(person.positive, both, **how)


def _mean(
    lower: Floats, floor: Floats, upper: Floats, ceiling: Floats, *, alpha: float, anytime: bool
) -> tuple[float, float]:
    low = lower_bound(lower, floor=floor, alpha=alpha, anytime=anytime)
    high = 1 - lower_bound(1 - upper, floor=1 - ceiling, alpha=alpha, anytime=anytime)
    return _ordered(low, high)


def _ratio(positive: Floats, both: Scores, *, alpha: float, anytime: bool) -> tuple[float, float]:
    # For t in (0, 1]: t upper - A Y is at most t k for an accepted positive, t for a rejected one;
    # and A Y - t lower at most t k, or 1 - t for an accepted positive, whose score is 1 at least.
    how = {"alpha": alpha, "anytime": anytime}
    low = lower_ratio(positive, both.upper, loss=np.maximum(both.above, 1.0), **how)
    high = upper_ratio(positive, both.lower, loss=np.maximum(both.below, 1.0), **how)
    return _ordered(low, high)


def _ordered(low: float, high: float) -> tuple[float, float]:
    # Ends that crossed happen with probability alpha at most; then nothing is claimed.
    return (low, high) if low <= high else (0.0, 1.0)
