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
    """The form slope s + seen A Y + decided A + level, with one entry per row."""

    slope: Floats
    seen: Floats
    decided: Floats
    level: Floats
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
        names = ("slope", "seen", "decided", "level")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


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
            return self.of + _constant(len(self.of.slope), -value)
        # Everything counted in the numerator is counted in the denominator too.
        return (self.of - self.among * value).within(-value, 1 - value)


def _constant(rows: int, level: float) -> Line:
    nothing = np.zeros(rows)
    return Line(nothing, nothing, nothing, np.full(rows, level), level, level)


def by_chance(sums: Counts, chance: Floats) -> Line:
    """Return the contributions to a sum of counts under given acceptance probabilities."""
    rows, nothing = len(chance), np.zeros(len(chance))
    slope, level = (np.broadcast_to(np.asarray(x, float), rows) for x in sums.by_label(chance))
    return Line(slope, nothing, nothing, level, 0.0, 1.0)


def as_decided(sums: Counts, rows: int) -> Line:
    """Return the contributions to a sum of counts under the decisions of the log."""
    both = sums.accepted_positive - sums.rejected_positive
    return Line(
        slope=np.full(rows, float(sums.rejected_positive)),
        seen=np.full(rows, float(both)),
        decided=np.full(rows, float(sums.accepted)),
        level=np.full(rows, float(sums.people)),
        low=0.0,
        high=1.0,
    )


def utility(rate: Rate, chance: Floats | None, rows: int) -> Target:
    """Return a rate under a policy as a target for estimation.

    Args:
        rate: the rate to measure.
        chance: probability of acceptance, by row; None: the decisions of the log.
        rows: number of rows.
    """

    def line(sums: Counts) -> Line:
        return as_decided(sums, rows) if chance is None else by_chance(sums, chance)

    among = None if rate.is_mean else line(rate.among)
    return Target(line(rate.of), among, shared=not rate.among.moves)


def reward(chance: Floats | None, cost: float, rows: int) -> Target:
    """Return the reward of a policy per person: Y minus the cost for each accepted person."""
    nothing = np.zeros(rows)
    ends = (-cost, 1 - cost)
    if chance is None:
        of = Line(nothing, nothing + 1.0, nothing - cost, nothing, *ends)
    else:
        of = Line(chance, nothing, nothing, -cost * chance, *ends)
    return Target(of, None, shared=True)
