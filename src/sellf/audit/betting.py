"""Intervals for small groups and for logs that grow: betting against each candidate, row by row.

Waudby-Smith and Ramdas (2024): the capital of whoever bets against a true candidate, on values
whose smallest is known, is a nonnegative martingale with mean 1. So it reaches 1 / alpha at the end
with probability alpha at most (Markov), or ever (Ville). Stakes may use the rows before; so they
fit a variance that nobody knows, which is what small groups need.

An order of the rows is drawn from a seed, for each group its own, and independent of the data. The
mean capital of several orders has mean 1 too, and hardly depends on the seed. Its logarithm for one
order is concave in the candidates, so it is least at the corners of a range of them; the mean over
the orders of what each has at its worst corner rules out the range.
"""

import functools
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit.candidates import SEGMENTS, climb, corners, segments
from sellf.audit.scores import Side, by_unit, furthest, reach, running_prediction, scores, sides
from sellf.fairness.notions import Rate
from sellf.logs.person import Floats, Person

LARGEST_LOSS = 0.85
"""The largest share of the capital that one row can cost."""
GUESS = 1.4
"""Standard errors, times the root of ln(1 / alpha), that a bound usually lies from the mean."""
SHORT = 40_000
"""A game of so many rows in all orders is short."""
BOX_SHARE = 0.05
"""The part of the chance to miss that is spent on where the two groups lie."""


class Game(NamedTuple):
    """What is bet on: that E[part - m whole] > 0; one line an order, one column a row."""

    part: Floats
    whole: Floats
    base: Floats
    """A row costs at most base + m slope, known before it is seen."""
    slope: Floats

    def loss(self, m: float) -> Floats:
        """Return the most that each row can cost."""
        return self.base + m * self.slope


class Games(NamedTuple):
    """One group's games: from below, and from above as one from below on 1 - u."""

    low: Game
    high: Game


def orders(people: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return several random orders of people, one a line."""
    return np.stack([rng.permutation(people) for _ in range(count)])


def games(
    rate: Rate, person: Person, order: NDArray[np.intp], *, alpha: float, overlap: float
) -> Games:
    """Return what is bet on for one group, in several orders.

    Args:
        rate: what is measured.
        person: the group's rows; those of one person follow each other.
        order: people by their place, one line an order.
        alpha: the chance to miss, for how far scores may reach.
        overlap: the smallest propensity that is weighted by.
    """
    lines = [_lines(rate, _arrange(person, line), alpha, overlap) for line in order]
    return Games(
        *(Game(*map(np.stack, zip(*line, strict=True))) for line in zip(*lines, strict=True))
    )


def _arrange(person: Person, line: NDArray[np.intp]) -> Person:
    """Return the rows in the order of their people."""
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
    found = sides(rate, person, scores(person, overlap, guess, *limits))
    low, high = (by_unit(side, person.unit) for side in found)
    first, second = (by_unit(Side(limit, None), person.unit).part for limit in limits)
    if not rate.rises:
        first, second = second, first
    return game(rate, low, first), mirror(rate, high, second)


def game(rate: Rate, side: Side, k: Floats) -> Game:
    """Return the game from below; k is the reach of the scores that a row can lose by."""
    costs = [
        (-rate.of.value(*one), rate.among.value(*one) - rate.of.value(*one))
        for one in furthest(k, up=not rate.rises)
    ]
    return _game(side.part, _whole(side), costs)


def mirror(rate: Rate, side: Side, k: Floats) -> Game:
    """Return the game from above, as one from below on 1 - u."""
    costs = [
        (rate.of.value(*one) - rate.among.value(*one), rate.of.value(*one))
        for one in furthest(k, up=rate.rises)
    ]
    whole = _whole(side)
    return _game(whole - side.part, whole, costs)


def _game(part: Floats, whole: Floats, costs: list[tuple[Any, Any]]) -> Game:
    """Return a game, from what the rows furthest out cost at the candidates 0 and 1.

    Costs are linear in the candidate; a bound must not fall, since stakes for one candidate are
    used for smaller ones too.
    """
    nothing = np.zeros(len(part))
    at_zero, at_one = (
        functools.reduce(np.maximum, (cost[k] for cost in costs), nothing) for k in (0, 1)
    )
    return Game(part, whole, at_zero, np.maximum(at_one - at_zero, 0.0))


def _whole(side: Side) -> Floats:
    return np.ones(len(side.part)) if side.whole is None else side.whole


def prediction(person: Person, overlap: float) -> Floats | float:
    """Return what is predicted of each row from the rows before, if the log does not say."""
    if person.prediction is not None:
        return person.prediction
    if person.propensity is None or person.rejected_positive is not None:
        return 0.0
    return running_prediction(person, overlap)


def _reaches(person: Person, overlap: float, alpha: float) -> tuple[Floats | float, Floats | float]:
    """Return how far scores may reach: as far as before, and no more than the rows can bear."""
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
    """Return the largest value before each row's person, 0 at first."""
    before = np.concatenate([[0.0], np.maximum.accumulate(values)[:-1]])
    if unit is not None:
        starts = np.concatenate([[True], unit[1:] != unit[:-1]])
        before = before[np.maximum.accumulate(np.where(starts, np.arange(len(unit)), 0))]
    return before


def lower(game: Game, alpha: float, *, orders: int | None = None) -> float:
    """Return a number that E[part] / E[whole] exceeds with probability 1 - alpha.

    Args:
        game: what is bet on.
        alpha: the chance that the bound fails.
        orders: how many of the orders to average; None: all.
    """
    game = Game(*(part[:orders] for part in game))
    if not game.part.shape[-1]:
        return 0.0
    target = float(np.log(1 / alpha))
    size = _stakes(game, target)
    value, error = estimate(game)
    guess = value - GUESS * target**0.5 * error
    found = 0.0
    # Stakes must not depend on the candidate for the capital to be concave in it, but smaller ones
    # bear larger stakes. So each segment has its own, and all segments below must be out.
    for top in SEGMENTS:
        bet = np.minimum(size, LARGEST_LOSS / np.maximum(game.loss(top), 1e-300))
        ruled_out = _test(game, bet, target)
        if not ruled_out(top):
            return max(found, climb(ruled_out, 0.0, top, guess=guess, step=error))
        found = top
    return found


def _test(game: Game, bet: Floats, target: float) -> Callable[[float], bool]:
    lines = game.part.shape[0]
    # Short games are played in all orders at once; of long ones the first order may be enough.
    parts = [slice(0, lines)] if game.part.size <= SHORT else [slice(0, 1), slice(1, lines)]

    @cache
    def against_zero(part: int) -> Floats:
        return growth(bet[parts[part]] * game.part[parts[part]])

    def least(m: float, part: int) -> Floats:
        own = parts[part]
        wins = game.part[own] - m * game.whole[own]
        return np.minimum(growth(bet[own] * wins), against_zero(part))

    def ruled_out(m: float) -> bool:
        found = least(m, 0)
        # Far from the estimate one order has enough for all, whatever the others have.
        if len(found) == lines or found[0] - np.log(lines) >= target:
            return _mean_log(found) + np.log(len(found) / lines) >= target
        return _mean_log(np.concatenate([found, least(m, 1)])) >= target

    return ruled_out


def growth(shares: Floats) -> Floats:
    """Return the sum of ln(1 + x) along the last axis.

    By products of 32, which are far from what a float cannot hold: one row multiplies the capital
    by 0.15 at least and by a hundred or so at most. That is five times as fast as a logarithm
    a row.
    """
    grown = 1 + shares
    whole = grown.shape[-1] // 32 * 32
    blocks = grown[..., :whole].reshape(*grown.shape[:-1], -1, 32)
    products = np.multiply.reduce(blocks, axis=-1)
    return np.log(products).sum(axis=-1) + np.log(grown[..., whole:]).sum(axis=-1)


def _mean_log(logs: Floats) -> float:
    """Return the logarithm of the mean of numbers given by theirs."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()) / len(logs))


def lower_difference(
    first: Game,
    second: Game,
    first_range: tuple[float, float],
    second_range: tuple[float, float],
    alpha: float,
) -> float:
    """Return a number that the first group's utility less the second's exceeds.

    One game on the rows of both, against every pair of utilities whose difference is too small.

    Args:
        first: the game of the one from below.
        second: that of the other from above: on 1 less its utility.
        first_range: where the first group's utility lies.
        second_range: where the second's does.
        alpha: the chance that the bound fails, if both are where they are said to lie.
    """
    lowest, highest = first_range[0] - second_range[1], first_range[1] - second_range[0]
    if not first.part.shape[-1] or not second.part.shape[-1]:
        return lowest
    target = float(np.log(1 / alpha))
    stakes, error = _joint_stakes(first, second, target)

    @cache
    def capital(second_game: bool, m: float, top: float) -> Floats:
        game = second if second_game else first
        size = np.minimum(stakes[second_game], LARGEST_LOSS / np.maximum(game.loss(top), 1e-300))
        return growth(size * (game.part - m * game.whole))

    cells = [
        (one, (1 - two.high, 1 - two.low), one.top, two.top)
        for one in segments(*first_range)
        for two in segments(1 - second_range[1], 1 - second_range[0])
    ]

    def ruled_out(d: float) -> bool:
        tried = 0
        for one, two, first_top, second_top in cells:
            worst = None
            for m1, m0 in corners((one.low, one.high), two, d):
                found = capital(False, m1, first_top) + capital(True, 1 - m0, second_top)
                worst = found if worst is None else np.minimum(worst, found)
                if float(worst.max()) < target:
                    return False
            if worst is not None and _mean_log(worst) < target:
                return False
            tried += worst is not None
        return tried > 0

    centre = estimate(first)[0] - (1 - estimate(second)[0])
    guess = centre - GUESS * target**0.5 * error
    return climb(ruled_out, lowest, highest, guess=guess, step=error)


def _stakes(game: Game, target: float) -> Floats:
    """Return predictable stakes: the best ones for all rows, if the past tells their variance."""
    variance = past_variance(game.part - past_ratio(game) * game.whole)
    return np.sqrt(2 * target / (variance * game.part.shape[-1]))


def _joint_stakes(first: Game, second: Game, target: float) -> tuple[list[Floats], float]:
    """Return the stakes of both groups, each from its own past, and the standard error.

    Each group's stakes use a forecast of the other's variance: its past at the same share of rows.
    """
    variances, levels = [], []
    for game in (first, second):
        level = past_level(game)
        spread = past_variance(game.part - past_ratio(game) * game.whole)
        variances.append(spread / (game.part.shape[-1] * level**2))
        levels.append(level)
    sizes = []
    for k, game in enumerate((first, second)):
        n, other = game.part.shape[-1], variances[1 - k]
        # Rows are played in turn, the first group's first: what counts as past is before both.
        place = np.arange(n) * other.shape[-1] // n
        total = variances[k] + other[..., np.maximum(place - (1 - k), 0)]
        sizes.append(np.sqrt(2 * target / total) / (n * levels[k]))
    error = float(np.mean(variances[0][..., -1] + variances[1][..., -1]) ** 0.5)
    return sizes, error


def past_variance(values: Floats) -> Floats:
    """Return the variance of the values before each row; a quarter counts as one row of it."""
    # Differences from the first value, so that a large mean costs no digits. The first row itself
    # must not know its own value: its difference, 0, says nothing.
    centred = values - values[..., :1]
    t = np.arange(1, values.shape[-1] + 1)
    total, square = np.cumsum(centred, axis=-1), np.cumsum(centred * centred, axis=-1)
    seen = np.maximum(square - total * total / t, 0.0)
    return _after(0.25, (0.25 + seen) / (t + 1))


def past_ratio(game: Game) -> Floats:
    """Return the ratio of the means before each row, a half at first."""
    above, below = np.cumsum(game.part, axis=-1), np.cumsum(game.whole, axis=-1)
    ratio = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.5)
    return _after(0.5, np.clip(ratio, 0.0, 1.0))


def past_level(game: Game) -> Floats:
    """Return the mean of `whole` before each row, from a guess of 1/2 that counts as one row."""
    t = np.arange(1, game.whole.shape[-1] + 1)
    seen = (np.cumsum(game.whole, axis=-1) + 0.5) / (t + 1)
    return np.maximum(_after(0.5, seen), 1 / (t + 1))


def _after(first: float, values: Floats) -> Floats:
    """Return the values one row later."""
    start = np.full((*values.shape[:-1], 1), first)
    return np.concatenate([start, values[..., :-1]], axis=-1)


def estimate(game: Game) -> tuple[float, float]:
    """Return the ratio of the means and its standard error, for a search to begin at."""
    part, whole = np.atleast_2d(game.part)[0], np.atleast_2d(game.whole)[0]
    below = float(whole.mean())
    if below <= 0:
        return 0.5, 1.0
    ratio = min(max(float(part.mean()) / below, 0.0), 1.0)
    return ratio, float((part - ratio * whole).std()) / len(part) ** 0.5 / below
