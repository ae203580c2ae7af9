"""Candidate values of a utility or of a difference: segments with common stakes, and the search."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

SEGMENTS = (0.015, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.7, 1.0)
"""Upper ends of the segments; candidates in the same segment share their stakes."""


class Segment(NamedTuple):
    """Candidates that share their stakes."""

    low: float
    high: float
    top: float
    """The upper end of the segment in `SEGMENTS`, for which stakes are made."""


def segments(low: float, high: float) -> list[Segment]:
    """Split a range of candidates into segments, each with its own stakes.

    Smaller candidates allow larger stakes. The stakes against a candidate must depend on the
    candidate alone, not on the range, which comes from the same rows.
    """
    ends = pairwise((0.0, *SEGMENTS))
    return [Segment(max(low, a), min(high, b), b) for a, b in ends if a <= high and b >= low]


def corners(
    first: tuple[float, float], second: tuple[float, float], d: float
) -> list[tuple[float, float]]:
    """Return the corners of {m1 - m0 <= d} within the box; those on the line m1 - m0 = d first."""
    (a1, b1), (a0, b0) = first, second
    line = [(a0 + d, a0), (b1, b1 - d), (a1, a1 - d), (b0 + d, b0)]
    tiny = 1e-12
    inside = [
        (min(max(m1, a1), b1), min(max(m0, a0), b0))
        for m1, m0 in line
        if a1 - tiny <= m1 <= b1 + tiny and a0 - tiny <= m0 <= b0 + tiny
    ]
    box = [(m1, m0) for m1 in first for m0 in second if m1 - m0 <= d]
    return list(dict.fromkeys([*inside, *box]))


def climb(
    ruled_out: Callable[[float], bool], low: float, high: float, *, guess: float, step: float
) -> float:
    """Return the largest candidate known to be ruled out, searching from `low`; `low` if none is.

    The result is rounded down by at most a 25th of `step`, so it is never too large.

    Args:
        ruled_out: a function that is true up to some candidate and false beyond it.
        low: the smallest candidate.
        high: the largest candidate.
        guess: a guess of the result, where the search starts.
        step: the first step of the search.
    """
    tolerance = max(step / 25, 1e-9 * (high - low))
    step = max(step, 2 * tolerance)
    if low < guess < high:
        if ruled_out(guess):
            low = guess
            while low + step < high and ruled_out(low + step):
                low, step = low + step, 2 * step
            high = min(high, low + step)
        else:
            high = guess
            while high - step > low and not ruled_out(high - step):
                high, step = high - step, 2 * step
            low = max(low, high - step)
    while high - low > tolerance:
        middle = 0.5 * (low + high)
        if ruled_out(middle):
            low = middle
        else:
            high = middle
    return low
