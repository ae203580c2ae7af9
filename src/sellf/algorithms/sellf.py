"""SELLF (Sec. 4): penalised by the imputed disparity, and kept near people with known labels."""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sellf.algorithms import losses, pocar
from sellf.algorithms import predictor as predictors
from sellf.algorithms.advantages import regularised
from sellf.algorithms.algorithm import Algorithm, Batch, Critique, Deciding, Extra, Result, Task
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.networks import Stack
from sellf.algorithms.predictor import PredictorConfig
from sellf.algorithms.seen import Seen
from sellf.envs.policy import Chances
from sellf.fairness import Notion


@hyperparameters
class SELLF(PredictorConfig, PPO):
    """PPO penalised by the imputed disparity, with a policy that stays near earlier ones."""

    beta_disparity: float = 10.0
    """beta_1: weight of the disparity penalty on the advantage."""
    beta_renyi: float = 0.01
    """beta_2: weight of the Renyi divergence between rejected and accepted people (Eq. 5)."""
    beta_increase: float = 0.0
    """Weight of a decision's own increase of an imputed disparity above omega / 2. This is POCAR's
    second term, which the paper does not use."""
    omega: float = 0.05
    """Largest tolerated true disparity; the imputed disparity is held below half of it."""
    penalty_scale: str = "minmax"
    """"minmax" or "none": see `advantages.regularised`."""


def start(stack: Stack, task: Task, config: Any, key: Key[Array, ""]) -> Extra:
    """Return a predictor as the initial state."""
    return {"predictor": predictors.start(stack, task, config, key)}


def predict(stack: Stack, task: Task, config: Any, extra: Extra) -> Chances:
    """Return the predictor's probabilities of a good label."""
    return predictors.chances(stack, task, extra["predictor"])


def learn(
    stack: Stack, task: Task, config: Any, extra: Extra, seen: Seen, deciding: Deciding, key: Array
) -> Result:
    """Train the predictor, and compute the inputs of the Renyi term."""
    predictor, before, figures = predictors.learn(
        stack, task, config, extra["predictor"], seen, deciding, key
    )
    scale = predictors.renyi_scale(task, seen, before)
    chance = deciding.policy(seen.profile).chance(task.space.reveals)
    renyi = losses.renyi_penalty(chance, before, seen.group, scale)
    return Result(
        extra | {"predictor": predictor},
        {"revealed_before": before},
        figures | {"renyi_scale": scale, "renyi": renyi},
    )


def weigh(task: Task, config: SELLF, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Return the penalties of every decision.

    They are min(0, omega / 2 - |imputed disparity|) and the decision's own increase of it.
    """
    penalties = pocar.terms(seen, config.omega / 2)
    columns = {"advantage": critique.advantage[:, 0], "penalties": penalties}
    return Result(extra, columns, {})


def weigh_disparity(
    task: Task, config: SELLF, extra: Extra, seen: Seen, critique: Critique
) -> Result:
    """Return only the first penalty of every decision."""
    both = weigh(task, config, extra, seen, critique)
    return both._replace(columns=both.columns | {"penalties": both.columns["penalties"][:, :1]})


def advantage(config: SELLF, batch: Batch) -> Float[Array, " batch"]:
    """Return the penalised advantage of a minibatch."""
    betas = jnp.stack([jnp.asarray(config.beta_disparity), jnp.asarray(config.beta_increase)])
    own = batch.columns
    terms = own["penalties"].shape[1]
    return regularised(own["advantage"], own["penalties"], betas[:terms], config.penalty_scale)


def penalty(config: Any, batch: Batch) -> Float[Array, ""]:
    """Return beta_2 L_Renyi of a minibatch."""
    chance = batch.policy.chance(batch.space.reveals)
    before, scale = batch.columns["revealed_before"], batch.figures["renyi_scale"]
    return config.beta_renyi * losses.renyi_penalty(chance, before, batch.group, scale)


def with_predictor(algorithm: Algorithm, stack: Stack) -> Algorithm:
    """Return the algorithm with a predictor, which sees the disparity with imputed labels."""
    return algorithm._replace(
        view="imputed",
        predictor=stack,
        waits=True,
        start=partial(start, stack),
        predict=partial(predict, stack),
        learn=partial(learn, stack),
    )


def variant(algorithm: Algorithm, config: SELLF, notion: Notion) -> Algorithm:
    """Drop the second penalty if its weight is 0, to save its cost in every minibatch."""
    return algorithm if config.beta_increase else algorithm._replace(weigh=weigh_disparity)


_sellf = Algorithm(
    "sellf",
    SELLF,
    "penalised by the imputed disparity; a linear predictor",
    weigh=weigh,
    advantage=advantage,
    penalty=penalty,
    variant=variant,
)
sellf = with_predictor(_sellf, predictors.LINEAR)
sellf_semi = sellf._replace(
    name="sellf-semi",
    summary="rejects with certainty below 0.25: overlap fails there, and so does the theory",
    reject_below=0.25,
)
sellf_relu = with_predictor(_sellf, predictors.RELU)._replace(
    name="sellf-relu", summary="as sellf; the predictor is a network with two hidden layers"
)
