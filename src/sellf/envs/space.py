"""What a decision-maker may know of a world: who can come, how they look, what can be done.

Whatever a person can be, group and features together, is one of finitely many *profiles*, so a
space is a few arrays over profiles and the actions that there are. Where there are no profiles
(`sellf.envs.functions`), people are given as what networks see of them, one row each. Who comes how
often, whose label is good and what becomes of people is the world's own (`sellf.envs.world`): it
has no place here.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

SMALL = 4096
"""Worlds of at most this many profiles have their policies tabulated; others ask on demand."""


class Encoding(NamedTuple):
    """How networks see a profile: one-hot fixed features, numbers, changing features, group."""

    fixed: Int[Array, " profiles"]
    """The row of `codes` and `numbers` that holds what never changes of the profile."""
    changing: Int[Array, " profiles"]
    """The row of `changes` that holds what decisions may change."""
    codes: UInt8[Array, "rows features"]
    feature: Int[Array, " onehot"]
    """One-hot column j is 1 where feature `feature[j]` ..."""
    category: UInt8[Array, " onehot"]
    """... has this category."""
    numbers: Float[Array, "rows numeric"]
    changes: Float[Array, "states columns"]


class Space(eqx.Module):
    """Groups, features and actions."""

    groups: tuple[str, ...] = eqx.field(static=True)
    columns: tuple[str, ...] = eqx.field(static=True)
    """What each input of a network is, in order."""
    actions: tuple[str, ...] = eqx.field(static=True)
    """What can be decided; the first is what happens to whoever gets nothing."""
    reveals: tuple[bool, ...] = eqx.field(static=True)
    """By action, whether the outcome is seen after it."""
    favourable: tuple[bool, ...] = eqx.field(static=True)
    """By action, whether it is what people hope for: A = 1 in the notions."""
    gain: tuple[tuple[float, float], ...] = eqx.field(static=True)
    """By action, what it is worth with a bad outcome and with a good one."""
    group: Int[Array, " profiles"]
    encoding: Encoding

    @property
    def inputs(self) -> int:
        """How many numbers a network is given of a person."""
        return len(self.columns)

    @property
    def profiles(self) -> int:
        """How many different people there can be."""
        return self.group.shape[0]

    @property
    def tabular(self) -> bool:
        """Whether people are given as profiles, and not as what is seen of them."""
        return self.profiles > 0

    @property
    def small(self) -> bool:
        """Whether there are few enough to look everyone up in a table."""
        return 0 < self.profiles <= SMALL

    def shape_of(self, people: Array) -> tuple[int, ...]:
        """Return over which axes there are people."""
        return people.shape if self.tabular else people.shape[:-1]

    def flat(self, people: Array) -> Array:
        """Return the same people along one axis."""
        return people.reshape(-1) if self.tabular else people.reshape(-1, self.inputs)

    def nobody(self, shape: tuple[int, ...]) -> Array:
        """Return room for so many people."""
        return jnp.zeros(shape, jnp.int32) if self.tabular else jnp.zeros((*shape, self.inputs))

    def group_of(self, people: Array) -> Array:
        """Return the group of each, as a place in `groups`."""
        if self.tabular:
            return self.group[people]
        return jnp.argmax(people[..., -len(self.groups) :], axis=-1).astype(jnp.int32)

    @property
    def paying(self) -> tuple[int, ...]:
        """The actions that earn or cost something."""
        return tuple(action for action, gain in enumerate(self.gain) if any(gain))

    def is_revealed(self, action: Int[Array, "*n"]) -> Array:
        """Return whether the outcome is seen after each of these decisions."""
        return _among(self.reveals, action)

    def is_favourable(self, action: Int[Array, "*n"]) -> Array:
        """Return whether each of these decisions is what the person hopes for."""
        return _among(self.favourable, action)

    def gains(self, label: Float[Array, "*n"]) -> list[Array]:
        """Return what each action is worth, by the chance of a good outcome."""
        return [bad + (good - bad) * label for bad, good in self.gain]


def _among(actions: tuple[bool, ...], action: Array) -> Array:
    those = [action == number for number, yes in enumerate(actions) if yes]
    return jnp.any(jnp.stack(those), axis=0)


def observe(space: Space, profile: Array) -> Float[Array, "*n inputs"]:
    """Return what a network is given of people."""
    if not space.tabular:
        return profile
    table = space.encoding
    fixed, changing = table.fixed[profile], table.changing[profile]

    def along_last(values: Array) -> Array:
        return values.reshape((1,) * profile.ndim + values.shape)

    category = jnp.take(table.codes[fixed], table.feature, axis=-1)
    group = space.group[profile][..., None] == along_last(jnp.arange(len(space.groups)))
    parts = (
        (category == along_last(table.category)).astype(jnp.float32),
        table.numbers[fixed],
        table.changes[changing],
        group.astype(jnp.float32),
    )
    return jnp.concatenate(parts, axis=-1)


def bounds(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest that each input can be."""
    table = space.encoding
    truths = [np.tile([[0.0], [1.0]], (1, n)) for n in (len(table.feature), len(space.groups))]
    numbers = [
        np.stack([part.min(axis=0), part.max(axis=0)])
        for part in (np.asarray(table.numbers), np.asarray(table.changes))
    ]
    ends = np.concatenate([truths[0], *numbers, truths[1]], axis=1).astype(np.float32)
    return ends[0], ends[1]


def by_profile(space: Space, value: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function of observations as one of profiles.

    Args:
        space: whose profiles.
        value: from observations (rows, inputs) to (networks, rows).

    In a small world everything is computed once and then looked up. The result has the networks
    as its leading axis.
    """
    if space.small:
        table = value(observe(space, jnp.arange(space.profiles)))
        return lambda profile: table[:, profile]

    def on_demand(profile: Array) -> Array:
        result = value(observe(space, space.flat(profile)))
        return result.reshape(result.shape[0], *space.shape_of(profile))

    return on_demand
