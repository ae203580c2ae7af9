"""Contribution of a person to a sum under a policy, as a linear form of the outcome.

Under a policy that accepts a person with probability pi, the expected contribution to each sum of a
rate is slope Y + level, whatever the log's decision was, since pi does not depend on Y given the
features. Y is unobserved for the rejected and is replaced by the score s = f + A (Y - f) / p. For
the decisions of the log, the sums contain A and A Y themselves.

Slope and level are affine in the probabilities of acceptance, so a form consists of a few
coefficients. Forms are added and scaled without touching a row of the log.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sellf.fairness.notions import Counts, Rate
from sellf.logs.person import Floats


@dataclass(frozen=True, eq=False)
class Chance:
    """A policy's probabilities of acceptance, one per row; two are equal only if identical."""

    values: Floats


class Affine(NamedTuple):
    """The sum of a constant and of multiples of probabilities of acceptance."""

    constant: float = 0.0
    terms: tuple[tuple[Chance, float], ...] = ()
    """Probabilities of acceptance and their factors, none of which is 0."""

    def plus(self, other: "Affine") -> "Affine":
        """Return the sum of two such sums."""
        factors = dict(self.terms)
        for chance, factor in other.terms:
            factors[chance] = factors.get(chance, 0.0) + factor
        return Affine(self.constant + other.constant, _nonzero(factors))

    def times(self, factor: float) -> "Affine":
        """Return the sum multiplied by a number."""
        terms = {chance: factor * own for chance, own in self.terms}
        return Affine(factor * self.constant, _nonzero(terms))

    def at(self, rows: Any) -> Floats | float:
        """Return the values at some rows; a number if they are the same for all rows."""
        value: Floats | float = self.constant
        for chance, factor in self.terms:
            value = value + factor * chance.values[rows]
        return value

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that probabilities allow for."""
        factors = [factor for _, factor in self.terms]
        low = self.constant + sum(min(factor, 0.0) for factor in factors)
        return low, self.constant + sum(max(factor, 0.0) for factor in factors)


def _nonzero(factors: dict[Chance, float]) -> tuple[tuple[Chance, float], ...]:
    return tuple((chance, factor) for chance, factor in factors.items() if factor)


@dataclass(frozen=True)
class Line:
    """The form slope s + seen A Y + decided A + level."""

    slope: Affine
    seen: float
    decided: float
    level: Affine
    low: float
    """Lower bound on the expectation given any features."""
    high: float
    """Upper bound on the expectation given any features."""

    def __add__(self, other: "Line") -> "Line":
        return Line(
            self.slope.plus(other.slope),
            self.seen + other.seen,
            self.decided + other.decided,
            self.level.plus(other.level),
            self.low + other.low,
            self.high + other.high,
        )

    def __mul__(self, factor: float) -> "Line":
        low, high = sorted((factor * self.low, factor * self.high))
        return Line(
            self.slope.times(factor),
            factor * self.seen,
            factor * self.decided,
            self.level.times(factor),
            low,
            high,
        )

    def __sub__(self, other: "Line") -> "Line":
        return self + other * -1.0

    def within(self, low: float, high: float) -> "Line":
        """Return the same form with a narrower range of its expectation."""
        return replace(self, low=max(low, self.low), high=min(high, self.high))


@dataclass(frozen=True)
class Target:
    """A group's utility under a policy: E[of] / E[among]."""

    of: Line
    among: Line | None
    """The denominator; None for a mean, where it is 1."""
    shared: bool
    """Whether `among` is the same for every policy."""

    def around(self, value: float) -> Line:
        """Return the form `of - value among`, which has mean 0 if `value` is the utility."""
        if self.among is None:
            return self.of + Line(Affine(), 0.0, 0.0, Affine(-value), -value, -value)
        # Everything counted in the numerator is counted in the denominator too.
        return (self.of - self.among * value).within(-value, 1 - value)


def by_chance(sums: Counts, chance: Chance) -> Line:
    """Return the contributions to a sum of counts under given acceptance probabilities."""
    slope, level = (
        Affine(float(none), _nonzero({chance: float(every - none)}))
        for none, every in zip(sums.by_label(0.0), sums.by_label(1.0), strict=True)
    )
    return Line(slope, 0.0, 0.0, level, 0.0, 1.0)


def as_decided(sums: Counts) -> Line:
    """Return the contributions to a sum of counts under the decisions of the log."""
    both = sums.accepted_positive - sums.rejected_positive
    return Line(
        slope=Affine(float(sums.rejected_positive)),
        seen=float(both),
        decided=float(sums.accepted),
        level=Affine(float(sums.people)),
        low=0.0,
        high=1.0,
    )


def utility(rate: Rate, chance: Chance | None) -> Target:
    """Return a rate under a policy as a target for estimation.

    Args:
        rate: the rate to measure.
        chance: probability of acceptance, by row; None: the decisions of the log.
    """

    def line(sums: Counts) -> Line:
        return as_decided(sums) if chance is None else by_chance(sums, chance)

    among = None if rate.is_mean else line(rate.among)
    return Target(line(rate.of), among, shared=not rate.among.moves)


def reward(chance: Chance | None, cost: float) -> Target:
    """Return the reward of a policy per person: Y minus the cost for each accepted person."""
    ends = (-cost, 1 - cost)
    if chance is None:
        of = Line(Affine(), 1.0, -cost, Affine(), *ends)
    else:
        slope = Affine(0.0, ((chance, 1.0),))
        of = Line(slope, 0.0, 0.0, slope.times(-cost), *ends)
    return Target(of, None, shared=True)


def chance_of(values: Floats | None) -> Chance | None:
    """Return a policy's probabilities; None for the decisions of the log."""
    return None if values is None else Chance(np.asarray(values, np.float64))
