"""CUP (Yang et al. 2022): improve the reward, then project the policy towards the constraint.

PPO first takes its steps for the reward alone. The same number of steps then reduces the cost,
which is the imputed disparity weighted by a Lagrange multiplier, and stays near the policy found
first. The formulas are those of CUP in omnisafe.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sellf.algorithms import lagrangian, losses
from sellf.algorithms.advantages import standardised
from sellf.algorithms.algorithm import Algorithm, Batch, Critique, Extra, Result, Task
from sellf.algorithms.config import hyperparameters
from sellf.algorithms.lagrangian import Lagrangian
from sellf.algorithms.seen import Seen


@hyperparameters
class CUP(Lagrangian):
    """A step that improves the reward, then a projection towards the constraint."""

    multiplier_limit: float = 2.0
    """Upper limit of lambda."""


def weigh(task: Task, config: CUP, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Update lambda with the mean cost of the rollout; standardise both advantages."""
    cost = jnp.mean(seen.disparity)
    kept = lagrangian.ascend(extra["multiplier"], cost, config)
    kept = kept._replace(parameters=jnp.minimum(kept.parameters, config.multiplier_limit))
    columns = {
        "advantage": standardised(critique.advantage[:, 0]),
        "cost_advantage": standardised(critique.advantage[:, 1]),
    }
    figures = {"multiplier": kept.parameters[0], "cost": cost}
    return Result(extra | {"multiplier": kept}, columns, figures)


def project(config: CUP, batch: Batch) -> Float[Array, ""]:
    """Return E[lambda c ratio A_cost + KL(pi || pi')], and both critics' losses.

    pi' is the policy after the first step, the ratio is relative to the policy that decided, and
    c = (1 - gamma l) / (1 - gamma), with gamma the discount of the cost and l the lambda of GAE.
    """
    left = jnp.maximum(1 - config.cost_gamma, 1e-3)
    scale = (1 - config.cost_gamma * config.gae_lambda) / left
    price = batch.figures["multiplier"] * scale
    log_ratio = batch.policy.log_probability(batch.action) - batch.log_probability
    near = batch.policy.divergence(batch.before)
    policy = losses.projection(near, log_ratio, batch.columns["cost_advantage"], price)
    critics = [losses.squared_error(batch.values[i], batch.target[:, i]) for i in (0, 1)]
    return policy + config.value * (critics[0] + critics[1])


cup = lagrangian.constrained(
    Algorithm(
        "cup",
        CUP,
        "a step for the reward, then a projection towards the imputed constraint",
        weigh=weigh,
        advantage=lagrangian.advantage,
        project=project,
    ),
    lagrangian.start,
)
