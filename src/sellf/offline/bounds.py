"""Bounds on sums of utilities: of one policy, of two groups, or of the change between policies.

A utility is u = E[of] / E[among], so E[of - u among] = 0. A candidate v for the sum of one group's
utilities is ruled out if the mean of `of - v among` is further from 0 than `capital.radius` allows.
For two groups, a pair of candidates is ruled out by the sum of both means, each multiplied by a
weight, fixed beforehand, that makes the levels comparable. Policies compared on the same people
share their rows, so common terms cancel row by row (a paired difference).

With very many rows, or with policies whose denominators differ, the levels are bounded separately
instead. For any w fixed beforehand, u = w + E[of - w among] / E[among]; if w, an estimate from the
pilot, is close to u, little depends on the level.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from scipy.special import ndtri

from sellf.audit import capital
from sellf.offline.lines import Line, Target
from sellf.offline.sample import Fit, Moments, Sample

BOX_SHARE = 0.04
"""Share of alpha spent on bounding the levels, or the utilities of the two groups."""
NOBODY = 1e-12
"""Largest level, a rounding error, at which a ratio is over nobody and undefined."""
LEAST_LEVEL = 1e-3
"""Smallest level at which a ratio is bounded."""
STEPS = 8
"""Maximum number of steps in the search for the end of an interval."""
TOLERANCE = 0.02
"""Tolerance of that search, as a share of the interval's width."""
BOX_TOLERANCE = 0.15
"""Tolerance where a rough location is sufficient."""
SEARCHED = 60_000
"""Largest number of people for which candidates are tried one by one."""


@dataclass(frozen=True)
class Part:
    """One utility of a sum, with its sign."""

    sign: float
    sample: Sample
    target: Target
    name: str
    """Name of the policy; ratios whose denominator no policy changes share their level."""


def lower(parts: Sequence[Part], alpha: float) -> float:
    """Return a lower bound on the sum of utilities that fails with probability alpha at most.

    Args:
        parts: the utilities; those of one group share their sample.
        alpha: probability that the bound fails.
    """
    if any(part.sample.people < 6 for part in parts):
        return -float("inf")
    if all(part.sample.estimated for part in parts):
        return _normal(parts, alpha)
    if all(part.target.among is None for part in parts):
        return _bound(_moments(_forms(parts, [0.0] * len(parts)), {}), alpha)
    ratios = _ratios(parts)
    if ratios is None:
        return _by_levels(parts, alpha)
    if len(ratios) == 1:
        return _end(ratios[0], alpha)
    opposite = [ratio.opposite() for ratio in ratios]
    return _joint_end(ratios, alpha, _boxes(ratios, opposite, alpha))


def upper(parts: Sequence[Part], alpha: float) -> float:
    """Return an upper bound on the sum that fails with probability alpha at most."""
    return -lower(_opposite(parts), alpha)


def both(parts: Sequence[Part], alpha: float) -> tuple[float, float]:
    """Return the results of `lower` and `upper`, in less time than separate calls."""
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
    """Return the estimate of the sum: the midpoint of the identified range.

    NaN if a utility is a ratio over nobody, such as the hit rate of a policy that accepts nobody.
    """
    total = 0.0
    for part in parts:
        of, among = part.target.of, part.target.among
        whole = 1.0 if among is None else _middle(part.sample, among)
        if whole <= NOBODY:
            return float("nan")
        total += part.sign * _middle(part.sample, of) / max(whole, LEAST_LEVEL)
    return total


def _middle(sample: Sample, line: Line) -> float:
    below = sample.mean(line)
    return below if sample.rest.identified else (below - sample.mean(line * -1.0)) / 2


class _Ratio(NamedTuple):
    """The sum of one group's utilities with a common denominator."""

    sample: Sample
    of: Line
    """The numerator; `among` is the denominator."""
    among: Line
    low: float
    """Smallest possible value of the sum."""
    high: float
    guess: float
    level: float
    """Estimate of E[among] from the pilot."""
    fit: Fit

    def at(self, value: float) -> Moments:
        """Return the moments of `of - value among`."""
        return self.sample.moments(self._line(value), self.fit)

    def opposite(self) -> "_Ratio":
        """Return the ratio with its sign changed."""
        return self._replace(of=self.of * -1.0, low=-self.high, high=-self.low, guess=-self.guess)

    def _line(self, value: float) -> Line:
        return (self.of - self.among * value).within(self.low - value, self.high - value)


def _ratios(parts: Sequence[Part]) -> list[_Ratio] | None:
    """Return one ratio per sample; None if that is impossible or the search would take too long."""
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
        whole = _Ratio(sample, of, among, low, high, guess, level, Fit(0.0, 1.0))
        found.append(whole._replace(fit=sample.fitted(whole._line(guess))))
    return found


def _end(ratio: _Ratio, alpha: float, tolerance: float = TOLERANCE) -> float:
    """Return a candidate that is ruled out together with all smaller ones."""

    def distance(value: float) -> float:
        found = ratio.at(value)
        return found.mean - capital.radius([found.term], alpha)

    return _search(distance, [ratio], alpha, ratio.low, ratio.high, tolerance)


def _boxes(
    ratios: Sequence[_Ratio], opposite: Sequence[_Ratio], alpha: float
) -> list[tuple[float, float]]:
    """Return an interval for each of two groups' ratios, at a small share of alpha."""
    each = BOX_SHARE * alpha / 4
    return [
        (_end(one, each, BOX_TOLERANCE), -_end(other, each, BOX_TOLERANCE))
        for one, other in zip(ratios, opposite, strict=True)
    ]


def _joint_end(
    ratios: Sequence[_Ratio], alpha: float, boxes: Sequence[tuple[float, float]]
) -> float:
    """Return the same for the sum of two groups' ratios, given their intervals in `boxes`."""
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
        # Along the line on which the sum is `total`, the mean is linear and its radius convex.
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
    """Return a candidate up to which all are ruled out, that is, have a distance above 0.

    The distance decreases at about the rate of the levels, so a few steps come close to its root.
    The result is rounded down: it is itself ruled out, and so are some candidates tried below it.
    """
    middle, error, slope = 0.0, 0.0, 0.0
    for ratio in ratios:
        level = max(ratio.sample.mean(ratio.among), LEAST_LEVEL)
        value = ratio.sample.mean(ratio.of) / level
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
    """Return the same from bounds on the levels and pilot estimates of the utilities."""
    guesses = [_guess(part) for part in parts]
    known = sum(part.sign * guess for part, guess in zip(parts, guesses, strict=True))
    # Rounded down to a power of 2, so that intervals of similar levels share these bounds.
    levels = _levels(parts, 2.0 ** math.floor(math.log2(BOX_SHARE * alpha)))
    if levels is None:
        return -float("inf")
    forms = _forms(parts, guesses)
    # The sum of means minus its radius is concave in the inverse levels: minimal at a corner.
    corners = product(*((1 / high, 1 / low) for low, high in levels.values()))
    found = [
        _bound(_moments(forms, dict(zip(levels, corner, strict=True))), (1 - BOX_SHARE) * alpha)
        for corner in corners
    ]
    return known + min(found)


def _guess(part: Part) -> float:
    """Return an estimate of a utility from the pilot alone."""
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
    """Return an interval for each ratio's level; None if one of them may be close to 0."""
    lines = {_key(part): (part.sample, part.target.among) for part in parts}
    ratios = {key: (sample, line) for key, (sample, line) in lines.items() if line is not None}
    found: dict[tuple[int, str], tuple[float, float]] = {}
    for key, (sample, line) in ratios.items():
        each = alpha / (2 * len(ratios))
        low = _bound([sample.moments(line)], each)
        high = -_bound([sample.moments(line * -1.0)], each)
        if low < LEAST_LEVEL:
            return None
        found[key] = (low, max(high, low))
    return found


_Forms = dict[Sample, dict[tuple[int, str], Line]]
"""The contributions of a sample's people to the sum of means, by the level that divides them."""


def _forms(parts: Sequence[Part], guesses: Sequence[float]) -> _Forms:
    """Return what each sample contributes to the sum, before the division by levels."""
    forms: _Forms = {}
    for part, guess in zip(parts, guesses, strict=True):
        line = part.target.around(guess) * part.sign
        own, key = forms.setdefault(part.sample, {}), _key(part)
        own[key] = own[key] + line if key in own else line
    return forms


def _moments(forms: _Forms, inverse: dict[tuple[int, str], float]) -> list[Moments]:
    """Return the moments of each sample's contribution, given the inverses of the levels."""
    found = []
    for sample, own in forms.items():
        factors = [inverse.get(key, 1.0) for key in own]
        line, *others = own.values()
        if not others:
            # The level only scales the form, and its moments are known for all levels at once.
            found.append(sample.moments(line).times(factors[0]))
            continue
        line = line * factors[0]
        for other, factor in zip(others, factors[1:], strict=True):
            line = line + other * factor
        found.append(sample.moments(line))
    return found


def _bound(found: Sequence[Moments], alpha: float) -> float:
    """Return a lower bound on the sum of the forms' means, with confidence 1 - alpha."""
    return sum(each.mean for each in found) - capital.radius([each.term for each in found], alpha)


def _normal(parts: Sequence[Part], alpha: float) -> float:
    """Return the same from a normal approximation, for estimated propensities."""
    inverse: dict[tuple[int, str], float] = {}
    guesses = []
    for part in parts:
        among, sample = part.target.among, part.sample
        whole = 1.0 if among is None else sample.mean(among)
        if whole <= NOBODY:  # a ratio over nobody may be anything
            return -float("inf")
        guesses.append(sample.mean(part.target.of) / whole)
        inverse[_key(part)] = 1 / whole
    value = sum(part.sign * guess for part, guess in zip(parts, guesses, strict=True))
    found = _moments(_forms(parts, guesses), inverse)
    error = 0.0
    for each in found:
        # Values that are all the same in a sample may differ outside it.
        least = each.term.reach**2 / max(each.term.n, 1) if not each.term.variance else 0.0
        error += max(each.term.variance, least) / max(each.term.n - 1, 1)
    error = error**0.5
    return value + sum(each.mean for each in found) + float(ndtri(alpha)) * error
