"""One iteration of training as one compiled function: TrainState -> (TrainState, Metrics)."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from sellf.algorithms import losses, networks
from sellf.algorithms.adam import Learner, at_most
from sellf.algorithms.advantages import gae
from sellf.algorithms.algorithm import Algorithm, Critique, Extra, Fields, Task, ppo_loss
from sellf.algorithms.config import PPO
from sellf.algorithms.seen import disparities, members, see
from sellf.envs import world as worlds
from sellf.envs.rollout import rollout
from sellf.envs.world import State, Step, World
from sellf.fairness import VIEWS


class TrainState(NamedTuple):
    """All that training goes on from."""

    key: Key[Array, ""]
    iteration: Int[Array, ""]
    world: State
    learner: Learner
    extra: Extra


class Policy(NamedTuple):
    """The policy that decided in a rollout."""

    logit: Callable[[Array], Array]
    """By profile."""
    parameters: Float[Array, " size"]
    """Of all networks."""


Metrics = dict[str, Array]


def init(algorithm: Algorithm, task: Task, config: PPO, key: Key[Array, ""]) -> TrainState:
    """Return where training starts."""
    key, key_world, key_networks, key_extra = jax.random.split(key, 4)
    stacks = algorithm.stacks(len(task.world.groups))
    parameters = networks.init(stacks, task.world.inputs, key_networks)
    return TrainState(
        key=key,
        iteration=jnp.zeros((), jnp.int32),
        world=worlds.reset(task.world, key_world),
        learner=Learner.new(parameters),
        extra=algorithm.start(task, config, key_extra),
    )


def iterate(
    algorithm: Algorithm, task: Task, config: PPO, state: TrainState
) -> tuple[TrainState, Metrics]:
    """Collect decisions, learn from them, and tell how it went."""
    world = task.world
    key, key_rollout, key_learn, key_order = jax.random.split(state.key, 4)
    stacks = algorithm.stacks(len(world.groups))
    outputs = networks.by_profile(world, partial(networks.run, stacks, state.learner.parameters))
    accept = networks.acceptance(outputs, algorithm.reject_below)
    predict = algorithm.predict(task, config, state.extra)
    world_state, steps = rollout(
        world, key_rollout, state.world, config.rollout, accept, task.notion, predict
    )
    seen = see(world, steps, task.notion, algorithm.view)
    policy = Policy(lambda profile: outputs(profile)[0], state.learner.parameters)
    extra, figures = algorithm.learn(task, config, state.extra, seen, policy, key_learn)

    before, after = outputs(steps.profile), outputs(steps.following)
    signal, gamma = algorithm.signals(task, config, extra, seen)
    advantage = gae(
        signal,
        before[1:].T,
        after[1:].T,
        seen.terminated,
        seen.truncated,
        gamma,
        jnp.asarray(config.gae_lambda, jnp.float32),
    )
    critique = Critique(advantage, advantage + before[1:].T, before[1:].T)
    extra, fields = algorithm.weigh(task, config, extra, seen, critique)
    per_decision = {name: figures.pop(name) for name in list(figures) if name.startswith("each_")}
    fields |= per_decision | {
        "profile": seen.profile,
        "group": seen.group,
        "action": seen.action,
        "old_logit": before[0],
        "log_probability": losses.log_probability(before[0], seen.action),
        "target": critique.target,
    }
    learner, loss = improve(algorithm, world, config, state.learner, fields, figures, key_order)
    if algorithm.waits:
        first = state.iteration == 0
        learner = jax.tree.map(lambda new, old: jnp.where(first, old, new), learner, state.learner)
    metrics = measure(task, steps, accept) | {"loss": loss} | _scalars(figures) | _scalars(extra)
    following = TrainState(key, state.iteration + 1, world_state, learner, extra)
    return following, metrics


def improve(
    algorithm: Algorithm,
    world: World,
    config: PPO,
    learner: Learner,
    fields: Fields,
    figures: Fields,
    key: Key[Array, ""],
) -> tuple[Learner, Float[Array, ""]]:
    """Take the gradient steps of one iteration; return also the mean loss of the last epoch."""
    stacks = algorithm.stacks(len(world.groups))
    inputs = world.inputs
    # Few profiles: the networks run over all of them, and a decision's outputs are looked up.
    tabular = world.profiles <= 2 * config.batch
    rows = worlds.observe(world, jnp.arange(world.profiles) if tabular else fields["profile"])

    def loss_of(layers: list[list[Array]], batch: Fields) -> Array:
        everyone = networks.forward(stacks, layers, rows) if tabular else None
        if everyone is not None:
            who = batch["profile"][None, :] == jnp.arange(world.profiles)[:, None]
            outputs = everyone @ who.astype(jnp.float32)
        else:
            outputs = networks.forward(stacks, layers, batch["rows"])
        if algorithm.people:
            others = (
                everyone[:, batch["people_profile"]]
                if everyone is not None
                else networks.forward(stacks, layers, batch["people_rows"])
            )
            batch = batch | {"people_logit": others[0]}
        if algorithm.loss is not None:
            return algorithm.loss(config, layers, outputs, batch, figures)
        return ppo_loss(algorithm, config, outputs, batch, figures)

    def step(learner: Learner, batch: Fields) -> tuple[Learner, Array]:
        layers = networks.unflatten(stacks, inputs, learner.parameters)
        loss, gradient = jax.value_and_grad(loss_of)(layers, batch)
        gradient = at_most(networks.flatten(gradient), config.gradient_norm)
        return learner.step(gradient, config.learning_rate, config.adam_epsilon), loss

    if not tabular:
        fields = fields | {"rows": rows}
    batches = config.rollout // config.batch

    def epoch(carry: tuple[Learner, Array], chance: tuple[Array, Array]) -> tuple[Any, Array]:
        learner, stopped = carry
        order, drawn = chance
        cut = {
            name: column[order].reshape(batches, config.batch, *column.shape[1:])
            for name, column in fields.items()
        }
        if algorithm.people:
            cut |= {f"people_{name}": column[drawn] for name, column in fields.items()}
        improved, loss = jax.lax.scan(step, learner, cut)
        if algorithm.stop_at is None:
            return (improved, stopped), jnp.mean(loss)
        improved = jax.tree.map(lambda new, old: jnp.where(stopped, old, new), improved, learner)
        layers = networks.unflatten(stacks, inputs, improved.parameters)
        logit = networks.forward(stacks, layers, rows)[0]
        logit = logit[fields["profile"]] if tabular else logit
        moved = jnp.mean(losses.divergence(logit, fields["old_logit"]))
        return (improved, stopped | (moved > algorithm.stop_at(config))), jnp.mean(loss)

    orders = permutations(key, config.epochs, config.rollout)
    drawn = jax.random.randint(
        jax.random.fold_in(key, 1),
        (config.epochs, batches, algorithm.people),
        0,
        config.rollout,
    )
    (learner, _), loss = jax.lax.scan(epoch, (learner, jnp.asarray(False)), (orders, drawn))
    return learner, loss[-1]


def permutations(key: Key[Array, ""], number: int, length: int) -> Int[Array, "number length"]:
    """Return random orders of 0, 1, ..., length - 1, by sorting chance and place as one number."""
    bits = max(length - 1, 1).bit_length()
    place = jnp.arange(length, dtype=jnp.uint32)[None, :]
    chance = jax.random.bits(key, (number, length), jnp.uint32) >> bits << bits
    return (jnp.sort(chance | place, axis=1) & ((1 << bits) - 1)).astype(jnp.int32)


def measure(task: Task, steps: Step, accept: worlds.Chances) -> Metrics:
    """Return what to log of a rollout; the true figures are for people, not for the algorithm."""
    member = members(task.world.group[steps.profile], len(task.world.groups))
    accepted = steps.outcome.action.astype(jnp.float32) @ member
    return {
        "reward": jnp.sum(steps.reward),
        "acceptance": accepted / jnp.maximum(jnp.sum(member, axis=0), 1.0),
        **{
            f"disparity_{view}": jnp.mean(disparities(steps.histogram, task.notion, view))
            for view in VIEWS
        },
    }


def _scalars(tree: Any) -> Metrics:
    """Return the named single numbers (and numbers per group) of what an algorithm keeps."""
    named = tree if isinstance(tree, dict) else getattr(tree, "_asdict", dict)()
    return {
        name: value
        for name, value in named.items()
        if isinstance(value, jax.Array) and value.ndim <= 1 and value.size <= 16
        and jnp.issubdtype(value.dtype, jnp.floating)
    }  # fmt: skip
