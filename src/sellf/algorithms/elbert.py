"""ELBERT (Xu et al. 2024): the squared difference of long-term benefit rates, by the chain rule.

Follows the original's form (github.com/Yuancheng-Xu/ELBERT): supply and demand are undiscounted
Monte-Carlo sums of the rollout; the advantages of the reward and of each group's supply and demand
are standardised one by one within a minibatch, and their weighted sum is not.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sellf.algorithms.advantages import gae, standardised
from sellf.algorithms.algorithm import (
    Algorithm,
    Batch,
    Critique,
    Extra,
    Networks,
    Result,
    Task,
)
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.networks import Stack
from sellf.algorithms.seen import Seen, members
from sellf.envs.space import Space
from sellf.fairness import Counts, Notion, define

HIDDEN, ACTIVATION = (256, 128), "relu"
"""Hidden layers and activation of the original's networks."""


@hyperparameters
class ELBERT(PPO):
    """PPO whose advantage is penalised by the bias of groups' long-term supply over demand."""

    beta_bias: float = 200.0
    """beta: weight of the squared bias."""
    fairness_gamma: float = 0.99
    """Discount in the advantages of supply and demand, as in the original."""
    fairness_critics: bool = True
    """Whether supply and demand have a critic network each, as in the original; otherwise their
    mean is the baseline, which takes about a third of the time."""


def counted(task: Task, seen: Seen) -> tuple[Float[Array, "steps groups"], ...]:
    """Return each group's supply and demand at every decision, where outcomes are revealed.

    They are the numerator and the denominator of the notion's utility. For qualification and
    accuracy, demand is the accepted and supply is those among them with a good label. For
    opportunity, both are the accepted with a good label, so no bias is visible (Prop. 1).
    """
    favourable = task.space.is_favourable(seen.action)
    parts = (seen.revealed, seen.revealed & favourable, favourable & seen.positive)
    counts = Counts(*(x.astype(jnp.float32) for x in (*parts, ~favourable & seen.positive)))
    member = members(seen.group, len(task.space.groups))
    return tuple(sums.total(counts)[:, None] * member for sums in define(task.notion).alone.sums)


def can_differ(space: Space, notion: Notion) -> bool:
    """Return whether supply and demand can differ; if they cannot, every rate is 1."""
    above, below = define(notion).alone.sums
    for reveals, favourable in zip(space.reveals, space.favourable, strict=True):
        for label in (0.0, 1.0):
            yes, no = float(favourable), float(not favourable)
            one = Counts(*map(np.asarray, (1.0, yes, yes * label, no * label)))
            if reveals and above.total(one) != below.total(one):
                return True
    return False


def signals(task: Task, config: ELBERT, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Return the reward and, if they have critics, each group's supply and demand."""
    critics = config.fairness_critics and can_differ(task.space, task.notion)
    parts = counted(task, seen) if critics else ()
    columns = jnp.concatenate([seen.reward[:, None], *parts], axis=1)
    gamma = jnp.full(columns.shape[1] - 1, config.fairness_gamma, jnp.float32)
    return columns, jnp.concatenate([jnp.asarray(config.gamma, jnp.float32)[None], gamma])


def squared_bias(supply: Float[Array, " groups"], demand: Float[Array, " groups"]) -> Array:
    """Return (max - min)^2 of supply over demand, over the groups that have a demand.

    For two groups it is the square of their difference. It is 0 if fewer than two have a demand.
    """
    there = demand > 0
    rate = supply / jnp.where(there, demand, 1.0)
    most, least = (
        jnp.max(jnp.where(there, rate, -jnp.inf)),
        jnp.min(jnp.where(there, rate, jnp.inf)),
    )
    return jnp.where(jnp.sum(there) > 1, most - least, 0.0) ** 2


def weigh(task: Task, config: ELBERT, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Return all advantages, and supply and demand per episode, summed over the rollout."""
    parts = jnp.concatenate(counted(task, seen), axis=1)
    advantages = critique.advantage
    if advantages.shape[1] == 1:
        nothing, number = jnp.zeros_like(parts), parts.shape[1]
        fairness = gae(
            parts - jnp.mean(parts, axis=0, keepdims=True),
            nothing,
            nothing,
            seen.terminated,
            seen.truncated,
            jnp.full(number, config.fairness_gamma, jnp.float32),
            jnp.asarray(config.gae_lambda, jnp.float32),
        )
        advantages = jnp.concatenate([advantages, fairness], axis=1)
    episodes = jnp.sum((seen.terminated | seen.truncated).astype(jnp.float32))
    supply, demand = jnp.split(jnp.sum(parts, axis=0) / jnp.maximum(episodes, 1.0), 2)
    return Result(extra, {"advantages": advantages}, {"supply": supply, "demand": demand})


def advantage(config: ELBERT, batch: Batch) -> Float[Array, " batch"]:
    """Return A - beta d(bias^2), the derivative along the advantages of supply and demand."""
    each = jax.vmap(standardised, in_axes=1, out_axes=1)(batch.columns["advantages"])
    slopes = jax.grad(squared_bias, argnums=(0, 1))(
        batch.figures["supply"], batch.figures["demand"]
    )
    return each[:, 0] - config.beta_bias * (each[:, 1:] @ jnp.concatenate(slopes))


def stacks(space: Space) -> tuple[Stack, ...]:
    """Return a stack with the policy and a critic of the reward, of the original's size."""
    return (Stack(len(space.actions) - 1, hidden=HIDDEN, activation=ACTIVATION),)


@cache
def all_stacks(notion: Notion) -> Networks:
    """Return networks with critics of each group's supply and demand, where the two can differ.

    Where they cannot, the squared bias and its slopes are 0 whatever the critics predict.
    """

    def both(space: Space) -> tuple[Stack, ...]:
        critics = 1 + 2 * len(space.groups) if can_differ(space, notion) else 1
        return (Stack(len(space.actions) - 1, critics, HIDDEN, ACTIVATION),)

    return both


def variant(algorithm: Algorithm, config: ELBERT, notion: Notion) -> Algorithm:
    """Add critics of supply and demand if `fairness_critics` is set."""
    return algorithm._replace(stacks=all_stacks(notion)) if config.fairness_critics else algorithm


elbert = Algorithm(
    "elbert",
    ELBERT,
    "penalised by the bias of long-term benefit rates among the accepted",
    stacks=stacks,
    signals=signals,
    weigh=weigh,
    advantage=advantage,
    variant=variant,
)
