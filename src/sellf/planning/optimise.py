"""The optimiser: sequential linear programs find who is certain, SLSQP settles the rest.

Reward and rates are smooth in a policy's chances, and at the best policy nearly all chances are 0
or 1: about as many are between as constraints bind. So linear programs within a trust region come
close in a few steps, however many chances there are, and SciPy's SLSQP, which takes minutes for
hundreds of them, is given the few that are left. What is above omega has a price instead of being
forbidden, so that a search may begin anywhere.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize

from sellf import interrupts
from sellf.planning.law import Floats
from sellf.planning.mean_field import Course
from sellf.planning.problem import LEAST, Problem

TOLERATED = 1e-6
"""How far a disparity may be above omega and count as within: rounding of the optimiser."""
PRICES = (10.0, 100.0, 1000.0)
"""Of a unit of disparity above omega, where all there is to gain is about 1. The first is above
what a unit of omega is worth at nearly any best policy; a higher one makes for shorter steps."""
MOST_STEPS = 20
MOST_ROUNDS = 6
PRECISION = 1e-10
"""Gains below this, as a share of what there is to gain, do not count."""
NARROWEST = 1e-3
"""Linear programs that can be trusted no further than this leave the rest to SLSQP."""
FEW = 64
"""So many chances SLSQP settles all at once; of more, those at least FREE from 0 and from 1."""
FREE = 1e-7


class Found(NamedTuple):
    """A policy and what it comes to, at the times that the problem looks at."""

    variables: Floats
    reward: float
    gap: float
    """The largest disparity."""


class Goal(NamedTuple):
    """What to minimise: -reward / scale + price * excess, or the excess over 0 alone."""

    omega: float
    scale: float
    """What there is to gain; 0 if the reward does not matter."""
    price: float


class _Point(NamedTuple):
    """A policy's value and what it breaks."""

    value: float
    above: Floats
    """Of each difference between groups, what it is above omega."""
    below: Floats
    """Of each share that must not vanish, what it is below the least."""
    course: Course

    @property
    def broken(self) -> float:
        """The most that a constraint is broken by."""
        return max(self.above.max(initial=0.0), self.below.max(initial=0.0))

    def merit(self, goal: Goal) -> float:
        """Return the value with a price on what is broken."""
        worst = [rows.max(initial=0.0) for rows in (self.above, self.below)]
        return self.value + goal.price * worst[0] + PRICES[-1] * worst[1]


class _Slopes(NamedTuple):
    """The derivatives of a point's parts by the variables, which are the last axis."""

    value: Floats
    above: Floats
    below: Floats


def best(problem: Problem, omega: float, starts: Iterable[Floats]) -> Found:
    """Return the policy that earns most within omega; if none is within, the fairest found.

    Args:
        problem: what to plan.
        omega: the disparity that is tolerated; infinite for any.
        starts: policies to begin with, each of them on its own.
    """
    most = problem.law.horizon * float(np.abs(problem.law.gain).max())
    goal = Goal(omega, max(most / 10, 1e-6), PRICES[0])
    tries = [_within(problem, goal, start) for start in starts]
    within = [found for found in tries if found.gap <= omega + TOLERATED]
    if within:
        return max(within, key=lambda found: found.reward)
    return min(tries, key=lambda found: found.gap)


def fairest(problem: Problem, starts: Iterable[Floats]) -> Found:
    """Return the policy whose largest disparity is smallest, whatever it earns."""
    goal = Goal(0.0, 0.0, 1.0)
    return min((_search(problem, goal, start) for start in starts), key=lambda found: found.gap)


def measured(problem: Problem, variables: Floats) -> Found:
    """Return a policy with its figures, its chances within [0, 1] and summing to 1 at most."""
    chances = np.clip(variables, 0.0, 1.0).reshape(problem.shape)
    chances = (chances / np.maximum(chances.sum(axis=1, keepdims=True), 1.0)).ravel()
    found = problem.course(chances)
    gap = float(problem.gaps(found.rates).max())
    # Without the people whom it speaks of, a notion is not kept to.
    vanished = problem.shares(found.rates).min(initial=1.0) < LEAST - TOLERATED
    return Found(chances, found.reward, np.inf if vanished or np.isnan(gap) else gap)


def _within(problem: Problem, goal: Goal, start: Floats) -> Found:
    """Search with the price that it takes to stay within omega."""
    found = _search(problem, goal, start)
    for price in PRICES[1:]:
        if found.gap > goal.omega + TOLERATED:
            found = _search(problem, goal._replace(price=price), found.variables)
    return found


def _search(problem: Problem, goal: Goal, start: Floats) -> Found:
    """Alternate linear programs and SLSQP until neither gains anything."""
    at, value = start, np.inf
    if len(problem.rates) > len(problem.definition.rates):
        # At a policy that accepts nobody, rates among the accepted are not defined.
        at = 0.98 * start + 0.02 / len(problem.law.actions)
    for turn in range(MOST_ROUNDS):
        at = _linear_programs(problem, goal, at, radius=0.05 if turn else 0.5)
        at = _settled(problem, goal, at) if goal.scale else at
        now = _point(problem, goal, at).merit(goal)
        if not now < value - 10 * PRECISION:
            break
        value = now
    return measured(problem, at)


def _point(problem: Problem, goal: Goal, variables: Floats) -> _Point:
    interrupts.check()
    found = problem.course(variables)
    value = -found.reward / goal.scale if goal.scale else 0.0
    above = problem.differences(found.rates) - goal.omega
    return _Point(value, above, LEAST - problem.shares(found.rates), found)


def _slopes(problem: Problem, goal: Goal, variables: Floats, point: _Point) -> _Slopes:
    reward, rates = problem.slopes(variables, point.course)
    rates = rates.reshape(*point.course.rates.shape, -1)
    value = -reward / goal.scale if goal.scale else 0 * reward
    return _Slopes(value, problem.differences(rates), -problem.shares(rates))


def _linear_programs(problem: Problem, goal: Goal, start: Floats, radius: float) -> Floats:
    """Follow the best steps of the linearised problem, each as long as it could be trusted."""
    at, now = start, _point(problem, goal, start)
    slopes = _slopes(problem, goal, at, now)
    # Where only the disparity counts SLSQP does not follow: nothing is left to it.
    steps, narrowest = (MOST_STEPS, NARROWEST) if goal.scale else (5 * MOST_STEPS, FREE)
    for _ in range(steps):
        step, promised = _step(problem, goal, at, now, slopes, radius)
        if promised < PRECISION:
            break
        new = np.clip(at + step, 0.0, 1.0)
        there = _point(problem, goal, new)
        kept = (now.merit(goal) - there.merit(goal)) / promised
        if kept > 0.05:
            at, now = new, there
            slopes = _slopes(problem, goal, at, now)
        radius = min(1.0, 2 * radius) if kept > 0.7 else radius if kept > 0.3 else radius / 4
        if radius < narrowest:
            break
    return at


def _step(
    problem: Problem, goal: Goal, at: Floats, now: _Point, slopes: _Slopes, radius: float
) -> tuple[Floats, float]:
    """Return the best step of at most a radius, and what it promises to gain.

    The last two variables of the linear program are what of each kind stays broken.
    """
    size = at.size
    rows, limits = [], []
    for kind, (slope, excess) in enumerate(((slopes.above, now.above), (slopes.below, now.below))):
        # What stays kept whatever the step is left out.
        near = excess + radius * np.abs(slope).sum(axis=1) > 0 if len(excess) else excess > 0
        spared = np.zeros((int(near.sum()), 2))
        spared[:, kind] = -1
        rows.append(np.hstack([slope[near], spared]))
        limits.append(-excess[near])
    sums = problem.simplex
    if sums is not None:
        rows.append(np.pad(sums.toarray(), ((0, 0), (0, 2))))
        limits.append(1 - sums @ at)
    low, high = np.maximum(-radius, -at), np.minimum(radius, 1 - at)
    result = linprog(
        np.concatenate([slopes.value, [goal.price, PRICES[-1]]]),
        A_ub=np.concatenate(rows),
        b_ub=np.concatenate(limits),
        bounds=[*zip(low, high, strict=True), (0, None), (0, None)],
        method="highs",
    )
    if result.x is None:
        return np.zeros(size), 0.0
    return result.x[:size], now.merit(goal) - now.value - float(result.fun)


def _settled(problem: Problem, goal: Goal, start: Floats) -> Floats:
    """Return the policy with the chances that are neither 0 nor 1 settled by SLSQP."""
    free = np.flatnonzero((start > FREE) & (start < 1 - FREE) | (start.size <= FEW))
    if not free.size:
        return start
    sums = np.zeros((0, start.size)) if problem.simplex is None else problem.simplex.toarray()

    def full(some: Floats) -> Floats:
        every = start.copy()
        every[free] = some
        return every

    # SLSQP asks for value, constraints and their slopes one by one.
    @lru_cache(maxsize=2)
    def point(some: bytes) -> _Point:
        return _point(problem, goal, full(np.frombuffer(some)))

    @lru_cache(maxsize=1)
    def slopes(some: bytes) -> _Slopes:
        return _slopes(problem, goal, full(np.frombuffer(some)), point(some))

    def kept(some: Floats) -> Floats:
        there = point(some.tobytes())
        return np.concatenate([-there.above, -there.below, 1 - sums @ full(some)])

    def kept_slopes(some: Floats) -> Floats:
        there = slopes(some.tobytes())
        return -np.concatenate([there.above, there.below, sums])[:, free]

    # An infinite omega is kept whatever happens; SLSQP would not know what to do with it.
    bounded = (
        np.isfinite(goal.omega)
        or len(sums)
        or len(problem.shares(point(start[free].tobytes()).course.rates))
    )
    result = minimize(
        lambda z: point(z.tobytes()).value,
        start[free],
        jac=lambda z: slopes(z.tobytes()).value[free],
        bounds=[(0.0, 1.0)] * free.size,
        constraints=[{"type": "ineq", "fun": kept, "jac": kept_slopes}] if bounded else [],
        method="SLSQP",
        options={"maxiter": 200, "ftol": PRECISION / 10},
    )
    new = np.clip(full(result.x), 0.0, 1.0)
    before, after = (_point(problem, goal, z) for z in (start, new))
    mended = after.broken < TOLERATED / 10 < before.broken
    return new if mended or after.merit(goal) < before.merit(goal) else start
