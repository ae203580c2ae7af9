"""The decision window behind Delta_t: the last few thousand decisions, counted as they come.

A decision is kept as one small number made of group, action, label and predicted label, and the
window as a histogram of those numbers. A new decision adds one and takes away the oldest:
constant work, for any number of groups, in all three views at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from sellf.fairness import Counts, View


class Window(NamedTuple):
    """The last decisions."""

    entries: Int[Array, "*n size"]
    """Each decision as `entry` makes it, or `empty(groups)`; a ring."""
    histogram: Int[Array, "*n kinds"]
    """How many entries of each kind there are; the last kind is the empty one."""
    oldest: Int[Array, "*n"]
    """Where the oldest decision stands, which the next one replaces."""


def empty(groups: int) -> int:
    """Return the number that stands for no decision."""
    return groups * 8


def entry(group: Array, action: Array, label: Array, guess: Array) -> Int[Array, "*n"]:
    """Return a decision as one number; `guess` is the label that a predictor drew."""
    bits = (action.astype(jnp.int32), label.astype(jnp.int32), guess.astype(jnp.int32))
    return ((group * 2 + bits[0]) * 2 + bits[1]) * 2 + bits[2]


def of_entries(entries: Int[Array, " size"], groups: int) -> Window:
    """Return a window that holds these decisions, the oldest first."""
    kinds = jnp.arange(empty(groups) + 1)
    histogram = jnp.sum(entries[:, None] == kinds[None, :], axis=0, dtype=jnp.int32)
    return Window(entries, histogram, jnp.zeros((), jnp.int32))


def without_decisions(size: int, groups: int) -> Window:
    """Return a window in which nothing was decided yet."""
    return of_entries(jnp.full((size,), empty(groups), dtype=jnp.int32), groups)


def push(window: Window, new: Int[Array, ""]) -> Window:
    """Put a decision in place of the oldest one."""
    old = window.entries[window.oldest]
    kinds = jnp.arange(window.histogram.shape[0])
    change = (kinds == new).astype(jnp.int32) - (kinds == old).astype(jnp.int32)
    return Window(
        jax.lax.dynamic_update_index_in_dim(window.entries, new, window.oldest, 0),
        window.histogram + change,
        (window.oldest + 1) % window.entries.shape[0],
    )


def counts(histogram: Int[Array, "*n kinds"], view: View) -> Counts:
    """Return the counts that a view sees, the last axis being the group."""
    kinds = histogram[..., :-1].astype(jnp.float32)
    kinds = kinds.reshape(*kinds.shape[:-1], kinds.shape[-1] // 8, 2, 2, 2)  # group, a, y, guess
    accepted, rejected = kinds[..., 1, :, :], kinds[..., 0, :, :]
    hidden = rejected[..., :, 1] if view == "imputed" else rejected[..., 1, :]
    everyone = Counts(
        people=kinds.sum((-3, -2, -1)),
        accepted=accepted.sum((-2, -1)),
        accepted_positive=accepted[..., 1, :].sum(-1),
        rejected_positive=hidden.sum(-1),
    )
    return everyone.accepted_only() if view == "accepted" else everyone
