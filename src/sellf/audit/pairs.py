"""The difference of two groups, bet on directly: narrower than what two intervals allow.

One game on the rows of both groups, in turn: against "the first group's utility is m1 at most and
the second's m0 at least". Stakes are balanced so that the capital depends on m1 - m0 and hardly on
where the two lie. Its logarithm is concave in (m1, m0), so a row at which all corners of a polygon
are ruled out rules out the polygon. A difference d is ruled out if the polygon of all (m1, m0) with
m1 - m0 <= d is, within a box that each group's own interval allows; the box has a small share of
the chance to miss.
"""

from typing import NamedTuple

import numpy as np

from sellf.audit import exact
from sellf.audit.betting import BOLDNESS, GUESS, LARGEST_LOSS, Floats, climb, past_variance
from sellf.audit.scores import Person, reach, scores
from sellf.fairness.notions import Notion

BOX_SHARE = 0.1
"""The part of the chance to miss that is spent on where the two groups lie."""


class Game(NamedTuple):
    """One group's part: a row wins `part` - m `whole`, or the opposite for the second group."""

    part: Floats
    whole: Floats
    loss: Floats
    """The most that a row can lose, known before it is seen."""


class Both(NamedTuple):
    """One group's games: as the first of a pair, from below, and as the second, from above."""

    below: Game
    above: Game


def games(notion: Notion, person: Person, *, alpha: float, overlap: float) -> Both:
    """Return what is bet on for one group; rows are in betting order."""
    n = len(person.accepted)
    one = np.ones(n)
    if notion == "demographic":
        return Both(Game(person.accepted, one, one), Game(person.accepted, one, one))
    both = scores(person, overlap, reach(n, alpha))
    if notion == "qualification":
        return Both(Game(both.lower, one, 1 + both.below), Game(both.upper, one, 1 + both.above))
    if notion == "accuracy":
        seen = 2 * person.positive + 1 - person.accepted
        return Both(
            Game(seen - both.upper, one, 1 - np.minimum(1 - both.above, 0)),
            Game(seen - both.lower, one, np.maximum(both.below, 1)),
        )
    return Both(
        Game(person.positive, both.upper, np.maximum(both.above, 1)),
        Game(person.positive, both.lower, np.maximum(both.below, 1)),
    )


def difference(
    notion: Notion, first: Person, second: Person, *, delta: float, overlap: float
) -> tuple[float, float]:
    """Return both ends of second minus first; they miss with probability delta at most.

    Args:
        notion: what is measured.
        first: the rows of one group in betting order.
        second: those of the other.
        delta: the chance that the interval misses.
        overlap: the smallest propensity that is weighted by.
    """
    box = delta * BOX_SHARE / 2
    alpha = delta * (1 - BOX_SHARE) / 2
    ranges = [
        exact.interval(notion, person, alpha=box, overlap=overlap) for person in (first, second)
    ]
    one, two = (games(notion, person, alpha=alpha, overlap=overlap) for person in (first, second))
    mean = notion != "opportunity"
    low = lower_difference(two.below, one.above, ranges[1], ranges[0], alpha, mean=mean)
    high = -lower_difference(one.below, two.above, ranges[0], ranges[1], alpha, mean=mean)
    return (low, high) if low <= high else (-1.0, 1.0)


def lower_difference(
    first: Game,
    second: Game,
    first_range: tuple[float, float],
    second_range: tuple[float, float],
    alpha: float,
    *,
    mean: bool,
) -> float:
    """Return a number that the first group's utility less the second's exceeds.

    Args:
        first: the game from below.
        second: the game from above.
        first_range: where the first group's utility lies.
        second_range: where the second's does.
        alpha: the chance that the bound fails, if both are where they are said to lie.
        mean: whether utilities are means: then the capital is least on the line m1 - m0 = d.
    """
    lowest, highest = first_range[0] - second_range[1], first_range[1] - second_range[0]
    n1, n0 = len(first.part), len(second.part)
    if not n1 or not n0:
        return lowest
    target = float(np.log(1 / alpha))
    mine, size, error = _stakes(first, second, target)
    u, v, cut = (np.concatenate(pair)[mine.order] for pair in zip(first, second, strict=True))
    size = np.minimum(size, LARGEST_LOSS / np.maximum(cut, 1e-300))
    sign = np.where(mine.is_first, 1.0, -1.0)
    won, per = size * sign * u, size * sign * v

    def ruled_out(d: float) -> bool:
        everywhere = None
        for m1, m0 in corners(first_range, second_range, d, line_only=mean):
            capital = np.cumsum(np.log1p(won - per * np.where(mine.is_first, m1, m0)))
            out = capital >= target
            everywhere = out if everywhere is None else everywhere & out
            if not everywhere.any():
                return False
        return everywhere is not None

    centre = _ratio(first) - _ratio(second)
    guess = centre - GUESS * target**0.5 * error
    return climb(ruled_out, lowest, highest, guess=guess, step=error)


def corners(
    first: tuple[float, float], second: tuple[float, float], d: float, *, line_only: bool = False
) -> list[tuple[float, float]]:
    """Return the corners of {m1 - m0 <= d} within the box; those on the line come first."""
    (a1, b1), (a0, b0) = first, second
    line = [(a0 + d, a0), (b1, b1 - d), (a1, a1 - d), (b0 + d, b0)]
    tiny = 1e-12
    inside = [
        (min(max(m1, a1), b1), min(max(m0, a0), b0))
        for m1, m0 in line
        if a1 - tiny <= m1 <= b1 + tiny and a0 - tiny <= m0 <= b0 + tiny
    ]
    if line_only and inside:
        return list(dict.fromkeys(inside))
    box = [(m1, m0) for m1 in first for m0 in second if m1 - m0 <= d]
    return list(dict.fromkeys([*inside, *box]))


class _Merged(NamedTuple):
    order: np.ndarray
    is_first: np.ndarray


def _stakes(first: Game, second: Game, target: float) -> tuple[_Merged, Floats, float]:
    """Return the order of play, the stakes on each row, and the difference's standard error."""
    n1, n0 = len(first.part), len(second.part)
    place = np.concatenate([(np.arange(n1) + 1) / (n1 + 1), (np.arange(n0) + 1) / (n0 + 1)])
    order = np.argsort(place, kind="stable")
    is_first = order < n1
    before = np.cumsum(is_first) - is_first
    counts = (before, np.arange(n1 + n0) - before)
    scale, variance = [], []
    for game, count in zip((first, second), counts, strict=True):
        n = len(game.part)
        ratio = _past_ratio(game)
        spread = past_variance(game.part - ratio * game.whole)
        level = _past_level(game)
        at = np.minimum(count, n - 1)  # once a group is used up its last figures stay
        scale.append(n * level[at])
        variance.append(spread[at] / (n * level[at] ** 2))
    total = np.sqrt(2 * target / (BOLDNESS * (variance[0] + variance[1])))
    size = total / np.where(is_first, scale[0], scale[1])
    error = float((variance[0][-1] + variance[1][-1]) ** 0.5)
    return _Merged(order, is_first), size, error


def _past_ratio(game: Game) -> Floats:
    above, below = np.cumsum(game.part), np.cumsum(game.whole)
    ratio = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.5)
    return np.concatenate([[0.5], np.clip(ratio[:-1], 0.0, 1.0)])


def _past_level(game: Game) -> Floats:
    """Return the mean of `whole` before each row, from a guess of 1/2 that counts as one row."""
    t = np.arange(1, len(game.whole) + 1)
    seen = (np.cumsum(game.whole) + 0.5) / (t + 1)
    return np.maximum(np.concatenate([[0.5], seen[:-1]]), 1 / (t + 1))


def _ratio(game: Game) -> float:
    below = float(game.whole.sum())
    return float(np.clip(game.part.sum() / below, 0, 1)) if below > 0 else 0.5
