"""Doubly robust scores, which replace the selectively observed label and have its mean.

With p the propensity and any prediction f made without looking at the row, the score
s = f + A (Y - f) / p has mean E[Y], although Y is seen for A = 1 only. Its range is the problem:
1 / p may be large. A lower bound only needs values that cannot be far below, so there f is
truncated to at most k p / (1 - p), which keeps s >= -k for every p. An upper bound uses the mirror
image.

Where p is below `overlap`, the accepted say nothing about the rejected. There the label of a
rejected person may be 0 or 1: the lower score takes 0, the upper one takes 1 (partial
identification). The same holds for accepted people whose outcome is not known yet.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.fairness.notions import Rate
from sellf.logs.person import BINS, Floats, Person

SHARE_PRIOR = 3.0
"""The weight of the prior that averaging over decisions is best, as a sum of squares."""


class Scores(NamedTuple):
    """Scores of E[Y]: the mean of the low scores is at most E[Y], that of the high ones at least.

    The last digit is the value of outcomes that are not known yet: 0 for bad and 1 for good.
    """

    low0: Floats
    low1: Floats
    high0: Floats
    high1: Floats


class Side(NamedTuple):
    """Values whose means bound a utility from one side: it is E[part] / E[whole]."""

    part: Floats
    whole: Floats | None
    """None for a mean, where it is 1."""


class Sides(NamedTuple):
    """A utility's bounds from below and from above, which differ if it is not identified."""

    low: Side
    high: Side


def scores(
    person: Person,
    overlap: float,
    prediction: Floats | float,
    below: Floats | float,
    above: Floats | float,
    *,
    clip: bool = False,
) -> Scores:
    """Return the scores of every row.

    Args:
        person: the rows of a group.
        overlap: the smallest propensity used for weighting.
        prediction: f, known before each row.
        below: the reach k of the lower score, which is at least -k.
        above: the reach k of the upper score, which is at most 1 + k.
        clip: whether to clip the lower score at 1 + k and the upper score at -k. Their means still
            bound E[Y], and lie between 0 and 1 given the features too.
    """
    accepted, positive, pending = person.accepted, person.positive, person.pending
    if person.rejected_positive is not None:
        label = positive + person.rejected_positive
        good = label if pending is None else label + pending
        return Scores(label, good, label, good)
    good = positive if pending is None else positive + pending
    if person.propensity is None:
        hidden = 1 - accepted
        return Scores(positive, good, positive + hidden, good + hidden)
    weighted = person.propensity >= overlap
    p = np.where(weighted, person.propensity, 1.0)
    odds = (1 - p) / p
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(odds > 0, np.minimum(prediction, below / odds), prediction)
        high = np.where(odds > 0, np.maximum(prediction, 1 - above / odds), prediction)
    hidden = np.where(weighted, 0.0, 1 - accepted)

    def from_below(label: Floats) -> Floats:
        score = low + (label - accepted * low) / p
        score = np.minimum(score, 1 + below) if clip else score
        return np.where(weighted, score, label)

    def from_above(label: Floats) -> Floats:
        score = high + (label - accepted * high) / p
        score = np.maximum(score, -above) if clip else score
        return np.where(weighted, score, label) + hidden

    low0, high0 = from_below(positive), from_above(positive)
    if pending is None:
        return Scores(low0, low0, high0, high0)
    return Scores(low0, from_below(good), high0, from_above(good))


def sides(rate: Rate, person: Person, found: Scores) -> Sides:
    """Return the values that bound a group's utility.

    For every candidate t in [0, 1] the mean of part - t whole bounds that of the true values from
    below, or from above. An outcome that is not known yet takes the worse of its two values. Which
    value is worse may depend on t; then the straight line through the worse values at t = 0 and
    t = 1 is used, which is conservative in between.
    """
    below, above = (found.low0, found.low1), (found.high0, found.high1)
    return Sides(
        _side(rate, person, below if rate.rises else above, np.minimum),
        _side(rate, person, above if rate.rises else below, np.maximum),
    )


def _side(rate: Rate, person: Person, score: tuple[Floats, Floats], worse: Any) -> Side:
    accepted, positive, pending = person.accepted, person.positive, person.pending
    part = rate.of.value(accepted, positive, score[0])
    whole = None if rate.is_mean else rate.among.value(accepted, positive, score[0])
    if pending is None:
        return Side(part, whole)
    positive = positive + pending
    other = rate.of.value(accepted, positive, score[1])
    worst = worse(part, other)
    if whole is None:
        return Side(worst, None)
    at_one = worse(part - whole, other - rate.among.value(accepted, positive, score[1]))
    return Side(worst, np.where(pending > 0, worst - at_one, whole))


def averaged(
    person: Person,
    overlap: float,
    prediction: Floats | float,
    below: Floats | float,
    above: Floats | float,
) -> Person:
    """Return the rows with p in place of A, and p s in place of A Y, where p is known.

    Both have the same mean, and no longer vary with the randomness of the decision: with the right
    prediction, no unbiased values have a smaller variance (Hahn 1998). Rows are averaged only where
    the score is neither truncated nor clipped, so that p s = p f + A (Y - f) has the right mean.

    Args:
        person: the rows of a group.
        overlap: the smallest propensity used for weighting.
        prediction: f, known before each row.
        below: the reach of the lower score.
        above: the reach of the upper score.
    """
    p = person.propensity
    if p is None or person.rejected_positive is not None:
        return person
    odds = (1 - p) / np.where(p >= overlap, p, 1.0)
    natural = (p >= overlap) & (prediction * odds <= below) & ((1 - prediction) * odds <= above)
    less = np.where(natural, p - person.accepted, 0.0)
    return person._replace(
        accepted=person.accepted + less, positive=person.positive + prediction * less
    )


def mixed(plain: Sides, smooth: Sides, share: tuple[Floats | float, Floats | float]) -> Sides:
    """Return a weighted mean of two kinds of values, which bounds a utility as both do.

    Args:
        plain: the values of rows as they are.
        smooth: the values of `averaged` rows.
        share: the weight of `smooth` on either side, known before each row.
    """
    return Sides(
        *(
            Side(
                one.part + part * (two.part - one.part),
                None
                if one.whole is None or two.whole is None
                else one.whole + part * (two.whole - one.whole),
            )
            for one, two, part in zip(plain, smooth, share, strict=True)
        )
    )


def best_share(plain: Side, smooth: Side) -> float:
    """Return the weight of `averaged` values that minimises the variance of the ratio of means.

    It is 1 if predictions are right, which is also the prior. Observed values count more the more
    of them there are.
    """
    whole = [1.0 if side.whole is None else side.whole for side in (plain, smooth)]
    level = float(np.mean(whole[0]))
    u = float(plain.part.mean()) / level if level > 0 else 0.5
    value, other = (side.part - u * one for side, one in zip((plain, smooth), whole, strict=True))
    less = value - other
    both, square = float(np.dot(value, less)), float(np.dot(less, less))
    return min(max((SHARE_PRIOR + both) / (SHARE_PRIOR + square), 0.0), 1.0)


def extremes(rate: Rate, k: float, *, smooth: bool = False) -> list[tuple[Any, Any]]:
    """Return part and whole of the most extreme people, for scores between -k and 1 + k.

    Values are linear in the score, so for each candidate all others lie between these.

    Args:
        rate: the rate to bound.
        k: the reach of scores.
        smooth: whether some of the values are those of `averaged` rows.
    """
    people = [
        *furthest(k, up=True),
        *furthest(k, up=False),
        *(furthest_averaged(k, k) if smooth else ()),
    ]
    return [(rate.of.value(*one), rate.among.value(*one)) for one in people]


def furthest(k: Floats | float, *, up: bool) -> list[tuple[int, int, Any]]:
    """Return A, A Y and the largest or smallest score if rejected, if good and if bad.

    The score of a good outcome is between 1 and 1 + k, that of a bad outcome between -k and 0.
    """
    return [(0, 0, 1), (1, 1, 1 + k), (1, 0, 0)] if up else [(0, 0, 0), (1, 1, 1), (1, 0, -k)]


def furthest_averaged(below: Floats | float, above: Floats | float) -> list[tuple[Any, Any, Any]]:
    """Return p, p s and s of the most extreme `averaged` people.

    With o = (1 - p) / p, the score of a rejected person is f, of a good outcome 1 + (1 - f) o and
    of a bad outcome -f o, where f o <= below and (1 - f) o <= above; so
    p >= 1 / (1 + below + above). On this range of p and s, linear combinations of p, p s and s are
    largest on the boundary. Part of the boundary is the curve s = 1 / p, which lies between its
    chord and its tangents, and another part is its mirror image.
    """
    least = 1 / (1 + below + above)
    good = [
        (least, least * (1 + above), 1 + above),
        (1 / (1 + above), 1, 1 + above),
        (2 / (2 + above), 1, 2 * (1 + above) / (2 + above)),
    ]
    bad = [
        (least, -least * below, -below),
        (1 / (1 + below), -below / (1 + below), -below),
        (2 / (2 + below), -below / (2 + below), -below / (2 + below)),
    ]
    return [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 1, 1), *good, *bad]


def by_unit(side: Side, unit: NDArray[np.intp] | None) -> Side:
    """Return the mean of every person's values; rows of one person are consecutive."""
    if unit is None or not len(unit):
        return side
    starts = np.flatnonzero(np.concatenate([[True], unit[1:] != unit[:-1]]))
    rows = np.diff(np.append(starts, len(unit)))

    def mean(values: Floats) -> Floats:
        return np.add.reduceat(values, starts) / rows

    return Side(mean(side.part), None if side.whole is None else mean(side.whole))


def reach(people: int, alpha: float) -> float:
    """Return the reach of scores for a number of people; it increases with the number.

    Stakes decrease with the root of the number of people, so the reach may grow with it.
    """
    return max(1.0, (people / (8 * np.log(1 / alpha))) ** 0.5)


def running_prediction(person: Person, overlap: float) -> Floats:
    """Return for each row the share of positives among earlier accepted rows with a similar p.

    A prediction may use the rows before, so the log need not contain a score.
    """
    if person.propensity is None:
        raise ValueError("a running prediction needs propensities")
    rows = len(person.propensity)
    bins = np.minimum((person.propensity * BINS).astype(np.intp), BINS - 1)
    known = person.accepted if person.pending is None else person.accepted - person.pending
    seen = np.where(person.propensity >= overlap, known, 0.0)
    good = seen * person.positive
    # Only rows before a row's person count as past: rows of one person may share a decision.
    start = np.arange(rows)
    if person.unit is not None and rows:
        first = np.concatenate([[True], person.unit[1:] != person.unit[:-1]])
        start = np.maximum.accumulate(np.where(first, start, 0))
    before, good_before = (np.concatenate([[0.0], np.cumsum(x)])[start] for x in (seen, good))
    overall = (good_before + 0.5) / (before + 1)
    order = np.argsort(bins, kind="stable")
    count, total = (np.concatenate([[0.0], np.cumsum(x[order])]) for x in (seen, good))
    # Positions in the order by bin: of each row, and of the first row in its bin.
    place = np.searchsorted(bins[order] * rows + order, bins * rows + start)
    base = np.searchsorted(bins[order], np.arange(BINS))[bins]
    return (total[place] - total[base] + 2 * overall) / (count[place] - count[base] + 2)
