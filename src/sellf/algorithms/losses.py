"""Loss functions."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sellf.algorithms.seen import members


def clipped_surrogate(
    log_ratio: Float[Array, " batch"], advantage: Float[Array, " batch"], clip: Float[Array, ""]
) -> Float[Array, ""]:
    """Return PPO's policy loss, -E[min(ratio A, clip(ratio) A)]."""
    ratio = jnp.exp(log_ratio)
    held = jnp.clip(ratio, 1 - clip, 1 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, held * advantage))


def squared_error(
    value: Float[Array, " batch"], target: Float[Array, " batch"]
) -> Float[Array, ""]:
    """Return the value loss without clipping, which is the default of Stable-Baselines3."""
    return jnp.mean((value - target) ** 2)


def focops(
    kl: Float[Array, " batch"],
    log_ratio: Float[Array, " batch"],
    advantage: Float[Array, " batch"],
    cost_advantage: Float[Array, " batch"],
    nu: Float[Array, ""],
    lam: Float[Array, ""],
    eta: Float[Array, ""],
) -> Float[Array, ""]:
    """Return FOCOPS's policy loss, E[(KL - ratio (A - nu A_cost) / lambda) 1[KL <= eta]]."""
    gain = jnp.exp(log_ratio) * (advantage - nu * cost_advantage) / lam
    near = jax.lax.stop_gradient(kl <= eta)
    return jnp.mean(jnp.where(near, kl - gain, 0.0))


def projection(
    kl: Float[Array, " batch"],
    log_ratio: Float[Array, " batch"],
    cost_advantage: Float[Array, " batch"],
    price: Float[Array, ""],
) -> Float[Array, ""]:
    """Return CUP's projection loss, E[price ratio A_cost + KL]."""
    return jnp.mean(price * jnp.exp(log_ratio) * cost_advantage + kl)


def renyi_penalty(
    chance: Float[Array, " batch"],
    accepted_before: Float[Array, " batch"],
    group: Int[Array, " batch"],
    scale: Float[Array, " groups"],
) -> Float[Array, ""]:
    """Return L_Renyi (Eq. 5): how far the rejected are from those accepted before.

    sum_g c_g E[(1 - pi)^2 / P | g] / sum_g c_g, over the people of a minibatch; `scale` is c_g, the
    group's a / r (opportunity: a / (r phi~)).
    """
    member = members(group, scale.shape[0])
    term = (1 - chance) ** 2 / accepted_before
    mean = (term @ member) / jnp.maximum(jnp.sum(member, axis=0), 1.0)
    return jnp.sum(scale * mean) / jnp.sum(scale)


def weighted_cross_entropy(
    logit: Float[Array, " batch"],
    label: Bool[Array, " batch"],
    weight: Float[Array, " batch"],
    group: Int[Array, " batch"],
    groups: int,
) -> Float[Array, ""]:
    """Return the predictor's loss: sum(w l) / sum(w) per group, summed over the groups."""
    member = members(group, groups)
    each = weight * jax.nn.softplus(jnp.where(label, -logit, logit))
    total, norm = each @ member, weight @ member
    return jnp.sum(total / jnp.where(norm > 0, norm, 1.0))
