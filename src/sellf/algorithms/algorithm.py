"""What makes one algorithm different from another: data, and a few pure functions (hooks).

Each hook has a type here that says what it is given and what it returns. None of them is given a
world: what a `Space` does not hold, an algorithm cannot know.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from sellf.algorithms import losses
from sellf.algorithms.advantages import standardised
from sellf.algorithms.config import PPO, Settings
from sellf.algorithms.networks import AnyStack, Stack
from sellf.algorithms.seen import Seen
from sellf.envs.policy import Categorical, Chances, Policy
from sellf.envs.space import Space
from sellf.fairness import Notion, View

Extra: TypeAlias = Any
"""What an algorithm keeps from iteration to iteration beside its networks; a pytree."""
Columns: TypeAlias = dict[str, Array]
"""Numbers of decisions, by name; the first axis is the decision. Cut into minibatches."""
Figures: TypeAlias = dict[str, Array]
"""Numbers of an iteration, by name, or one per group; they are logged."""


class Task(eqx.Module):
    """What is to be learned, about whom, and for how long."""

    space: Space
    notion: Notion = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    actor: AnyStack = eqx.field(static=True)
    """The shape of the policy's networks."""
    population: int = eqx.field(static=True)
    """How many people there are, any of whom may come next."""
    horizon: int = eqx.field(static=True)
    """After how many decisions an episode ends at the latest."""


class Deciding(NamedTuple):
    """The policy that decided in a rollout."""

    policy: Policy
    """As its networks have it: not cut off, if it is semi-stochastic."""
    parameters: Float[Array, " size"]
    """Of its networks alone, whose shape is `Task.actor`."""


class Critique(NamedTuple):
    """What the critics make of a rollout."""

    advantage: Float[Array, "steps critics"]
    target: Float[Array, "steps critics"]


class Result(NamedTuple):
    """What a hook came to."""

    extra: Extra
    columns: Columns
    """For the minibatches."""
    figures: Figures
    """For the loss, and to log."""


class People(NamedTuple):
    """Some people, and what the policy does with them now."""

    policy: Categorical
    group: Int[Array, " batch"]
    columns: Columns


class Batch(NamedTuple):
    """The decisions of a minibatch."""

    space: Space
    policy: Categorical
    """As it is now ..."""
    before: Categorical
    """... and as it was when the iteration began."""
    values: Float[Array, "critics batch"]
    layers: list[list[Array]]
    """All parameters, per stack its weights and biases in turn."""
    group: Int[Array, " batch"]
    action: Int[Array, " batch"]
    log_probability: Float[Array, " batch"]
    """Of the decision, when the iteration began."""
    target: Float[Array, "batch critics"]
    columns: Columns
    people: People | None
    """Others who are drawn beside the minibatch, if the algorithm asks for them."""
    figures: Figures


@runtime_checkable
class Networks(Protocol):
    """The networks: the first are the policy, the others critics."""

    def __call__(self, space: Space, /) -> tuple[AnyStack, ...]: ...


@runtime_checkable
class Start(Protocol):
    """Return what is kept, before the first iteration."""

    def __call__(self, task: Task, config: Any, key: Key[Array, ""], /) -> Extra: ...


@runtime_checkable
class Predict(Protocol):
    """Return the label predictor as it is, if there is one."""

    def __call__(self, task: Task, config: Any, extra: Extra, /) -> Chances | None: ...


@runtime_checkable
class Learn(Protocol):
    """Update what is kept after a rollout."""

    def __call__(
        self,
        task: Task,
        config: Any,
        extra: Extra,
        seen: Seen,
        deciding: Deciding,
        key: Key[Array, ""],
        /,
    ) -> Result: ...


@runtime_checkable
class Signals(Protocol):
    """Return what the critics add up (steps, critics), and their discounts (critics,)."""

    def __call__(
        self, task: Task, config: Any, extra: Extra, seen: Seen, /
    ) -> tuple[Array, Array]: ...


@runtime_checkable
class Weigh(Protocol):
    """From advantages to the columns of minibatches."""

    def __call__(
        self, task: Task, config: Any, extra: Extra, seen: Seen, critique: Critique, /
    ) -> Result: ...


@runtime_checkable
class OnBatch(Protocol):
    """Return the advantage, the penalty or the loss of a minibatch."""

    def __call__(self, config: Any, batch: Batch, /) -> Array: ...


@runtime_checkable
class StopAt(Protocol):
    """Return past which mean divergence from the old policy no further epochs follow."""

    def __call__(self, config: Any, /) -> Array: ...


@runtime_checkable
class Decide(Protocol):
    """Return a policy's parameters, what is kept, and figures to log, from what is kept so far.

    It is not compiled: arrays are NumPy's, and it may take as long as it likes.
    """

    def __call__(
        self, task: Task, config: Any, iteration: int, extra: Extra, /
    ) -> tuple[Array | np.ndarray, Extra, Mapping[str, Any]]: ...


@runtime_checkable
class Variant(Protocol):
    """Return the algorithm as its settings and the notion want it, beyond numbers."""

    def __call__(self, algorithm: "Algorithm", config: Any, notion: Notion, /) -> "Algorithm": ...


@runtime_checkable
class Statement(Protocol):
    """Return what the metrics of a training say of the constraint that it was under."""

    def __call__(
        self, notion: Notion, config: Any, rows: list[dict[str, Any]], /
    ) -> str | None: ...


def one_critic(space: Space) -> tuple[Stack, ...]:
    """Have the policy and a critic of the reward."""
    return (Stack(policies=len(space.actions) - 1),)


def no_extra(task: Task, config: Any, key: Key[Array, ""]) -> Extra:
    """Keep nothing."""
    return ()


def no_predictor(task: Task, config: Any, extra: Extra) -> Chances | None:
    """Predict no labels."""
    return None


def learn_nothing(
    task: Task, config: Any, extra: Extra, seen: Seen, deciding: Deciding, key: Array
) -> Result:
    """Learn nothing beside the policy."""
    return Result(extra, {}, {})


def reward_only(task: Task, config: PPO, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Have one critic, of the reward."""
    return seen.reward[:, None], jnp.stack([jnp.asarray(config.gamma, jnp.float32)])


def advantage_only(task: Task, config: Any, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Give the minibatches the advantage of the reward."""
    return Result(extra, {"advantage": critique.advantage[:, 0]}, {})


def plain_advantage(config: Any, batch: Batch) -> Float[Array, " batch"]:
    """Standardise the advantage within the minibatch."""
    return standardised(batch.columns["advantage"])


def no_penalty(config: Any, batch: Batch) -> Array:
    """Add nothing to the loss."""
    return jnp.zeros(())


def as_it_is(algorithm: "Algorithm", config: Any, notion: Notion) -> "Algorithm":
    """Leave the algorithm as it is, whatever its settings and the notion."""
    return algorithm


def nothing_to_say(notion: Notion, config: Any, rows: list[dict[str, Any]]) -> str | None:
    """Promise nothing, so that there is nothing to say of it."""
    return None


class Algorithm(NamedTuple):
    """An algorithm: what it may see, which networks it has, and its hooks on the trainer."""

    name: str
    config: type[Settings]
    summary: str
    view: View = "accepted"
    """In which view it may see the disparity; only an oracle has "true"."""
    stacks: Networks = one_critic
    predictor: Stack | None = None
    """The shape of the label predictor, if there is one."""
    reject_below: float = 0.0
    """Reject for certain whoever would be accepted with a smaller probability."""
    waits: bool = False
    """The first iteration trains the predictor only."""
    start: Start = no_extra
    predict: Predict = no_predictor
    learn: Learn = learn_nothing
    signals: Signals = reward_only
    weigh: Weigh = advantage_only
    advantage: OnBatch = plain_advantage
    """The advantage within a minibatch."""
    penalty: OnBatch = no_penalty
    """What is added to PPO's loss."""
    loss: OnBatch | None = None
    """Instead of PPO's loss."""
    project: OnBatch | None = None
    """The loss of a second pass over the decisions, with the policy after the first as `before`."""
    decide: Decide | None = None
    """Instead of gradient steps: the whole update, between compiled rollouts and before the
    first."""
    stop_at: StopAt | None = None
    people: int = 0
    """How many people of the rollout are drawn beside each minibatch, for the penalty."""
    variant: Variant = as_it_is
    statement: Statement = nothing_to_say


def ppo_loss(algorithm: Algorithm, config: PPO, batch: Batch) -> Float[Array, ""]:
    """Return PPO's loss on a minibatch, with the algorithm's own penalty added."""
    log_ratio = batch.policy.log_probability(batch.action) - batch.log_probability
    policy = losses.clipped_surrogate(
        log_ratio, algorithm.advantage(config, batch), jnp.asarray(config.clip)
    )
    value = jnp.stack(
        [
            losses.squared_error(out, target)
            for out, target in zip(batch.values, batch.target.T, strict=True)
        ]
    )
    bonus = jnp.mean(batch.policy.entropy())
    penalty = algorithm.penalty(config, batch)
    return policy + config.value * jnp.sum(value) - config.entropy * bonus + penalty
