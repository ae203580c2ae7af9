"""Bounds on sums of utilities: of one policy, of two groups, or of the change between policies.

A utility is u = E[of] / E[among], so E[of - u among] = 0. A candidate v for the sum of one group's
utilities is ruled out if the mean of `of - v among` is further from 0 than `capital.radius` allows;
for two groups, a pair of candidates is, by the sum of both means, each times a weight fixed
beforehand that makes the levels alike. Policies that are compared on the same people share their
rows, so that what is common to both cancels row by row: a paired difference.

For very many rows, and for policies whose denominators differ, levels have a bound of their own
instead. With any w fixed beforehand u = w + E[of - w among] / E[among]; if w, a guess from the
pilot, is near, then little depends on the level.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sellf.audit import capital
from sellf.offline.lines import Line, Target
from sellf.offline.sample import Fit, Moments, Sample

BOX_SHARE = 0.04
"""The part of alpha for where the levels, or the two groups, are."""
LEAST_LEVEL = 1e-3
"""Below this level nothing is said of a ratio."""
STEPS = 8
"""Of a search for the end of an interval, at most."""
TOLERANCE = 0.02
"""Of such a search, as a share of the interval's width."""
BOX_TOLERANCE = 0.15
"""The same where only about where something is matters."""
SEARCHED = 60_000
"""Up to so many people candidates are tried one by one."""


@dataclass(frozen=True)
class Part:
    """One utility of a sum, with its sign."""

    sign: float
    sample: Sample
    target: Target
    name: str
    """Of the policy; ratios whose denominator no policy changes share their level."""


def lower(parts: Sequence[Part], alpha: float) -> float:
    """Return a number that the sum of utilities is below with probability alpha at most.

    Args:
        parts: the utilities; those of one group share their sample.
        alpha: the chance that the bound fails.
    """
    if any(part.sample.people < 6 for part in parts):
        return -float("inf")
    if all(part.sample.estimated for part in parts):
        return _normal(parts, alpha)
    if all(part.target.among is None for part in parts):
        return _mean_bound(_forms(parts, [0.0] * len(parts), {}), alpha)
    ratios = _ratios(parts)
    if ratios is None:
        return _by_levels(parts, alpha)
    if len(ratios) == 1:
        return _end(ratios[0], alpha)
    opposite = [ratio.opposite() for ratio in ratios]
    return _joint_end(ratios, alpha, _boxes(ratios, opposite, alpha))


def upper(parts: Sequence[Part], alpha: float) -> float:
    """Return a number that the sum is above with probability alpha at most."""
    return -lower(_opposite(parts), alpha)


def both(parts: Sequence[Part], alpha: float) -> tuple[float, float]:
    """Return what `lower` and `upper` return, which takes less time together."""
    known = all(part.sample.people >= 6 and not part.sample.estimated for part in parts)
    ratios = _ratios(parts) if known and parts[0].target.among is not None else None
    mirrored = _ratios(_opposite(parts)) if ratios is not None and len(ratios) == 2 else None
    if ratios is None or mirrored is None:
        return lower(parts, alpha), upper(parts, alpha)
    boxes = _boxes(ratios, mirrored, alpha)
    low = _joint_end(ratios, alpha, boxes)
    return low, -_joint_end(mirrored, alpha, [(-b, -a) for a, b in boxes])


def _opposite(parts: Sequence[Part]) -> list[Part]:
    return [Part(-part.sign, part.sample, part.target, part.name) for part in parts]


def estimate(parts: Sequence[Part]) -> float:
    """Return the estimate of the sum; the middle of what is identified."""
    total = 0.0
    for part in parts:
        of, among = part.target.of, part.target.among
        whole = 1.0 if among is None else _middle(part.sample, among)
        total += part.sign * _middle(part.sample, of) / max(whole, LEAST_LEVEL)
    return total


def _middle(sample: Sample, line: Line) -> float:
    ends = (sample.rest.values(line, np.inf), -sample.rest.values(line * -1.0, np.inf))
    return float(np.mean([end.mean() for end in ends]))


class _Ratio(NamedTuple):
    """The sum of one group's utilities, all with the same denominator."""

    sample: Sample
    of: Line
    among: Line
    low: float
    """The least that the sum can be."""
    high: float
    guess: float
    level: float
    """A guess of E[among]."""
    fit: Fit

    def at(self, value: float) -> Moments:
        """Return the moments of of - value among."""
        return self.sample.moments(self._line(value), self.fit)

    def opposite(self) -> "_Ratio":
        """Return the ratio with its sign changed."""
        return self._replace(of=self.of * -1.0, low=-self.high, high=-self.low, guess=-self.guess)

    def _line(self, value: float) -> Line:
        return (self.of - self.among * value).within(self.low - value, self.high - value)


def _ratios(parts: Sequence[Part]) -> list[_Ratio] | None:
    """Return one ratio a sample, None if there is no such or candidates would take too long."""
    by_sample: dict[int, list[Part]] = {}
    for part in parts:
        by_sample.setdefault(id(part.sample), []).append(part)
    found = []
    for own in by_sample.values():
        sample, among = own[0].sample, own[0].target.among
        if among is None or len({_key(part) for part in own}) > 1 or sample.people > SEARCHED:
            return None
        of = own[0].target.of * own[0].sign
        for part in own[1:]:
            of = of + part.target.of * part.sign
        signs = [part.sign for part in own]
        low, high = min(0.0, *signs, sum(signs)), max(0.0, *signs, sum(signs))
        level = max(sample.level(among), LEAST_LEVEL)
        guess = min(max(sample.level(of) / level, low), high)
        ratio = _Ratio(sample, of, among, low, high, guess, level, Fit(0.0, 1.0))
        found.append(ratio._replace(fit=sample.fitted(ratio._line(guess))))
    return found


def _end(ratio: _Ratio, alpha: float, tolerance: float = TOLERANCE) -> float:
    """Return a candidate such that it and smaller ones are ruled out."""

    def distance(value: float) -> float:
        found = ratio.at(value)
        return found.mean - capital.radius([found.term], alpha)

    return _search(distance, [ratio], alpha, ratio.low, ratio.high, tolerance)


def _boxes(
    ratios: Sequence[_Ratio], opposite: Sequence[_Ratio], alpha: float
) -> list[tuple[float, float]]:
    """Return where each of two groups' ratios is, with a small part of alpha."""
    each = BOX_SHARE * alpha / 4
    return [
        (_end(one, each, BOX_TOLERANCE), -_end(other, each, BOX_TOLERANCE))
        for one, other in zip(ratios, opposite, strict=True)
    ]


def _joint_end(
    ratios: Sequence[_Ratio], alpha: float, boxes: Sequence[tuple[float, float]]
) -> float:
    """Return the same for the sum of two groups' ratios, which are in `boxes`."""
    (a1, b1), (a2, b2) = boxes
    if a1 >= b1 or a2 >= b2:
        return sum(ratio.low for ratio in ratios)
    weights = [1 / ratio.level for ratio in ratios]

    def apart(values: tuple[float, float]) -> float:
        found = [ratio.at(value) for ratio, value in zip(ratios, values, strict=True)]
        terms = [
            each.term._replace(scale=each.term.scale * weight)
            for each, weight in zip(found, weights, strict=True)
        ]
        mean = sum(each.mean * weight for each, weight in zip(found, weights, strict=True))
        return mean - capital.radius(terms, (1 - BOX_SHARE) * alpha)

    def distance(total: float) -> float:
        # The mean is linear along the line on which the sum is `total`, its radius convex.
        ends = (max(a1, total - b2), min(b1, total - a2))
        return min(apart((value, total - value)) for value in ends)

    return max(_search(distance, ratios, alpha, a1 + a2, b1 + b2), a1 + a2)


def _search(
    distance: Callable[[float], float],
    ratios: Sequence[_Ratio],
    alpha: float,
    low: float,
    high: float,
    tolerance: float = TOLERANCE,
) -> float:
    """Return a candidate up to which all are ruled out, those with a distance above 0.

    The distance falls about as fast as the levels say, so a few steps come near its end. The answer
    is rounded down: it is itself ruled out, and so are some that are tried below it.
    """
    middle, error, slope = 0.0, 0.0, 0.0
    for ratio in ratios:
        level = max(float(ratio.sample.rest.values(ratio.among, np.inf).mean()), LEAST_LEVEL)
        value = float(ratio.sample.rest.values(ratio.of, np.inf).mean()) / level
        value = min(max(value, ratio.low), ratio.high)
        term = ratio.at(value).term
        error += term.variance / term.n / level**2
        middle += value
        slope += level / ratio.level if len(ratios) > 1 else level
    slope /= len(ratios)
    scale = float(-ndtri(alpha)) * error**0.5 + 1e-9
    found = min(max(middle - 1.2 * scale, low), high)
    for _ in range(STEPS):
        step = distance(found) / slope
        found = min(max(found + step, low), high)
        if abs(step) < tolerance * scale or found == low:
            break
    found = max(found - tolerance * scale, low)
    for _ in range(STEPS):
        if found == low or distance(found) > 0:
            break
        found = max(found - 2 * tolerance * scale, low)
    tried = [low + (found - low) * share for share in (0.3, 0.7, 0.95)]
    return found if found == low or all(distance(u) > 0 for u in tried) else low


def _by_levels(parts: Sequence[Part], alpha: float) -> float:
    """Return the same from bounds on the levels and guesses of the utilities."""
    guesses = [_guess(part) for part in parts]
    known = sum(part.sign * guess for part, guess in zip(parts, guesses, strict=True))
    levels = _levels(parts, BOX_SHARE * alpha)
    if levels is None:
        return -float("inf")
    # The sum of means less its radius is concave in the inverse levels: least at a corner.
    corners = product(*((1 / high, 1 / low) for low, high in levels.values()))
    found = [
        _mean_bound(
            _forms(parts, guesses, dict(zip(levels, corner, strict=True))),
            (1 - BOX_SHARE) * alpha,
        )
        for corner in corners
    ]
    return known + min(found)


def _guess(part: Part) -> float:
    """Return a guess of a utility that the rows that count have no part in."""
    of = part.sample.level(part.target.of)
    if part.target.among is None:
        return 0.0
    whole = max(part.sample.level(part.target.among), LEAST_LEVEL)
    return min(max(of / whole, 0.0), 1.0)


def _key(part: Part) -> tuple[int, str]:
    return id(part.sample), "" if part.target.shared else part.name


def _levels(
    parts: Sequence[Part], alpha: float
) -> dict[tuple[int, str], tuple[float, float]] | None:
    """Return where each ratio's level is; None if one of them may be nothing."""
    lines = {_key(part): (part.sample, part.target.among) for part in parts}
    ratios = {key: (sample, line) for key, (sample, line) in lines.items() if line is not None}
    found: dict[tuple[int, str], tuple[float, float]] = {}
    for key, (sample, line) in ratios.items():
        each = alpha / (2 * len(ratios))
        low = _mean_bound([(sample, line)], each)
        high = -_mean_bound([(sample, line * -1.0)], each)
        if low < LEAST_LEVEL:
            return None
        found[key] = (low, max(high, low))
    return found


def _forms(
    parts: Sequence[Part], guesses: Sequence[float], inverse: dict[tuple[int, str], float]
) -> list[tuple[Sample, Line]]:
    """Return one form a sample: what its people add to the sum of means."""
    forms: dict[int, tuple[Sample, Line]] = {}
    for part, guess in zip(parts, guesses, strict=True):
        line = part.target.around(guess) * (part.sign * inverse.get(_key(part), 1.0))
        key = id(part.sample)
        forms[key] = (part.sample, forms[key][1] + line if key in forms else line)
    return list(forms.values())


def _mean_bound(forms: Sequence[tuple[Sample, Line]], alpha: float) -> float:
    """Return a number that the sum of the forms' means is below with probability alpha at most."""
    found = [sample.moments(line) for sample, line in forms]
    return sum(each.mean for each in found) - capital.radius([each.term for each in found], alpha)


def _normal(parts: Sequence[Part], alpha: float) -> float:
    """Return the same as if estimates were normal, for propensities that were estimated."""
    inverse: dict[tuple[int, str], float] = {}
    guesses = []
    for part in parts:
        among, rest = part.target.among, part.sample.rest
        whole = 1.0 if among is None else max(float(rest.values(among, np.inf).mean()), 1e-9)
        guesses.append(float(rest.values(part.target.of, np.inf).mean()) / whole)
        inverse[_key(part)] = 1 / whole
    value = sum(part.sign * guess for part, guess in zip(parts, guesses, strict=True))
    found = [sample.moments(line) for sample, line in _forms(parts, guesses, inverse)]
    error = sum(each.term.variance / max(each.term.n - 1, 1) for each in found) ** 0.5
    return value + sum(each.mean for each in found) + float(ndtri(alpha)) * error
