"""What the predictor's errors can hide: a two-sided bound from people it has not learned from.

The people accepted in a rollout are scored by the predictor as it was before, and each stands for
those like them who were rejected: a (1 - pi) / pi (phi - y) has the mean r eps, the rejection rate
times the predictor's mean error over the rejected, whatever the policy is. So no density of earlier
policies and no pseudo-dimension is needed, and the bound (empirical Bernstein, Maurer and Pontil
2009) takes the place of Theorem 3's constant in Theorem 4.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sellf.algorithms.seen import Seen, members
from sellf.envs.world import Chances
from sellf.fairness import Notion, utility
from sellf.fairness.bounds import bias_bound


class Errors(NamedTuple):
    """Sums over a rollout, or over each of the latest with the newest first, per group."""

    people: Float[Array, "*memory groups"]
    first: Float[Array, "*memory groups"]
    """Of the errors ..."""
    second: Float[Array, "*memory groups"]
    """... and of their squares."""
    largest: Float[Array, "*memory groups"]
    """The largest weight that anyone met could have had."""


def start(memory: int, groups: int) -> Errors:
    """Return the errors before anyone was met."""
    return Errors(*(jnp.zeros((memory, groups)) for _ in range(4)))


def errors(seen: Seen, chance: Float[Array, " steps"], predict: Chances, groups: int) -> Errors:
    """Return the sums of one rollout."""
    weight = (1 - chance) / jnp.maximum(chance, 1e-6)
    miss = predict(seen.profile) - seen.positive.astype(jnp.float32)
    each = jnp.where(seen.action, weight * miss, 0.0)
    inside = members(seen.group, groups)
    return Errors(
        jnp.sum(inside, axis=0),
        each @ inside,
        (each * each) @ inside,
        jnp.max(inside * weight[:, None], axis=0),
    )


def bound(errors: Errors, delta: Float[Array, ""]) -> Float[Array, " groups"]:
    """Return a bound on |r eps| of every group that holds for all of them with 1 - delta."""
    number = jnp.maximum(jnp.sum(errors.people, axis=0), 2.0)
    mean = jnp.sum(errors.first, axis=0) / number
    square = jnp.sum(errors.second, axis=0) / number
    variance = jnp.maximum(square - mean * mean, 0.0) * number / (number - 1)
    width = 2 * jnp.max(errors.largest, axis=0)
    # Two sides, of each group.
    log = jnp.log(2.0 * 2.0 * number.shape[0] / delta)
    half = jnp.sqrt(2 * variance * log / number) + 7 * width * log / (3 * (number - 1))
    # A rate times an error is at most 1, which is also all that is known of nobody.
    known = jnp.sum(errors.people, axis=0) > 1
    return jnp.where(known, jnp.minimum(jnp.abs(mean) + half, 1.0), 1.0)


def bias(
    notion: Notion, errors: Errors, seen: Seen, delta: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return by how much the errors can move the disparity, and v (0 but for opportunity)."""
    shares = bound(errors, delta)
    if notion != "opportunity":
        return bias_bound(shares), jnp.zeros(())
    rate = utility("qualification", seen.last)  # phi~, with the imputed labels
    shares = jnp.minimum(shares / jnp.maximum(jnp.where(jnp.isnan(rate), 0.0, rate), 1e-3), 1.0)
    return bias_bound(shares), jnp.max(shares)


def promise(gap: Array, bias: Array, v: Array) -> Float[Array, ""]:
    """Return the largest true disparity possible, (gap + bias) / (1 - v), at most 1."""
    bounded = (gap + bias) / jnp.maximum(1 - v, 1e-6)
    return jnp.where(v < 1, jnp.minimum(bounded, 1.0), 1.0)
