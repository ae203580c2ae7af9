"""The frontier: the largest reward of any policy, by tolerated disparity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness.checks import number, short
from sellf.fairness.notions import Notion, define
from sellf.fairness.tables import Table
from sellf.planning.cells import MOST_PROFILES
from sellf.planning.law import Law, law_of
from sellf.planning.plan import plan, smallest
from sellf.planning.result import Plan

OMEGAS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Default omegas; those above the disparity of the unconstrained plan are left out."""
BETWEEN = 3
"""Number of default omegas between the two ends, for a delayed notion (qualification)."""
PARTS = 5
"""Number of times at which the smallest reachable disparity is reported."""
GAIN = 1e-6
"""Relative difference below which rewards count as equal."""


@dataclass(frozen=True)
class Frontier(Table):
    """Plans by tolerated disparity, the strictest first."""

    world: str
    notion: Notion
    segments: int
    plans: tuple[Plan, ...]
    """The last plan has no limit on the disparity."""
    soonest: dict[int, float]
    """Smallest disparity that any policy can reach, by number of decisions; for delayed notions
    (qualification) only."""

    @property
    def delayed(self) -> bool:
        """Whether decisions affect the notion only through changes in people."""
        return define(self.notion).delayed

    @property
    def price(self) -> list[float]:
        """Loss of reward due to omega, by plan."""
        return [self.plans[-1].reward - each.reward for each in self.plans]

    def reward_at(self, disparity: float) -> float:
        """Return the largest reward at a disparity, interpolated linearly between plans.

        A mean of two policies' rewards is attained by drawing one of the policies for each
        population. The result is NaN below the smallest disparity of the plans.
        """
        known = sorted((each.largest, each.reward) for each in self.plans if each.within)
        at, reward = np.array(known).T
        return float(np.interp(disparity, at, np.maximum.accumulate(reward), left=np.nan))

    def summary(self) -> dict[str, Any]:
        """Return the results as a dictionary that can be written as JSON."""
        return {
            "world": self.world,
            "notion": self.notion,
            "segments": self.segments,
            "plans": [each.summary() for each in self.plans],
            "soonest": {str(time): gap for time, gap in self.soonest.items()},
        }

    def _title(self) -> str:
        how = "one stationary policy" if self.segments == 1 else f"{self.segments} segments"
        most = "largest reward of any policy"
        if self.plans[-1].policy.shape[-1] > MOST_PROFILES:
            most = "largest reward of policies over cells of similar people, others may earn more"
        return f"{self.world}, {self.notion}: the {most} ({how})"

    def _table(self) -> dict[str, list[Any]]:
        end = {"within from": [_time(each) for each in self.plans]} if self.delayed else {}
        return {
            "omega": ["none" if p.omega is None else f"{p.omega:g}" for p in self.plans],
            "reward": [each.reward for each in self.plans],
            "price": self.price,
            "at the end" if self.delayed else "largest": [each.largest for each in self.plans],
            "mean": [each.mean for each in self.plans],
            "within omega": ["yes" if each.within else "no" for each in self.plans],
            **end,
        }

    def __str__(self) -> str:
        lines = [Table.__str__(self)]
        if self.soonest:
            each = [f"{gap:.4f} by {time:,}" for time, gap in self.soonest.items()]
            lines.append(f"smallest disparity of any policy, by decisions: {', '.join(each)}")
        return "\n".join(lines)

    def plot(self) -> Any:
        """Plot the reward against the disparity."""
        from sellf.planning.plots import draw_frontier

        return draw_frontier(self)


def _time(plan: Plan) -> str:
    return "never" if plan.reached is None else f"{plan.reached:,}"


def frontier(
    world: str | World | Law,
    notion: Notion = "opportunity",
    omegas: Sequence[float] | None = None,
    segments: int = 1,
    *,
    starts: int = 6,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Frontier:
    """Return the largest reward of any policy in a world, by tolerated disparity.

    Each search also starts from the neighbouring plans. A policy that is within an omega is within
    every larger one, so the rewards never decrease with omega.

    Args:
        world: the name of a world, a world, or a law.
        notion: the fairness notion.
        omegas: the tolerated disparities; by default, some values up to the disparity of the
            unconstrained plan.
        segments: the number of consecutive policies; 1 for one stationary policy.
        starts: the number of random policies from which each plan is searched.
        seed: the seed of these random policies.
        progress: a function that is called with the number of finished plans and the total.
    """
    given = None if omegas is None else _checked(omegas)
    law, delayed = law_of(world), define(notion).delayed
    same: dict[str, Any] = {"segments": segments, "starts": starts, "seed": seed}
    free = plan(law, notion, None, **same)
    low = smallest(law, notion, segments=segments) if delayed else None
    limits = given if given is not None else _default(free, low)
    times = _times(law) if delayed else []
    done = _counter(progress, 1 + len(limits) + (1 + len(times) if delayed else 0))
    done()
    if delayed:
        done()
    plans = [free]
    for omega in limits[::-1]:
        plans.append(plan(law, notion, omega, **same, near=plans[-1:] + ([low] if low else [])))
        done()
    plans = _monotone(law, plans[::-1], same)
    soonest = {}
    for time in times:
        soonest[time] = smallest(replace(law, horizon=time), notion, segments=segments).largest
        done()
    return Frontier(law.name, notion, free.segments, tuple(plans), soonest)


def _checked(omegas: Sequence[float]) -> list[float]:
    if isinstance(omegas, str) or not hasattr(omegas, "__iter__"):
        raise InputError(f"omegas is {short(omegas)}: give a sequence of numbers.")
    found = sorted({number("omega", omega, low=0) for omega in omegas})
    if not found:
        raise InputError("there are no omegas: give one or more, or leave them out.")
    return found


def _default(free: Plan, low: Plan | None) -> list[float]:
    if low is None:
        return [omega for omega in OMEGAS if omega < free.largest]
    first = low.omega or 0.0
    between = np.linspace(first, free.largest, BETWEEN + 2)[1:-1]
    return [first, *(round(float(omega), 4) for omega in between if omega > first + 1e-4)]


def _monotone(law: Law, plans: list[Plan], same: dict[str, Any]) -> list[Plan]:
    """Return plans with non-decreasing rewards; search again from the stricter plan if needed."""
    found = plans[:1]
    for each in plans[1:]:
        before = found[-1]
        less = each.reward < before.reward - GAIN * abs(before.reward)
        if before.within and (less or not each.within):
            options = same | {"starts": 0}
            again = plan(law, each.notion, each.omega, **options, near=[before, each])
            each = max((again, replace(each), replace(before, omega=each.omega)), key=_order)
        found.append(each)
    return found


def _order(plan: Plan) -> tuple[bool, float]:
    return plan.within, plan.reward


def _times(law: Law) -> list[int]:
    """Return the numbers of decisions by which the smallest disparity in reach is reported."""
    times = np.unique((np.arange(1, PARTS + 1) * law.horizon / PARTS).round().astype(int))
    return [int(time) for time in times if time > 0]


def _counter(progress: Callable[[int, int], None] | None, total: int) -> Callable[[], None]:
    done = [0]

    def step() -> None:
        done[0] += 1
        if progress is not None:
            progress(done[0], total)

    return step
