"""What stands in for a label that only the accepted show: scores whose mean is the utility.

With p the chance of acceptance and any prediction f made without looking at the row,
s = f + A (Y - f) / p has mean E[Y], seen or not. Its size is what hurts: 1 / p may be large. A
bound from below only needs values that cannot be far below, so there f is cut to at most
k p / (1 - p), which keeps s >= -k whatever p is; and the mirror image from above. k is the largest
reach that earlier rows had, and no more than the number of rows can bear. So no smallest p has to
be known.

Where p is below `overlap` nobody's acceptance tells of the others. There a rejected label may be 0
or 1: the lower score takes 0, the upper one takes 1 (partial identification).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BINS = 10
"""Strata of the propensity within which predictions are learnt as betting goes on."""


class Person(NamedTuple):
    """What a log says of each person of one group, one entry a row."""

    accepted: Floats
    """A, 1 or 0."""
    positive: Floats
    """A Y: accepted and with a good outcome, 1 or 0."""
    propensity: Floats | None
    """p; None if the log does not say."""
    prediction: Floats | None
    """f, fixed on other data; None if there is none."""
    rejected_positive: Floats | None = None
    """(1 - A) Y where the outcomes of the rejected are known and trusted."""
    pending: Floats | None = None
    """1 for the accepted whose outcome is missing, so that it may be 0 or 1; `positive` is 0 for
    them. None if there are none."""
    unit: NDArray[np.intp] | None = None
    """A number for the person behind each row; None if every row is a person of its own."""

    def take(self, rows: NDArray[np.intp] | slice) -> "Person":
        """Return some of the rows."""
        return Person(*(None if field is None else field[rows] for field in self))  # pyright: ignore[reportArgumentType]


class Scores(NamedTuple):
    """Two scores of E[Y]: the mean of `lower` is at most it, that of `upper` at least."""

    lower: Floats
    upper: Floats
    below: Floats
    """k for the lower score: lower >= -below, known before each row."""
    above: Floats
    """k for the upper score: upper <= 1 + above."""


def reach(people: int, alpha: float) -> float:
    """Return how far scores may stray, from the number of rows alone: the more the bolder.

    Stakes shrink with the root of the number of rows, and can bear what grows with it.
    """
    return max(1.0, (people / (8 * np.log(1 / alpha))) ** 0.5)


def scores(person: Person, overlap: float, most: float) -> Scores:
    """Return both scores of every row.

    Args:
        person: the rows of a group, in betting order.
        overlap: the smallest propensity at which weighting is trusted.
        most: the largest reach that the rows can bear, from `reach`.
    """
    none = np.zeros(len(person.accepted))
    accepted, positive = person.accepted, person.positive
    if person.rejected_positive is not None:
        label = positive + person.rejected_positive
        return Scores(label, label, none, none)
    if person.propensity is None:
        return Scores(positive, positive + 1 - accepted, none, none)
    p = person.propensity
    f = running_prediction(person, overlap) if person.prediction is None else person.prediction
    weighted = p >= overlap
    p = np.where(weighted, p, 1.0)
    odds = (1 - p) / p
    below, above = _past_largest(f * odds, most), _past_largest((1 - f) * odds, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(odds > 0, np.minimum(f, below / odds), f)
        high = np.where(odds > 0, np.maximum(f, 1 - above / odds), f)
    lower = low + (positive - accepted * low) / p
    upper = high + (positive - accepted * high) / p
    return Scores(
        np.where(weighted, lower, positive),
        np.where(weighted, upper, positive + 1 - accepted),
        below,
        above,
    )


def _past_largest(values: Floats, most: float) -> Floats:
    """Return the largest value before each row, 0 at first, and no more than `most`."""
    return np.minimum(np.concatenate([[0.0], np.maximum.accumulate(values)[:-1]]), most)


def running_prediction(person: Person, overlap: float) -> Floats:
    """Return for each row the share of positives among the accepted before it with a similar p.

    A prediction may use the past of the game, so none has to come with the log.
    """
    if person.propensity is None:
        raise ValueError("a running prediction needs propensities")
    bins = np.minimum((person.propensity * BINS).astype(np.intp), BINS - 1)
    seen = np.where(person.propensity >= overlap, person.accepted, 0.0)
    good = seen * person.positive
    before = np.cumsum(seen) - seen
    overall = (np.cumsum(good) - good + 0.5) / (before + 1)
    order = np.argsort(bins, kind="stable")
    in_bin, good_in_bin = seen[order], good[order]
    starts = np.searchsorted(bins[order], np.arange(BINS))
    count = np.concatenate([[0.0], np.cumsum(in_bin)])
    total = np.concatenate([[0.0], np.cumsum(good_in_bin)])
    base = starts[bins[order]]
    result = np.empty(len(bins))
    place = np.arange(len(bins))
    result[order] = (total[place] - total[base] + 2 * overall[order]) / (
        count[place] - count[base] + 2
    )
    return result
