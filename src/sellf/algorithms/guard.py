"""Bounds on each group's true utility that account for the predictor's errors.

With probabilities pi in place of decisions, a group's utility is a ratio of sums over people, both
linear in their probability of a good label, p (opportunity: sum(pi p) / sum(p)). With predictions
phi in place of p, every person's term has the error slope (p - phi). The people accepted in a
rollout are scored by the predictor before it has learned from them, so

    x = a slope (y - phi) / pi        has the mean  slope (p - phi),

for every policy. The sum of all x corrects both sums. Its error is bounded from the squares of x
alone, by a bound that holds even though policy and predictor depend on earlier observations
(Howard, Ramdas, McAuliffe and Sekhon 2021, with 0 as the prediction of the next x): with c at least
as large as any weight slope / pi,

    |sum(x) - sum of means| <= 2 c log(2 / delta) + 2 (log 2 - 1/2) sum(x^2) / c.

It replaces the constant of Theorem 3 in Theorem 4, and needs neither a density of earlier policies
nor a pseudo-dimension. Nothing is known about people who were hardly ever accepted.
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
"""Acceptance probability below which the accepted are not used to estimate the others' errors."""
SCALES = 2.0 ** np.arange(8)
"""Values of c that are tried; the largest is above 1 / LEAST."""
SQUARES = 2 * (np.log(2) - 0.5)


class Errors(NamedTuple):
    """Sums over one rollout, or over each of the latest rollouts with the newest first.

    They are by rate and group, for the numerator and the denominator of the utility.
    """

    imputed: Float[Array, "*memory rates groups 2"]
    """Sums with predictions for everyone."""
    first: Float[Array, "*memory rates groups 2"]
    """Sums of x."""
    second: Float[Array, "*memory rates groups 2"]
    """Sums of the squares of x."""
    unknown: Float[Array, "*memory rates groups 2"]
    """Largest possible error for people who were hardly ever accepted."""
    largest: Float[Array, "*memory rates groups 2"]
    """Largest possible weight of any person met."""


def start(notion: Notion, memory: int, groups: int) -> Errors:
    """Return the sums before the first rollout."""
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
    """Return each group's imputed utility, and a lower and an upper bound of the true one.

    All bounds hold jointly with probability 1 - delta, for the people of all stored rollouts.
    """
    imputed, first, second, unknown = (
        jnp.sum(getattr(errors, name), axis=0) for name in ("imputed", "first", "second", "unknown")
    )
    largest = jnp.max(errors.largest, axis=0)
    # Union bound over two sides, two sums, rates, groups and scales.
    log = jnp.log(2.0 * imputed.size * SCALES.size / delta)
    scales = jnp.asarray(SCALES, jnp.float32)[:, None, None, None]
    half = 2 * scales * log + jnp.asarray(SQUARES, jnp.float32) * second[None] / scales
    half = jnp.min(jnp.where(scales >= largest[None], half, jnp.inf), axis=0)
    # A sum whose terms are all 0 by definition has no error.
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
    """Return the disparity: the largest difference between groups over all rates."""
    return jnp.max(jnp.max(utilities, axis=1) - jnp.min(utilities, axis=1))


def bias(errors: Errors, delta: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return bounds on the excess of the true over the imputed disparity, and on the true one."""
    imputed, low, high = utilities(errors, delta)
    most = promise(low, high)
    return jnp.maximum(most - largest(imputed), 0.0), most
