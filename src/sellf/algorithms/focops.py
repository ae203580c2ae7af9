"""FOCOPS (Zhang et al. 2020): the best policy nearby within a limit on long-term cost."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sellf.algorithms import losses, sellf
from sellf.algorithms.advantages import standardised
from sellf.algorithms.algorithm import Algorithm, Batch, Critique, Extra, Result, Task
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.networks import Stack
from sellf.algorithms.predictor import LINEAR, PredictorConfig
from sellf.algorithms.seen import Seen
from sellf.envs.space import Space
from sellf.fairness import Notion


@hyperparameters
class FOCOPS(PredictorConfig, PPO):
    """A constrained policy step whose cost is the disparity."""

    learning_rate: float = 5e-4
    """Step size of Adam for the policy and both critics."""
    gradient_norm: float = 40.0
    """Largest norm of a gradient; larger gradients are scaled down."""
    temperature: float = 1.5
    """lambda: weight of the divergence from the old policy against the advantage."""
    trust: float = 0.02
    """eta: largest divergence from the old policy. People above it are left out of the loss, and a
    mean above it ends the epochs."""
    nu_max: float = 2.0
    """Upper limit of the dual variable nu."""
    nu_rate: float = 0.01
    """Step size of nu."""
    limit: float = 10.0
    """Largest tolerated discounted cost."""
    cost_gamma: float = 0.99
    """Discount of the cost."""
    decay: float = 1e-3
    """Weight of the critics' squared parameters in the loss."""
    cost: str = "accepted"
    """Which disparity is the cost: "accepted" (Sec. 5), or "imputed" (the appendix)."""


def start(task: Task, config: FOCOPS, key: Key[Array, ""]) -> Extra:
    """Return the initial dual variable."""
    return {"nu": jnp.zeros(())}


def signals(task: Task, config: FOCOPS, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Return the reward and the cost, the disparity after each decision."""
    gammas = [jnp.asarray(gamma, jnp.float32) for gamma in (config.gamma, config.cost_gamma)]
    return jnp.stack([seen.reward, seen.disparity], axis=1), jnp.stack(gammas)


def dual(nu: Array, cost: Array, config: FOCOPS) -> Float[Array, ""]:
    """Return nu after a step along the constraint violation, within [0, nu_max]."""
    return jnp.clip(nu + config.nu_rate * (cost - config.limit), 0.0, config.nu_max)


def weigh(task: Task, config: FOCOPS, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Update nu with the cost of the rollout; standardise both advantages, as the original does."""
    cost = jnp.mean(critique.target[:, 1])
    nu = dual(extra["nu"], cost, config)
    columns = {
        "advantage": standardised(critique.advantage[:, 0]),
        "cost_advantage": standardised(critique.advantage[:, 1]),
    }
    return Result(extra | {"nu": nu}, columns, {"nu": nu, "cost": cost})


def loss(config: FOCOPS, batch: Batch) -> Float[Array, ""]:
    """Return the sum of the policy's and both critics' losses, with the critics' weight decay."""
    policy = losses.focops(
        batch.policy.divergence(batch.before),
        batch.policy.log_probability(batch.action) - batch.log_probability,
        batch.columns["advantage"],
        batch.columns["cost_advantage"],
        batch.figures["nu"],
        jnp.asarray(config.temperature),
        jnp.asarray(config.trust),
    )
    critics = [losses.squared_error(batch.values[i], batch.target[:, i]) for i in (0, 1)]
    squares = sum(jnp.sum(leaf[batch.policy.actions - 1 :] ** 2) for leaf in batch.layers[0])
    return policy + critics[0] + critics[1] + config.decay * squares


def trust(config: Any) -> Array:
    """Return the divergence above which no further epoch is run."""
    return jnp.asarray(config.trust)


def start_both(task: Task, config: FOCOPS, key: Key[Array, ""]) -> Extra:
    """Return the initial dual variable and a predictor."""
    return start(task, config, key) | sellf.start(LINEAR, task, config, key)


def stacks(space: Space) -> tuple[Stack, ...]:
    """Return a stack with the policy and critics of the reward and of the cost."""
    return (Stack(policies=len(space.actions) - 1, critics=2),)


def variant(algorithm: Algorithm, config: FOCOPS, notion: Notion) -> Algorithm:
    """Add a predictor if the cost is the imputed disparity."""
    if config.cost == "accepted":
        return algorithm
    return sellf.with_predictor(algorithm, LINEAR)._replace(start=start_both)


focops = Algorithm(
    "focops",
    FOCOPS,
    "a constrained policy whose cost is the disparity among the accepted",
    stacks=stacks,
    start=start,
    signals=signals,
    weigh=weigh,
    loss=loss,
    stop_at=trust,
    variant=variant,
)
