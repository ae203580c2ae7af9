"""Intervals for a mean that hold at every sample size, by betting against each candidate mean.

Waudby-Smith and Ramdas (2024): the capital of whoever bets against a true mean m, on values whose
smallest is known, is a nonnegative martingale, which reaches 1 / alpha with probability alpha at
most (Ville). So every m against which the capital ever grew beyond 1 / alpha can be ruled out. Two
one-sided games, one from each side, make the hedged interval. Capital is kept as a logarithm.

Stakes are cut in a way that keeps the capital monotone in the candidate mean, and concave in a
candidate ratio; so what is ruled out is an interval, and its end is found by bisection.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BOLDNESS = 0.75
"""Stakes are the best ones for this share of the rows: the capital's maximum over time counts, and
with slightly bolder stakes it comes before the end."""
LARGEST_LOSS = 0.75
"""The largest share of the capital that one row can cost."""
GUESS = 1.2
"""Standard errors, times the root of ln(1 / alpha), that a bound usually lies from the mean."""
TINY = 1e-300
SEGMENTS = (0.0625, 0.125, 0.25, 0.375, 0.5, 0.7, 1.0)
"""Candidates for a ratio up to each of these share their stakes."""


class Stakes(NamedTuple):
    """How much is bet on each row, as a multiple of what the row is worth."""

    size: Floats
    """lambda_t, from the rows before t alone."""
    log_target: float
    """ln(1 / alpha): the capital that rules a candidate out."""


def stakes(values: Floats, alpha: float, *, anytime: bool = False) -> Stakes:
    """Return predictable stakes for values of unknown variance, before they are cut to be safe.

    Args:
        values: what is bet on, in betting order; only their spread matters here.
        alpha: the chance of ruling out a true candidate.
        anytime: stakes for rows that keep coming, instead of the best ones for this many.
    """
    n = len(values)
    target = float(np.log(1 / alpha))
    if anytime:
        t = np.arange(1, n + 1)
        horizon = t * np.log1p(t)
    else:
        horizon = np.full(n, BOLDNESS * n)
    return Stakes(np.sqrt(2 * target / (past_variance(values) * horizon)), target)


def lower_bound(
    values: Floats,
    *,
    floor: Floats | float,
    alpha: float,
    ceiling: float = 1.0,
    lowest: float = 0.0,
    anytime: bool = False,
) -> float:
    """Return a number that the mean of the values exceeds with probability 1 - alpha.

    Args:
        values: in betting order: shuffled, or by time if `anytime`.
        floor: what each value cannot be below, known before seeing it; `lowest` at most.
        alpha: the chance that the bound fails.
        ceiling: a number the mean cannot be above.
        lowest: a number the mean cannot be below.
        anytime: whether the bound must hold at every row at once, so that one may stop any time.
    """
    if not len(values):
        return lowest
    bet = stakes(values, alpha, anytime=anytime)

    def ruled_out(mean: float) -> bool:
        # The most that a row can lose is mean - floor. The capital, stakes cut or not, decreases in
        # the candidate, so whoever is below one that is ruled out is ruled out too.
        size = np.minimum(bet.size, LARGEST_LOSS / np.maximum(mean - floor, TINY))
        return bool(np.cumsum(np.log1p(size * (values - mean))).max() >= bet.log_target)

    error = float(values.std()) / len(values) ** 0.5
    guess = float(values.mean()) - GUESS * bet.log_target**0.5 * error
    return climb(ruled_out, lowest, ceiling, guess=guess, step=error)


def lower_ratio(
    part: Floats, whole: Floats, *, loss: Floats | float, alpha: float, anytime: bool = False
) -> float:
    """Return a number that E[part] / E[whole] exceeds with probability 1 - alpha.

    A candidate t is ruled out by betting that E[part - t whole] is positive.

    Args:
        part: the numerator's values, 0 or 1.
        whole: the denominator's; their mean is at least that of `part`.
        loss: what (t whole - part) / t cannot be above for any t in (0, 1], known before each row.
        alpha: the chance that the bound fails.
        anytime: whether the bound must hold at every row at once.
    """
    if not len(part):
        return 0.0
    residual = _residual(part, whole)
    bet = stakes(residual, alpha, anytime=anytime)
    guess, error = _ratio_guess(part, whole, residual)
    guess -= GUESS * bet.log_target**0.5 * error
    found = 0.0
    # Stakes must not depend on t for the capital to be concave in it, but smaller candidates bear
    # larger ones. So each segment of candidates has its own, and all segments below must be out.
    for top in SEGMENTS:
        size = np.minimum(bet.size, LARGEST_LOSS / (top * loss))
        ruled_out = _ratio_test(size, part, whole, bet.log_target)
        if not ruled_out(top):
            return max(found, climb(ruled_out, 0.0, top, guess=guess, step=error))
        found = top
    return found


def upper_ratio(
    part: Floats, whole: Floats, *, loss: Floats | float, alpha: float, anytime: bool = False
) -> float:
    """Return a number that E[part] / E[whole] stays below with probability 1 - alpha.

    As `lower_ratio`, betting that E[t whole - part] is positive; `loss` is what part - t whole
    cannot be above for any t.
    """
    if not len(part):
        return 1.0
    residual = _residual(part, whole)
    bet = stakes(residual, alpha, anytime=anytime)
    size = np.minimum(bet.size, LARGEST_LOSS / loss)
    guess, error = _ratio_guess(part, whole, residual)
    guess = 1 - guess - GUESS * bet.log_target**0.5 * error
    # In terms of the gap g = 1 - t: t whole - part = (whole - part) - g whole.
    ruled_out = _ratio_test(size, whole - part, whole, bet.log_target)
    return 1 - climb(ruled_out, 0.0, 1.0, guess=guess, step=error)


def _ratio_test(
    size: Floats, part: Floats, whole: Floats, target: float
) -> Callable[[float], bool]:
    at_zero = np.cumsum(np.log1p(size * part)) >= target

    def ruled_out(ratio: float) -> bool:
        capital = np.cumsum(np.log1p(size * (part - ratio * whole)))
        # Concave in the ratio: at rows where 0 is ruled out too, everything between is.
        return bool(np.any((capital >= target) & at_zero))

    return ruled_out


def climb(
    ruled_out: Callable[[float], bool], low: float, high: float, *, guess: float, step: float
) -> float:
    """Return the largest candidate known to be ruled out, going up from `low`; `low` if none is.

    The answer is rounded down, by at most a fiftieth of `step`: never too large.

    Args:
        ruled_out: true up to some candidate, and false from there on.
        low: the smallest candidate.
        high: the largest.
        guess: where the end may be, to look there first.
        step: the scale on which to look on from there.
    """
    tolerance = max(step / 50, 1e-9 * (high - low))
    step = max(step, 2 * tolerance)
    if low < guess < high:
        if ruled_out(guess):
            low = guess
            while low + step < high and ruled_out(low + step):
                low, step = low + step, 2 * step
            high = min(high, low + step)
        else:
            high = guess
            while high - step > low and not ruled_out(high - step):
                high, step = high - step, 2 * step
            low = max(low, high - step)
    while high - low > tolerance:
        middle = 0.5 * (low + high)
        if ruled_out(middle):
            low = middle
        else:
            high = middle
    return low


def past_variance(values: Floats) -> Floats:
    """Return the variance of the values before each row; a quarter counts as one row of it."""
    # Differences from the first value, so that a large mean costs no digits. The first row itself
    # must not know its own value: its difference, 0, says nothing.
    centred = values - values[0]
    t = np.arange(1, len(values) + 1)
    total, square = np.cumsum(centred), np.cumsum(centred * centred)
    seen = np.maximum(square - total * total / t, 0.0)
    return np.concatenate([[0.25], ((0.25 + seen) / (t + 1))[:-1]])


def _ratio_guess(part: Floats, whole: Floats, residual: Floats) -> tuple[float, float]:
    """Return the ratio of the means and its standard error, for a search to begin at."""
    below = float(whole.mean())
    if below <= 0:
        return 0.5, 1.0
    ratio = float(part.mean()) / below
    return ratio, float(residual.std()) / len(part) ** 0.5 / below


def _residual(part: Floats, whole: Floats) -> Floats:
    """Return part - r whole with r the ratio so far: what the stakes on a ratio are sized by."""
    above, below = np.cumsum(part), np.cumsum(whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.5)
    ratio = np.concatenate([[0.5], np.clip(ratio[:-1], 0.0, 1.0)])
    return part - ratio * whole
