"""The cells of a space: people whom a planned policy treats alike, and how to find their cell.

In a small world a cell is a profile. In a large world it is a combination of a group, a state (the
features that decisions may change) and a class of the score of an additive model.
"""

from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sellf.algorithms import networks
from sellf.algorithms.networks import Cells
from sellf.compiling import compiled
from sellf.envs.space import SMALL, Space, observe
from sellf.planning.cells import MOST_PROFILES
from sellf.planning.estimate import Ints, Layout, sigmoid
from sellf.planning.law import Floats

CLASSES = 32
"""Number of classes of the score, in a large world."""
MOST_CELLS = 4096
"""Upper limit of the number of cells; with many states there are fewer classes."""


def stacks(space: Space) -> tuple[Cells, ...]:
    """Return the shape of a planned policy."""
    others = len(space.actions) - 1
    if space.profiles <= MOST_PROFILES:
        return (Cells(others, space.profiles, 1),)
    kinds = space.encoding.changes.shape[0] * len(space.groups)
    return (Cells(others, kinds, max(1, min(CLASSES, MOST_CELLS // kinds))),)


class Places(NamedTuple):
    """A space as plain arrays over profiles."""

    base: Ints
    state: Ints
    group: Ints


class Frame:
    """The cells of a space, and the people in them."""

    def __init__(self, space: Space) -> None:
        """Describe a space."""
        self.space = space
        (self.shape,) = stacks(space)
        self.small = space.profiles <= MOST_PROFILES

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.shape.number

    @cached_property
    def places(self) -> Places:
        """Base, state and group of each profile."""
        group = np.asarray(self.space.group, np.int64)
        if self.small:
            return Places(np.zeros_like(group), np.arange(len(group)), group)
        fixed = np.asarray(self.space.encoding.fixed, np.int64)
        state = np.asarray(self.space.encoding.changing, np.int64)
        return Places(fixed * len(self.space.groups) + group, state, group)

    @property
    def states(self) -> int:
        """Number of states."""
        return self.cells if self.small else self.space.encoding.changes.shape[0]

    @cached_property
    def layout(self) -> Layout:
        """Group, state and parent of each cell."""
        if self.small:
            cell = np.arange(self.cells)
            return Layout(self.places.group, cell, cell)
        kind = np.arange(self.cells) // self.shape.classes
        groups = len(self.space.groups)
        return Layout(kind % groups, kind // groups, kind)

    @cached_property
    def middle(self) -> Floats:
        """The score in the middle of each cell's class."""
        return (np.arange(self.cells) % self.shape.classes + 0.5) / self.shape.classes

    def inputs(self, profile: Ints) -> Floats:
        """Return the network inputs of people, (rows, inputs)."""
        pieces = [
            np.asarray(_observe()(self.space, jnp.asarray(_filled(profile[i : i + SMALL]))))
            for i in range(0, len(profile), SMALL)
        ]
        found = np.concatenate(pieces) if pieces else np.zeros((0, self.space.inputs))
        return found[: len(profile)].astype(np.float64)

    def prototypes(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return a mask of the inputs that distinguish kinds of people, and each kind's inputs."""
        if self.small:
            everyone = self.inputs(np.arange(self.space.profiles))
            return np.ones(self.space.inputs), everyone
        changes = np.asarray(self.space.encoding.changes, np.float64)
        groups = np.eye(len(self.space.groups))
        kinds = [np.concatenate([own, group]) for own in changes for group in groups]
        found = np.zeros((len(kinds), self.space.inputs))
        found[:, -len(kinds[0]) :] = kinds
        matters = np.zeros(self.space.inputs)
        matters[-len(kinds[0]) :] = 1.0
        return matters, found

    def parameters(self, weights: Floats, log_odds: Floats) -> Floats:
        """Return a policy over cells as the flat vector of its parameters.

        Args:
            weights: the weights of the score, with the bias last.
            log_odds: log-odds of all actions but the first, (actions - 1, cells).
        """
        matters, prototypes = self.prototypes()
        parts = [matters, prototypes.ravel(), weights[:-1], weights[-1:], log_odds.ravel()]
        return np.concatenate(parts)

    def cell(self, weights: Floats, profile: Ints) -> Ints:
        """Return the cell of people, with the score that these weights give."""
        if self.small:
            return profile
        flat = jnp.asarray(self.parameters(weights, np.zeros((self.shape.policies, self.cells))))
        return self._by_unique(partial(_cell(self.shape), flat.astype(jnp.float32)), profile)

    def _by_unique(self, function: Any, profile: Ints) -> Ints:
        """Apply a function of inputs to everyone, evaluated once per profile."""
        unique, place = np.unique(profile, return_inverse=True)
        pieces = [
            np.asarray(function(jnp.asarray(self.inputs(_filled(part)), jnp.float32)))
            for part in (unique[i : i + SMALL] for i in range(0, len(unique), SMALL))
        ]
        return np.concatenate(pieces)[: len(unique)][place].astype(np.int64)

    def score(self, weights: Floats, profile: Ints) -> Floats:
        """Return the additive model's predicted probabilities."""
        unique, place = np.unique(profile, return_inverse=True)
        return sigmoid(self.inputs(unique) @ weights[:-1] + weights[-1])[place]

    def profile_of(self, base: Ints, state: Ints) -> Ints:
        """Return the profile with a base and a state; -1 where there is none."""
        places = self.places
        key = places.base * self.states + places.state
        order = np.argsort(key)
        wanted = base * self.states + state
        place = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
        return np.where(key[order][place] == wanted, order[place], -1)


def _filled(profile: Ints) -> Ints:
    """Return profiles padded to a power of two with the last one, so few programs are compiled."""
    size = len(profile)
    if size >= SMALL or not size:
        return profile
    wanted = 1 << max(size - 1, 63).bit_length()
    return np.concatenate([profile, np.repeat(profile[-1:], min(wanted, SMALL) - size)])


@lru_cache(maxsize=1)
def _observe() -> Any:
    return compiled(observe)


@lru_cache(maxsize=8)
def _cell(shape: Cells) -> Any:
    def cell(flat: Any, x: Any) -> Any:
        (layers,) = networks.unflatten((shape,), x.shape[-1], flat)
        return shape.cell(layers, x)

    return compiled(cell)
