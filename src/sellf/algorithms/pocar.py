"""POCAR (Yu et al. 2022): the advantage is penalised by the disparity and by its increase."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sellf.algorithms.advantages import regularised
from sellf.algorithms.algorithm import Algorithm, Batch, Critique, Extra, Result, Task
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.seen import Seen


@hyperparameters
class POCAR(PPO):
    """PPO whose advantage is penalised by the disparity and by its increase."""

    beta_disparity: float = 5.0
    """beta_1: weight of the disparity above omega."""
    beta_increase: float = 2.0
    """beta_2: weight of a decision's increase of a disparity above omega."""
    omega: float = 0.05
    """Largest tolerated disparity."""
    penalty_scale: str = "minmax"
    """"minmax" or "none": see `advantages.regularised`."""


def terms(seen: Seen, tolerated: Array | float) -> Float[Array, "steps 2"]:
    """Return the two penalties of every decision (Yu et al. 2022, Eq. 3), 0 or below.

    They are the excess of the disparity over the tolerated value and, where there is an excess, the
    increase caused by the decision itself.
    """
    now = seen.disparity
    excess = jnp.minimum(0.0, tolerated - now)
    increase = jnp.where(now > tolerated, jnp.minimum(0.0, seen.before - now), 0.0)
    return jnp.stack([excess, increase], axis=1)


def weigh(task: Task, config: POCAR, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Return the penalties of every decision (App. "Experimental Setting", POCAR)."""
    penalties = terms(seen, config.omega)
    return Result(extra, {"advantage": critique.advantage[:, 0], "penalties": penalties}, {})


def advantage(config: POCAR, batch: Batch) -> Float[Array, " batch"]:
    """Return the penalised advantage of a minibatch."""
    betas = jnp.stack([jnp.asarray(config.beta_disparity), jnp.asarray(config.beta_increase)])
    own = batch.columns
    return regularised(own["advantage"], own["penalties"], betas, config.penalty_scale)


pocar = Algorithm(
    "pocar",
    POCAR,
    "penalised by the disparity among the accepted",
    weigh=weigh,
    advantage=advantage,
)
pocar_oracle = pocar._replace(
    name="pocar-oracle", summary="penalised by the true disparity: knows hidden labels", view="true"
)
