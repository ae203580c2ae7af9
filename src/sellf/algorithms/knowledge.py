"""Estimates of SELLF-plan after some decisions: a law to plan in, and whom to explore."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import log_ndtr, ndtri_exp

from sellf.algorithms.algorithm import Extra, Task
from sellf.algorithms.config import Settings, hyperparameters
from sellf.algorithms.layout import Frame
from sellf.errors import InputError
from sellf.fairness import define
from sellf.fairness.off_policy import Groups
from sellf.planning import design, estimate, mean_field
from sellf.planning.estimate import Ints, Labels, Newcomers, Records
from sellf.planning.law import Floats, Law
from sellf.planning.plan import search
from sellf.planning.result import NEVER

BASES = 10_000
"""Number of people of a large world to plan for at most: a random sample of those met early."""
EARLY = 0.25
"""Up to this share of the population, the people met in an episode are nearly all new to it."""
EARLIEST = 0.05
"""The same for large worlds, whose initial population is not corrected for repeated visits."""
MOST_WEIGHT = 5.0
"""Upper limit of the weight of a person met; the lower limit is its inverse."""


@hyperparameters
class Planned(Settings):
    """Planning in a learned law, with a bound on the disparity that is proven at the end."""

    omega: float = 0.05
    """Largest tolerated true disparity."""
    delta: float = 0.05
    """Probability with which the proof may fail."""
    learn_share: float = 0.16
    """Share of the decisions after which the policy to be proven is chosen, at least two rollouts;
    1 for no proof."""
    room: float = 0.35
    """Share of omega reserved for the uncertainty of the proof. It determines the amount of
    exploration; the rest of omega is available for the policy's own disparity."""
    confidence: float = 1.64
    """Distance of a plan's estimated disparity from omega, in standard errors; raised for more than
    two groups, so that it holds for all pairs of groups."""
    first: float = 0.3
    """Probability of a revealing action in the first rollout, when nothing is known."""
    floor: float = 0.02
    """Smallest probability with which an outcome is revealed during learning."""
    most: float = 1.0
    """Largest probability with which exploration reveals an outcome."""
    shrinkage: float = 20.0
    """Weight of the additive model in each cell of the label law, as a number of outcomes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("learn_share", "first", "floor", "most"):
            value = getattr(self, name)
            if isinstance(value, int | float) and value > 1:
                raise InputError(f"{name} is {value}: give a number from 0 to 1.")


class Log(NamedTuple):
    """All decisions so far, as they were observed."""

    profile: Int[Array, " decisions"]
    moved: Int[Array, " decisions"]
    action: Int[Array, " decisions"]
    label: Int[Array, " decisions"]
    """1 or 0 where the label was revealed, -1 where it was not."""
    reveal: Float[Array, " decisions"]
    """Probability with which the label was to be revealed."""
    time: Int[Array, " decisions"]
    """Number of decisions since the episode began."""


class Planning(NamedTuple):
    """A policy over cells, and its expected disparity and reward."""

    chance: Floats
    """Action probabilities, (actions, cells)."""
    disparity: float
    reward: float
    variables: Floats


@dataclass(frozen=True)
class Knowledge:
    """Estimates after some decisions, and the law to plan in."""

    task: Task
    config: Planned
    frame: Frame
    weights: Floats
    """Weights of the additive model."""
    cell: Ints
    """Cell of the person in each decision."""
    records: Records
    labels: Labels
    newcomers: Newcomers
    time: Ints
    """Number of decisions since the episode began, for each decision."""

    @cached_property
    def who(self) -> Groups:
        """The groups, and the rates to compare."""
        rates, groups = define(self.task.notion).rates, len(self.task.space.groups)
        return Groups(rates, self.frame.layout.group, groups)

    @cached_property
    def law(self) -> Law:
        """The estimated law."""
        space, task = self.task.space, self.task
        nobody = np.zeros(0)
        like = Law(
            name="what was learned",
            groups=space.groups,
            actions=space.actions,
            favourable=space.favourable,
            group=np.zeros(0, np.int64),
            people=nobody,
            alpha=nobody,
            transition=(),
            gain=np.asarray(space.gain),
            population=task.population,
            horizon=task.horizon,
            start=0.0,
        )
        parts = self.frame.layout, self.records, self.labels, self.newcomers
        law = estimate.law(like, *parts, space.reveals)
        if not self.frame.small:
            return law
        share = mean_field.visits(law, self.time)
        met = np.bincount(self.cell, minlength=self.frame.cells)
        seen = met.astype(np.float64) + 1 / self.frame.cells
        return replace(law, people=mean_field.first(law, self.decided, share, seen))

    @cached_property
    def decided(self) -> Floats:
        """Relative frequency of each action, (actions, cells)."""
        actions = len(self.task.space.actions)
        taken = [
            np.bincount(self.cell[self.records.action == a], minlength=self.frame.cells)
            for a in range(actions)
        ]
        number = np.stack(taken) + 1 / actions
        return number / number.sum(axis=0)

    def changed(self, chance: Floats, behaviour: Floats, since: int | None = None) -> Floats:
        """Return the estimated ratio of a cell's share under a policy to that under the behaviour.

        Exploration changes people in other ways than the policy would, so the people met have to be
        reweighted.

        Args:
            chance: the policy.
            behaviour: the policy that decides instead.
            since: index of the first decision; None if all decisions are still to come.
        """
        own, law = self.newcomers.cell, self.law
        found = []
        past = None if since is None else self.time[since:]
        for policy, times in ((chance, None), (behaviour, past)):
            people = mean_field.met(law, policy[:, own], mean_field.visits(law, times))
            found.append(np.bincount(own, people, self.frame.cells))
        there = (found[0] > 1e-9) & (found[1] > 1e-9)
        ratio = np.where(there, found[0] / np.where(there, found[1], 1.0), 1.0)
        return np.clip(ratio, 1 / MOST_WEIGHT, MOST_WEIGHT)

    @cached_property
    def people(self) -> Floats:
        """Share of the people met, by cell."""
        met = np.bincount(self.cell, minlength=self.frame.cells) + 1e-3
        return met / met.sum()

    @cached_property
    def gain(self) -> Floats:
        """Expected gain of a decision, (actions, cells)."""
        worth = np.asarray(self.task.space.gain)
        return worth[:, :1] + (worth[:, 1:] - worth[:, :1]) * self.labels.chance[None]

    @cached_property
    def greedy(self) -> Floats:
        """Policy that takes the action with the largest immediate gain, (actions, cells)."""
        return np.eye(len(self.gain))[self.gain.argmax(axis=0)].T

    def favoured(self, chance: Floats) -> Floats:
        """Return the probability of a favourable action, by cell."""
        return chance[np.asarray(self.task.space.favourable)].sum(axis=0)

    def revealed(self, chance: Floats) -> Floats:
        """Return the probability that the outcome is revealed, by cell."""
        return chance[np.asarray(self.task.space.reveals)].sum(axis=0)

    def plan(self, omega: float, near: list[Floats]) -> Planning:
        """Return the best policy within a disparity, under the estimated law."""
        used, own = np.unique(self.newcomers.cell, return_inverse=True)
        begin = [chance[1:, used].ravel() for chance in near]
        problem, found = search(self.law, self.task.notion, omega, own, begin)
        # Cells without anyone to plan for get the greedy action.
        chance = self.greedy.copy()
        some = found.variables.reshape(problem.shape)[0]
        chance[:, used] = np.concatenate([np.clip(1 - some.sum(axis=0), 0, 1)[None], some])
        return Planning(chance, found.gap, found.reward, found.variables)

    def error(self, chance: Floats) -> float:
        """Return the standard error of a policy's disparity.

        Labels are uncertain, and in a large world so is the population to begin with.
        """
        moved = self._influence(chance) * self.people
        found = design.variance(self.who, moved, self.labels.variance)
        if np.isfinite(self.newcomers.number):
            own = self.newcomers
            people = np.asarray(np.bincount(own.cell, own.share, self.frame.cells), np.float64)
            favoured, label = self.favoured(chance), self.labels.chance
            found += design.sampling_variance(self.who, favoured, label, people, own.number)
        return found**0.5

    def margin(self, chance: Floats) -> float:
        """Return the required distance between omega and the estimated disparity of a policy.

        With more than two groups, the disparity is the largest of several differences. A Bonferroni
        correction over the pairs then raises the number of standard errors.
        """
        wide, pairs = float(self.config.confidence), len(self.who.pairs)
        if pairs > 1 and wide > 0:
            wide = -float(ndtri_exp(log_ndtr(-wide) - np.log(pairs)))
        return wide * self.error(chance)

    def _influence(self, chance: Floats) -> Floats:
        label = self.labels.chance
        return design.influence(self.who, self.favoured(chance), label, self.people)

    def explored(self, chance: Floats, decisions: float, target: float, least: Floats) -> Floats:
        """Return the policy with the exploration that reduces its disparity's error to a target."""
        reveals = np.asarray(self.task.space.reveals)
        planned = self.revealed(chance)
        best = np.where(reveals[:, None], self.gain, -np.inf).argmax(axis=0)
        gain = np.take_along_axis(self.gain, best[None], axis=0)[0]
        hidden = np.where(reveals[:, None], 0.0, chance)
        otherwise = (hidden * self.gain).sum(axis=0) / np.maximum(1 - planned, NEVER)
        cost = np.maximum(np.where(planned < 1, otherwise - gain, 0.0), 0.0)
        needs = design.Needs(
            self.people, self._influence(chance), self.labels.chance, cost, planned
        )
        wanted = design.chances(self.who, needs, decisions, target, least)
        wanted = np.maximum(np.minimum(wanted, np.maximum(self.config.most, least)), planned)
        share = np.where(planned < 1, (1 - wanted) / np.maximum(1 - planned, NEVER), 1.0)
        found = np.where(reveals[:, None], chance, chance * share)
        found[best, np.arange(len(best))] += wanted - planned
        return found


def know(task: Task, config: Planned, iteration: int, extra: Extra) -> Knowledge:
    """Return the estimates after some iterations."""
    frame, number = Frame(task.space), iteration * config.rollout
    log: Log = extra["log"]
    columns = (log.profile, log.moved, log.action, log.label, log.time)
    profile, moved, action, label, time = (np.asarray(x[:number], np.int64) for x in columns)
    weights = np.asarray(extra["predictor"].parameters, np.float64)
    if not extra["proof"].begun:
        # Once a proof has begun, the cells no longer change.
        seen = label >= 0
        unique, place = np.unique(profile[seen], return_inverse=True)
        positive = np.asarray(np.bincount(place, label[seen], len(unique)), np.float64)
        known = np.bincount(place, minlength=len(unique)).astype(np.float64)
        weights = estimate.logistic(frame.inputs(unique), positive, known, weights)
    weights = weights.astype(np.float32).astype(np.float64)
    cell = frame.cell(weights, profile)
    following = frame.places.state[moved]
    outcome = np.where(label >= 0, label, estimate.UNSEEN)
    records = Records(cell, action, outcome, following)
    score = frame.score(weights, profile)
    met = np.bincount(cell, minlength=frame.cells)
    mean = np.bincount(cell, score, frame.cells) / np.maximum(met, 1)
    if frame.small:
        mean = frame.score(weights, np.arange(frame.cells))
    mean = np.where(met > 0, mean, mean if frame.small else frame.middle)
    found = estimate.labels(frame.cells, records, score, mean, config.shrinkage)
    share = EARLY if frame.small else EARLIEST
    early = profile[time < max(1, share * task.population)]
    newcomers = _newcomers(frame, weights, early, iteration)
    return Knowledge(task, config, frame, weights, cell, records, found, newcomers, time)


def _newcomers(frame: Frame, weights: Floats, early: Ints, seed: int) -> Newcomers:
    """Return the people to plan for, as they were met early in episodes."""
    if frame.small:
        everyone = np.arange(frame.cells)
        share = np.bincount(early, minlength=frame.cells) + 1 / frame.cells
        score = frame.score(weights, everyone)
        return Newcomers(everyone, score, share / share.sum(), frame.cells)
    places, draw = frame.places, np.random.default_rng(seed)
    some = draw.choice(early, min(BASES, len(early)), replace=False)
    base, place = np.unique(places.base[some], return_inverse=True)
    states = frame.states
    every = np.repeat(base, states), np.tile(np.arange(states), len(base))
    profile = frame.profile_of(*every)
    # A state that nobody with this base can be in is never reached: any profile will do.
    profile = np.where(profile >= 0, profile, some[0])
    cell = frame.cell(weights, profile).reshape(-1, states)
    score = frame.score(weights, profile).reshape(-1, states)
    # Bases that are in the same cell as each other in every state are planned for as one.
    alike, merged = np.unique(cell, axis=0, return_inverse=True)
    merged = merged.ravel()
    count = np.bincount(merged[place], minlength=len(alike))
    each = np.bincount(place, minlength=len(base))
    score = np.stack(
        [np.bincount(merged, each * own, len(alike)) / count for own in score.T], axis=1
    )
    first = merged[place] * states + places.state[some]
    share = np.bincount(first, minlength=len(alike) * states)
    return Newcomers(alike.ravel(), score.ravel(), share / share.sum(), states, float(share.sum()))
