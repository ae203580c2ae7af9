"""Lower bounds on ratios of two groups' utilities, with the same guarantee as for differences.

u1 / u0 is at most r if and only if u1 - r u0 <= 0, which is linear in both. So the bounds on a
difference carry over, with the second group's error multiplied by r: a candidate r is ruled out if
the lower bound on u1 - r u0 is positive. The upper bound is the inverse of the lower bound on
u0 / u1.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from sellf.audit import betting, capital, moments, shares, tails
from sellf.audit.candidates import climb, segments
from sellf.audit.games import Game, past_ratio
from sellf.audit.shares import Share
from sellf.logs.person import Floats

LARGEST = 1e6
"""The largest ratio that is considered."""
PRECISION = 1e-4
"""The relative precision of the bound, which is rounded down."""
STEPS = 20
BOLDEST = 20.0
"""The largest guess of the ratio for which stakes are made; its inverse is the smallest."""


def divided(low: float, high: float) -> float:
    """Return a lower bound on a ratio from bounds on its numerator and denominator."""
    return max(low, 0.0) / high if high > 0 else 0.0


def from_shares(first: Share, second: Share, alpha: float) -> float:
    """Return a lower bound on first / second that fails with probability at most alpha."""
    if not first.people or not second.people:
        return 0.0
    each = shares.BOX * alpha
    boxes = [(shares.lower(share, each), shares.upper(share, each)) for share in (first, second)]
    rest = (1 - 4 * shares.BOX) * alpha
    people = (first.people, second.people)

    def above(r: float) -> float:
        spread = _spread(boxes, people, (1.0, r))
        return first.value - r * second.value - tails.quantile(spread, rest)

    return _largest(above, divided(boxes[0][0], boxes[1][1]), _guess(first.value, second.value))


def _spread(
    boxes: list[tuple[float, float]], people: tuple[float, float], scales: tuple[float, float]
) -> tails.Spread:
    """Return bounds on the moments of a weighted difference, for all shares in the boxes."""
    least = most = fourth = largest = 0.0
    for (low, high), n, scale in zip(boxes, people, scales, strict=True):
        p = np.array([low, high, min(max(0.5, low), high)])
        v = p * (1 - p)
        least += scale**2 * v[:2].min() / n
        most += scale**2 * v.max() / n
        # The fourth moment, v (1 - 3 v), is largest at v = 1/6.
        v = np.append(v, np.clip(1 / 6, v.min(), v.max()))
        fourth += scale**4 * (v * (1 - 3 * v)).max() / n**3
        largest = max(largest, scale * max(1 - low, high) / n)
    return tails.Spread(least, most, fourth, largest, sum(people))


def from_moments(first: moments.Sample, second: moments.Sample, alpha: float) -> float:
    """Return a lower bound on first / second that fails with probability at most alpha."""
    if (first.pilot is None) != (second.pilot is None):
        return divided(moments.lower(first, alpha / 2), moments.upper(second, alpha / 2))
    guess = _guess(first.value, second.value)
    if not first.mean:
        return _ratio_of_ratios(first, second, alpha, guess)

    def above(r: float) -> float:
        terms = [first.term(0.0, 1 / first.n), second.term(0.0, r / second.n, -1)]
        shift = first.shift + r * second.shift
        return float(first.raw[1, 0] - r * second.raw[1, 0]) - shift - _radius(terms, alpha)

    return _largest(above, 0.0, guess)


def _ratio_of_ratios(
    first: moments.Sample, second: moments.Sample, alpha: float, guess: float
) -> float:
    """Return the bound for utilities that are ratios themselves.

    With e1 and e0 the errors of the two estimates, slope1 e1 - slope0 e0 and slope1 e1 + slope0 e0
    are sums of independent terms with known slopes, and e1 - r e0 is a linear combination of both.
    """
    if first.pilot is None or second.pilot is None:
        return divided(moments.lower(first, alpha / 2), moments.upper(second, alpha / 2))
    both = (first, second)
    each = moments.BOX * alpha
    ends = [(moments.lower(side, each), moments.upper(side, each)) for side in both]
    apart = divided(ends[0][0], ends[1][1])
    levels = [max(float(side.pilot[0, 1]), 0.01) for side in both if side.pilot is not None]
    means = [float(side.raw[0, 1]) for side in both]
    if min(means) <= 0:
        return apart
    rest = (1 - 4 * moments.BOX - moments.SUM_SHARE) * alpha

    def above(r: float) -> float:
        weights = (1 / levels[0], r / levels[1])
        inverse = [level / mean for level, mean in zip(levels, means, strict=True)]

        def bound(signs: tuple[int, int], alpha: float) -> float:
            sides = zip(both, ends, weights, signs, strict=True)
            terms = [moments._worst(one, end, w / one.n, sign) for one, end, w, sign in sides]
            return _radius(terms, alpha)

        less = bound(moments.SIGNS, rest)
        same = (1, 1) if inverse[0] > inverse[1] else (-1, -1)
        plus = bound(same, moments.SUM_SHARE * alpha)
        off = (less * sum(inverse) + plus * abs(inverse[0] - inverse[1])) / 2
        return first.value - r * second.value - off

    return _largest(above, apart, guess)


def _radius(terms: list[capital.Term | tails.Term], alpha: float) -> float:
    return moments._radius(terms, alpha)


def from_normal(first: tuple[float, float], second: tuple[float, float], quantile: float) -> float:
    """Return Fieller's lower bound from two estimates with their standard errors."""

    def above(r: float) -> float:
        return first[0] - r * second[0] - quantile * float(np.hypot(first[1], r * second[1]))

    return _largest(above, 0.0, _guess(first[0], second[0]))


def from_games(
    first: Game,
    second: Game,
    ranges: tuple[tuple[float, float], tuple[float, float]],
    alpha: float,
) -> float:
    """Return a lower bound on the first group's utility over the second's.

    A single game on the rows of both groups bets against every pair of utilities whose ratio is too
    small.

    Args:
        first: the lower game of the first group.
        second: the upper game of the second group, on 1 minus its utility.
        ranges: intervals of the two utilities.
        alpha: the probability that the bound fails, if both intervals hold.
    """
    (a1, b1), (a0, b0) = ranges
    apart = divided(a1, b0)
    if not first.part.shape[-1] or not second.part.shape[-1] or b0 <= 0:
        return apart
    target = float(np.log(1 / alpha))
    stakes, error = _stakes(first, second, target)

    @cache
    def grown(second_game: bool, m: float, top: float) -> Floats:
        game = second if second_game else first
        most = betting.LARGEST_LOSS / np.maximum(game.loss(top), 1e-300)
        return betting.growth(np.minimum(stakes[second_game], most) * (game.part - m * game.whole))

    cells = [
        ((one.low, one.high), (1 - two.high, 1 - two.low), one.top, two.top)
        for one in segments(a1, b1)
        for two in segments(1 - b0, 1 - a0)
    ]

    def ruled_out(r: float) -> bool:
        found = []
        for one, two, top1, top0 in cells:
            logs = [
                grown(False, m1, top1) + grown(True, 1 - m0, top0)
                for m1, m0 in corners(one, two, r)
            ]
            if logs:
                # The mean over the orders of the capital at each order's worst corner.
                worst = np.min(logs, axis=0)
                found.append(np.logaddexp.reduce(worst) - np.log(len(worst)) >= target)
                if not found[-1]:
                    return False
        return bool(found)

    top = min(divided(b1, a0) if a0 > 0 else LARGEST, LARGEST)
    guess = _guess(betting.estimate(first)[0], 1 - betting.estimate(second)[0])
    start = max(guess - betting.GUESS * target**0.5 * error, apart)
    return climb(ruled_out, apart, top, guess=start, step=min(error, 1.0))


def corners(
    first: tuple[float, float], second: tuple[float, float], r: float
) -> list[tuple[float, float]]:
    """Return the corners of {m1 <= r m0} within the box."""
    (a1, b1), (a0, b0) = first, second
    line = [(r * a0, a0), (r * b0, b0)]
    line += [(a1, a1 / r), (b1, b1 / r)] if r > 0 else []
    tiny = 1e-12
    inside = [
        (min(max(m1, a1), b1), min(max(m0, a0), b0))
        for m1, m0 in line
        if a1 - tiny <= m1 <= b1 + tiny and a0 - tiny <= m0 <= b0 + tiny
    ]
    box = [(m1, m0) for m1 in first for m0 in second if m1 <= r * m0]
    return list(dict.fromkeys([*inside, *box]))


def _stakes(first: Game, second: Game, target: float) -> tuple[list[Floats], float]:
    """Return the stakes of both groups and the standard error of the ratio.

    The stakes are optimal for u1 - r u0, with variances, levels and r estimated from the rows
    before. Each group uses the other's past up to the same share of rows; the first group's rows
    are played first.
    """
    games, ratios, spreads, levels = (first, second), [], [], []
    for game in games:
        ratio, level = past_ratio(game), betting.past_level(game)
        variance = betting.past_variance(game.part - ratio * game.whole)
        ratios.append(ratio)
        levels.append(level)
        spreads.append(variance / (game.part.shape[-1] * level**2))
    sizes = []
    for k, game in enumerate(games):
        n, other = game.part.shape[-1], games[1 - k].part.shape[-1]
        place = np.maximum(np.arange(n) * other // n - (1 - k), 0)
        seen = [values[k] for values in (ratios, spreads)]
        past = [values[1 - k][..., place] for values in (ratios, spreads)]
        (u1, v1), (w0, v0) = (seen, past) if k == 0 else (past, seen)
        r = np.clip(u1 / np.maximum(1 - w0, 1e-9), 1 / BOLDEST, BOLDEST)
        size = np.sqrt(2 * target / (v1 + r * r * v0)) / (n * levels[k])
        sizes.append(size if k == 0 else r * size)
    u1, u0 = betting.estimate(first)[0], 1 - betting.estimate(second)[0]
    r = _guess(u1, u0)
    error = float(np.mean(spreads[0][..., -1] + min(r, BOLDEST) ** 2 * spreads[1][..., -1])) ** 0.5
    return sizes, error / max(u0, 1e-3)


def _guess(first: float, second: float) -> float:
    return min(max(first, 0.0) / second, LARGEST) if second > 0 else LARGEST


def _largest(above: Callable[[float], float], low: float, high: float) -> float:
    """Return the largest ratio that is ruled out: the root of `above`, rounded down.

    Args:
        above: a lower bound on u1 - r u0, decreasing in r.
        low: a ratio that is ruled out in any case.
        high: the estimate, which is never ruled out.
    """
    if high <= low or above(max(low, 1e-9)) <= 0:
        return low
    start, end = float(np.log(max(low, 1e-9))), float(np.log(high))
    # The root is approximate, so step down until the bound is certainly positive.
    root: Any = brentq(lambda log: above(float(np.exp(log))), start, end, xtol=PRECISION / 4)
    for _ in range(STEPS):
        root = max(root - PRECISION, start)
        if above(float(np.exp(root))) > 0:
            break
    return float(np.exp(root))
