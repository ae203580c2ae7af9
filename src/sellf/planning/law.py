"""A law to plan in: people, outcome probabilities, transitions and gains of actions.

It is either the law of a world (`law_of`) or an estimated one with the same arrays. All arrays are
NumPy arrays in double precision, as the optimiser needs accurate digits.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from sellf.envs.table import successors, tabulated
from sellf.envs.world import World
from sellf.envs.worlds import make_world
from sellf.errors import InputError
from sellf.fairness.checks import short

Floats: TypeAlias = NDArray[np.float64]

DENSE = 500
"""Number of profiles up to which transitions are dense matrices, which are faster."""


@dataclass(frozen=True)
class Law:
    """The law of a world; arrays have one entry per profile."""

    name: str
    groups: tuple[str, ...]
    actions: tuple[str, ...]
    favourable: tuple[bool, ...]
    """By action, whether it is A = 1 in the notions."""
    group: NDArray[np.int64]
    people: Floats
    """Share of each profile in the first population; sums to 1."""
    alpha: Floats
    """Probability of a good outcome."""
    transition: tuple[csr_array, ...]
    """By action, the transition probabilities from profiles (rows) to profiles (columns)."""
    gain: Floats
    """Expected gain of a decision, (actions, profiles)."""
    population: int
    horizon: int
    start: float
    """The resource before the first decision."""

    @property
    def profiles(self) -> int:
        """Number of profiles."""
        return len(self.alpha)

    @cached_property
    def steps(self) -> "tuple[csr_array | Floats, ...]":
        """Transition by action, as dense or sparse matrices, whichever multiply faster."""
        if self.profiles > DENSE:
            return self.transition
        return tuple(step.toarray() for step in self.transition)

    def mixed(self, chance: Floats) -> "csr_array | Floats":
        """Return the transition under given action probabilities (actions, profiles)."""
        if self.profiles > DENSE:
            mixed = sum(diags_array(c) @ step for c, step in zip(chance, self.steps, strict=True))
            return csr_array(mixed)
        return np.einsum("ax,axy->xy", chance, np.stack(self.steps))  # pyright: ignore


def law_of(world: "str | World | Law") -> Law:
    """Return the true law of a world, which is given as an object or by name."""
    if isinstance(world, Law):
        return world
    if isinstance(world, str):
        world = make_world(world)
    if not isinstance(world, World):
        raise InputError(
            f"world is {short(world)}: give the name of one, or what sellf.make_world or "
            "sellf.world_from_frame returns."
        )
    world = tabulated(world, "planning")
    alpha = np.asarray(world.alpha, np.float64)
    # Random transitions have several successors, each with a probability.
    moves, chances = successors(world)
    arriving = np.asarray(world.arrivals.profile)
    share = np.diff(np.asarray(world.arrivals.cumulative, np.float64), prepend=0.0)
    people = np.zeros(world.profiles)
    people[arriving] = share / share.sum()
    worth = np.asarray(world.space.gain, np.float64)
    return Law(
        name=world.name,
        groups=world.groups,
        actions=world.space.actions,
        favourable=world.space.favourable,
        group=np.asarray(world.group, np.int64),
        people=people,
        alpha=alpha,
        transition=tuple(
            _transition(alpha, moves[:, a], chances[:, a]) for a in range(moves.shape[1])
        ),
        gain=worth[:, :1] + (worth[:, 1:] - worth[:, :1]) * alpha[None],
        population=world.population,
        horizon=world.horizon,
        start=world.start,
    )


def _transition(alpha: Floats, moves: NDArray[np.int64], chances: Floats) -> csr_array:
    """Return the transition probabilities of one action.

    Args:
        alpha: the probability of a good outcome.
        moves: the successors by outcome, (profiles, 2, successors).
        chances: their probabilities, (profiles, 2, successors).
    """
    profiles = len(alpha)
    rows = np.repeat(np.arange(profiles), moves[0].size)
    chance = np.stack([1 - alpha, alpha], axis=1)[..., None] * chances
    return csr_array((chance.ravel(), (rows, moves.ravel())), shape=(profiles, profiles))


def sample(law: Law, people: int, seed: int = 0) -> Law:
    """Return the law for a random sample of people and all profiles reachable from theirs.

    Args:
        law: a law with many profiles.
        people: the number of newcomers' profiles to draw; the sample is stratified by group, so the
            groups' shares are unchanged.
        seed: the seed of the draw.
    """
    draw = np.random.default_rng(seed)
    chosen, weight = [], []
    for group in range(len(law.groups)):
        own = np.flatnonzero((law.group == group) & (law.people > 0))
        share = law.people[own]
        number = min(len(own), max(1, round(people * share.sum())))
        some = draw.choice(own, number, replace=False, p=share / share.sum())
        # They are drawn in proportion to their shares, so all have the same weight.
        chosen.append(some)
        weight.append(np.full(number, share.sum() / number))
    first = np.zeros(law.profiles)
    first[np.concatenate(chosen)] = np.concatenate(weight)
    kept = np.flatnonzero(_reached(law, first > 0))
    return replace(
        law,
        group=law.group[kept],
        people=first[kept],
        alpha=law.alpha[kept],
        transition=tuple(csr_array(step[kept][:, kept]) for step in law.transition),
        gain=law.gain[:, kept],
    )


def _reached(law: Law, reached: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the profiles that are reachable from these by any decisions."""
    while True:
        further = reached.copy()
        for step in law.transition:
            further |= (step.T @ reached.astype(np.float64)) > 0
        if (further == reached).all():
            return reached
        reached = further
