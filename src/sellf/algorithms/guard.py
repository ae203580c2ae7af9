"""What the predictor's errors can hide: bounds on each group's true utility.

With chances pi in place of decisions, a group's utility is a ratio of sums over people, both linear
in their chance of a good label, p (opportunity: sum(pi p) / sum(p)). With predictions phi in place
of p every person is off by slope (p - phi). The people accepted in a rollout are scored by the
predictor as it was before it learned from them, so

    x = a slope (y - phi) / pi        has the mean  slope (p - phi),

whatever the policy. The sum of all x corrects both sums; how far it may be off is bounded from the
squares of x alone, by a bound that holds although policy and predictor were chosen by what was seen
before (Howard, Ramdas, McAuliffe and Sekhon 2021, with 0 as the guess of the next x): with c at
least as large as any weight slope / pi,

    |sum(x) - sum of means| <= 2 c log(2 / delta) + 2 (log 2 - 1/2) sum(x^2) / c.

It takes the place of Theorem 3's constant in Theorem 4: no density of earlier policies and no
pseudo-dimension is needed. Of people who were hardly ever accepted nothing is known at all.
"""

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sellf.algorithms.seen import Seen, members
from sellf.envs.policy import Categorical, Chances
from sellf.envs.space import Space
from sellf.fairness import Notion, Rate, define

ByGroup: TypeAlias = Float[Array, "rates groups"]

LEAST = 0.01
"""Below this chance of acceptance, those who were accepted tell nothing of those who were not."""
SCALES = 2.0 ** np.arange(8)
"""The values of c that are tried; the largest is above 1 / LEAST."""
SQUARES = 2 * (np.log(2) - 0.5)


class Errors(NamedTuple):
    """Sums over a rollout, or over each of the latest with the newest first.

    By rate and group, for the numerator and the denominator of its utility.
    """

    imputed: Float[Array, "*memory rates groups 2"]
    """With predictions for everyone."""
    first: Float[Array, "*memory rates groups 2"]
    """Of x ..."""
    second: Float[Array, "*memory rates groups 2"]
    """... and of its square."""
    unknown: Float[Array, "*memory rates groups 2"]
    """By how much those who were hardly ever accepted may be off."""
    largest: Float[Array, "*memory rates groups 2"]
    """The largest weight that anyone met could have had."""


def start(notion: Notion, memory: int, groups: int) -> Errors:
    """Return the errors before anyone was met."""
    shape = (memory, len(define(notion).rates), groups, 2)
    return Errors(*(jnp.zeros(shape) for _ in Errors._fields))


def errors(
    notion: Notion, space: Space, seen: Seen, decided: Categorical, predict: Chances
) -> Errors:
    """Return the sums of one rollout, whose decisions were drawn from `decided`."""
    phi = predict(seen.profile)
    rates = [_errors(rate, space, seen, decided, phi) for rate in define(notion).rates]
    return Errors(*(jnp.stack(sums) for sums in zip(*rates, strict=True)))


def _errors(rate: Rate, space: Space, seen: Seen, decided: Categorical, phi: Array) -> Errors:
    chance, revealed = decided.chance(space.favourable), decided.chance(space.reveals)
    slopes, levels = zip(*(sums.by_label(chance) for sums in rate.sums), strict=True)
    slope, level = (
        jnp.stack([jnp.broadcast_to(part, chance.shape) for part in parts], axis=1)
        for parts in (slopes, levels)
    )
    imputed = slope * phi[:, None] + level
    known = (revealed >= LEAST)[:, None]
    weight = jnp.where(known, slope / jnp.maximum(revealed, LEAST)[:, None], 0.0)
    miss = seen.positive.astype(jnp.float32) - phi
    x = weight * jnp.where(seen.revealed, miss, 0.0)[:, None]
    inside = members(seen.group, len(space.groups))
    return Errors(
        inside.T @ imputed,
        inside.T @ x,
        inside.T @ (x * x),
        inside.T @ jnp.where(known, 0.0, jnp.abs(slope)),
        jnp.max(inside[:, :, None] * jnp.abs(weight)[:, None, :], axis=0),
    )


def utilities(
    errors: Errors, delta: Float[Array, ""]
) -> tuple[
    Float[Array, "rates groups"], Float[Array, "rates groups"], Float[Array, "rates groups"]
]:
    """Return each group's utility, imputed, and between what the true one lies.

    All at once with 1 - delta, over everyone met in the rollouts kept.
    """
    imputed, first, second, unknown = (
        jnp.sum(getattr(errors, name), axis=0) for name in ("imputed", "first", "second", "unknown")
    )
    largest = jnp.max(errors.largest, axis=0)
    # Two sides of two sums of every rate and group, at every scale.
    log = jnp.log(2.0 * imputed.size * SCALES.size / delta)
    scales = jnp.asarray(SCALES, jnp.float32)[:, None, None, None]
    half = 2 * scales * log + jnp.asarray(SQUARES, jnp.float32) * second[None] / scales
    half = jnp.min(jnp.where(scales >= largest[None], half, jnp.inf), axis=0)
    # A sum whose terms are all 0 by definition is known.
    half = jnp.where((largest > 0) | (unknown > 0), half + unknown, 0.0)
    middle = imputed + first
    low, high = jnp.maximum(middle - half, 0.0), middle + half
    met = imputed[..., 1] > 0
    least = jnp.clip(low[..., 0] / jnp.where(met, high[..., 1], 1.0), 0.0, 1.0)
    most = jnp.where(low[..., 1] > 0, high[..., 0] / jnp.maximum(low[..., 1], 1e-6), 1.0)
    return (
        imputed[..., 0] / jnp.maximum(imputed[..., 1], 1e-6),
        jnp.where(met, least, 0.0),
        jnp.where(met, jnp.clip(most, 0.0, 1.0), 1.0),
    )


def promise(low: ByGroup, high: ByGroup) -> Float[Array, ""]:
    """Return the largest disparity of utilities that lie within these bounds."""
    apart = high[:, :, None] - low[:, None, :]
    other = ~jnp.eye(low.shape[1], dtype=bool)[None]
    return jnp.max(jnp.where(other, apart, 0.0))


def largest(utilities: Float[Array, "rates groups"]) -> Float[Array, ""]:
    """Return the disparity: of the rates, that in which groups are furthest apart."""
    return jnp.max(jnp.max(utilities, axis=1) - jnp.min(utilities, axis=1))


def bias(errors: Errors, delta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return by how much the true disparity may exceed the imputed one, and its largest value."""
    imputed, low, high = utilities(errors, delta)
    most = promise(low, high)
    return jnp.maximum(most - largest(imputed), 0.0), most
