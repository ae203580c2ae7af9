"""Contribution of a person to a sum under a policy, as a linear form of the outcome.

Under a policy that accepts a person with probability pi, the expected contribution to each sum of a
rate is slope Y + level, whatever the log's decision was, since pi does not depend on Y given the
features. Y is unobserved for the rejected and is replaced by the score s = f + A (Y - f) / p. For
the decisions of the log, the sums contain A and A Y themselves.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sellf.fairness.notions import Counts, Rate
from sellf.logs.person import Floats


@dataclass(frozen=True)
class Line:
    """The form slope s + seen A Y + decided A + level.

    A coefficient has one entry per row, or is a number if it is the same for all rows.
    """

    slope: Floats | float
    seen: Floats | float
    decided: Floats | float
    level: Floats | float
    low: float
    """Lower bound on the expectation given any features."""
    high: float
    """Upper bound on the expectation given any features."""

    def __add__(self, other: "Line") -> "Line":
        return Line(
            self.slope + other.slope,
            self.seen + other.seen,
            self.decided + other.decided,
            self.level + other.level,
            self.low + other.low,
            self.high + other.high,
        )

    def __mul__(self, factor: float) -> "Line":
        low, high = sorted((factor * self.low, factor * self.high))
        return Line(
            factor * self.slope,
            factor * self.seen,
            factor * self.decided,
            factor * self.level,
            low,
            high,
        )

    def __sub__(self, other: "Line") -> "Line":
        return self + other * -1.0

    def within(self, low: float, high: float) -> "Line":
        """Return the same form with a narrower range of its expectation."""
        return replace(self, low=max(low, self.low), high=min(high, self.high))

    def take(self, rows: Any) -> "Line":
        """Return the form for some of the rows."""

        def of(coefficient: Floats | float) -> Any:
            return coefficient if np.ndim(coefficient) == 0 else np.asarray(coefficient)[rows]

        return Line(
            of(self.slope), of(self.seen), of(self.decided), of(self.level), self.low, self.high
        )


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
            return self.of + Line(0.0, 0.0, 0.0, -value, -value, -value)
        # Everything counted in the numerator is counted in the denominator too.
        return (self.of - self.among * value).within(-value, 1 - value)


def by_chance(sums: Counts, chance: Floats) -> Line:
    """Return the contributions to a sum of counts under given acceptance probabilities."""
    slope, level = sums.by_label(chance)
    fixed = sums.accepted_positive == sums.rejected_positive
    return Line(
        slope=float(sums.rejected_positive) if fixed else slope,
        seen=0.0,
        decided=0.0,
        level=level if sums.accepted else float(sums.people),
        low=0.0,
        high=1.0,
    )


def as_decided(sums: Counts) -> Line:
    """Return the contributions to a sum of counts under the decisions of the log."""
    both = sums.accepted_positive - sums.rejected_positive
    return Line(
        slope=float(sums.rejected_positive),
        seen=float(both),
        decided=float(sums.accepted),
        level=float(sums.people),
        low=0.0,
        high=1.0,
    )


def utility(rate: Rate, chance: Floats | None) -> Target:
    """Return a rate under a policy as a target for estimation.

    Args:
        rate: the rate to measure.
        chance: probability of acceptance, by row; None: the decisions of the log.
    """

    def line(sums: Counts) -> Line:
        return as_decided(sums) if chance is None else by_chance(sums, chance)

    among = None if rate.is_mean else line(rate.among)
    return Target(line(rate.of), among, shared=not rate.among.moves)


def reward(chance: Floats | None, cost: float) -> Target:
    """Return the reward of a policy per person: Y minus the cost for each accepted person."""
    ends = (-cost, 1 - cost)
    if chance is None:
        of = Line(0.0, 1.0, -cost, 0.0, *ends)
    else:
        of = Line(chance, 0.0, 0.0, -cost * chance, *ends)
    return Target(of, None, shared=True)
