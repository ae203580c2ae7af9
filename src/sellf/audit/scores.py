"""What stands in for a label that only the accepted show: scores whose mean is the utility.

With p the chance of acceptance and any prediction f made without looking at the row,
s = f + A (Y - f) / p has mean E[Y], seen or not. Its size is what hurts: 1 / p may be large. A
bound from below only needs values that cannot be far below, so there f is cut to at most
k p / (1 - p), which keeps s >= -k whatever p is; and the mirror image from above.

Where p is below `overlap` nobody's acceptance tells of the others. There a rejected label may be 0
or 1: the lower score takes 0, the upper one takes 1 (partial identification). The same holds for
accepted people whose outcome is not known yet.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.fairness.notions import Rate
from sellf.logs.person import BINS, Floats, Person

SHARE_PRIOR = 3.0
"""How much it counts that averaging over decisions ought to be best, as a sum of squares."""


class Scores(NamedTuple):
    """Scores of E[Y]: the mean of `low` is at most it, that of `high` at least.

    Each with outcomes that are not known yet as bad (0) and as good (1).
    """

    low0: Floats
    low1: Floats
    high0: Floats
    high1: Floats


class Side(NamedTuple):
    """Values whose means bound a utility from one side: it is E[part] / E[whole]."""

    part: Floats
    whole: Floats | None
    """None for a mean: then it is 1."""


class Sides(NamedTuple):
    """A utility's bounds from below and from above, apart where it is not identified."""

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
        overlap: the smallest propensity at which weighting is trusted.
        prediction: f, known before each row.
        below: the reach k of the lower score: it is at least -k.
        above: of the upper one, which is at most 1 + k.
        clip: whether to cut what is above 1 + k of the lower score and below -k of the upper one.
            Their means still bound E[Y], and lie between 0 and 1 given the features too.
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
    is worse may depend on t; then the straight line through the worse ones at t = 0 and at t = 1
    counts, which is worse still in between.
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

    Both have the same mean, and the chance in the decision itself is no longer part of them: with
    the right prediction no unbiased values vary less (Hahn 1998). It is done where the score is
    neither cut nor clipped, so that p s = p f + A (Y - f) is right on average.

    Args:
        person: the rows of a group.
        overlap: the smallest propensity at which weighting is trusted.
        prediction: f, known before each row.
        below: the reach of the lower score.
        above: that of the upper one.
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
    """Return a mean of two kinds of values, which bounds a utility as both do.

    Args:
        plain: the one.
        smooth: the other.
        share: how much it counts, on either side; known before each row.
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
    """Return how much `averaged` rows shall count to make the ratio of the means vary least.

    All, if predictions are right. What is seen counts more the more is seen.
    """
    whole = [1.0 if side.whole is None else side.whole for side in (plain, smooth)]
    level = float(np.mean(whole[0]))
    u = float(plain.part.mean()) / level if level > 0 else 0.5
    value, other = (side.part - u * one for side, one in zip((plain, smooth), whole, strict=True))
    less = value - other
    both, square = float(np.dot(value, less)), float(np.dot(less, less))
    return min(max((SHARE_PRIOR + both) / (SHARE_PRIOR + square), 0.0), 1.0)


def extremes(rate: Rate, k: float, *, smooth: bool = False) -> list[tuple[Any, Any]]:
    """Return part and whole of the people furthest out, of scores cut to between -k and 1 + k.

    Everybody else's, for each candidate, are between theirs: values are linear in the score.

    Args:
        rate: what is measured.
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
    """Return A, A Y and the largest (or smallest) score: rejected, accepted and good, and bad.

    A good outcome's score is 1 at least and 1 + k at most, a bad one's between -k and 0.
    """
    return [(0, 0, 1), (1, 1, 1 + k), (1, 0, 0)] if up else [(0, 0, 0), (1, 1, 1), (1, 0, -k)]


def furthest_averaged(below: Floats | float, above: Floats | float) -> list[tuple[Any, Any, Any]]:
    """Return p, p s and s of people between whom all `averaged` ones are.

    With o = (1 - p) / p a rejected person's score is f, a good outcome's 1 + (1 - f) o and a bad
    one's -f o, where f o <= below and (1 - f) o <= above; so p >= 1 / (1 + below + above). On such
    a range of p and s sums of p, p s and s are largest at its boundary. Part of that is the
    curve s = 1 / p, which lies between its chord and its tangents; and its mirror image.
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
    """Return the mean of every person's values; rows of one person follow each other."""
    if unit is None or not len(unit):
        return side
    starts = np.flatnonzero(np.concatenate([[True], unit[1:] != unit[:-1]]))
    rows = np.diff(np.append(starts, len(unit)))

    def mean(values: Floats) -> Floats:
        return np.add.reduceat(values, starts) / rows

    return Side(mean(side.part), None if side.whole is None else mean(side.whole))


def reach(people: int, alpha: float) -> float:
    """Return how far scores may stray, from the number of rows alone: the more the bolder.

    Stakes shrink with the root of the number of rows, and can bear what grows with it.
    """
    return max(1.0, (people / (8 * np.log(1 / alpha))) ** 0.5)


def running_prediction(person: Person, overlap: float) -> Floats:
    """Return for each row the share of positives among the accepted before it with a similar p.

    A prediction may use the past of the game, so none has to come with the log.
    """
    if person.propensity is None:
        raise ValueError("a running prediction needs propensities")
    rows = len(person.propensity)
    bins = np.minimum((person.propensity * BINS).astype(np.intp), BINS - 1)
    known = person.accepted if person.pending is None else person.accepted - person.pending
    seen = np.where(person.propensity >= overlap, known, 0.0)
    good = seen * person.positive
    # What comes before a row is what comes before its person: rows of one may share a decision.
    start = np.arange(rows)
    if person.unit is not None and rows:
        first = np.concatenate([[True], person.unit[1:] != person.unit[:-1]])
        start = np.maximum.accumulate(np.where(first, start, 0))
    before, good_before = (np.concatenate([[0.0], np.cumsum(x)])[start] for x in (seen, good))
    overall = (good_before + 0.5) / (before + 1)
    order = np.argsort(bins, kind="stable")
    count, total = (np.concatenate([[0.0], np.cumsum(x[order])]) for x in (seen, good))
    # The place of a row among those of its bin, and of the first of these, among all by bin.
    place = np.searchsorted(bins[order] * rows + order, bins * rows + start)
    base = np.searchsorted(bins[order], np.arange(BINS))[bins]
    return (total[place] - total[base] + 2 * overall) / (count[place] - count[base] + 2)
