"""The decision window behind Delta_t: counts of the last few thousand decisions.

A decision is stored as one small number that encodes group, action, label and predicted label, and
the window as a histogram of these numbers. A new decision replaces the oldest one, which takes
constant time for any number of groups and for all three views at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from sellf.envs.space import Space
from sellf.fairness import Counts, View


class Window(NamedTuple):
    """The last decisions."""

    entries: Int[Array, "*n size"]
    """Ring buffer of decisions as encoded by `entry`, or `empty(space)`."""
    histogram: Int[Array, "*n kinds"]
    """Number of entries of each kind; the last kind is the empty one."""
    oldest: Int[Array, "*n"]
    """Position of the oldest decision, which the next one replaces."""


def empty(space: Space) -> int:
    """Return the number that encodes an empty entry."""
    return len(space.groups) * len(space.actions) * 4


def entry(
    space: Space, group: Array, action: Array, label: Array, guess: Array
) -> Int[Array, "*n"]:
    """Return a decision encoded as one number; `guess` is a label drawn from the predictor."""
    place = group * len(space.actions) + action.astype(jnp.int32)
    return (place * 2 + label.astype(jnp.int32)) * 2 + guess.astype(jnp.int32)


def of_entries(space: Space, entries: Int[Array, " size"]) -> Window:
    """Return a window with these decisions, the oldest first."""
    kinds = jnp.arange(empty(space) + 1)
    histogram = jnp.sum(entries[:, None] == kinds[None, :], axis=0, dtype=jnp.int32)
    return Window(entries, histogram, jnp.zeros((), jnp.int32))


def without_decisions(space: Space, size: int) -> Window:
    """Return a window without decisions."""
    return of_entries(space, jnp.full((size,), empty(space), dtype=jnp.int32))


def push(window: Window, new: Int[Array, ""]) -> Window:
    """Replace the oldest decision by a new one."""
    old = window.entries[window.oldest]
    kinds = jnp.arange(window.histogram.shape[0])
    change = (kinds == new).astype(jnp.int32) - (kinds == old).astype(jnp.int32)
    return Window(
        jax.lax.dynamic_update_index_in_dim(window.entries, new, window.oldest, 0),
        window.histogram + change,
        (window.oldest + 1) % window.entries.shape[0],
    )


def counts(space: Space, histogram: Int[Array, "*n kinds"], view: View) -> Counts:
    """Return the counts in a view; the last axis is the group.

    The view "accepted" leaves out everyone whose outcome is not revealed.
    """
    kinds = histogram[..., :-1].astype(jnp.float32)
    shape = (*kinds.shape[:-1], len(space.groups), len(space.actions), 2, 2)  # ..., label, guess
    kinds = kinds.reshape(shape)
    people = jnp.zeros(shape[:-3])
    number, positive = {True: people, False: people}, {True: people, False: people}
    for action, (reveals, favourable) in enumerate(
        zip(space.reveals, space.favourable, strict=True)
    ):
        if view == "accepted" and not reveals:
            continue
        cell = kinds[..., action, :, :]
        good = cell[..., :, 1] if view == "imputed" and not reveals else cell[..., 1, :]
        number[favourable] = number[favourable] + cell.sum((-2, -1))
        positive[favourable] = positive[favourable] + good.sum(-1)
    return Counts(number[True] + number[False], number[True], positive[True], positive[False])
