"""The expected population under a policy, its reward and group rates, and their gradients.

At each decision one of N people is drawn, so the number k of decisions about a person among t has
the binomial distribution P(k; t, 1/N). By then their profile has made k steps of the policy's
transition P. The expected population is therefore exactly

    d_t = sum_k P(k; t, 1/N) d_0 P^k,

and a few dozen terms suffice. Rewards are sums of the same form. All results are sums over
`d_0 P^k`, and their gradients take one backward sweep over k (the adjoint method).
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
"""Number of bins for the times of decisions."""
TAIL = 1e-14
"""Probability of more visits than are counted."""


class Segment(NamedTuple):
    """A period with one policy, and the probabilities of k visits, with k in columns."""

    begin: int
    """First decision of the segment."""
    offsets: NDArray[np.int64]
    """Times at which rates are evaluated, in decisions since the segment began."""
    at: Floats
    """Probability of k visits by each time, (times, visits)."""
    decisions: Floats
    """Expected number of the segment's decisions that come after k visits, (visits,)."""
    end: Floats
    """Probability of k visits by the end of the segment, (visits,)."""


@dataclass(frozen=True)
class Schedule:
    """Segments of the horizon, and the times at which rates are evaluated."""

    segments: tuple[Segment, ...]

    @property
    def times(self) -> NDArray[np.int64]:
        """Times in decisions since the start; a segment includes both of its ends."""
        return np.concatenate([part.begin + part.offsets for part in self.segments])

    @property
    def segment(self) -> NDArray[np.int64]:
        """Segment of each time."""
        return np.repeat(np.arange(len(self.segments)), [len(p.offsets) for p in self.segments])


def bounds(law: Law, segments: int) -> NDArray[np.int64]:
    """Return the bounds of segments of nearly equal length, in whole decisions."""
    return np.linspace(0, law.horizon, segments + 1).round().astype(np.int64)


def schedule(law: Law, offsets: Sequence[NDArray[np.int64]]) -> Schedule:
    """Return the schedule with the probabilities of visits.

    Args:
        law: the law, with population and horizon.
        offsets: for each segment, the times at which rates are evaluated, since it began.
    """
    ends = bounds(law, len(offsets))
    return Schedule(
        tuple(
            _segment(law, int(begin), int(end), np.asarray(times, np.int64))
            for begin, end, times in zip(ends[:-1], ends[1:], offsets, strict=True)
        )
    )


def even(law: Law, segments: int, points: int) -> Schedule:
    """Return a schedule with nearly evenly spaced times, in whole decisions."""
    lengths = np.diff(bounds(law, segments))
    return schedule(law, [np.unique(np.linspace(0, n, points).round()) for n in lengths])


def _segment(law: Law, begin: int, end: int, offsets: NDArray[np.int64]) -> Segment:
    length, chance = end - begin, 1 / law.population
    most = int(binom.isf(TAIL, length, chance)) + 1
    visits = np.arange(most + 1)
    # The decisions at which a person has k visits are the wait for the next one, truncated.
    decisions = binom.sf(visits, length, chance) / chance
    at = binom.pmf(visits[None, :], offsets[:, None], chance)
    return Segment(begin, offsets, at, decisions, binom.pmf(visits, length, chance))


class Course(NamedTuple):
    """Results of following a policy."""

    reward: float
    """Expected resource at the end, if it may be negative in between."""
    rates: Floats
    """Rates, (times, rates, groups)."""
    visited: tuple[Floats, ...]
    """By segment, the population after k visits in it, (visits, profiles)."""


class Slopes(NamedTuple):
    """Derivatives by the probability of each action, (segments, actions, profiles, ...)."""

    reward: Floats
    rates: Floats
    """The last axis combines (times, rates, groups)."""


def course(law: Law, rates: Sequence[Rate], plan: Schedule, policy: Floats) -> Course:
    """Follow the expected population.

    Args:
        law: the law of people and outcomes.
        rates: the rates to evaluate.
        plan: the times at which to evaluate them.
        policy: action probabilities, (segments, actions, profiles).
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
    """Return the expected population under one policy at the given times, (times, profiles)."""
    part = _segment(law, 0, law.horizon, np.asarray(times, np.int64))
    return part.at @ _visits(law, policy, law.people, len(part.end))


def visits(law: Law, times: NDArray[np.int64] | None = None) -> Floats:
    """Return the share of decisions about people who had 0, 1, 2, ... visits before.

    Args:
        law: the law, with population and horizon.
        times: the times of the decisions; by default, the whole horizon.
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
        law: the law of people and outcomes.
        chance: action probabilities of one policy, (actions, profiles).
        share: the share of decisions by number of visits, as returned by `visits`.
    """
    return share @ _visits(law, chance, law.people, len(share))


def first(law: Law, chance: Floats, share: Floats, seen: Floats, turns: int = 20) -> Floats:
    """Return the maximum-likelihood shares of the first population, given the people met.

    Everyone met was in the first population and has changed by the policy's transition since. This
    is the EM algorithm for that mixture.

    Args:
        law: the law with the transitions; its people are the initial values.
        chance: action probabilities of the deciding policy, (actions, profiles).
        share: the share of decisions by number of visits.
        seen: the number of decisions about each profile.
        turns: the number of EM steps.
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
    """Return the population after 0, 1, 2, ... visits."""
    each = np.empty((number, law.profiles))
    each[0], onward = people, law.mixed(chance).T
    for k in range(1, number):
        each[k] = onward @ each[k - 1]
    return each


def _coefficients(law: Law, rate: Rate, chance: Floats) -> tuple[Floats, Floats]:
    """Return each profile's contribution to a rate's two sums, and its slope in the probability.

    Both are (2, profiles), for the numerator and the denominator.
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
    """Return the derivatives of reward and rates by every action probability.

    Args:
        law: the law of people and outcomes.
        rates: the rates that were evaluated.
        plan: the times at which they were evaluated.
        policy: action probabilities, (segments, actions, profiles).
        found: the result of `course` for these arguments.
    """
    number = found.rates.size
    result = np.zeros((*policy.shape, number + 1))
    # By profile, the later contribution of a person at a segment's end to each rate and the reward.
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
    """Return the derivatives of a segment's rates by people, and by probabilities for fixed people.

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
