"""What a decision-maker may know about a world: possible people, their features, and the actions.

A person's group and features together are one of finitely many *profiles*, so a space consists of a
few arrays over profiles and of the actions. Where there are no profiles (`sellf.envs.functions`),
people are given by their network inputs, one row each. The distribution of people, the label law
and the transition belong to the world (`sellf.envs.world`) and are not part of a space.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

SMALL = 4096
"""Largest number of profiles for which policies are tabulated; otherwise they run on demand."""


class Raw(NamedTuple):
    """The raw column that an input is computed from."""

    feature: str
    """Name of the column in a table of people."""
    category: str | None = None
    """The input is 1 for this category and 0 for others; None for a number."""
    mean: float = 0.0
    """A number is standardised with this mean and `deviation`."""
    deviation: float = 1.0


class Encoding(NamedTuple):
    """Network inputs of a profile: one-hot fixed features, numbers, changing features, group."""

    fixed: Int[Array, " profiles"]
    """Row of `codes` and `numbers` with the features that never change."""
    changing: Int[Array, " profiles"]
    """Row of `changes` with the features that decisions may change."""
    codes: UInt8[Array, "rows features"]
    feature: Int[Array, " onehot"]
    """One-hot column j is 1 where feature `feature[j]` has the category `category[j]`."""
    category: UInt8[Array, " onehot"]
    """See `feature`."""
    numbers: Float[Array, "rows numeric"]
    changes: Float[Array, "states columns"]


class Space(eqx.Module):
    """Groups, features and actions."""

    groups: tuple[str, ...] = eqx.field(static=True)
    columns: tuple[str, ...] = eqx.field(static=True)
    """Names of the network inputs, in order."""
    actions: tuple[str, ...] = eqx.field(static=True)
    """Names of the actions; the first is the default, which gives a person nothing."""
    reveals: tuple[bool, ...] = eqx.field(static=True)
    """By action, whether it reveals the outcome."""
    favourable: tuple[bool, ...] = eqx.field(static=True)
    """By action, whether it is favourable for the person: A = 1 in the notions."""
    gain: tuple[tuple[float, float], ...] = eqx.field(static=True)
    """By action, its gain with a bad outcome and with a good one."""
    group: Int[Array, " profiles"]
    encoding: Encoding
    raw: tuple[Raw, ...] | None = eqx.field(static=True, default=None)
    """The raw column of each input, without those of the group; None if not known."""

    @property
    def inputs(self) -> int:
        """Number of network inputs."""
        return len(self.columns)

    @property
    def profiles(self) -> int:
        """Number of profiles."""
        return self.group.shape[0]

    @property
    def tabular(self) -> bool:
        """Whether people are given as profiles, and not as network inputs."""
        return self.profiles > 0

    @property
    def small(self) -> bool:
        """Whether there are few enough profiles to tabulate policies."""
        return 0 < self.profiles <= SMALL

    def shape_of(self, people: Array) -> tuple[int, ...]:
        """Return the shape of the axes over people."""
        return people.shape if self.tabular else people.shape[:-1]

    def flat(self, people: Array) -> Array:
        """Return the same people along one axis."""
        return people.reshape(-1) if self.tabular else people.reshape(-1, self.inputs)

    def nobody(self, shape: tuple[int, ...]) -> Array:
        """Return an array with space for people, in the given shape."""
        return jnp.zeros(shape, jnp.int32) if self.tabular else jnp.zeros((*shape, self.inputs))

    def group_of(self, people: Array) -> Array:
        """Return the group of each person, as a position in `groups`."""
        if self.tabular:
            return self.group[people]
        return jnp.argmax(people[..., -len(self.groups) :], axis=-1).astype(jnp.int32)

    @property
    def paying(self) -> tuple[int, ...]:
        """Actions with a gain or a cost."""
        return tuple(action for action, gain in enumerate(self.gain) if any(gain))

    def is_revealed(self, action: Int[Array, "*n"]) -> Array:
        """Return whether each of these decisions reveals the outcome."""
        return _among(self.reveals, action)

    def is_favourable(self, action: Int[Array, "*n"]) -> Array:
        """Return whether each of these decisions is favourable."""
        return _among(self.favourable, action)

    def gains(self, label: Float[Array, "*n"]) -> list[Array]:
        """Return the expected gain of each action, given the probability of a good outcome."""
        return [bad + (good - bad) * label for bad, good in self.gain]


def _among(actions: tuple[bool, ...], action: Array) -> Array:
    those = [action == number for number, yes in enumerate(actions) if yes]
    return jnp.any(jnp.stack(those), axis=0)


def observe(space: Space, profile: Array) -> Float[Array, "*n inputs"]:
    """Return the network inputs of people."""
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


def rescaled(space: Space, like: Space) -> Space:
    """Return a space whose numbers are standardised as in another one, if both scales are known."""
    if space.raw is None or like.raw is None or space.raw == like.raw:
        return space
    mean, deviation, other, wanted = (
        np.array([getattr(each, name) for each in own.raw or ()])
        for own in (space, like)
        for name in ("mean", "deviation")
    )
    factor, shift = deviation / wanted, (mean - other) / wanted
    table, at = space.encoding, len(space.encoding.feature)

    def changed(values: Array, start: int) -> Array:
        own = slice(start, start + values.shape[-1])
        return jnp.asarray(np.asarray(values) * factor[own] + shift[own], jnp.float32)

    numbers = changed(table.numbers, at)
    changes = changed(table.changes, at + table.numbers.shape[-1])
    return replace(space, encoding=table._replace(numbers=numbers, changes=changes), raw=like.raw)


def bounds(space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each input."""
    table = space.encoding
    truths = [np.tile([[0.0], [1.0]], (1, n)) for n in (len(table.feature), len(space.groups))]
    numbers = [
        np.stack([part.min(axis=0), part.max(axis=0)])
        for part in (np.asarray(table.numbers), np.asarray(table.changes))
    ]
    ends = np.concatenate([truths[0], *numbers, truths[1]], axis=1).astype(np.float32)
    return ends[0], ends[1]


def by_profile(space: Space, value: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Convert a function of observations into a function of profiles.

    Args:
        space: the space of the profiles.
        value: a function from observations (rows, inputs) to (networks, rows).

    In a small world all values are computed once and then looked up. The leading axis of the result
    is the networks.
    """
    if space.small:
        table = value(observe(space, jnp.arange(space.profiles)))
        return lambda profile: table[:, profile]

    def on_demand(profile: Array) -> Array:
        result = value(observe(space, space.flat(profile)))
        return result.reshape(result.shape[0], *space.shape_of(profile))

    return on_demand
