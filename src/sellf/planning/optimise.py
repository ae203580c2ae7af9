"""The optimiser: sequential linear programs find who is certain, SLSQP settles the rest.

Reward and rates are smooth in a policy's chances, and at the best policy nearly all chances are 0 or
1: about as many are between as constraints bind. So linear programs within a trust region (a
Lagrangian's corner) come close in a few steps, however many chances there are, and SciPy's SLSQP,
which would take long for hundreds of them, has only the few that are left to settle. A constraint
that cannot be kept costs a price for each unit instead, so that a start may be anywhere.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, hstack

from sellf import interrupts
from sellf.planning.law import Floats
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
    """A policy's value and what it breaks; with slopes."""

    value: float
    above: Floats
    """Of each difference between groups, what it is above omega."""
    below: Floats
    """Of each share that must not vanish, what it is below the least."""

    @property
    def broken(self) -> float:
        """The most that a constraint is broken by."""
        return max(self.above.max(initial=0.0), self.below.max(initial=0.0))

    def merit(self, goal: Goal) -> float:
        """Return the value with a price on what is broken."""
        worst = [rows.max(initial=0.0) for rows in (self.above, self.below)]
        return self.value + goal.price * worst[0] + PRICES[-1] * worst[1]


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
    return Found(chances, found.reward, float(problem.gaps(found.rates).max()))


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
    return _Point(value, above, LEAST - problem.shares(found.rates))


def _slopes(problem: Problem, goal: Goal, variables: Floats) -> _Point:
    """Return the derivatives of a point's parts; of each part in rows."""
    found = problem.course(variables)
    reward, rates = problem.slopes(variables, found)
    rates = rates.reshape(*found.rates.shape, -1)
    value = -reward / goal.scale if goal.scale else 0 * reward
    return _Point(value, problem.differences(rates), -problem.shares(rates))  # pyright: ignore


def _linear_programs(problem: Problem, goal: Goal, start: Floats, radius: float) -> Floats:
    """Follow the best steps of the linearised problem, each as long as it could be trusted."""
    at, now = start, _point(problem, goal, start)
    slopes = _slopes(problem, goal, at)
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
            slopes = _slopes(problem, goal, at)
        radius = min(1.0, 2 * radius) if kept > 0.7 else radius if kept > 0.3 else radius / 4
        if radius < narrowest:
            break
    return at


def _step(
    problem: Problem, goal: Goal, at: Floats, now: _Point, slopes: _Point, radius: float
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
        rows.append(hstack([sums, csr_array((sums.shape[0], 2))]).toarray())
        limits.append(1 - sums @ at)
    low, high = np.maximum(-radius, -at), np.minimum(radius, 1 - at)
    result = linprog(
        np.concatenate([slopes.value, [goal.price, PRICES[-1]]]),  # pyright: ignore
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
    last: dict[bytes, tuple[_Point, _Point]] = {}

    def full(some: Floats) -> Floats:
        every = start.copy()
        every[free] = some
        return every

    def known(some: Floats) -> tuple[_Point, _Point]:
        key = some.tobytes()
        if key not in last:
            last.clear()
            every = full(some)
            last[key] = _point(problem, goal, every), _slopes(problem, goal, every)
        return last[key]

    def kept(some: Floats) -> Floats:
        point = known(some)[0]
        sums = problem.simplex
        others = [1 - sums @ full(some)] if sums is not None else []
        return np.concatenate([-point.above, -point.below, *others])

    def kept_slopes(some: Floats) -> Floats:
        slopes = known(some)[1]
        sums = problem.simplex
        others = [-sums.toarray()] if sums is not None else []
        return np.concatenate([-slopes.above, -slopes.below, *others])[:, free]

    finite = np.isfinite(goal.omega) or problem.simplex is not None or len(problem.rates) > 1
    result = minimize(
        lambda z: known(z)[0].value,
        start[free],
        jac=lambda z: known(z)[1].value[free],  # pyright: ignore
        bounds=[(0.0, 1.0)] * free.size,
        constraints=[{"type": "ineq", "fun": kept, "jac": kept_slopes}] if finite else [],
        method="SLSQP",
        options={"maxiter": 200, "ftol": PRECISION / 10},
    )
    new = np.clip(full(result.x), 0.0, 1.0)
    before, after = (_point(problem, goal, z) for z in (start, new))
    mended = after.broken < TOLERATED / 10 < before.broken
    return new if mended or after.merit(goal) < before.merit(goal) else start
