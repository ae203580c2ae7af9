"""One iteration of training as one compiled function: TrainState -> (TrainState, Metrics)."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from sellf.algorithms import networks
from sellf.algorithms.adam import Learner, at_most
from sellf.algorithms.advantages import gae
from sellf.algorithms.algorithm import (
    Algorithm,
    Batch,
    Columns,
    Critique,
    Deciding,
    Extra,
    Figures,
    People,
    Task,
    ppo_loss,
)
from sellf.algorithms.config import PPO, Settings
from sellf.algorithms.source import Asked, Simulator, Source
from sellf.envs.policy import Categorical
from sellf.envs.space import Space, by_profile, observe
from sellf.envs.world import World
from sellf.fairness import Notion


class Problem(eqx.Module):
    """The source of experience, the fairness notion and the length of the training."""

    source: Source
    notion: Notion = eqx.field(static=True)
    iterations: int = eqx.field(static=True)


def simulated(world: World, notion: Notion, iterations: int) -> Problem:
    """Return the problem of learning in a simulated world."""
    return Problem(Simulator(world, notion), notion, iterations)


class TrainState(NamedTuple):
    """Complete state of a training."""

    key: Key[Array, ""]
    iteration: Int[Array, ""]
    source: Any
    learner: Learner
    extra: Extra


class Decisions(NamedTuple):
    """The data of minibatches; the first axis is the decision."""

    profile: Array
    group: Int[Array, " steps"]
    action: Int[Array, " steps"]
    before: Float[Array, "steps others"]
    """Log-odds of the policy at the start of the iteration."""
    log_probability: Float[Array, " steps"]
    target: Float[Array, "steps critics"]
    columns: Columns
    rows: Float[Array, "steps inputs"] | None = None
    """Network inputs of the person, unless outputs are looked up by profile."""


Metrics = dict[str, Array]


def init(
    algorithm: Algorithm, problem: Problem, config: Settings, key: Key[Array, ""]
) -> TrainState:
    """Return the initial state of the training."""
    key, key_source, key_networks, key_extra = jax.random.split(key, 4)
    task = _task(algorithm, problem)
    parameters = networks.init(algorithm.stacks(task.space), task.space.inputs, key_networks)
    return TrainState(
        key=key,
        iteration=jnp.zeros((), jnp.int32),
        source=problem.source.start(key_source),
        learner=Learner.new(parameters),
        extra=algorithm.start(task, config, key_extra),
    )


def iterate(
    algorithm: Algorithm, problem: Problem, config: Settings, state: TrainState
) -> tuple[TrainState, Metrics]:
    """Collect decisions, learn from them, and return the new state and metrics."""
    task = _task(algorithm, problem)
    space, parameters = task.space, state.learner.parameters
    key, key_source, key_learn, key_order = jax.random.split(state.key, 4)
    stacks = algorithm.stacks(space)
    outputs = by_profile(space, partial(networks.run, stacks, parameters))
    actor, decide = networks.actor_of(stacks, space.inputs, parameters), outputs
    if stacks[0].wide and not space.small:  # critics are not needed to collect decisions
        decide = by_profile(space, partial(networks.run, (task.actor,), actor))
    asked = Asked(
        networks.policy(space, decide, algorithm.reject_below),
        algorithm.predict(task, config, state.extra),
        algorithm.view,
        config.rollout,
    )
    source, seen, measured = problem.source.collect(key_source, state.source, asked)
    deciding = Deciding(networks.policy(space, decide), actor)
    learned = algorithm.learn(task, config, state.extra, seen, deciding, key_learn)
    if algorithm.decide is not None:
        following = TrainState(key, state.iteration + 1, source, state.learner, learned.extra)
        return following, measured | learned.figures
    assert isinstance(config, PPO)
    before, after = outputs(seen.profile), outputs(seen.following)
    others = len(space.actions) - 1
    signal, gamma = algorithm.signals(task, config, learned.extra, seen)
    value = before[others:].T
    advantage = gae(
        signal,
        value,
        after[others:].T,
        seen.terminated,
        seen.truncated,
        gamma,
        jnp.asarray(config.gae_lambda, jnp.float32),
    )
    critique = Critique(advantage, advantage + value)
    weighed = algorithm.weigh(task, config, learned.extra, seen, critique)
    decisions = Decisions(
        seen.profile,
        seen.group,
        seen.action,
        before[:others].T,
        Categorical(before[:others]).log_probability(seen.action),
        critique.target,
        weighed.columns | learned.columns,
    )
    figures = learned.figures | weighed.figures
    learner, loss = improve(algorithm, space, config, state.learner, decisions, figures, key_order)
    if algorithm.project is not None:
        logits = by_profile(space, partial(networks.run, stacks, learner.parameters))
        decisions = decisions._replace(before=logits(seen.profile)[:others].T)
        second = algorithm._replace(loss=algorithm.project)
        key_second = jax.random.fold_in(key_order, 2)
        learner, _ = improve(second, space, config, learner, decisions, figures, key_second)
    if algorithm.waits:
        first = state.iteration == 0
        learner = jax.tree.map(lambda new, old: jnp.where(first, old, new), learner, state.learner)
    following = TrainState(key, state.iteration + 1, source, learner, weighed.extra)
    return following, measured | {"loss": loss} | figures


def _task(algorithm: Algorithm, problem: Problem) -> Task:
    space = problem.source.space
    actor = algorithm.stacks(space)[0].actor
    source = problem.source
    return Task(space, problem.notion, problem.iterations, actor, source.population, source.horizon)


def decided(
    algorithm: Algorithm, problem: Problem, config: Any, state: TrainState
) -> tuple[TrainState, dict[str, Any]]:
    """Return the state with the policy chosen by an algorithm's `decide` hook, and its metrics."""
    if algorithm.decide is None:
        return state, {}
    extra = jax.tree.map(np.asarray, state.extra)
    task = _task(algorithm, problem)
    found = algorithm.decide(task, config, int(state.iteration), extra)
    parameters, extra, figures = found
    # Compiled code uses single precision; `decide` may return double precision.
    kept = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), extra, state.extra)
    learner = state.learner._replace(parameters=jnp.asarray(parameters, jnp.float32))
    return state._replace(learner=learner, extra=kept), dict(figures)


def improve(
    algorithm: Algorithm,
    space: Space,
    config: PPO,
    learner: Learner,
    decisions: Decisions,
    figures: Figures,
    key: Key[Array, ""],
) -> tuple[Learner, Float[Array, ""]]:
    """Take the gradient steps of one iteration; return also the mean loss of the last epoch."""
    stacks = algorithm.stacks(space)
    # With few profiles, the networks run over all of them and outputs are looked up.
    tabular = space.tabular and space.profiles <= 2 * config.batch
    rows = observe(space, jnp.arange(space.profiles) if tabular else decisions.profile)
    if not tabular:
        decisions = decisions._replace(rows=rows)
    batches = config.rollout // config.batch
    few = config.batch * 3 // 4
    choosy = tabular and few < space.profiles and stacks[0].wide and not algorithm.people

    def step(learner: Learner, cut: tuple[Decisions, Decisions | None]) -> tuple[Learner, Array]:
        layers = networks.unflatten(stacks, space.inputs, learner.parameters)
        loss_of = partial(_loss, algorithm, config, space, rows if tabular else None, figures)
        if choosy:
            listed, number = distinct(cut[0].profile, space.profiles, few)
            loss, gradient = jax.lax.cond(
                number <= few,
                lambda: jax.value_and_grad(loss_of)(layers, *cut, listed),
                lambda: jax.value_and_grad(loss_of)(layers, *cut),
            )
        else:
            loss, gradient = jax.value_and_grad(loss_of)(layers, *cut)
        # Joined first: fused into Adam's pass, the concatenation would be evaluated per element.
        gradient = jax.lax.optimization_barrier(networks.flatten(gradient))
        gradient = at_most(gradient, config.gradient_norm)
        return learner.step(gradient, config.learning_rate, config.adam_epsilon), loss

    def epoch(carry: tuple[Learner, Array], chance: tuple[Array, Array]) -> tuple[Any, Array]:
        learner, stopped = carry
        order, drawn = chance

        def cut(column: Array) -> Array:
            return column[order].reshape(batches, config.batch, *column.shape[1:])

        people = jax.tree.map(lambda column: column[drawn], decisions) if algorithm.people else None
        improved, loss = jax.lax.scan(step, learner, (jax.tree.map(cut, decisions), people))
        if algorithm.stop_at is None:
            return (improved, stopped), jnp.mean(loss)
        improved = jax.tree.map(lambda new, old: jnp.where(stopped, old, new), improved, learner)
        layers = networks.unflatten(stacks, space.inputs, improved.parameters)
        logits = networks.forward(stacks, layers, rows)[: len(space.actions) - 1]
        now = Categorical(logits[:, decisions.profile] if tabular else logits)
        moved = jnp.mean(now.divergence(Categorical(decisions.before.T)))
        return (improved, stopped | (moved > algorithm.stop_at(config))), jnp.mean(loss)

    orders = permutations(key, config.epochs, config.rollout)
    shape = (config.epochs, batches, algorithm.people)
    drawn = jax.random.randint(jax.random.fold_in(key, 1), shape, 0, config.rollout)
    (learner, _), loss = jax.lax.scan(epoch, (learner, jnp.asarray(False)), (orders, drawn))
    return learner, loss[-1]


def _loss(
    algorithm: Algorithm,
    config: PPO,
    space: Space,
    everyone: Float[Array, "profiles inputs"] | None,
    figures: Figures,
    layers: list[list[Array]],
    decisions: Decisions,
    drawn: Decisions | None,
    listed: Int[Array, " few"] | None = None,
) -> Float[Array, ""]:
    """Return the loss of a minibatch.

    `everyone` has all profiles, if these are few; `listed` has those of the minibatch.
    """
    stacks, others = algorithm.stacks(space), len(space.actions) - 1
    if everyone is not None:
        if listed is not None:
            everyone = everyone[jnp.minimum(listed, space.profiles - 1)]
        else:
            listed = jnp.arange(space.profiles)
        table = networks.forward(stacks, layers, everyone)
        who = decisions.profile[None, :] == listed[:, None]
        outputs = table @ who.astype(jnp.float32)
    else:
        table, outputs = None, networks.forward(stacks, layers, _rows(decisions))
    people = None
    if drawn is not None:
        theirs = (
            table[:, drawn.profile]
            if table is not None
            else networks.forward(stacks, layers, _rows(drawn))
        )
        people = People(Categorical(theirs[:others]), drawn.group, drawn.columns)
    batch = Batch(
        space,
        Categorical(outputs[:others]),
        Categorical(decisions.before.T),
        outputs[others:],
        layers,
        decisions.group,
        decisions.action,
        decisions.log_probability,
        decisions.target,
        decisions.columns,
        people,
        figures,
    )
    if algorithm.loss is not None:
        return algorithm.loss(config, batch)
    return ppo_loss(algorithm, config, batch)


def _rows(decisions: Decisions) -> Float[Array, "batch inputs"]:
    assert decisions.rows is not None
    return decisions.rows


def distinct(
    profile: Int[Array, " batch"], profiles: int, few: int
) -> tuple[Int[Array, " few"], Int[Array, ""]]:
    """Return the first `few` distinct profiles, padded with an unused one, and how many exist."""
    everyone = jnp.arange(profiles)
    there = jnp.any(profile[:, None] == everyone[None, :], axis=0)
    place = jnp.where(there, jnp.cumsum(there) - 1, few)
    at = place[None, :] == jnp.arange(few)[:, None]
    listed = jnp.where(jnp.any(at, axis=1), jnp.argmax(at, axis=1), profiles)
    return listed.astype(jnp.int32), jnp.sum(there)


def permutations(key: Key[Array, ""], number: int, length: int) -> Int[Array, "number length"]:
    """Return random permutations of 0, 1, ..., length - 1, by sorting random bits with indices."""
    bits = max(length - 1, 1).bit_length()
    place = jnp.arange(length, dtype=jnp.uint32)[None, :]
    chance = jax.random.bits(key, (number, length), jnp.uint32) >> bits << bits
    return (jnp.sort(chance | place, axis=1) & ((1 << bits) - 1)).astype(jnp.int32)
