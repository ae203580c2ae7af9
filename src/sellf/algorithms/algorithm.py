"""The definition of an algorithm: its settings, and a few pure functions (hooks).

Each hook has a protocol here that states its arguments and its return value. No hook receives a
world, so an algorithm cannot use anything that a `Space` does not contain.
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
"""State that an algorithm carries between iterations in addition to its networks; a pytree."""
Columns: TypeAlias = dict[str, Array]
"""Arrays by name, with the decision as the first axis; they are split into minibatches."""
Figures: TypeAlias = dict[str, Array]
"""Logged values of an iteration, by name: scalars, or one value per group."""


class Task(eqx.Module):
    """The learning problem: the space, the fairness notion and the length of the training."""

    space: Space
    notion: Notion = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    actor: AnyStack = eqx.field(static=True)
    """Shape of the policy's networks."""
    population: int = eqx.field(static=True)
    """Size of the population from which the next person is drawn."""
    horizon: int = eqx.field(static=True)
    """Largest number of decisions in an episode."""


class Deciding(NamedTuple):
    """The policy that decided in a rollout."""

    policy: Policy
    """The policy of the networks, before the cut-off of a semi-stochastic policy."""
    parameters: Float[Array, " size"]
    """Parameters of the policy's networks alone, whose shape is `Task.actor`."""


class Critique(NamedTuple):
    """Advantages and value targets of a rollout, one column per critic."""

    advantage: Float[Array, "steps critics"]
    target: Float[Array, "steps critics"]


class Result(NamedTuple):
    """The return value of a hook."""

    extra: Extra
    columns: Columns
    """Columns for the minibatches."""
    figures: Figures
    """Values for the loss and for the log."""


class People(NamedTuple):
    """Some people, and the current policy's action probabilities for them."""

    policy: Categorical
    group: Int[Array, " batch"]
    columns: Columns


class Batch(NamedTuple):
    """The decisions of a minibatch."""

    space: Space
    policy: Categorical
    """The current policy."""
    before: Categorical
    """The policy at the start of the iteration."""
    values: Float[Array, "critics batch"]
    layers: list[list[Array]]
    """All parameters: for each stack, weights and biases in alternation."""
    group: Int[Array, " batch"]
    action: Int[Array, " batch"]
    log_probability: Float[Array, " batch"]
    """Log-probability of the decision at the start of the iteration."""
    target: Float[Array, "batch critics"]
    columns: Columns
    people: People | None
    """People drawn in addition to the minibatch, if the algorithm uses them."""
    figures: Figures


@runtime_checkable
class Networks(Protocol):
    """Return the networks: first those of the policy, then the critics."""

    def __call__(self, space: Space, /) -> tuple[AnyStack, ...]: ...


@runtime_checkable
class Start(Protocol):
    """Return the state before the first iteration."""

    def __call__(self, task: Task, config: Any, key: Key[Array, ""], /) -> Extra: ...


@runtime_checkable
class Predict(Protocol):
    """Return the current label predictor, or None."""

    def __call__(self, task: Task, config: Any, extra: Extra, /) -> Chances | None: ...


@runtime_checkable
class Learn(Protocol):
    """Update the state after a rollout."""

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
    """Return the critics' signals (steps, critics) and their discounts (critics,)."""

    def __call__(
        self, task: Task, config: Any, extra: Extra, seen: Seen, /
    ) -> tuple[Array, Array]: ...


@runtime_checkable
class Weigh(Protocol):
    """Return the columns of the minibatches, computed from the advantages."""

    def __call__(
        self, task: Task, config: Any, extra: Extra, seen: Seen, critique: Critique, /
    ) -> Result: ...


@runtime_checkable
class OnBatch(Protocol):
    """Return the advantage, the penalty or the loss of a minibatch."""

    def __call__(self, config: Any, batch: Batch, /) -> Array: ...


@runtime_checkable
class StopAt(Protocol):
    """Return the mean divergence from the old policy above which no further epoch is run."""

    def __call__(self, config: Any, /) -> Array: ...


@runtime_checkable
class Decide(Protocol):
    """Return the policy's parameters, the updated state, and values to log.

    The hook is not compiled: it works on NumPy arrays, and its run time is not limited.
    """

    def __call__(
        self, task: Task, config: Any, iteration: int, extra: Extra, /
    ) -> tuple[Array | np.ndarray, Extra, Mapping[str, Any]]: ...


@runtime_checkable
class Variant(Protocol):
    """Return the algorithm with the hooks that its settings and the notion require."""

    def __call__(self, algorithm: "Algorithm", config: Any, notion: Notion, /) -> "Algorithm": ...


@runtime_checkable
class Statement(Protocol):
    """Return a sentence about the constraint of a training, based on its metrics, or None."""

    def __call__(
        self, notion: Notion, config: Any, rows: list[dict[str, Any]], /
    ) -> str | None: ...


def one_critic(space: Space) -> tuple[Stack, ...]:
    """Return a stack with the policy and a critic of the reward."""
    return (Stack(policies=len(space.actions) - 1),)


def no_extra(task: Task, config: Any, key: Key[Array, ""]) -> Extra:
    """Return an empty state."""
    return ()


def no_predictor(task: Task, config: Any, extra: Extra) -> Chances | None:
    """Return None: there is no label predictor."""
    return None


def learn_nothing(
    task: Task, config: Any, extra: Extra, seen: Seen, deciding: Deciding, key: Array
) -> Result:
    """Return the state unchanged: only the policy is learned."""
    return Result(extra, {}, {})


def reward_only(task: Task, config: PPO, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Return the reward as the only signal, and its discount."""
    return seen.reward[:, None], jnp.stack([jnp.asarray(config.gamma, jnp.float32)])


def advantage_only(task: Task, config: Any, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Return the advantage of the reward as the only column."""
    return Result(extra, {"advantage": critique.advantage[:, 0]}, {})


def plain_advantage(config: Any, batch: Batch) -> Float[Array, " batch"]:
    """Standardise the advantage within the minibatch."""
    return standardised(batch.columns["advantage"])


def no_penalty(config: Any, batch: Batch) -> Array:
    """Return a penalty of 0."""
    return jnp.zeros(())


def as_it_is(algorithm: "Algorithm", config: Any, notion: Notion) -> "Algorithm":
    """Return the algorithm unchanged, for all settings and notions."""
    return algorithm


def nothing_to_say(notion: Notion, config: Any, rows: list[dict[str, Any]]) -> str | None:
    """Return None: the algorithm guarantees nothing about its disparity."""
    return None


class Algorithm(NamedTuple):
    """An algorithm: its settings, its view of the disparity, its networks and its hooks."""

    name: str
    config: type[Settings]
    summary: str
    view: View = "accepted"
    """View in which the algorithm sees the disparity; only an oracle uses "true"."""
    stacks: Networks = one_critic
    predictor: Stack | None = None
    """Shape of the label predictor, if there is one."""
    reject_below: float = 0.0
    """People with an acceptance probability below this value are always rejected."""
    waits: bool = False
    """Whether the first iteration trains the predictor only."""
    start: Start = no_extra
    predict: Predict = no_predictor
    learn: Learn = learn_nothing
    signals: Signals = reward_only
    weigh: Weigh = advantage_only
    advantage: OnBatch = plain_advantage
    """The advantage within a minibatch."""
    penalty: OnBatch = no_penalty
    """Term added to PPO's loss."""
    loss: OnBatch | None = None
    """Loss that replaces PPO's."""
    project: OnBatch | None = None
    """Loss of a second pass over the decisions; its `before` is the policy after the first pass."""
    decide: Decide | None = None
    """The whole update, which replaces gradient steps; it runs between compiled rollouts and before
    the first."""
    stop_at: StopAt | None = None
    people: int = 0
    """Number of people drawn from the rollout in addition to each minibatch, for the penalty."""
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
