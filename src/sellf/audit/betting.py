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

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from sellf.audit.candidates import SEGMENTS, climb, corners, segments
from sellf.audit.games import Game, after, past_ratio
from sellf.logs.person import Floats

LARGEST_LOSS = 0.85
"""The largest share of the capital that one row can cost."""
GUESS = 1.4
"""Standard errors, times the root of ln(1 / alpha), that a bound usually lies from the mean."""
SHORT = 40_000
"""A game of so many rows in all orders is short."""
BOX_SHARE = 0.05
"""The part of the chance to miss that is spent on where the two groups lie."""


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
    return after(0.25, (0.25 + seen) / (t + 1))


def past_level(game: Game) -> Floats:
    """Return the mean of `whole` before each row, from a guess of 1/2 that counts as one row."""
    t = np.arange(1, game.whole.shape[-1] + 1)
    seen = (np.cumsum(game.whole, axis=-1) + 0.5) / (t + 1)
    return np.maximum(after(0.5, seen), 1 / (t + 1))


def estimate(game: Game) -> tuple[float, float]:
    """Return the ratio of the means and its standard error, for a search to begin at."""
    part, whole = np.atleast_2d(game.part)[0], np.atleast_2d(game.whole)[0]
    below = float(whole.mean())
    if below <= 0:
        return 0.5, 1.0
    ratio = min(max(float(part.mean()) / below, 0.0), 1.0)
    return ratio, float((part - ratio * whole).std()) / len(part) ** 0.5 / below
