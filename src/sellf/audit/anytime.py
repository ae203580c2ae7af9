"""Intervals that hold at every row at once, so that one may look whenever one likes.

Betting in the order of time (see `betting`), on a mixture of stakes: part of the capital is staked
for each of several horizons. The mixture is a martingale with mean 1, so by Ville's inequality it
ever reaches 1 / alpha with probability alpha at most, whichever row one stops at.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit import betting, games
from sellf.audit.betting import GUESS, LARGEST_LOSS
from sellf.audit.candidates import SEGMENTS, climb, corners
from sellf.audit.games import Game
from sellf.fairness.notions import Rate
from sellf.logs.person import Floats, Person

HORIZONS = 60.0 * 5.0 ** np.arange(8)
"""Numbers of rows that stakes are made for."""
WEIGHTS = np.array([2, 3, 4, 6, 10, 60, 6, 2]) / 93
"""The part of the capital for each. At the horizon that has most of it, two groups of 100,000
people, intervals are narrowest; elsewhere they are some per cent wider than with equal parts."""
BLOCK = 32
"""The capital of a long log is looked at after so many rows: as valid, and quicker."""
LONG = 20_000
"""So many rows are a long log."""
BOX_SHARE = 0.03
FIRST_PAIR = 0.9
"""The part of delta for the two groups that come first; later ones share the rest."""


class Line(NamedTuple):
    """One group's rows in the order of time."""

    low: Game
    high: Game
    when: NDArray[np.intp]
    """The place of each row among those of all groups."""


def line(
    rate: Rate, person: Person, when: NDArray[np.intp], *, alpha: float, overlap: float
) -> Line:
    """Return what is bet on for one group.

    Args:
        rate: what is measured.
        person: the group's rows in the order of time.
        when: their places among all rows.
        alpha: the chance to miss, for how far scores may reach.
        overlap: the smallest propensity that is weighted by.
    """
    below, above = _reaches(person, overlap, alpha)
    guess = games.prediction(person, overlap)
    return Line(*games.played(rate, person, overlap, guess, below, above), when)


def _reaches(person: Person, overlap: float, alpha: float) -> tuple[Floats, Floats]:
    """Return how far scores may reach at each row: as far as before, and as many rows can bear."""
    rows = len(person.accepted)
    if person.propensity is None or person.rejected_positive is not None:
        return np.zeros(rows), np.zeros(rows)
    # What is still to come can bear more than what was: stakes are made for later rows too.
    bear = np.maximum(2.0, (np.arange(1, rows + 1) / (4 * np.log(1 / alpha))) ** 0.5)
    p = np.where(person.propensity >= overlap, person.propensity, 1.0)
    odds = (1 - p) / p
    f = games.prediction(person, overlap)
    below, above = (games.past_largest(x * odds) for x in (f, 1 - f))
    return np.minimum(below, bear), np.minimum(above, bear)


def interval(group: Line, alpha: float) -> tuple[float, float]:
    """Return both ends of a group's utility; ever missing has probability alpha at most."""
    low, high = lower(group.low, alpha / 2), 1 - lower(group.high, alpha / 2)
    return (low, high) if low <= high else (0.0, 1.0)


def lower(game: Game, alpha: float) -> float:
    """Return a number that E[part] / E[whole] exceeds, at every row at once."""
    if not len(game.part):
        return 0.0
    target = float(np.log(1 / alpha))
    residual = game.part - games.past_ratio(game) * game.whole
    variance = betting.past_variance(residual)
    sizes = np.sqrt(2 * target / (variance * HORIZONS[:, None]))
    value, error = betting.estimate(game)
    guess = value - 1.3 * GUESS * target**0.5 * error
    found = 0.0
    for top in SEGMENTS:
        bets = np.minimum(sizes, LARGEST_LOSS / np.maximum(game.loss(top), 1e-300))
        at_zero = _capital(bets, game.part)

        def ruled_out(m: float, bets: Floats = bets, at_zero: Floats = at_zero) -> bool:
            return _ever([at_zero, _capital(bets, game.part - m * game.whole)], target)

        if not ruled_out(top):
            return max(found, climb(ruled_out, 0.0, top, guess=guess, step=error))
        found = top
    return found


def lower_difference(
    first: Line,
    second: Line,
    first_range: tuple[float, float],
    second_range: tuple[float, float],
    alpha: float,
) -> float:
    """Return a number that first minus second exceeds, at every row at once.

    Args:
        first: one group's rows.
        second: the other's.
        first_range: where the first group's utility lies.
        second_range: where the second's does.
        alpha: the chance that the bound ever fails, if both are where they are said to lie.
    """
    lowest, highest = first_range[0] - second_range[1], first_range[1] - second_range[0]
    if not len(first.when) or not len(second.when):
        return lowest
    target = float(np.log(1 / alpha))
    order = np.argsort(np.concatenate([first.when, second.when]), kind="stable")
    is_first = order < len(first.when)
    both = (first.low, second.high)
    sizes, error = _joint_stakes(both, order, is_first, target)
    cut = np.concatenate([game.loss(1.0) for game in both])[order]
    sizes = np.minimum(sizes, LARGEST_LOSS / np.maximum(cut, 1e-300))
    part, whole = (np.concatenate(pair)[order] for pair in list(zip(*both, strict=True))[:2])

    def ruled_out(d: float) -> bool:
        worst: list[Floats] = []
        for m1, m0 in corners(first_range, second_range, d):
            worst.append(_capital(sizes, part - np.where(is_first, m1, 1 - m0) * whole))
            if not _ever(worst, target):
                return False
        return bool(worst)

    centre = betting.estimate(both[0])[0] - (1 - betting.estimate(both[1])[0])
    guess = centre - 1.3 * GUESS * target**0.5 * error
    return climb(ruled_out, lowest, highest, guess=guess, step=error)


def _joint_stakes(
    both: tuple[Game, Game], order: NDArray[np.intp], is_first: NDArray[np.bool_], target: float
) -> tuple[Floats, float]:
    """Return the stakes on each row for every horizon, from the rows before, and an error."""
    rows = np.arange(1, len(order) + 1)
    before = np.cumsum(is_first) - is_first
    counts = (before, rows - 1 - before)
    pieces, levels, seen = [], [], []
    for game, count in zip(both, counts, strict=True):
        at = np.minimum(count, len(game.part) - 1)
        level = betting.past_level(game)[at]
        spread = betting.past_variance(game.part - games.past_ratio(game) * game.whole)[at]
        share = (count + 1) / (rows + 1)
        pieces.append(spread / (share * level**2))
        levels.append(level)
        seen.append(share)
    total = np.sqrt(2 * target / ((pieces[0] + pieces[1]) / HORIZONS[:, None]))
    scale = np.where(is_first, seen[0] * levels[0], seen[1] * levels[1])
    error = float(((pieces[0][-1] + pieces[1][-1]) / len(order)) ** 0.5)
    return total / (HORIZONS[:, None] * scale), error


def _capital(bets: Floats, wins: Floats) -> Floats:
    """Return the logarithm of each horizon's capital, after rows or blocks of rows."""
    grown = 1 + bets * wins
    if grown.shape[-1] <= LONG:
        return np.cumsum(np.log(grown), axis=-1)
    whole = grown.shape[-1] // BLOCK * BLOCK
    blocks = grown[..., :whole].reshape(*grown.shape[:-1], -1, BLOCK)
    rest = np.log(grown[..., whole:]).sum(axis=-1, keepdims=True)
    logs = np.concatenate([np.log(np.multiply.reduce(blocks, axis=-1)), rest], axis=-1)
    return np.cumsum(logs, axis=-1)


def _ever(corners_of: list[Floats], target: float) -> bool:
    """Whether the mixture reaches the target at some row, at the worst of several corners.

    Each horizon's capital is concave in the candidates, so between corners it is no less.
    """
    worst = corners_of[0]
    for other in corners_of[1:]:
        worst = np.minimum(worst, other)
    top = worst.max(axis=0)
    mixed = top + np.log((WEIGHTS[:, None] * np.exp(worst - top)).sum(axis=0))
    return bool(mixed.max() >= target)


def shares_of_delta(groups: int) -> Floats:
    """Return what part of delta each group has, in the order in which they came.

    No part depends on how many groups there will be, so a new one leaves the others' as they are.
    """
    k = np.arange(3, groups + 1)
    return np.concatenate([[FIRST_PAIR / 2] * 2, (1 - FIRST_PAIR) * 2 / (k * (k - 1))])[:groups]


def pair_share(first: int, second: int) -> float:
    """Return what part of delta a pair has; groups are numbered in the order in which they came."""
    later = max(first, second)
    if later == 1:
        return FIRST_PAIR
    return float((1 - FIRST_PAIR) * 2 / (later * (later + 1)) / later)
