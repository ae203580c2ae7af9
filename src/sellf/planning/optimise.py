"""The optimiser: sequential linear programs, followed by SLSQP for the remaining variables.

Reward and rates are smooth in a policy's probabilities, and at the best policy nearly all
probabilities are 0 or 1; about as many are in between as constraints bind. Linear programs within a
trust region therefore come close in a few steps for any number of variables. SciPy's SLSQP, which
takes minutes for hundreds of variables, then solves for the few that are left. Disparities above
omega are penalised instead of forbidden, so a search may start anywhere.
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
"""Excess over omega up to which a disparity counts as within omega (optimiser tolerance)."""
PRICES = (10.0, 100.0, 1000.0)
"""Penalties per unit of disparity above omega, with the attainable reward scaled to about 1. The
first exceeds the marginal value of omega at nearly every best policy; higher ones shorten steps."""
MOST_STEPS = 20
MOST_ROUNDS = 6
PRECISION = 1e-10
"""Relative gain below which an improvement is ignored."""
NARROWEST = 1e-3
"""Radius of the trust region below which linear programs stop and SLSQP takes over."""
FEW = 64
"""Number of variables up to which SLSQP solves for all; else for those over FREE from 0 and 1."""
FREE = 1e-7


class Found(NamedTuple):
    """A policy with its reward and its disparity at the times of the problem."""

    variables: Floats
    reward: float
    gap: float
    """Largest disparity."""


class Goal(NamedTuple):
    """The objective to minimise: -reward / scale + price * excess, or the excess over 0 alone."""

    omega: float
    scale: float
    """Scale of the reward; 0 if the reward is ignored."""
    price: float


class _Point(NamedTuple):
    """Objective value and constraint violations of a policy."""

    value: float
    above: Floats
    """Excess over omega of each difference between groups."""
    below: Floats
    """Shortfall below LEAST of each share."""
    course: Course

    @property
    def broken(self) -> float:
        """Largest constraint violation."""
        return max(self.above.max(initial=0.0), self.below.max(initial=0.0))

    def merit(self, goal: Goal) -> float:
        """Return the objective value plus the penalties on violations."""
        worst = [rows.max(initial=0.0) for rows in (self.above, self.below)]
        return self.value + goal.price * worst[0] + PRICES[-1] * worst[1]


class _Slopes(NamedTuple):
    """Derivatives of a point's parts; the last axis is the variables."""

    value: Floats
    above: Floats
    below: Floats


def best(problem: Problem, omega: float, starts: Iterable[Floats]) -> Found:
    """Return the policy with the largest reward within omega; if none is, the fairest one found.

    Args:
        problem: the planning problem.
        omega: the tolerated disparity; infinite for no limit.
        starts: policies from each of which a search starts.
    """
    most = problem.law.horizon * float(np.abs(problem.law.gain).max())
    goal = Goal(omega, max(most / 10, 1e-6), PRICES[0])
    tries = [_within(problem, goal, start) for start in starts]
    within = [found for found in tries if found.gap <= omega + TOLERATED]
    if within:
        return max(within, key=lambda found: found.reward)
    return min(tries, key=lambda found: found.gap)


def fairest(problem: Problem, starts: Iterable[Floats]) -> Found:
    """Return the policy with the smallest largest disparity, regardless of its reward."""
    goal = Goal(0.0, 0.0, 1.0)
    return min((_search(problem, goal, start) for start in starts), key=lambda found: found.gap)


def measured(problem: Problem, variables: Floats) -> Found:
    """Return a policy with its reward and disparity, its probabilities clipped to valid ones."""
    chances = np.clip(variables, 0.0, 1.0).reshape(problem.shape)
    chances = (chances / np.maximum(chances.sum(axis=1, keepdims=True), 1.0)).ravel()
    found = problem.course(chances)
    gap = float(problem.gaps(found.rates).max())
    # A notion is not satisfied if the people it refers to are too few.
    vanished = problem.shares(found.rates).min(initial=1.0) < LEAST - TOLERATED
    return Found(chances, found.reward, np.inf if vanished or np.isnan(gap) else gap)


def _within(problem: Problem, goal: Goal, start: Floats) -> Found:
    """Search with increasing penalties until the disparity is within omega."""
    found = _search(problem, goal, start)
    for price in PRICES[1:]:
        if found.gap > goal.omega + TOLERATED:
            found = _search(problem, goal._replace(price=price), found.variables)
    return found


def _search(problem: Problem, goal: Goal, start: Floats) -> Found:
    """Alternate linear programs and SLSQP until neither improves the objective."""
    at, value = start, np.inf
    if len(problem.rates) > len(problem.definition.rates):
        # Rates among the accepted are not defined for a policy that accepts nobody.
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
    """Take steps of the linearised problem within a trust region."""
    at, now = start, _point(problem, goal, start)
    slopes = _slopes(problem, goal, at, now)
    # If only the disparity is minimised, SLSQP is not run afterwards.
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
    """Return the best step within the radius, and its predicted improvement.

    The last two variables of the linear program are the remaining violations of each kind.
    """
    size = at.size
    rows, limits = [], []
    for kind, (slope, excess) in enumerate(((slopes.above, now.above), (slopes.below, now.below))):
        # Constraints that no step within the radius can violate are left out.
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
    """Return the policy after SLSQP has solved for the probabilities that are neither 0 nor 1."""
    free = np.flatnonzero((start > FREE) & (start < 1 - FREE) | (start.size <= FEW))
    if not free.size:
        return start
    sums = np.zeros((0, start.size)) if problem.simplex is None else problem.simplex.toarray()

    def full(some: Floats) -> Floats:
        every = start.copy()
        every[free] = some
        return every

    # SLSQP requests the value, the constraints and their slopes one by one.
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

    # SLSQP cannot handle an infinite omega, which needs no constraint.
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
