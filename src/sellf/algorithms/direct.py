"""SELLF-direct: the imputed disparity as a constraint on the policy itself, weighed by a dual."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sellf.algorithms import predictor as predictors
from sellf.algorithms import sellf as base
from sellf.algorithms.advantages import standardised
from sellf.algorithms.algorithm import Algorithm, Extra, Fields, Task
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.predictor import PredictorConfig
from sellf.algorithms.seen import Seen
from sellf.fairness import utility


@hyperparameters
class Direct(PredictorConfig, PPO):
    omega: float = 0.05
    beta_renyi: float = 0.01
    dual_rate: float = 1.0
    dual_start: float = 0.0
    dual_limit: float = 10.0
    margin: float = 0.5
    leveling: str = "up"
    recall: int = 5


def start(task: Task, config: Direct, key: Key[Array, ""]) -> Extra:
    kept = base.start(predictors.LINEAR, task, config, key)
    return kept | {"multiplier": jnp.asarray(config.dual_start, jnp.float32), "people": jnp.full((config.recall, config.rollout), -1), "seen_label": jnp.zeros((config.recall, config.rollout))}


def learn(
    task: Task, config: Direct, extra: Extra, seen: Seen, policy: Any, key: Array
) -> tuple[Extra, Fields]:
    multiplier = extra["multiplier"]
    extra, figures = base.learn(predictors.LINEAR, task, config, extra, seen, policy, key)
    predict = predictors.chances(predictors.LINEAR, task, extra["predictor"])
    groups = len(task.world.groups)
    member = (seen.group[:, None] == jnp.arange(groups)[None, :]).astype(jnp.float32)
    steps = seen.group.shape[0]
    ring = {}
    if task.notion == "qualification":
        utilities = utility("qualification", seen.last)
        change = predict(seen.moved) - predict(seen.profile)
        number = jnp.maximum(jnp.sum(member, axis=0), 1.0)
        mean = change @ member / number
        change = (change - mean[seen.group]) * (steps / number)[seen.group]
        worst, best = jnp.nanargmin(utilities), jnp.nanargmax(utilities)
        sign = (seen.group == worst).astype(jnp.float32)
        if config.leveling == "both":
            sign = sign - (seen.group == best)
        column = {"each_credit": sign * change}
    else:
        ring = {"people": jnp.roll(extra["people"], 1, 0).at[0].set(seen.profile), "seen_label": jnp.roll(extra["seen_label"], 1, 0).at[0].set(jnp.where(seen.action, seen.positive, -1.0))}
        people, known = ring["people"].ravel(), ring["seen_label"].ravel()
        there = (people >= 0).astype(jnp.float32)
        people = jnp.maximum(people, 0)
        chance = jax.nn.sigmoid(policy.logit(people))
        label = jnp.where(known >= 0, known, predict(people))
        if task.notion == "opportunity":
            slope, norm, level = label, label, 0.0 * label
        else:
            slope, norm, level = 2 * label - 1, jnp.ones_like(label), 1 - label
        member = (task.world.group[people][:, None] == jnp.arange(groups)[None, :]) * there[:, None]
        total = norm @ member
        mean_total = total / jnp.maximum(jnp.sum(there), 1.0)
        share = (slope[:steps] / jnp.maximum(mean_total, 1e-6)[seen.group])
        utilities = (slope * chance + level) @ member / jnp.maximum(total, 1e-6)
        utilities = jnp.where(total > 0, utilities, jnp.nan)
        column = {"each_share": share}
    gap = jnp.nanmax(utilities) - jnp.nanmin(utilities)
    target = config.margin * config.omega
    moved = jnp.clip(multiplier + config.dual_rate * (gap - target), 0.0, config.dual_limit)
    if task.notion == "qualification":
        column["each_credit"] = column["each_credit"] * jnp.where(gap > target, moved, 0.0)
    figures |= column | {"gap": gap, "utilities": utilities, "multiplier": moved}
    return extra | {"multiplier": moved} | ring, figures


def advantage(config: Direct, fields: Fields) -> Float[Array, " batch"]:
    plain = standardised(fields["advantage"])
    return plain + fields["each_credit"] if "each_credit" in fields else plain


def penalty(config: Direct, logit: Array, fields: Fields, figures: Fields) -> Float[Array, ""]:
    term = base.penalty(config, logit, fields, figures)
    if "each_share" not in fields:
        return term
    chance = jax.nn.sigmoid(logit)
    change = chance - jax.nn.sigmoid(fields["old_logit"])
    member = (fields["group"][:, None] == jnp.arange(figures["utilities"].shape[0])[None, :])
    moved = (fields["each_share"] * change) @ member.astype(jnp.float32) / change.shape[0]
    now = figures["utilities"] + moved
    gap = jnp.nanmax(now) - jnp.nanmin(now)
    return term + figures["multiplier"] * jnp.maximum(gap - config.margin * config.omega, 0.0)


direct = Algorithm(
    "sellf-direct",
    Direct,
    "held within omega: the imputed disparity is a constraint on the policy itself",
    advantage=advantage,
    penalty=penalty,
)
direct = base.with_predictor(direct, predictors.LINEAR)._replace(start=start, learn=learn)
