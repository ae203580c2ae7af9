"""Weights and divergence as computed by the published code for its figures.

The published code draws the ten earlier policies again for every decision and for every minibatch
of the predictor, omits a / r from the weight, and shows r d2 instead of d2. With policies tabulated
by profile the cost is negligible. Where policies are stored as parameters, every draw would need a
network evaluation, so these values are not computed in large worlds.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from sellf.algorithms.algorithm import Figures
from sellf.fairness import accepted_by_any, group_mean


def subsets(
    key: Key[Array, ""], rows: int, size: int, number: Int[Array, ""]
) -> tuple[Int[Array, "size rows"], Array]:
    """Draw for every row `size` distinct integers below `number`, and which of them are valid.

    If `number` is smaller than `size`, all of them are drawn (Floyd's algorithm).
    """
    place = jnp.arange(size)
    last = number - size + place
    top = jnp.maximum(last, 0)
    luck = jax.random.uniform(key, (size, rows)) * (last + 1).astype(jnp.float32)[:, None]
    drawn = jnp.clip(jnp.floor(luck).astype(jnp.int32), 0, top[:, None])

    def choose(chosen: Array, step: tuple[Array, Array, Array]) -> tuple[Array, None]:
        i, one, otherwise = step
        twice = jnp.any(chosen == one[None], axis=0)
        return chosen.at[i].set(jnp.where(twice, otherwise, one)), None

    nothing = jnp.full((size, rows), -1, jnp.int32)
    return jax.lax.scan(choose, nothing, (place, drawn, top))[0], last >= 0


def overlap(
    key: Key[Array, ""],
    policies: Float[Array, "iterations profiles"],
    known: Int[Array, ""],
    size: int,
    profile: Int[Array, " steps"],
    minibatches: Int[Array, "batches people"],
    group: Int[Array, " profiles"],
    groups: int,
) -> Figures:
    """Return the published largest weight, smallest earlier acceptance and r d2, per group.

    Args:
        key: random key.
        policies: each policy's acceptance probabilities, by profile.
        known: the number of policies; the last is the current one.
        size: the number of policies in each draw.
        profile: the profiles of the people of the rollout.
        minibatches: the accepted people that the predictor learned from.
        group: the group of each profile.
        groups: the number of groups.
    """
    key_steps, key_batches = jax.random.split(key)
    rejected = 1 - policies[known - 1]
    chosen, there = subsets(key_steps, profile.shape[0], size, known)
    before = _by_any(policies[chosen, profile[None, :]], there)
    chosen, there = subsets(key_batches, minibatches.shape[0], size, known)
    table = _by_any(policies[chosen], there)
    weight = rejected[minibatches] / jnp.take_along_axis(table, minibatches, axis=1)

    members = group[profile]
    r, a = (group_mean(x, members, groups) for x in (rejected[profile], before))
    term = group_mean(rejected[profile] ** 2 / before, members, groups)
    divergence = a / jnp.where(r > 0, r, 1.0) * term
    mine, theirs = (
        jax.nn.one_hot(x, groups, dtype=jnp.bool_) for x in (members, group[minibatches])
    )
    return {
        "published_largest_weight": jnp.max(jnp.where(theirs, weight[..., None], 0.0), (0, 1)),
        "published_smallest_acceptance": jnp.min(jnp.where(mine, before[:, None], 1.0), 0),
        "published_divergence": jnp.where(jnp.isfinite(divergence), divergence, 0.0),
    }


def _by_any(chance: Float[Array, "size ..."], there: Array) -> Array:
    """Return the probability of acceptance by any of the valid policies."""
    real = there.reshape(-1, *(1,) * (chance.ndim - 1))
    return jnp.maximum(accepted_by_any(jnp.where(real, chance, 0.0)), 1e-6)
