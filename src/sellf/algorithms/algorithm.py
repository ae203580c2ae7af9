"""What makes one algorithm different from another: data, and a few pure functions (hooks)."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sellf.algorithms import losses
from sellf.algorithms.advantages import standardised
from sellf.algorithms.config import PPO
from sellf.algorithms.networks import Stack
from sellf.algorithms.seen import Seen
from sellf.envs.world import Chances, World
from sellf.fairness import Notion, View

Extra: TypeAlias = Any
"""What an algorithm keeps from iteration to iteration beside its networks; a pytree."""
Fields: TypeAlias = dict[str, Array]
"""Columns with one row per decision, cut into minibatches."""


class Task(eqx.Module):
    """What is to be learned, where, and for how long."""

    world: World
    notion: Notion = eqx.field(static=True)
    iterations: int = eqx.field(static=True)


class Critique(NamedTuple):
    """What the critics make of a rollout."""

    advantage: Float[Array, "steps critics"]
    target: Float[Array, "steps critics"]
    value: Float[Array, "steps critics"]


def no_extra(task: Task, config: Any, key: Array) -> Extra:
    """Keep nothing."""
    return ()


def no_predictor(task: Task, config: Any, extra: Extra) -> Chances | None:
    """Predict no labels."""
    return None


def learn_nothing(
    task: Task, config: Any, extra: Extra, seen: Seen, policy: Any, key: Array
) -> Any:
    """Learn nothing beside the policy."""
    return extra, {}


def reward_only(task: Task, config: PPO, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Have one critic, of the reward."""
    return seen.reward[:, None], jnp.stack([jnp.asarray(config.gamma, jnp.float32)])


def advantage_only(
    task: Task, config: Any, extra: Extra, seen: Seen, critique: Critique
) -> tuple[Extra, Fields]:
    """Give the minibatches the advantage of the reward."""
    return extra, {"advantage": critique.advantage[:, 0]}


def plain_advantage(config: Any, fields: Fields) -> Float[Array, " batch"]:
    """Standardise the advantage within the minibatch."""
    return standardised(fields["advantage"])


def no_penalty(config: Any, logit: Array, fields: Fields, figures: Fields) -> Array:
    """Add nothing to the loss."""
    return jnp.zeros(())


def as_it_is(algorithm: "Algorithm", config: Any) -> "Algorithm":
    """Leave the algorithm as it is, whatever its settings."""
    return algorithm


def nothing_to_say(notion: Notion, config: Any, rows: list[dict[str, Any]]) -> str | None:
    """Promise nothing, so that there is nothing to say of it."""
    return None


class Algorithm(NamedTuple):
    """An algorithm: what it may see, which networks it has, and its hooks on the trainer."""

    name: str
    config: type[PPO]
    summary: str
    view: View = "accepted"
    """In which view it may see the disparity; only an oracle has "true"."""
    stacks: Callable[[int], tuple[Stack, ...]] = lambda groups: (Stack(),)
    """The networks, by the number of groups; the first is the policy, the others critics."""
    predictor: Stack | None = None
    """The shape of the label predictor, if there is one."""
    reject_below: float = 0.0
    """Reject for certain whoever would be accepted with a smaller probability."""
    waits: bool = False
    """The first iteration trains the predictor only."""
    start: Callable[..., Extra] = no_extra
    predict: Callable[..., Chances | None] = no_predictor
    learn: Callable[..., tuple[Extra, Fields]] = learn_nothing
    """After a rollout: update what is kept, and return figures that the loss needs."""
    signals: Callable[..., tuple[Array, Array]] = reward_only
    """What the critics add up, and their discounts."""
    weigh: Callable[..., tuple[Extra, Fields]] = advantage_only
    """From advantages to the columns of minibatches."""
    advantage: Callable[..., Array] = plain_advantage
    """The advantage within a minibatch."""
    penalty: Callable[..., Array] = no_penalty
    """What is added to PPO's loss."""
    loss: Callable[..., Array] | None = None
    """Instead of PPO's loss."""
    stop_at: Callable[[Any], Array] | None = None
    """Past which mean divergence from the old policy no further epochs follow."""
    people: int = 0
    """How many people of the rollout are drawn beside each minibatch, for the penalty."""
    variant: Callable[..., "Algorithm"] = as_it_is
    """The algorithm as its settings want it, where those change more than numbers."""
    statement: Callable[[Notion, Any, list[dict[str, Any]]], str | None] = nothing_to_say
    """What the metrics of a training say of the constraint that it was under."""


def ppo_loss(
    algorithm: Algorithm,
    config: PPO,
    outputs: Float[Array, "networks batch"],
    fields: Fields,
    figures: Fields,
) -> Float[Array, ""]:
    """Return PPO's loss on a minibatch, with the algorithm's own penalty added."""
    logit = outputs[0]
    log_ratio = losses.log_probability(logit, fields["action"]) - fields["log_probability"]
    policy = losses.clipped_surrogate(
        log_ratio, algorithm.advantage(config, fields), jnp.asarray(config.clip)
    )
    value = jnp.stack(
        [
            losses.squared_error(out, target)
            for out, target in zip(outputs[1:], fields["target"].T, strict=True)
        ]
    )
    bonus = jnp.mean(losses.entropy(logit))
    penalty = algorithm.penalty(config, logit, fields, figures)
    return policy + config.value * jnp.sum(value) - config.entropy * bonus + penalty
