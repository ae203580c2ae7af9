"""A world of tables: every person has one of finitely many profiles."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from numpy.typing import NDArray

from sellf.envs.space import Encoding
from sellf.envs.world import People, World
from sellf.errors import InputError


class Arrivals(NamedTuple):
    """Profiles of newcomers, and their cumulative shares."""

    profile: Int[Array, " rows"]
    cumulative: Float[Array, " rows"]


class TableWorld(World):
    """A world whose law is arrays over profiles; a population is one profile per person."""

    alpha: Float[Array, " profiles"]
    """alpha(x, z) = P(Y = 1 | x, z)."""
    moves: Int[Array, "profiles actions 2 *successors"]
    """Next profile, by decision and label; several of them if transitions are random."""
    arrivals: Arrivals
    odds: Float[Array, "profiles actions 2 others"] | None = None
    """Probabilities that the next profile is the second successor or a later one, the third or a
    later one, and so on; None if there is only one."""

    @property
    def profiles(self) -> int:
        """Number of profiles."""
        return self.space.profiles

    @property
    def group(self) -> Int[Array, " profiles"]:
        """Group of each profile, as a position in `groups`."""
        return self.space.group

    @property
    def encoding(self) -> Encoding:
        """Encoding of profiles as network inputs."""
        return self.space.encoding

    def arriving(self, key: Key[Array, ""], shape: tuple[int, ...]) -> People:
        """Draw the profiles of newcomers."""
        row = jnp.searchsorted(
            self.arrivals.cumulative, jax.random.uniform(key, shape), side="right"
        )
        # The last cumulative share may be a rounding error below 1.
        return self.arrivals.profile[jnp.minimum(row, self.arrivals.profile.shape[0] - 1)]

    def seen(self, people: People) -> Array:
        """Return the profiles themselves: policies look them up."""
        return people

    def group_of(self, people: People) -> Int[Array, "*n"]:
        """Return the group of each person."""
        return self.group[people]

    def label_chance(self, people: People) -> Float[Array, "*n"]:
        """Return alpha of each person."""
        return self.alpha[people]

    def luck(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Array | None:
        """Draw the random numbers that select among several successors."""
        return None if self.odds is None else jax.random.uniform(key, shape)

    def follow(self, people: People, action: Array, label: Array, luck: Array | None) -> People:
        """Return the next profiles."""
        outcome = label.astype(jnp.int32)
        if self.odds is None or luck is None:
            return self.moves[people, action, outcome]
        later = luck[..., None] < self.odds[people, action, outcome]
        return self.moves[people, action, outcome, jnp.sum(later, axis=-1, dtype=jnp.int32)]


def successors(world: TableWorld) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the successors, (profiles, actions, 2, successors), and their probabilities."""
    moves = np.asarray(world.moves, np.int64)
    if world.odds is None:
        return moves[..., None], np.ones((*moves.shape, 1))
    later = np.asarray(world.odds, np.float64)
    ends = np.ones((*later.shape[:-1], 1))
    return moves, -np.diff(np.concatenate([ends, later, 0 * ends], axis=-1), axis=-1)


def tabulated(world: World, what: str) -> TableWorld:
    """Return the world if it is made of tables; refuse any other.

    Args:
        world: any world.
        what: the operation that needs tables, for the message.
    """
    if not isinstance(world, TableWorld):
        raise InputError(
            f"{world.name} is a world of functions, without a table of people, so {what} is not "
            "possible in it: give one of tables, 'lending' or that of sellf.world_from_frame."
        )
    return world
