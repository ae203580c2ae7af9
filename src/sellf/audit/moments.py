"""Intervals from moments, computed in one pass over a group's rows, in any order.

A utility is u = E[part] / E[whole], so E[part - u whole] = 0. The sample mean of part - u whole is
a sum of independent terms. `capital.radius` bounds its distance from 0, or `tails.radius` for
groups of which only sums are known. For a mean, `whole` is 1, and the interval of a difference
follows directly. For a ratio with estimate r, sample mean W of `whole` and any weights c,

    c1 W1 (r1 - u1) - c0 W0 (r0 - u0)

is such a sum. With c W = 1 it would bound (r1 - u1) - (r0 - u0). But c must be fixed beforehand, so
it comes from the pilot; the more c1 W1 and c0 W0 differ, the more the two errors themselves matter.
Their sum is bounded separately, with a small share of alpha. Where only sums are known there is no
pilot: c = 1 / w, the unknown inverse of the mean of `whole`, and the distance of W / w from 1 is
bounded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit import capital, tails
from sellf.audit.candidates import climb
from sellf.audit.scores import Side
from sellf.logs.person import Floats

BOX = 0.005
"""The share of alpha for each of eight ends of boxes."""
SUM_SHARE = 0.02
"""The share of alpha for the sum of two errors."""
NEAR_END = 0.85
"""The fraction of the largest difference of errors beyond which terms are bounded again."""
SIGNS = (1, -1)
"""The signs of the two groups in their difference."""
CANDIDATES = np.linspace(0.0, 1.0, 11)
POWERS = [(i, j) for i in range(5) for j in range(5) if 0 < i + j <= 4]


class Sample(NamedTuple):
    """Moments and bounds of one side's values."""

    n: float
    raw: NDArray[np.float64]
    """raw[i, j] is the mean of part^i whole^j."""
    extremes: Sequence[tuple[float, float]]
    """`part` and `whole` of the most extreme people, fixed before these rows were seen."""
    mean: bool
    """Whether `whole` is 1."""
    pilot: NDArray[np.float64] | None = None
    """The same means in the pilot, to which stakes are fitted; None where only sums are known."""
    cubes: Floats | None = None
    """The mean bound on E|part - u whole|^3 given the features, for u on `CANDIDATES`."""
    seen_cubes: Floats | None = None
    """The mean of |part - u whole|^3, for u on `CANDIDATES`."""
    norms: tuple[float, float] = (0.0, 0.0)
    """For sums: bounds on (E x^4)^(1/4) for x = `part` and x = `part - whole`; for a mean, both are
    for `part` minus its mean."""
    shift: float = 0.0
    """For sums: a bound on the bias of the mean from a prediction made from the same rows."""
    pending: bool = False
    """Whether `part` and `whole` hold outcomes that are not known yet."""

    @property
    def value(self) -> float:
        """The estimate."""
        return float(self.raw[1, 0] / self.raw[0, 1]) if self.raw[0, 1] > 0 else 0.5

    def term(self, u: float, scale: float, sign: int = 1) -> capital.Term | tails.Term:
        """Return the term of part - u whole minus its mean, times `scale`, or of its negative."""
        variance, third, fourth = central(self.raw, u)
        third = sign * third
        if self.pilot is None:
            # part - u whole = (1 - u) part + u (part - whole); Minkowski's inequality.
            fourth = ((1 - u) * self.norms[0] + u * self.norms[1]) ** 4
            return tails.Term(scale, self.n, variance, fourth, self.largest(u), bounded=True)
        guess = (central(self.pilot, u)[0] + 0.1 / self.n**0.5) ** 0.5
        about = self.value if self.mean else u
        cube, seen_cube = (_between(values, about) for values in (self.cubes, self.seen_cubes))
        return capital.Term(
            scale,
            self.n,
            variance,
            third,
            fourth,
            self.largest(u),
            guess,
            cube,
            seen_cube,
            centred=not self.mean,
        )

    def largest(self, u: float) -> float:
        """Return the largest distance of part - u whole from its mean if u is the utility.

        For a ratio that mean is then 0; for a mean it is between 0 and 1. A pending outcome has
        values on the line between its worse values at u = 0 and at u = 1.
        """
        if self.mean:
            return max(1.0, *(max(part, 1 - part) for part, _ in self.extremes))
        found = max(1.0, *(abs(part - u * whole) for part, whole in self.extremes))
        if not self.pending:
            return found
        at_zero, at_one = (
            max(abs(part - end * whole) for part, whole in self.extremes) for end in (0, 1)
        )
        return max(found, (1 - u) * at_zero + u * at_one)


def _between(values: Floats | None, u: float) -> float:
    """Return an upper bound on a convex function of u, by interpolation between `CANDIDATES`."""
    return float("inf") if values is None else float(np.interp(u, CANDIDATES, values))


def central(raw: NDArray[np.float64], u: float) -> tuple[float, float, float]:
    """Return the second, third and fourth central moments of part - u whole."""
    m1 = raw[1, 0] - u * raw[0, 1]
    m2 = raw[2, 0] - 2 * u * raw[1, 1] + u * u * raw[0, 2]
    m3 = raw[3, 0] - 3 * u * raw[2, 1] + 3 * u**2 * raw[1, 2] - u**3 * raw[0, 3]
    m4 = raw[4, 0] - 4 * u * raw[3, 1] + 6 * u**2 * raw[2, 2] - 4 * u**3 * raw[1, 3]
    m4 = m4 + u**4 * raw[0, 4]
    variance = max(float(m2 - m1 * m1), 0.0)
    third = float(m3 - 3 * m1 * m2 + 2 * m1**3)
    fourth = float(m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4)
    return variance, third, max(fourth, variance**2)


def means(side: Side, weights: Floats | None = None) -> NDArray[np.float64]:
    """Return the means of part^i whole^j, up to the fourth power."""
    raw = np.ones((5, 5))
    part = _powers(side.part)
    whole = None if side.whole is None else _powers(side.whole)
    if weights is not None:
        share = weights / weights.sum()
        part = [power * share for power in part]
    else:
        part = [power / len(power) for power in part]
    for i, j in POWERS:
        if whole is None:
            raw[i, j] = part[i].sum() if j == 0 else raw[i, 0]
        else:
            raw[i, j] = float(np.dot(part[i], whole[j]))
    return raw


def _powers(values: Floats) -> list[Floats]:
    square = values * values
    return [np.ones(len(values)), values, square, square * values, square * square]


def _radius(terms: Sequence[capital.Term | tails.Term], alpha: float) -> float:
    if all(isinstance(term, capital.Term) for term in terms):
        return capital.radius(terms, alpha)  # pyright: ignore[reportArgumentType]
    # For very small alpha Bentkus' bound is as good as the others, and faster.
    sharp = alpha > 1e-3
    return tails.radius(terms, alpha, sharp=sharp)  # pyright: ignore[reportArgumentType]


def lower(side: Sample, alpha: float) -> float:
    """Return a lower bound on E[part] / E[whole] that fails with probability at most alpha."""
    if side.mean:
        return float(side.raw[1, 0]) - side.shift - _radius([side.term(0.0, 1 / side.n)], alpha)
    return _ratio(side, alpha, 1)


def upper(side: Sample, alpha: float) -> float:
    """Return an upper bound on E[part] / E[whole] that fails with probability at most alpha."""
    if side.mean:
        return float(side.raw[1, 0]) + side.shift + _radius([side.term(0.0, 1 / side.n, -1)], alpha)
    return _ratio(side, alpha, -1)


def _ratio(side: Sample, alpha: float, sign: int) -> float:
    """Return the bound on a ratio: the extreme candidate that is not ruled out.

    Every candidate beyond it must be ruled out too; some of them are tested, since the radius
    depends on the candidate.
    """
    far, value = 0.0 if sign > 0 else 1.0, min(max(side.value, 0.0), 1.0)

    def off(u: float) -> float:
        return _radius([side.term(u, 1 / side.n, sign)], alpha) + side.shift

    def ruled_out(u: float) -> bool:
        return bool(sign * (side.raw[1, 0] - u * side.raw[0, 1]) > off(u))

    if not ruled_out(far):
        return far
    # The radius at the estimate gives a good first guess of the bound.
    half = off(value) / max(float(side.raw[0, 1]), 1e-9)
    out = sign * climb(
        lambda u: ruled_out(sign * u),
        sign * far,
        sign * value,
        guess=sign * value - half,
        step=half / 10,
    )
    tried = [far + (out - far) * share for share in (0.25, 0.5, 0.75, 0.9)]
    return out if all(ruled_out(u) for u in tried) else far


def lower_difference(first: Sample, second: Sample, alpha: float) -> float:
    """Return a lower bound on first minus second that fails with probability at most alpha."""
    if (first.pilot is None) != (second.pilot is None):
        return lower(first, alpha / 2) - upper(second, alpha / 2)
    if first.mean:
        terms = [first.term(0.0, 1 / first.n), second.term(0.0, 1 / second.n, -1)]
        difference = float(first.raw[1, 0] - second.raw[1, 0])
        return difference - first.shift - second.shift - _radius(terms, alpha)
    return _lower_ratios(first, second, alpha)


class _Box(NamedTuple):
    """Bounds on a ratio and on the mean of its denominator."""

    low: float
    high: float
    level: float
    """The largest distance of W / w from 1."""

    def off(self, value: float) -> float:
        return max(value - self.low, self.high - value, 0.0)


def _lower_ratios(first: Sample, second: Sample, alpha: float) -> float:
    if first.pilot is None or second.pilot is None:
        return _lower_ratios_from_sums(first, second, alpha)
    both = (first, second)
    ends = [(_ratio(side, BOX * alpha, 1), _ratio(side, BOX * alpha, -1)) for side in both]
    least = ends[0][0] - ends[1][1]
    # Any weights fixed beforehand are valid; the inverse of the level balances the two groups.
    weights = [1 / max(_level(side), 0.01) for side in both]
    slopes = [weight * float(side.raw[0, 1]) for side, weight in zip(both, weights, strict=True)]
    if min(slopes) <= 0:
        return least

    def bound(within: Sequence[tuple[float, float]], signs: tuple[int, int], part: float) -> float:
        return _radius(
            [
                _worst(side, end, weight / side.n, sign)
                for side, end, weight, sign in zip(both, within, weights, signs, strict=True)
            ],
            part * alpha,
        )

    # For the errors slope (r - u) of the two groups, first their sum is bounded in both directions,
    # then the first minus the second. Where that difference is large, hence near the bound, u1 and
    # u0 cannot both be far from their estimates, and terms for such u vary less.
    up, down = (bound(ends, signs, SUM_SHARE / 2) for signs in ((1, 1), (-1, -1)))
    main = 1 - 4 * BOX - SUM_SHARE
    less = bound(ends, SIGNS, main)
    far = NEAR_END * less
    errors = [
        ((total + apart) / 2, (total - apart) / 2) for total in (-down, up) for apart in (far, less)
    ]
    near = [
        (max(low, side.value - max(error) / slope), min(high, side.value - min(error) / slope))
        for side, slope, (low, high), error in zip(
            both, slopes, ends, zip(*errors, strict=True), strict=True
        )
    ]
    if all(low <= high for low, high in near):
        less = max(far, min(less, bound(near, SIGNS, main)))
    else:
        less = far
    inverse = [1 / slope for slope in slopes]
    plus = up if inverse[0] > inverse[1] else down
    off = (less * sum(inverse) + plus * abs(inverse[0] - inverse[1])) / 2
    return max(least, first.value - second.value - off)


def _level(side: Sample) -> float:
    """Return a guess of E[whole] from the pilot; 1/2 without one."""
    return 0.5 if side.pilot is None else float(side.pilot[0, 1])


def _lower_ratios_from_sums(first: Sample, second: Sample, alpha: float) -> float:
    both = (first, second)
    boxes = [_box(side, BOX * alpha) for side in both]
    apart = boxes[0].low - boxes[1].high
    level = max(box.level for box in boxes)
    if level > 0.5:
        return apart
    terms = [
        _worst(side, (box.low, box.high), (1 + box.level) / (side.n * float(side.raw[0, 1])), sign)
        for side, box, sign in zip(both, boxes, SIGNS, strict=True)
    ]
    q = _radius(terms, (1 - 8 * BOX) * alpha)
    product = 0.0
    for side, box in zip(both, boxes, strict=True):
        q += side.shift * (1 + box.level) / side.raw[0, 1]
        product += box.level * box.off(side.value)
    # If the two errors have opposite signs, the products add a fraction of q; otherwise they are
    # bounded by the boxes.
    within = first.value - second.value - max(q / (1 - level), q + product)
    return max(apart, float(within))


def _box(side: Sample, alpha: float) -> _Box:
    """Return bounds on the ratio and the level; each fails with probability at most alpha."""
    low, high = _ratio(side, alpha, 1), _ratio(side, alpha, -1)
    # The denominator alone, in place of `part`.
    denominator = np.ones((5, 5))
    denominator[1:, :] = side.raw[0, 1:, None]
    whole = sum(side.norms) + 1
    ends = [(far, 1.0) for _, far in side.extremes]
    alone = side._replace(raw=denominator, extremes=ends, mean=True, norms=(whole, whole))
    q = _radius([alone.term(0.0, 1 / side.n)], alpha) + side.shift
    mean = float(side.raw[0, 1])
    return _Box(low, high, q / (mean - q) if mean > 2 * q else 1.0)


def _worst(
    side: Sample, ends: tuple[float, float], scale: float, sign: int
) -> capital.Term | tails.Term:
    """Return the worst-case term of a ratio over all candidates between two ends.

    Variance and fourth moment are convex in the candidate, so they are largest at an end.
    """
    terms = [side.term(u, scale) for u in ends]
    worst = max(terms, key=lambda term: term.variance)
    worst = worst._replace(
        fourth=max(term.fourth for term in terms), reach=max(term.reach for term in terms)
    )
    if isinstance(worst, tails.Term):
        return worst
    # The third moment is a cubic in the candidate; its smallest value is used.
    third = min(sign * central(side.raw, float(u))[1] for u in np.linspace(*ends, 9))
    both = [term for term in terms if isinstance(term, capital.Term)]
    return worst._replace(
        third=third,
        cube=max(term.cube for term in both),
        seen_cube=max(term.seen_cube for term in both),
    )
