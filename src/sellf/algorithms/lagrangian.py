"""PPO under a constraint on the mean imputed disparity, weighted by a Lagrange multiplier.

PPO-Lagrangian updates the multiplier by gradient ascent on the Lagrangian; PID-Lagrangian (Stooke,
Achiam and Abbeel 2020) controls it by the constraint's error, its sum and its rate of change.
Formulas and defaults are those of omnisafe (PPOLag and CPPOPID).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sellf.algorithms import focops, sellf
from sellf.algorithms.adam import Learner
from sellf.algorithms.advantages import standardised
from sellf.algorithms.algorithm import Algorithm, Batch, Critique, Extra, Result, Task
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.predictor import LINEAR, PredictorConfig
from sellf.algorithms.seen import Seen, newest_first

DELAY = 10
"""Number of iterations over which the rate of change of the cost is computed."""
SMALLEST = 1e-3
"""Smallest omega used as the unit of errors."""


@hyperparameters
class Lagrangian(PredictorConfig, PPO):
    """PPO with a Lagrange multiplier on the imputed disparity."""

    omega: float = 0.05
    """Largest tolerated mean imputed disparity."""
    cost_gamma: float = 0.99
    """Discount of the cost in its advantage."""
    shaped: bool = True
    """Whether a decision's cost is the change of the disparity, not its level: see `signals`."""
    multiplier_start: float = 0.001
    """Initial value of lambda."""
    multiplier_rate: float = 0.035
    """Step size of Adam for lambda."""


@hyperparameters
class PIDLagrangian(PredictorConfig, PPO):
    """PPO with a Lagrange multiplier that is set by a PID controller."""

    omega: float = 0.05
    """Largest tolerated mean imputed disparity."""
    cost_gamma: float = 0.99
    """Discount of the cost in its advantage."""
    shaped: bool = True
    """Whether a decision's cost is the change of the disparity, not its level: see `signals`."""
    multiplier_start: float = 0.001
    """Initial value of the sum of past errors."""
    proportional: float = 0.1
    """K_P: weight of the error, which is the excess of the cost over omega in units of omega."""
    integral: float = 0.01
    """K_I: weight of the sum of the errors over iterations."""
    derivative: float = 0.01
    """K_D: weight of the increase of the cost over ten iterations, in units of omega."""
    smoothing: float = 0.95
    """Weight of the previous value in the moving averages of the error and of the cost."""


class Control(NamedTuple):
    """State of a PID controller."""

    total: Float[Array, ""]
    """Weighted sum of errors, never below 0."""
    error: Float[Array, ""]
    """Smoothed error."""
    cost: Float[Array, ""]
    """Smoothed cost."""
    past: Float[Array, " delay"]
    """Smoothed costs of the previous iterations, the newest first."""


def signals(task: Task, config: Any, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Return the reward and the cost, which is the disparity after each decision.

    To a critic that sees people but not the window, the level of the disparity is noise, and it is
    a hundred times as large as the change due to one decision. Shaping by the potential
    Delta / (1 - gamma), with Delta the disparity before the decision, makes the cost the decision's
    own contribution, in units of 1 - gamma. Such shaping leaves advantages unchanged (Ng, Harada
    and Russell 1999).
    """
    cost = seen.disparity - seen.before if config.shaped else seen.disparity
    gammas = [jnp.asarray(gamma, jnp.float32) for gamma in (config.gamma, config.cost_gamma)]
    return jnp.stack([seen.reward, cost], axis=1), jnp.stack(gammas)


def ascend(multiplier: Learner, cost: Array, config: Any) -> Learner:
    """Return lambda after a gradient ascent step on lambda (cost - omega); never below 0."""
    slope = jnp.asarray(cost - config.omega, jnp.float32)[None]
    moved = multiplier.step(-slope, config.multiplier_rate, 1e-8)
    return moved._replace(parameters=jnp.maximum(moved.parameters, 0.0))


def control(kept: Control, cost: Array, config: PIDLagrangian) -> tuple[Control, Array]:
    """Return the state of the controller after a rollout, and lambda."""
    relative = cost / jnp.maximum(config.omega, SMALLEST)
    error = relative - 1.0
    total = jnp.maximum(kept.total + config.integral * error, 0.0)
    slow = config.smoothing * kept.error + (1 - config.smoothing) * error
    mean = config.smoothing * kept.cost + (1 - config.smoothing) * relative
    rise = jnp.maximum(mean - kept.past[-1], 0.0)
    sum_of_all = config.proportional * slow + total + config.derivative * rise
    return Control(total, slow, mean, newest_first(kept.past, mean)), jnp.maximum(sum_of_all, 0.0)


def start(task: Task, config: Any, key: Key[Array, ""]) -> Extra:
    """Return the initial lambda and a predictor."""
    first = jnp.asarray(config.multiplier_start, jnp.float32)
    return {"multiplier": Learner.new(first[None])} | sellf.start(LINEAR, task, config, key)


def start_controlled(task: Task, config: PIDLagrangian, key: Key[Array, ""]) -> Extra:
    """Return a controller and a predictor."""
    first = jnp.asarray(config.multiplier_start, jnp.float32)
    kept = Control(first, jnp.zeros(()), jnp.zeros(()), jnp.zeros(DELAY))
    return {"control": kept} | sellf.start(LINEAR, task, config, key)


def columns(critique: Critique, multiplier: Array) -> dict[str, Array]:
    """Return (A - lambda A_cost) / (1 + lambda), both standardised over the rollout."""
    gain, cost = (standardised(critique.advantage[:, i]) for i in (0, 1))
    return {"advantage": (gain - multiplier * cost) / (1 + multiplier)}


def weigh(task: Task, config: Lagrangian, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Update lambda with the mean cost of the rollout, and weigh reward against cost."""
    cost = jnp.mean(seen.disparity)
    kept = ascend(extra["multiplier"], cost, config)
    figures = {"multiplier": kept.parameters[0], "cost": cost}
    return Result(extra | {"multiplier": kept}, columns(critique, figures["multiplier"]), figures)


def weigh_controlled(
    task: Task, config: PIDLagrangian, extra: Extra, seen: Seen, critique: Critique
) -> Result:
    """Set lambda by the controller, and weigh reward against cost."""
    cost = jnp.mean(seen.disparity)
    kept, multiplier = control(extra["control"], cost, config)
    figures = {"multiplier": multiplier, "cost": cost}
    return Result(extra | {"control": kept}, columns(critique, multiplier), figures)


def advantage(config: Any, batch: Batch) -> Float[Array, " batch"]:
    """Return the weighted advantage unchanged, as both parts are standardised already."""
    return batch.columns["advantage"]


def constrained(algorithm: Algorithm, first: Any) -> Algorithm:
    """Return the algorithm with critics of reward and cost, a predictor, and its own `start`."""
    both = algorithm._replace(stacks=focops.stacks, signals=signals)
    return sellf.with_predictor(both, LINEAR)._replace(start=first)


ppo_lagrangian = constrained(
    Algorithm(
        "ppo-lagrangian",
        Lagrangian,
        "a multiplier on the imputed disparity, updated by gradient ascent",
        weigh=weigh,
        advantage=advantage,
    ),
    start,
)
pid_lagrangian = constrained(
    Algorithm(
        "pid-lagrangian",
        PIDLagrangian,
        "a multiplier on the imputed disparity, set by a PID controller",
        weigh=weigh_controlled,
        advantage=advantage,
    ),
    start_controlled,
)
