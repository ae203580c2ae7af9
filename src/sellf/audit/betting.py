"""Intervals for small groups and for growing logs: betting against each candidate, row by row.

Waudby-Smith and Ramdas (2024): the capital from bets against the true value, on observations with
a known lower bound, is a nonnegative martingale with mean 1. The probability that it reaches
1 / alpha at the end (Markov) or ever (Ville) is therefore at most alpha. Stakes may depend on the
rows before, so they adapt to the unknown variance, which is what small groups need.

For each group an order of the rows is drawn from a seed, independently of the data. The capital
averaged over several orders has mean 1 too, and hardly depends on the seed. For one order the
log-capital is concave in the candidates, so over a range of candidates it is smallest at a corner;
the range is ruled out by the mean over the orders of the capital at each order's worst corner.
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
"""The usual distance of a bound from the mean, in standard errors times sqrt(ln(1 / alpha))."""
SHORT = 40_000
"""The largest number of rows, summed over all orders, of a short game."""
BOX_SHARE = 0.05
"""The share of the error probability spent on the two groups' own intervals."""


def lower(game: Game, alpha: float, *, orders: int | None = None) -> float:
    """Return a lower bound on E[part] / E[whole] that holds with probability 1 - alpha.

    Args:
        game: the values to bet on.
        alpha: the probability that the bound fails.
        orders: the number of orders to average over; None: all.
    """
    game = Game(*(part[:orders] for part in game))
    if not game.part.shape[-1]:
        return 0.0
    target = float(np.log(1 / alpha))
    size = _stakes(game, target)
    value, error = estimate(game)
    guess = value - GUESS * target**0.5 * error
    found = 0.0
    # For the log-capital to be concave in the candidate, stakes must not depend on it, but smaller
    # candidates allow larger stakes. So each segment of candidates has its own stakes, and all
    # segments below must be ruled out.
    for top in SEGMENTS:
        bet = np.minimum(size, LARGEST_LOSS / np.maximum(game.loss(top), 1e-300))
        ruled_out = _test(game, bet, target)
        if not ruled_out(top):
            return max(found, climb(ruled_out, 0.0, top, guess=guess, step=error))
        found = top
    return found


def _test(game: Game, bet: Floats, target: float) -> Callable[[float], bool]:
    lines = game.part.shape[0]
    # Short games are played in all orders at once; for long ones the first order may be enough.
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
        # Far from the estimate the capital of one order is enough, whatever the others have.
        if len(found) == lines or found[0] - np.log(lines) >= target:
            return _mean_log(found) + np.log(len(found) / lines) >= target
        return _mean_log(np.concatenate([found, least(m, 1)])) >= target

    return ruled_out


def growth(shares: Floats) -> Floats:
    """Return the sum of ln(1 + x) along the last axis.

    It is computed from products of 32 factors, which cannot overflow or underflow: one row
    multiplies the capital by at least 0.15 and at most about a hundred. This is five times as fast
    as one logarithm per row.
    """
    grown = 1 + shares
    whole = grown.shape[-1] // 32 * 32
    blocks = grown[..., :whole].reshape(*grown.shape[:-1], -1, 32)
    products = np.multiply.reduce(blocks, axis=-1)
    return np.log(products).sum(axis=-1) + np.log(grown[..., whole:]).sum(axis=-1)


def _mean_log(logs: Floats) -> float:
    """Return the logarithm of the mean of numbers that are given by their logarithms."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()) / len(logs))


def lower_difference(
    first: Game,
    second: Game,
    first_range: tuple[float, float],
    second_range: tuple[float, float],
    alpha: float,
) -> float:
    """Return a lower bound on the first group's utility minus the second's.

    A single game on the rows of both groups bets against every pair of utilities whose difference
    is too small.

    Args:
        first: the lower game of the first group.
        second: the upper game of the second group, on 1 minus its utility.
        first_range: an interval of the first group's utility.
        second_range: an interval of the second group's utility.
        alpha: the probability that the bound fails, if both intervals hold.
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
    """Return predictable stakes, which are optimal if all rows vary as the past ones do."""
    variance = past_variance(game.part - past_ratio(game) * game.whole)
    return np.sqrt(2 * target / (variance * game.part.shape[-1]))


def _joint_stakes(first: Game, second: Game, target: float) -> tuple[list[Floats], float]:
    """Return the stakes of both groups, each from its own past, and the standard error.

    Each group's stakes use a forecast of the other's variance, from the same share of its rows.
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
        # Groups take turns, the first group first; only rows played earlier count as past.
        place = np.arange(n) * other.shape[-1] // n
        total = variances[k] + other[..., np.maximum(place - (1 - k), 0)]
        sizes.append(np.sqrt(2 * target / total) / (n * levels[k]))
    error = float(np.mean(variances[0][..., -1] + variances[1][..., -1]) ** 0.5)
    return sizes, error


def past_variance(values: Floats) -> Floats:
    """Return the variance of the values before each row, with a prior of 1/4 worth one row."""
    # Differences from the first value avoid cancellation if the mean is large. The first row must
    # not depend on its own value: its difference is 0.
    centred = values - values[..., :1]
    t = np.arange(1, values.shape[-1] + 1)
    total, square = np.cumsum(centred, axis=-1), np.cumsum(centred * centred, axis=-1)
    seen = np.maximum(square - total * total / t, 0.0)
    return after(0.25, (0.25 + seen) / (t + 1))


def past_level(game: Game) -> Floats:
    """Return the mean of `whole` before each row, with a prior of 1/2 worth one row."""
    t = np.arange(1, game.whole.shape[-1] + 1)
    seen = (np.cumsum(game.whole, axis=-1) + 0.5) / (t + 1)
    return np.maximum(after(0.5, seen), 1 / (t + 1))


def estimate(game: Game) -> tuple[float, float]:
    """Return the ratio of the means and its standard error, as the start of a search."""
    part, whole = np.atleast_2d(game.part)[0], np.atleast_2d(game.whole)[0]
    below = float(whole.mean())
    if below <= 0:
        return 0.5, 1.0
    ratio = min(max(float(part.mean()) / below, 0.0), 1.0)
    return ratio, float((part - ratio * whole).std()) / len(part) ** 0.5 / below
