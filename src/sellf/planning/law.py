"""A law to plan in: people, whose outcome is good, what follows, and what actions are worth.

A world's law is one (`law_of`); one that was estimated is another, if somebody fills in the same
arrays. Everything is NumPy in double precision, so that an optimiser can rely on the last digits.
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
"""Transitions of at most this many profiles are full matrices: sparse ones are slower."""


@dataclass(frozen=True)
class Law:
    """What there is to know of a world; arrays have one entry per profile."""

    name: str
    groups: tuple[str, ...]
    actions: tuple[str, ...]
    favourable: tuple[bool, ...]
    """By action, whether it is A = 1 in the notions."""
    group: NDArray[np.int64]
    people: Floats
    """The share of the first population that has each profile; sums to 1."""
    alpha: Floats
    """The chance of a good outcome."""
    transition: tuple[csr_array, ...]
    """By action, the chance of each profile (column) to follow each profile (row)."""
    gain: Floats
    """(actions, profiles), what a decision is expected to be worth."""
    population: int
    horizon: int
    start: float
    """The resource before the first decision."""

    @property
    def profiles(self) -> int:
        """How many different people there can be."""
        return len(self.alpha)

    @cached_property
    def steps(self) -> "tuple[csr_array | Floats, ...]":
        """The transition by action, in the form that is multiplied fastest."""
        if self.profiles > DENSE:
            return self.transition
        return tuple(step.toarray() for step in self.transition)

    def mixed(self, chance: Floats) -> "csr_array | Floats":
        """Return the transition under the chances of each action (actions, profiles)."""
        if self.profiles > DENSE:
            mixed = sum(diags_array(c) @ step for c, step in zip(chance, self.steps, strict=True))
            return csr_array(mixed)
        return np.einsum("ax,axy->xy", chance, np.stack(self.steps))  # pyright: ignore


def law_of(world: "str | World | Law") -> Law:
    """Return the true law of a world, given as it is or by its name."""
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
    # With chance in transitions: several successors, and the chance of each.
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
    """Return the chances of what follows one action.

    Args:
        alpha: the chance of a good outcome.
        moves: (profiles, 2, successors), who can follow, by outcome.
        chances: (profiles, 2, successors), of each of them.
    """
    profiles = len(alpha)
    rows = np.repeat(np.arange(profiles), moves[0].size)
    chance = np.stack([1 - alpha, alpha], axis=1)[..., None] * chances
    return csr_array((chance.ravel(), (rows, moves.ravel())), shape=(profiles, profiles))


def sample(law: Law, people: int, seed: int = 0) -> Law:
    """Return the law for a random part of the people, and whoever they can become.

    Args:
        law: with many profiles.
        people: how many of the profiles that newcomers have are drawn; as many of each group as
            fits its share, so that the shares of groups stay what they are.
        seed: of the draw.
    """
    draw = np.random.default_rng(seed)
    chosen, weight = [], []
    for group in range(len(law.groups)):
        own = np.flatnonzero((law.group == group) & (law.people > 0))
        share = law.people[own]
        number = min(len(own), max(1, round(people * share.sum())))
        some = draw.choice(own, number, replace=False, p=share / share.sum())
        # Drawn by their shares, each stands for as many as any other.
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
    """Return who can come of these profiles, by any decisions."""
    while True:
        further = reached.copy()
        for step in law.transition:
            further |= (step.T @ reached.astype(np.float64)) > 0
        if (further == reached).all():
            return reached
        reached = further
