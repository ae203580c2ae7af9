"""The values that bets are placed on, row by row, each with a lower bound known beforehand."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit.scores import (
    Side,
    Sides,
    averaged,
    by_unit,
    furthest,
    furthest_averaged,
    mixed,
    reach,
    running_prediction,
    scores,
    sides,
)
from sellf.fairness.notions import Rate
from sellf.logs.person import Floats, Person

SHARE_PRIOR = 0.5
"""The weight of the prior that averaging over decisions is best, as a sum of squares."""


class Game(NamedTuple):
    """Values for betting that E[part - m whole] > 0; one line per order, one column per row."""

    part: Floats
    whole: Floats
    base: Floats
    """A row loses at most base + m slope, which is known before the row is seen."""
    slope: Floats

    def loss(self, m: float) -> Floats:
        """Return the largest possible loss of each row."""
        return self.base + m * self.slope


class Games(NamedTuple):
    """One group's games: the lower one, and the upper one, which is a lower game on 1 - u."""

    low: Game
    high: Game


def orders(people: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return several random orders of people, one per line."""
    return np.stack([rng.permutation(people) for _ in range(count)])


def games(
    rate: Rate, person: Person, order: NDArray[np.intp], *, alpha: float, overlap: float
) -> Games:
    """Return the games of one group, in several orders.

    Args:
        rate: the rate to bound.
        person: the group's rows; those of one person are consecutive.
        order: indices of people, one line per order.
        alpha: the error probability, which determines the reach of scores.
        overlap: the smallest propensity used for weighting.
    """
    lines = [_lines(rate, _arrange(person, line), alpha, overlap) for line in order]
    return Games(
        *(Game(*map(np.stack, zip(*line, strict=True))) for line in zip(*lines, strict=True))
    )


def _arrange(person: Person, line: NDArray[np.intp]) -> Person:
    """Return the rows in the given order of people."""
    if person.unit is None:
        return person.take(line)
    starts = np.flatnonzero(np.concatenate([[True], person.unit[1:] != person.unit[:-1]]))
    ends = np.append(starts[1:], len(person.unit))
    rows = np.arange(len(person.unit))
    return person.take(np.concatenate([rows[starts[i] : ends[i]] for i in line.tolist()]))


def _lines(rate: Rate, person: Person, alpha: float, overlap: float) -> tuple[Game, Game]:
    """Return both games in one order."""
    below, above = _reaches(person, overlap, alpha)
    guess = prediction(person, overlap)
    rows = len(person.accepted)
    limits = [np.broadcast_to(k, rows) for k in (below, above)]
    return played(rate, person, overlap, guess, *limits)


def played(
    rate: Rate,
    person: Person,
    overlap: float,
    guess: Floats | float,
    below: Floats,
    above: Floats,
) -> tuple[Game, Game]:
    """Return the lower game, and the upper game as a lower game on 1 - u.

    Args:
        rate: the rate to bound.
        person: the ordered rows of a group.
        overlap: the smallest propensity used for weighting.
        guess: the prediction of each row, from earlier rows or from elsewhere.
        below: the reach of the lower score at each row, from the same sources.
        above: the reach of the upper score.
    """
    found, unit = scores(person, overlap, guess, below, above), person.unit
    plain = Sides(*(by_unit(side, unit) for side in sides(rate, person, found)))
    smooth = averaged(person, overlap, guess, below, above)
    below, above = (by_unit(Side(limit, None), unit).part for limit in (below, above))
    reaches = (below, above) if rate.rises else (above, below)
    ups = (not rate.rises, rate.rises)
    costs = [_costs(rate, furthest(k, up=up)) for k, up in zip(reaches, ups, strict=True)]
    if smooth is not person and rate.hides and rate.moves:
        other = Sides(*(by_unit(side, unit) for side in sides(rate, smooth, found)))
        share = [_past_share(one, two) for one, two in zip(plain, other, strict=True)]
        plain = mixed(plain, other, (share[0], share[1]))
        most = _costs(rate, furthest_averaged(below, above))
        # The bound on the loss of rows that are not averaged stays the same.
        costs = [
            tuple(a + part * np.maximum(b - a, 0.0) for a, b in zip(cost, most, strict=True))
            for cost, part in zip(costs, share, strict=True)
        ]
    low, high = plain
    whole = _whole(high)
    return (
        _game(low.part, _whole(low), costs[0][:2]),
        _game(whole - high.part, whole, costs[1][2:]),
    )


def _past_share(plain: Side, smooth: Side) -> Floats:
    """Return the weight of `averaged` values: the one that was best for the rows before."""
    ratio = past_ratio(Game(plain.part, _whole(plain), plain.part, plain.part))
    value = plain.part - ratio * _whole(plain)
    less = value - (smooth.part - ratio * _whole(smooth))
    both, square = (np.cumsum(less * x) for x in (value, less))
    return after(1.0, np.clip((SHARE_PRIOR + both) / (SHARE_PRIOR + square), 0.0, 1.0))


def _costs(rate: Rate, people: list[tuple[Any, Any, Any]]) -> tuple[Any, ...]:
    """Return the largest losses in the lower and the upper game, at candidates 0 and 1."""
    ends = [(rate.of.value(*one), rate.among.value(*one)) for one in people]
    kinds = (
        [-part for part, _ in ends],
        [whole - part for part, whole in ends],
        [part - whole for part, whole in ends],
        [part for part, _ in ends],
    )
    return tuple(functools.reduce(np.maximum, kind, np.zeros(1)) for kind in kinds)


def _game(part: Floats, whole: Floats, costs: tuple[Any, ...]) -> Game:
    """Return a game, given the largest losses of extreme rows at candidates 0 and 1.

    Losses are linear in the candidate; the bound must not decrease, since the stakes for one
    candidate are also used for smaller ones.
    """
    at_zero, at_one = (np.broadcast_to(cost, len(part)) for cost in costs)
    return Game(part, whole, at_zero, np.maximum(at_one - at_zero, 0.0))


def _whole(side: Side) -> Floats:
    return np.ones(len(side.part)) if side.whole is None else side.whole


def prediction(person: Person, overlap: float) -> Floats | float:
    """Return the prediction of each row, from the rows before if the log has no score."""
    if person.prediction is not None:
        return person.prediction
    if person.propensity is None or person.rejected_positive is not None:
        return 0.0
    return running_prediction(person, overlap)


def _reaches(person: Person, overlap: float, alpha: float) -> tuple[Floats | float, Floats | float]:
    """Return the reach of scores: the largest so far, limited by the number of people."""
    p = person.propensity
    if p is None or person.rejected_positive is not None:
        return 0.0, 0.0
    most = reach(person.units, alpha)
    p = np.where(p >= overlap, p, 1.0)
    odds = (1 - p) / p
    f = prediction(person, overlap)
    below, above = (past_largest(x * odds, person.unit) for x in (f, 1 - f))
    return np.minimum(below, most), np.minimum(above, most)


def past_largest(values: Floats, unit: NDArray[np.intp] | None = None) -> Floats:
    """Return the largest value before each row's person, starting at 0."""
    before = np.concatenate([[0.0], np.maximum.accumulate(values)[:-1]])
    if unit is not None:
        starts = np.concatenate([[True], unit[1:] != unit[:-1]])
        before = before[np.maximum.accumulate(np.where(starts, np.arange(len(unit)), 0))]
    return before


def past_ratio(game: Game) -> Floats:
    """Return the ratio of the means before each row, starting at 1/2."""
    above, below = np.cumsum(game.part, axis=-1), np.cumsum(game.whole, axis=-1)
    ratio = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.5)
    return after(0.5, np.clip(ratio, 0.0, 1.0))


def after(first: float, values: Floats) -> Floats:
    """Return the values shifted by one row, starting with `first`."""
    start = np.full((*values.shape[:-1], 1), first)
    return np.concatenate([start, values[..., :-1]], axis=-1)
