"""The result of planning: a policy, its reward, its disparity over time, and what binds."""

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
"""Distance from omega up to which a difference counts as binding."""
NEVER = 1e-9
"""Lower limit of probabilities in log-odds, which would be infinite at 0."""


class Binding(NamedTuple):
    """A period during which a constraint binds."""

    first: int
    last: int
    """First and last time, in decisions since the start."""
    rate: str
    higher: str
    lower: str
    """The two groups, whose rates differ by omega."""


@dataclass(frozen=True)
class Plan(Table):
    """The best policy that was found, with its expected reward and disparity."""

    world: str
    notion: Notion
    omega: float | None
    groups: tuple[str, ...]
    actions: tuple[str, ...]
    policy: Floats
    """Action probabilities, (segments, actions, profiles)."""
    bounds: NDArray[np.int64]
    """First decisions of the segments, and the horizon."""
    reward: float
    """Expected resource at the end, if it may be negative in between."""
    times: NDArray[np.int64]
    """Times in decisions since the start."""
    disparity: Floats
    """Disparity of the expected population at each time, (times,)."""
    rates: dict[str, Floats]
    """Rates that the notion compares, by name, (times, groups)."""
    binding: tuple[Binding, ...]
    within: bool
    """Whether omega can be met; if not, the plan has the smallest disparity that was found."""

    @property
    def segments(self) -> int:
        """Number of consecutive policies."""
        return len(self.policy)

    @property
    def largest(self) -> float:
        """Disparity that omega limits: the largest or, for qualification, the one at the end."""
        delayed = define(self.notion).delayed
        return float(self.disparity[-1] if delayed else self.disparity.max())

    @property
    def mean(self) -> float:
        """Mean disparity over time."""
        return float(np.trapezoid(self.disparity, self.times) / max(self.times[-1], 1))

    @property
    def reached(self) -> int | None:
        """Time from which the disparity stays within omega; None if there is none."""
        limit = np.inf if self.omega is None else self.omega + TOLERATED
        above = np.flatnonzero(self.disparity > limit)
        later = 0 if not above.size else int(above[-1]) + 1
        return int(self.times[later]) if later < len(self.times) else None

    def at(self, time: int) -> Policy:
        """Return the policy at a time, in the form used by simulations and evaluations.

        Args:
            time: the number of earlier decisions.
        """
        time = whole("time", time, low=0, high=int(self.bounds[-1]))
        segment = min(np.searchsorted(self.bounds, time, side="right") - 1, self.segments - 1)
        chances = np.maximum(self.policy[segment], NEVER)
        log_odds = jnp.asarray(np.log(chances[1:]) - np.log(chances[:1]), jnp.float32)

        def policy(profile: Int[Array, "*n"]) -> Categorical:
            return Categorical(log_odds[:, profile])

        return policy

    def summary(self) -> dict[str, Any]:
        """Return the results as a dictionary that can be written as JSON."""
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
        """Plot the disparity over time and the rates of the groups."""
        from sellf.planning.plots import draw_plan

        return draw_plan(self)


def describe(problem: Problem, found: Found, omega: float | None, schedule: Schedule) -> Plan:
    """Return the plan with all its results.

    Args:
        problem: the planning problem.
        found: the policy.
        omega: the tolerated disparity.
        schedule: the times to report.
    """
    law, own = problem.law, problem.definition.rates
    course = replace(problem, schedule=schedule).course(found.variables)
    rates = course.rates[:, : len(own)]
    within = omega is None or found.gap <= omega + TOLERATED
    # Each time is listed once: at a segment's end, the policy of the next segment decides.
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
    """Return the periods during which the rates of two groups differ by omega."""
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
