"""The expected population under a policy, what it earns, how far apart groups are; with gradients.

At each decision one of N people is drawn, so that after t decisions somebody was decided about k
times with the chance of the binomial distribution, P(k; t, 1/N). By then their profile has moved k
times by the policy's transition P. The expected population is therefore

    d_t = sum_k P(k; t, 1/N) d_0 P^k,

exactly, and a few dozen terms do. Rewards add up in the same way. Everything that is asked for is a
sum over `d_0 P^k`, and its gradient one sweep backwards through the k (the adjoint).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sellf.fairness.notions import Rate
from sellf.planning.law import Floats, Law

TIMES = 50
"""Into so many parts the times of decisions are grouped."""
TAIL = 1e-14
"""The chance of more visits than are counted."""


class Segment(NamedTuple):
    """A stretch of decisions with one policy: the chance of k visits, by k in columns."""

    begin: int
    """The decision it begins with."""
    offsets: NDArray[np.int64]
    """When rates are asked for, in decisions since it began."""
    at: Floats
    """(times, visits), the chance of k visits by then."""
    decisions: Floats
    """(visits,), the expected number of its decisions that come after k visits."""
    end: Floats
    """(visits,), the chance of k visits by its end."""


@dataclass(frozen=True)
class Schedule:
    """Segments of the horizon, and the times at which rates are asked for."""

    segments: tuple[Segment, ...]

    @property
    def times(self) -> NDArray[np.int64]:
        """The times, in decisions since the start; a segment's two ends are both its own."""
        return np.concatenate([part.begin + part.offsets for part in self.segments])

    @property
    def segment(self) -> NDArray[np.int64]:
        """The segment of each time."""
        return np.repeat(np.arange(len(self.segments)), [len(p.offsets) for p in self.segments])


def bounds(law: Law, segments: int) -> NDArray[np.int64]:
    """Return where segments begin and end: as equal as whole decisions can be."""
    return np.linspace(0, law.horizon, segments + 1).round().astype(np.int64)


def schedule(law: Law, offsets: Sequence[NDArray[np.int64]]) -> Schedule:
    """Return the weights of visits.

    Args:
        law: with population and horizon.
        offsets: for each segment the times at which rates are asked for, since it began.
    """
    ends = bounds(law, len(offsets))
    return Schedule(
        tuple(
            _segment(law, int(begin), int(end), np.asarray(times, np.int64))
            for begin, end, times in zip(ends[:-1], ends[1:], offsets, strict=True)
        )
    )


def even(law: Law, segments: int, points: int) -> Schedule:
    """Return a schedule with times as evenly spread as whole decisions can be."""
    lengths = np.diff(bounds(law, segments))
    return schedule(law, [np.unique(np.linspace(0, n, points).round()) for n in lengths])


def _segment(law: Law, begin: int, end: int, offsets: NDArray[np.int64]) -> Segment:
    length, chance = end - begin, 1 / law.population
    most = int(binom.isf(TAIL, length, chance)) + 1
    visits = np.arange(most + 1)
    # The decisions before which somebody had k visits are the wait for the next one, cut off.
    decisions = binom.sf(visits, length, chance) / chance
    at = binom.pmf(visits[None, :], offsets[:, None], chance)
    return Segment(begin, offsets, at, decisions, binom.pmf(visits, length, chance))


class Course(NamedTuple):
    """What a policy comes to."""

    reward: float
    """The resource at the end, if it may be overdrawn meanwhile."""
    rates: Floats
    """(times, rates, groups)."""
    visited: tuple[Floats, ...]
    """By segment (visits, profiles): people as they are after k visits in it."""


class Slopes(NamedTuple):
    """Derivatives by the chance of each action: (segments, actions, profiles, ...)."""

    reward: Floats
    rates: Floats
    """... and (times, rates, groups) in one axis."""


def course(law: Law, rates: Sequence[Rate], plan: Schedule, policy: Floats) -> Course:
    """Follow the expected population.

    Args:
        law: of people and outcomes.
        rates: what to ask for.
        plan: when.
        policy: (segments, actions, profiles), the chance of each action.
    """
    people, total = law.people, law.start
    visited, found = [], []
    for part, chance in zip(plan.segments, policy, strict=True):
        each = _visits(law, chance, people, len(part.end))
        total += float(part.decisions @ (each @ (chance * law.gain).sum(axis=0)))
        of, among = _sums(law, rates, chance, each)
        found.append(_ratio(part.at, of, among))
        visited.append(each)
        people = part.end @ each
    return Course(total, np.concatenate(found), tuple(visited))


def population(law: Law, policy: Floats, times: NDArray[np.int64]) -> Floats:
    """Return the expected population (times, profiles) after so many decisions of one policy."""
    part = _segment(law, 0, law.horizon, np.asarray(times, np.int64))
    return part.at @ _visits(law, policy, law.people, len(part.end))


def visits(law: Law, times: NDArray[np.int64] | None = None) -> Floats:
    """Return the share of decisions before which somebody was met 0, 1, 2, ... times.

    Args:
        law: with population and horizon.
        times: of the decisions; all of the horizon if not given.
    """
    if times is None:
        part = _segment(law, 0, law.horizon, np.zeros(0, np.int64))
        return part.decisions / part.decisions.sum()
    number, edges = np.histogram(times, bins=TIMES)
    middle = ((edges[:-1] + edges[1:]) / 2).astype(np.int64)
    return number @ _segment(law, 0, law.horizon, middle).at / len(times)


def met(law: Law, chance: Floats, share: Floats) -> Floats:
    """Return the share of decisions about each profile.

    Args:
        law: of people and outcomes.
        chance: (actions, profiles), of one policy.
        share: of decisions by number of visits, as `visits` returns it.
    """
    return share @ _visits(law, chance, law.people, len(share))


def first(law: Law, chance: Floats, share: Floats, seen: Floats, turns: int = 20) -> Floats:
    """Return the shares of a first population that explain best whom decisions were about.

    Everyone met was somebody in the first population, and came to be who they are by the policy's
    transition. This is the EM algorithm for that mixture.

    Args:
        law: with the transitions; its people are where the search starts.
        chance: (actions, profiles), with which was decided.
        share: of decisions by number of visits.
        seen: how many decisions were about each profile.
        turns: how many steps of it.
    """
    onward, people = law.mixed(chance), law.people
    for _ in range(turns):
        expected = share @ _visits(law, chance, people, len(share))
        ratio = np.where(expected > 0, seen / np.where(expected > 0, expected, 1.0), 0.0)
        credit = share[-1] * ratio
        for weight in share[-2::-1]:
            credit = weight * ratio + onward @ credit
        people = people * credit
        people = people / people.sum()
    return people


def _visits(law: Law, chance: Floats, people: Floats, number: int) -> Floats:
    """Return people as they are after 0, 1, 2, ... visits."""
    each = np.empty((number, law.profiles))
    each[0], onward = people, law.mixed(chance).T
    for k in range(1, number):
        each[k] = onward @ each[k - 1]
    return each


def _coefficients(law: Law, rate: Rate, chance: Floats) -> tuple[Floats, Floats]:
    """Return what each profile adds to a rate's two sums, and how that changes with its chance.

    Both are (2, profiles): above and below the line.
    """
    favoured = chance[np.asarray(law.favourable)].sum(axis=0)
    pairs = [sums.by_chance(law.alpha) for sums in rate.sums]
    slope = np.stack([np.broadcast_to(slope, favoured.shape) for slope, _ in pairs])
    level = np.stack([np.broadcast_to(level, favoured.shape) for _, level in pairs])
    return slope * favoured + level, slope


def _sums(law: Law, rates: Sequence[Rate], chance: Floats, each: Floats) -> tuple[Floats, Floats]:
    """Return both sums of each rate, (visits, rates, groups)."""
    shape = (len(each), len(rates), len(law.groups))
    of, among = np.empty(shape), np.empty(shape)
    for r, rate in enumerate(rates):
        adds, _ = _coefficients(law, rate, chance)
        for g in range(len(law.groups)):
            own = law.group == g
            of[:, r, g], among[:, r, g] = (each[:, own] @ part[own] for part in adds)
    return of, among


def _ratio(at: Floats, of: Floats, among: Floats) -> Floats:
    below = np.tensordot(at, among, 1)
    return np.tensordot(at, of, 1) / np.where(below > 0, below, np.nan)


def slopes(
    law: Law, rates: Sequence[Rate], plan: Schedule, policy: Floats, found: Course
) -> Slopes:
    """Return derivatives of reward and rates by every chance of every action.

    Args:
        law: of people and outcomes.
        rates: as asked for.
        plan: when.
        policy: (segments, actions, profiles).
        found: what `course` returned for them.
    """
    number = found.rates.size
    result = np.zeros((*policy.shape, number + 1))
    # By profile, what somebody of it at a segment's end still adds to each rate, and the reward.
    later = np.zeros((law.profiles, number + 1))
    last = number
    for s in reversed(range(len(plan.segments))):
        part, chance, each = plan.segments[s], policy[s], found.visited[s]
        own = slice(last - len(part.offsets) * len(rates) * len(law.groups), last)
        last = own.start
        value, direct = _local(law, rates, part, chance, each, found.rates.reshape(-1)[own])
        for a in np.flatnonzero(law.favourable):
            result[s, a, :, own] += direct
        worth = (chance * law.gain).sum(axis=0)
        result[s, :, :, -1] += law.gain * (part.decisions @ each)
        at = np.repeat(part.at, len(rates) * len(law.groups), axis=0)
        after = np.zeros_like(later)
        for k in reversed(range(len(each))):
            now = part.end[k] * later
            now[:, own] += at[:, k] * value
            now[:, -1] += part.decisions[k] * worth
            if k + 1 < len(each):
                for a, step in enumerate(law.steps):
                    follows = step @ after
                    result[s, a] += each[k][:, None] * follows
                    now += chance[a][:, None] * follows
            after = now
        later = after
    return Slopes(result[..., -1], result[..., :-1])


def _local(
    law: Law, rates: Sequence[Rate], part: Segment, chance: Floats, each: Floats, found: Floats
) -> tuple[Floats, Floats]:
    """Return how the rates of a segment change with people, and with chances as people are.

    Both are (profiles, times x rates x groups).
    """
    shape = (len(part.offsets), len(rates), len(law.groups))
    found = found.reshape(shape)
    people = part.at @ each
    value, direct = np.zeros((2, law.profiles, *shape))
    for r, rate in enumerate(rates):
        adds, slope = _coefficients(law, rate, chance)
        for g in range(len(law.groups)):
            own = np.flatnonzero(law.group == g)
            below = people[:, own] @ adds[1, own]
            # d(of / among) = (d of - rate d among) / among
            by = found[:, r, g]
            value[own, :, r, g] = (adds[0, own, None] - adds[1, own, None] * by) / below
            change = (slope[0, own, None] - slope[1, own, None] * by) / below
            direct[own, :, r, g] = change * people[:, own].T
    return value.reshape(law.profiles, -1), direct.reshape(law.profiles, -1)
