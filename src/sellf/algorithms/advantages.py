"""Advantages: how much better than expected a decision turned out, and how penalties enter."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def gae(
    signal: Float[Array, "steps critics"],
    value: Float[Array, "steps critics"],
    following: Float[Array, "steps critics"],
    terminated: Bool[Array, " steps"],
    truncated: Bool[Array, " steps"],
    gamma: Float[Array, " critics"],
    lam: Float[Array, ""],
) -> Float[Array, "steps critics"]:
    """Return generalised advantage estimates, one column per critic.

    After a truncation and at the end of the rollout, estimates are bootstrapped from `following`,
    the value of the person who would come next; after a termination nothing follows. No estimate
    reaches across the end of an episode.

    Args:
        signal: the quantity that each critic accumulates (the reward, a cost, ...).
        value: each critic's value of the person decided about.
        following: each critic's value of the person who comes, or would come, next.
        terminated: whether the resource was used up.
        truncated: whether the horizon was reached.
        gamma: each critic's discount.
        lam: lambda of the estimator.
    """
    ahead = jnp.where(terminated[:, None], 0.0, following)
    surprise = signal + gamma[None, :] * ahead - value
    goes_on = jnp.where(terminated | truncated, 0.0, 1.0)[:, None] * (gamma * lam)[None, :]

    def back(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, keep = now
        advantage = delta + keep * later
        return advantage, advantage

    nothing = jnp.zeros(signal.shape[1])
    _, advantages = jax.lax.scan(back, nothing, (surprise, goes_on), reverse=True)
    return advantages


def unit_range(values: Float[Array, " batch"]) -> Float[Array, " batch"]:
    """Scale to [0, 1] by the smallest and the largest value; return 0 where all are equal."""
    low = jnp.min(values)
    width = jnp.max(values) - low
    return (values - low) / jnp.where(width > 0, width, 1.0)


def standardised(values: Float[Array, " batch"]) -> Float[Array, " batch"]:
    """Return values with mean 0 and (sample) standard deviation 1, as Stable-Baselines3 does."""
    centred = values - jnp.mean(values)
    deviation = jnp.sqrt(jnp.sum(centred**2) / (values.shape[0] - 1))
    return centred / (deviation + 1e-8)


def regularised(
    advantage: Float[Array, " batch"],
    penalties: Float[Array, "batch terms"],
    weights: Float[Array, " terms"],
    scale: str,
) -> Float[Array, " batch"]:
    """Return the penalised advantage of a minibatch, standardised (POCAR; SELLF, Sec. 4).

    Args:
        advantage: the advantage of the reward.
        penalties: values of 0 or below, one column per term.
        weights: the beta of each term.
        scale: "minmax" first scales the advantage and each penalty to [0, 1] within the minibatch,
            as the published code does and as its grids of betas require; "none" is the paper's
            formula.
    """
    if scale == "minmax":
        advantage = unit_range(advantage)
        penalties = jax.vmap(unit_range, in_axes=1, out_axes=1)(penalties)
    for term, weight in zip(penalties.T, weights, strict=True):
        advantage = advantage + weight * term  # added one by one, so a weight of 0 changes no bit
    return standardised(advantage)
