"""The frontier: the most that any policy can earn, by the disparity that is tolerated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness.checks import number, short
from sellf.fairness.notions import Notion, define
from sellf.fairness.tables import Table
from sellf.planning.law import Law, law_of
from sellf.planning.plan import plan, smallest
from sellf.planning.result import Plan

OMEGAS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""What is tolerated if nobody says: of these, what is less than comes of itself."""
BETWEEN = 3
"""Of a notion that decisions act on later: how many omegas between the two ends."""
PARTS = 5
"""Parts of the horizon for which the smallest disparity by then is said."""
GAIN = 1e-6
"""Rewards that differ by less, as a share, are equal."""


@dataclass(frozen=True)
class Frontier(Table):
    """Plans by the disparity that is tolerated, the strictest first."""

    world: str
    notion: Notion
    segments: int
    plans: tuple[Plan, ...]
    """The last one is without a limit."""
    soonest: dict[int, float]
    """Of a notion that decisions act on later (qualification): by number of decisions, the smallest
    disparity that any policy reaches by then."""

    @property
    def delayed(self) -> bool:
        """Whether decisions act on the notion only through what they make of people."""
        return define(self.notion).delayed

    @property
    def price(self) -> list[float]:
        """By plan, what keeping to its omega costs in reward."""
        return [self.plans[-1].reward - each.reward for each in self.plans]

    def reward_at(self, disparity: float) -> float:
        """Return the most that can be earned at a disparity: between plans, a straight line.

        A mean of two policies' rewards can be had by drawing one of them for each population. NaN
        below the smallest disparity that was planned for.
        """
        known = sorted((each.largest, each.reward) for each in self.plans if each.within)
        at, reward = np.array(known).T
        return float(np.interp(disparity, at, np.maximum.accumulate(reward), left=np.nan))

    def summary(self) -> dict[str, Any]:
        """Return the figures as one plain object."""
        return {
            "world": self.world,
            "notion": self.notion,
            "segments": self.segments,
            "plans": [each.summary() for each in self.plans],
            "soonest": {str(time): gap for time, gap in self.soonest.items()},
        }

    def _title(self) -> str:
        how = "one policy all the time" if self.segments == 1 else f"{self.segments} segments"
        return f"{self.world}, {self.notion}: the most that any policy earns ({how})"

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
            lines.append(f"the smallest disparity of any policy, by decisions: {', '.join(each)}")
        return "\n".join(lines)

    def plot(self) -> Any:
        """Draw the reward against the disparity."""
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
    """Return the most that any policy can earn in a world, by the disparity that is tolerated.

    Each plan starts from its neighbours' as well; and since a policy that keeps to an omega keeps
    to a larger one, the rewards never fall.

    Args:
        world: the name of a world, a world, or a law.
        notion: what is to be equal between groups.
        omegas: the disparities that are tolerated; some up to the one that comes of itself, if
            not given.
        segments: how often the policy may change, less one.
        starts: from how many random policies each plan is searched.
        seed: of those.
        progress: called with how many plans are done, and of how many.
    """
    given = None if omegas is None else _checked(omegas)
    law, delayed = law_of(world), define(notion).delayed
    same: dict[str, Any] = {"segments": segments, "starts": starts, "seed": seed}
    free = plan(law, notion, None, **same)
    low = smallest(law, notion, segments=segments) if delayed else None
    limits = given if given is not None else _default(free, low)
    total = 2 + len(limits)
    done = _counter(progress, total)
    plans = [free]
    for omega in limits[::-1]:
        plans.append(plan(law, notion, omega, **same, near=plans[-1:] + ([low] if low else [])))
        done()
    plans = _monotone(law, plans[::-1], same)
    done()
    soonest = _soonest(law, notion, segments) if delayed else {}
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
    """Return plans of which none earns less than a stricter one: else search from that one."""
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


def _soonest(law: Law, notion: Notion, segments: int) -> dict[int, float]:
    """Return the smallest disparity that any policy reaches, by how soon."""
    times = np.unique((np.arange(1, PARTS + 1) * law.horizon / PARTS).round().astype(int))
    shorter = [replace(law, horizon=int(time)) for time in times if time > 0]
    return {each.horizon: smallest(each, notion, segments=segments).largest for each in shorter}


def _counter(progress: Callable[[int, int], None] | None, total: int) -> Callable[[], None]:
    done = [0]

    def step() -> None:
        done[0] += 1
        if progress is not None:
            progress(done[0], total)

    return step
