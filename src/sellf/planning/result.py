"""What a plan comes to: a policy, its reward, its disparity over time, and what binds."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import NDArray

from sellf.envs.policy import Categorical, Policy
from sellf.fairness.checks import whole
from sellf.fairness.notions import Notion, define
from sellf.fairness.tables import Table
from sellf.planning.law import Floats
from sellf.planning.mean_field import Schedule
from sellf.planning.optimise import TOLERATED, Found
from sellf.planning.problem import Problem

BINDS = 1e-4
"""A difference this near to omega binds."""
NEVER = 1e-9
"""Chances below this are taken for it where log-odds are asked for: those of 0 are infinite."""


class Binding(NamedTuple):
    """A stretch of time over which a constraint binds."""

    first: int
    last: int
    """In decisions since the start."""
    rate: str
    higher: str
    lower: str
    """Of which groups: their rates are omega apart."""


@dataclass(frozen=True)
class Plan(Table):
    """The best policy that was found, and what to expect of it."""

    world: str
    notion: Notion
    omega: float | None
    groups: tuple[str, ...]
    actions: tuple[str, ...]
    policy: Floats
    """(segments, actions, profiles), the chance of each action."""
    bounds: NDArray[np.int64]
    """The decisions with which segments begin, and the horizon."""
    reward: float
    """The expected resource at the end, if it may be overdrawn meanwhile."""
    times: NDArray[np.int64]
    """In decisions since the start."""
    disparity: Floats
    """(times,), of the expected population as it is then."""
    rates: dict[str, Floats]
    """By name (times, groups): what the notion compares."""
    binding: tuple[Binding, ...]
    within: bool
    """Whether omega can be kept to; if not, this is the smallest disparity that was found."""

    @property
    def segments(self) -> int:
        """How many policies follow each other."""
        return len(self.policy)

    @property
    def largest(self) -> float:
        """The disparity that omega is about: the largest, or that at the end (qualification)."""
        delayed = define(self.notion).delayed
        return float(self.disparity[-1] if delayed else self.disparity.max())

    @property
    def mean(self) -> float:
        """The disparity, averaged over time."""
        return float(np.trapezoid(self.disparity, self.times) / max(self.times[-1], 1))

    @property
    def reached(self) -> int | None:
        """The time from which on the disparity is within omega; None if it never is."""
        limit = np.inf if self.omega is None else self.omega + TOLERATED
        above = np.flatnonzero(self.disparity > limit)
        later = 0 if not above.size else int(above[-1]) + 1
        return int(self.times[later]) if later < len(self.times) else None

    def at(self, time: int) -> Policy:
        """Return the policy for a decision, as simulations and evaluations take it.

        Args:
            time: how many decisions came before.
        """
        time = whole("time", time, low=0, high=int(self.bounds[-1]))
        segment = min(np.searchsorted(self.bounds, time, side="right") - 1, self.segments - 1)
        chances = np.maximum(self.policy[segment], NEVER)
        log_odds = jnp.asarray(np.log(chances[1:]) - np.log(chances[:1]), jnp.float32)

        def policy(profile: Int[Array, "*n"]) -> Categorical:
            return Categorical(log_odds[:, profile])

        return policy

    def summary(self) -> dict[str, Any]:
        """Return the figures as one plain object."""
        return {
            "omega": self.omega,
            "reward": self.reward,
            "disparity": self.largest,
            "disparity_mean": self.mean,
            "within": self.within,
            "reached": self.reached,
            "binding": [each._asdict() for each in self.binding],
        }

    def _title(self) -> str:
        limit = "any disparity" if self.omega is None else f"{self.notion} within {self.omega:g}"
        much = f"reward {self.reward:,.1f}, disparity {self.largest:.4f} (mean {self.mean:.4f})"
        if not self.within:
            return f"{self.world}, {limit}: out of reach; the smallest found: {much}"
        return f"{self.world}, {limit}: {much}"

    def _table(self) -> dict[str, list[Any]]:
        return {
            "decisions": self.times.tolist(),
            "disparity": self.disparity.tolist(),
            **{
                f"{name}_{group}": values[:, g].tolist()
                for name, values in self.rates.items()
                for g, group in enumerate(self.groups)
            },
        }

    def __str__(self) -> str:
        some = np.unique(np.linspace(0, len(self.times) - 1, 6).round().astype(int))
        short = replace(
            self,
            times=self.times[some],
            disparity=self.disparity[some],
            rates={name: values[some] for name, values in self.rates.items()},
        )
        table = Table.__str__(short).partition("\n")[2]
        lines = [
            f"{b.first:,} to {b.last:,}: {b.higher} above {b.lower} ({b.rate})"
            for b in self.binding[:5]
        ]
        more = [f"and {len(self.binding) - 5} more"] if len(self.binding) > 5 else []
        binds = "; ".join([*lines, *more])
        return "\n".join([self._title(), table, *([f"omega binds {binds}"] if binds else [])])

    def plot(self) -> Any:
        """Draw the disparity over time, and the rates of the groups."""
        from sellf.planning.plots import draw_plan

        return draw_plan(self)


def describe(problem: Problem, found: Found, omega: float | None, schedule: Schedule) -> Plan:
    """Return a policy with all there is to say of it.

    Args:
        problem: what was planned.
        found: the policy.
        omega: what was tolerated.
        schedule: the times to say it for.
    """
    law, own = problem.law, problem.definition.rates
    course = replace(problem, schedule=schedule).course(found.variables)
    rates = course.rates[:, : len(own)]
    within = omega is None or found.gap <= omega + TOLERATED
    # At a segment's end the next one's policy decides: each time once.
    times, place = np.unique(schedule.times[::-1], return_index=True)
    place = len(schedule.times) - 1 - place
    ends = [part.begin for part in schedule.segments]
    plan = Plan(
        world=law.name,
        notion=problem.definition.name,
        omega=omega,
        groups=law.groups,
        actions=law.actions,
        policy=problem.policy(found.variables),
        bounds=np.array([*ends, law.horizon]),
        reward=course.reward,
        times=times,
        disparity=problem.gaps(course.rates)[place],
        rates={rate.name: rates[place, r] for r, rate in enumerate(own)},
        binding=(),
        within=within,
    )
    if omega is None or not within:
        return plan
    last = problem.definition.delayed
    return replace(plan, binding=tuple(_binding(plan, omega, at_the_end=last)))


def _binding(plan: Plan, omega: float, at_the_end: bool) -> list[Binding]:
    """Return the stretches over which two groups are omega apart."""
    found = []
    for name, values in plan.rates.items():
        for high, higher in enumerate(plan.groups):
            for low, lower in enumerate(plan.groups):
                near = values[:, high] - values[:, low] >= omega - BINDS
                near[: len(near) - 1 if at_the_end else 0] = False
                near &= high != low
                edges = np.flatnonzero(np.diff(np.concatenate([[0], near, [0]])))
                for first, end in list(pairwise(edges))[::2]:
                    times = int(plan.times[first]), int(plan.times[end - 1])
                    found.append(Binding(*times, name, higher, lower))
    return sorted(found)
