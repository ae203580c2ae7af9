"""From intervals to a verdict."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from sellf.audit.interval import Interval
from sellf.logs.person import Floats

Verdict: TypeAlias = Literal["fair", "unfair", "undetermined"]


class Ends(NamedTuple):
    """Intervals of all groups; arrays with one entry per group."""

    low: Floats
    high: Floats


def of_pairs(lower: Floats, value: Floats) -> Interval:
    """Return the interval of the largest minus the smallest utility over the groups.

    Args:
        lower: lower[i, j] is a lower bound on group i minus group j.
        value: the estimates.
    """
    away = ~np.eye(len(value), dtype=bool)
    low, high = float(lower[away].max()), float(-lower[away].min())
    low, high = max(low, 0.0), min(max(high, 0.0), 1.0)
    return Interval(low, min(max(float(np.ptp(value)), low), high), high)


def largest(intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the largest of several disparities, given the interval of each."""
    return Interval(*(max(ends) for ends in zip(*intervals, strict=True)))


def decide(interval: Interval, omega: float) -> Verdict:
    """Return "fair" if all of the interval is within the tolerance, "unfair" if none of it is."""
    if interval.high <= omega:
        return "fair"
    return "unfair" if interval.low > omega else "undetermined"
