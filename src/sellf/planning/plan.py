"""The best policy: the largest expected reward with |Delta_t| <= omega at every t."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sellf.envs.world import World
from sellf.fairness.checks import number, whole
from sellf.fairness.checks import seed as check_seed
from sellf.fairness.notions import Notion, define
from sellf.planning import mean_field, optimise
from sellf.planning import problem as problems
from sellf.planning.cells import MOST_PROFILES, cells
from sellf.planning.law import Floats, Law, law_of, sample
from sellf.planning.mean_field import Schedule
from sellf.planning.optimise import TOLERATED, Found
from sellf.planning.problem import Problem
from sellf.planning.result import Plan, describe

POINTS = 9
"""Initial number of times at which the disparity is constrained; more are added if needed."""
FINE = 201
"""Number of times at which the disparity is checked and reported."""
MOST_TIMES = 8
"""Largest number of rounds in which times are added."""
PEOPLE = 2_000
"""Number of newcomers' profiles in the first search in a large world, before all are used."""
MOST_SEGMENTS = 50
NEAR = 0.05
"""Precision of the smallest affordable disparity, as a share of the range of disparities."""


def plan(
    world: str | World | Law,
    notion: Notion = "opportunity",
    omega: float | None = 0.05,
    *,
    segments: int = 1,
    starts: int = 6,
    seed: int = 0,
    near: Sequence[Plan] = (),
) -> Plan:
    """Return the policy with the largest expected reward whose disparity stays within omega.

    The reward is the exact expectation, provided that the resource never runs out; the disparity is
    that of the expected population. For a notion that decisions affect only through changes in
    people (qualification), it is the disparity at the end of the horizon.

    Args:
        world: the name of a world, a world, or a law (`sellf.planning.law.Law`).
        notion: the fairness notion.
        omega: the tolerated disparity; None for no limit.
        segments: the number of consecutive policies; 1 for one stationary policy.
        starts: the number of random policies from which to search, in addition to some fixed ones;
            the problem has local optima.
        seed: the seed of these random policies.
        near: plans for other omegas, which are also used as starting points.
    """
    limit = np.inf if omega is None else number("omega", omega, low=0)
    segments = whole("segments", segments, low=1, high=MOST_SEGMENTS)
    starts = whole("starts", starts, low=0, high=10_000)
    check_seed("seed", seed)
    define(notion)
    law = law_of(world)
    segments = min(segments, law.horizon)
    if law.profiles <= MOST_PROFILES:
        problem, found = _solved(law, notion, limit, segments, starts, seed, near)
    else:
        problem, found = _solved_in_cells(law, notion, limit, segments, starts, seed, near)
    return describe(problem, found, omega, fine(problem))


def smallest(world: str | World | Law, notion: Notion, *, segments: int = 1) -> Plan:
    """Return the policy with the smallest attainable disparity, and its reward.

    Among all policies with that disparity (to four digits), it has the largest reward.
    """
    law = law_of(world)
    problem = _problem(law, notion, cells(law), segments)
    found = optimise.fairest(problem, _first(problem, 0, 0))
    bound = float(np.ceil(found.gap * 1e4) / 1e4)
    bounded = optimise.best(problem, bound, [found.variables])
    return describe(problem, bounded, bound, fine(problem))


def search(
    law: Law, notion: Notion, omega: float, cell: NDArray[np.int64], begin: Sequence[Floats] = ()
) -> tuple[Problem, Found]:
    """Return the best policy over given cells, with the problem that it solves.

    If omega is out of reach, it is the fairest policy found that earns no less than the default
    action does for everyone; the fairest of all may cost more than there is.

    Args:
        law: a known or an estimated law.
        notion: the fairness notion.
        omega: the tolerated disparity.
        cell: the cell of each profile, counted from 0.
        begin: variables to start from, in addition to the greedy and the uniform policy.
    """
    problem = _problem(law, notion, cell, 1)
    starts = [*begin, *_first(problem, 0, 0)]
    problem, found = _kept(problem, omega, starts)
    nothing = problem.course(np.zeros(np.prod(problem.shape))).reward
    if found.gap > omega + TOLERATED and found.reward < nothing:
        found = _affordable(problem, found, starts, nothing)
    return problem, found


def _solved(
    law: Law,
    notion: Notion,
    omega: float,
    segments: int,
    starts: int,
    seed: int,
    near: Sequence[Plan],
) -> tuple[Problem, Found]:
    """Search for a policy with separate probabilities for every profile."""
    problem = _problem(law, notion, cells(law), segments)
    begin = [_variables(problem, each.policy) for each in near]
    if segments > 1:
        # The best stationary policy is a good start; random starts in all segments are expensive.
        _, constant = _solved(law, notion, omega, 1, starts, seed, ())
        begin.append(np.tile(constant.variables, segments))
        starts = min(starts, 1)
    return _kept(problem, omega, [*begin, *_first(problem, starts, seed)])


def _solved_in_cells(
    law: Law,
    notion: Notion,
    omega: float,
    segments: int,
    starts: int,
    seed: int,
    near: Sequence[Plan],
) -> tuple[Problem, Found]:
    """Search for a policy over cells, with a sample of the people first and then with all."""
    cell, index = cells(law), np.arange(law.profiles, dtype=np.float64)
    whole = _problem(law, notion, cell, segments)
    begin = [_variables(whole, each.policy) for each in near]
    if not begin:
        # Profile numbers are passed through `sample` as an extra row of gains.
        some = sample(replace(law, gain=np.vstack([law.gain, index])), PEOPLE, seed)
        kept = some.gain[-1].astype(np.int64)
        used, own = np.unique(cell[kept], return_inverse=True)
        part = _problem(replace(some, gain=some.gain[:-1]), notion, own, segments)
        _, found = _kept(part, omega, _first(part, min(starts, 2), seed))
        start = _first(whole, 0, 0)[0].reshape(whole.shape)
        start[:, :, used] = found.variables.reshape(part.shape)
        begin = [start.ravel()]
    return _kept(whole, omega, begin)


def _problem(law: Law, notion: Notion, cell: NDArray[np.int64], segments: int) -> Problem:
    """Return the problem with its initial times."""
    if define(notion).delayed:
        length = int(np.diff(mean_field.bounds(law, segments))[-1])
        times = [np.zeros(0, np.int64)] * (segments - 1) + [np.array([length])]
        return problems.make(law, notion, mean_field.schedule(law, times), cell)
    points = max(3, -(-POINTS // segments) + 1) if segments > 1 else POINTS
    return problems.make(law, notion, mean_field.even(law, segments, points), cell)


def fine(problem: Problem) -> Schedule:
    """Return a schedule with many times, used to check a policy."""
    segments = len(problem.schedule.segments)
    return mean_field.even(problem.law, segments, max(11, FINE // segments))


def _first(problem: Problem, random: int, seed: int) -> list[Floats]:
    """Return starting policies: the greedy one, the uniform one, and random ones."""
    law, draw = problem.law, np.random.default_rng(seed)
    weight = np.bincount(problem.cell, minlength=problem.cells)
    gain = np.stack([np.bincount(problem.cell, each) / weight for each in law.gain])
    greedy = np.eye(len(law.actions))[gain.argmax(axis=0)].T[1:]
    even = np.full(problem.shape, 1 / len(law.actions)).ravel()
    found = [np.tile(greedy.ravel(), problem.shape[0]), even]
    for _ in range(random):
        chance = draw.dirichlet(np.ones(len(law.actions)), (problem.shape[0], problem.cells))
        found.append(np.moveaxis(chance, 2, 1)[:, 1:].ravel())
    return found


def _kept(problem: Problem, omega: float, begin: list[Floats]) -> tuple[Problem, Found]:
    """Return the best policy that is within omega at all times, not only at the initial ones."""
    found = optimise.best(problem, omega, begin)
    if found.gap > omega + TOLERATED:
        fairest = optimise.fairest(problem, [found.variables, *begin[:3]])
        if fairest.gap > omega + TOLERATED:
            return problem, fairest
        found = optimise.best(problem, omega, [fairest.variables])
    if problem.definition.delayed:
        return problem, found
    for _ in range(MOST_TIMES):
        more = _broken(problem, found, omega)
        if more is None:
            break
        problem = replace(problem, schedule=more)
        found = optimise.best(problem, omega, [found.variables])
    return problem, found


def _affordable(problem: Problem, fairest: Found, starts: list[Floats], least: float) -> Found:
    """Return a policy near the smallest disparity at which at least so much is earned."""
    kept = optimise.best(problem, np.inf, starts)
    low, whole = fairest.gap, kept.gap - fairest.gap
    while kept.gap - low > NEAR * whole:
        middle = (low + kept.gap) / 2
        found = optimise.best(problem, middle, [kept.variables])
        if found.gap <= middle + TOLERATED and found.reward >= least:
            kept = found
        else:
            low = middle
    return kept


def _broken(problem: Problem, found: Found, omega: float) -> Schedule | None:
    """Add the worst time of each segment in which omega is exceeded; None if there is none."""
    check = replace(problem, schedule=fine(problem))
    gaps = check.gaps(check.course(found.variables).rates)
    if gaps.max() <= omega + TOLERATED:
        return None
    offsets = []
    for s, part in enumerate(problem.schedule.segments):
        own = np.flatnonzero(check.schedule.segment == s)
        worst = own[gaps[own].argmax()]
        time = check.schedule.times[worst] - part.begin
        more = [time] if gaps[worst] > omega + TOLERATED else []
        offsets.append(np.unique(np.append(part.offsets, more)).astype(np.int64))
    return mean_field.schedule(problem.law, offsets)


def _variables(problem: Problem, policy: Floats) -> Floats:
    """Return a policy over profiles as variables; a stationary policy is used in every segment."""
    segments, others, number_of_cells = problem.shape
    first = np.zeros(number_of_cells, np.int64)
    first[problem.cell[::-1]] = np.arange(problem.law.profiles)[::-1]
    chances = policy[:, 1:, first]
    place = np.arange(segments) * len(chances) // segments
    return np.clip(chances[place], 0.0, 1.0).reshape(segments * others * number_of_cells)
