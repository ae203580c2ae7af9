"""Confidence sequences: intervals that hold at all rows simultaneously while a log grows.

The method bets in the order of time (see `betting`) on a mixture of stakes: a part of the capital
is staked for each of several horizons. The mixture is a martingale with mean 1, so by Ville's
inequality the probability that it ever reaches 1 / alpha is at most alpha, at any stopping time.
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
"""Numbers of rows for which stakes are optimised."""
WEIGHTS = np.array([2, 3, 4, 6, 10, 60, 6, 2]) / 93
"""The share of the capital for each horizon. Intervals are narrowest at the horizon with the
largest share, two groups of 100,000 people; elsewhere they are a few per cent wider than with equal
shares."""
BLOCK = 32
"""Rows per block; long logs check the capital once per block, which is as valid and faster."""
LONG = 20_000
"""The number of rows above which a log is long."""
BOX_SHARE = 0.03
FIRST_PAIR = 0.9
"""The share of delta for the first two groups; later groups share the rest."""


class Line(NamedTuple):
    """One group's rows in the order of time."""

    low: Game
    high: Game
    when: NDArray[np.intp]
    """The position of each row among the rows of all groups."""


def line(
    rate: Rate, person: Person, when: NDArray[np.intp], *, alpha: float, overlap: float
) -> Line:
    """Return the games of one group.

    Args:
        rate: the rate to bound.
        person: the group's rows in the order of time.
        when: their positions among all rows.
        alpha: the error probability, which determines the reach of scores.
        overlap: the smallest propensity used for weighting.
    """
    below, above = _reaches(person, overlap, alpha)
    guess = games.prediction(person, overlap)
    return Line(*games.played(rate, person, overlap, guess, below, above), when)


def _reaches(person: Person, overlap: float, alpha: float) -> tuple[Floats, Floats]:
    """Return the reach of scores at each row: the largest so far, limited by the number of rows."""
    rows = len(person.accepted)
    if person.propensity is None or person.rejected_positive is not None:
        return np.zeros(rows), np.zeros(rows)
    # The limit is above what the past rows alone would allow: stakes are made for later rows too.
    bear = np.maximum(2.0, (np.arange(1, rows + 1) / (4 * np.log(1 / alpha))) ** 0.5)
    p = np.where(person.propensity >= overlap, person.propensity, 1.0)
    odds = (1 - p) / p
    f = games.prediction(person, overlap)
    below, above = (games.past_largest(x * odds) for x in (f, 1 - f))
    return np.minimum(below, bear), np.minimum(above, bear)


def interval(group: Line, alpha: float) -> tuple[float, float]:
    """Return a group's interval; the probability that it ever misses is at most alpha."""
    low, high = lower(group.low, alpha / 2), 1 - lower(group.high, alpha / 2)
    return (low, high) if low <= high else (0.0, 1.0)


def lower(game: Game, alpha: float) -> float:
    """Return a lower bound on E[part] / E[whole] that holds at all rows simultaneously."""
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
    """Return a lower bound on first minus second that holds at all rows simultaneously.

    Args:
        first: the first group's rows.
        second: the second group's rows.
        first_range: an interval of the first group's utility.
        second_range: an interval of the second group's utility.
        alpha: the probability that the bound ever fails, if both intervals hold.
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
    """Return the stakes on each row for every horizon, from earlier rows, and a standard error."""
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
    """Return the logarithm of each horizon's capital, after each row or block of rows."""
    grown = 1 + bets * wins
    if grown.shape[-1] <= LONG:
        return np.cumsum(np.log(grown), axis=-1)
    whole = grown.shape[-1] // BLOCK * BLOCK
    blocks = grown[..., :whole].reshape(*grown.shape[:-1], -1, BLOCK)
    rest = np.log(grown[..., whole:]).sum(axis=-1, keepdims=True)
    logs = np.concatenate([np.log(np.multiply.reduce(blocks, axis=-1)), rest], axis=-1)
    return np.cumsum(logs, axis=-1)


def _ever(corners_of: list[Floats], target: float) -> bool:
    """Return whether the mixture reaches the target at some row, at the worst of several corners.

    Each horizon's log-capital is concave in the candidates, so it is smallest at a corner.
    """
    worst = corners_of[0]
    for other in corners_of[1:]:
        worst = np.minimum(worst, other)
    top = worst.max(axis=0)
    mixed = top + np.log((WEIGHTS[:, None] * np.exp(worst - top)).sum(axis=0))
    return bool(mixed.max() >= target)


def shares_of_delta(groups: int) -> Floats:
    """Return the share of delta of each group, in the order of their first rows.

    No share depends on the final number of groups, so a new group leaves the others unchanged.
    """
    k = np.arange(3, groups + 1)
    return np.concatenate([[FIRST_PAIR / 2] * 2, (1 - FIRST_PAIR) * 2 / (k * (k - 1))])[:groups]


def pair_share(first: int, second: int) -> float:
    """Return the share of delta of a pair; groups are numbered in the order of their first rows."""
    later = max(first, second)
    if later == 1:
        return FIRST_PAIR
    return float((1 - FIRST_PAIR) * 2 / (later * (later + 1)) / later)
