"""The label predictor: trained on the accepted, weighted to represent the rejected (Sec. 3.2, 4).

It stores all accepted people and all policies so far, because the weight of an accepted person is
the ratio of the probability of being rejected now to that of having been accepted earlier.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from sellf.algorithms import losses, networks, published
from sellf.algorithms.adam import Learner
from sellf.algorithms.algorithm import Deciding, Figures, Task
from sellf.algorithms.config import hyperparameters
from sellf.algorithms.networks import Stack
from sellf.algorithms.seen import Seen
from sellf.envs.policy import Categorical, Chances
from sellf.envs.space import by_profile, observe
from sellf.fairness import accepted_by_any, accepted_in_pool, define, group_mean, renyi_population

LINEAR = Stack(policies=0, hidden=())
RELU = Stack(policies=0, hidden=(64, 64), activation="relu")


@hyperparameters
class PredictorConfig:
    """Settings of the label predictor."""

    predictor_rate: float = 1e-2
    """Step size of Adam for the predictor."""
    predictor_decay: float = 0.95
    """Factor by which the predictor's step size is multiplied at every iteration."""
    predictor_steps: int = 25
    """Gradient steps of the predictor per iteration."""
    predictor_batch: int = 64
    """People per gradient step of the predictor."""
    memory: int = 300_000
    """Largest number of accepted people that are stored."""
    earlier_policies: int = 10
    """Number of earlier policies used for the weights, drawn again at every iteration."""
    density: str = "any"
    """Density of the accepted: "any" (probability of acceptance by any of the policies, as in the
    paper) or "balance" (mean over the policies, which is correct for people pooled over iterations,
    each of whom met one policy)."""
    weighted: bool = True
    """Whether accepted people are weighted to represent the rejected."""
    predictor_start: float = 0.0
    """Log-odds that the predictor gives everyone before the first update."""


class Predictor(NamedTuple):
    """The predictor and its training data."""

    learner: Learner
    profile: Array
    """Accepted people; new ones replace the oldest."""
    label: Bool[Array, " memory"]
    """Labels of the accepted people."""
    accepted: Int[Array, ""]
    """Number of people accepted so far."""
    policies: Float[Array, "iterations entry"]
    """Policy of each iteration: its probabilities in a small world, otherwise its parameters."""
    iteration: Int[Array, ""]

    @property
    def parameters(self) -> Float[Array, " size"]:
        """Parameters of the predictor's network as a flat vector."""
        return self.learner.parameters


def start(stack: Stack, task: Task, config: Any, key: Key[Array, ""]) -> Predictor:
    """Return an untrained predictor."""
    space = task.space
    parameters = networks.init((stack,), space.inputs, key)
    # The last parameter is the bias of the output.
    parameters = parameters.at[-1].set(config.predictor_start)
    entry = space.profiles if space.small else networks.size((task.actor,), space.inputs)
    return Predictor(
        Learner.new(parameters),
        space.nobody((config.memory,)),
        jnp.zeros(config.memory, jnp.bool_),
        jnp.zeros((), jnp.int32),
        jnp.zeros((task.iterations, entry)),
        jnp.zeros((), jnp.int32),
    )


def chances(stack: Stack, task: Task, predictor: Predictor) -> Chances:
    """Return phi(x, z), the predicted probability of a good label, by profile."""
    outputs = by_profile(task.space, partial(networks.run, (stack,), predictor.parameters))
    return lambda profile: jax.nn.sigmoid(outputs(profile)[0])


def learn(
    stack: Stack,
    task: Task,
    config: Any,
    predictor: Predictor,
    seen: Seen,
    deciding: Deciding,
    key: Key[Array, ""],
) -> tuple[Predictor, Float[Array, " steps"], Figures]:
    """Store the accepted people and the policy, and take the predictor's gradient steps.

    Args:
        stack: the shape of the predictor.
        task: the learning problem.
        config: a configuration with the fields of `PredictorConfig`.
        predictor: the predictor before the update.
        seen: the rollout.
        deciding: the policy that decided.
        key: random key.

    Returns:
        The updated predictor; for every decision of the rollout, the probability of having been
        accepted before; and values to log: the `error` of each group (eps^, the weighted mean of
        prediction minus label over accepted people) and its `overlap`.
    """
    key_policies, key_people = jax.random.split(key)
    predictor = _remember(task, predictor, seen, deciding)
    before = _accepted_before(task, config, predictor, key_policies)
    shape = (config.predictor_steps, config.predictor_batch)
    known = jnp.minimum(predictor.accepted, config.memory)
    drawn = jax.random.randint(key_people, shape, 0, jnp.maximum(known, 1))
    profile, label = predictor.profile[drawn], predictor.label[drawn]
    weight = jnp.ones(shape)
    if config.weighted:
        logit = deciding.policy(profile).logit(task.space.reveals)
        weight = jax.nn.sigmoid(-logit) / before(profile)
    rate = config.predictor_rate * config.predictor_decay ** predictor.iteration.astype(jnp.float32)
    groups = len(task.space.groups)

    def step(learner: Learner, batch: tuple[Array, ...]) -> tuple[Learner, Array]:
        people, outcome, weights = batch

        def loss_of(flat: Array) -> Array:
            logit = networks.run((stack,), flat, observe(task.space, people))[0]
            group = task.space.group_of(people)
            return losses.weighted_cross_entropy(logit, outcome, weights, group, groups)

        loss, gradient = jax.value_and_grad(loss_of)(learner.parameters)
        return learner.step(gradient, rate, 1e-8), loss

    learner, loss = jax.lax.scan(step, predictor.learner, (profile, label, weight))
    # Without accepted people there is nothing to learn from.
    ready = known > 0
    learner = jax.tree.map(lambda new, old: jnp.where(ready, new, old), learner, predictor.learner)
    predictor = predictor._replace(learner=learner, iteration=predictor.iteration + 1)
    each_before = before(seen.profile)
    member = task.space.group_of(profile).reshape(-1)
    miss = chances(stack, task, predictor)(profile) - label.astype(jnp.float32)
    error = group_mean(miss.reshape(-1), member, groups, weight.reshape(-1))
    chance = deciding.policy(seen.profile).chance(task.space.reveals)
    return (
        predictor,
        each_before,
        {
            "predictor_loss": loss[-1],
            # The error is not defined if nobody of the group was drawn.
            "error": jnp.where(ready & jnp.isfinite(error), error, 0.0),
            **overlap(chance, each_before, seen.group, groups),
            **_published(task, config, predictor, seen, profile, key),
        },
    )


def _published(
    task: Task, config: Any, predictor: Predictor, seen: Seen, profile: Array, key: Key[Array, ""]
) -> Figures:
    """Return the overlap measures of the published code, in worlds with tabulated policies."""
    if not task.space.small:
        return {}
    return published.overlap(
        jax.random.fold_in(key, 1),
        predictor.policies,
        predictor.iteration,
        min(config.earlier_policies, predictor.policies.shape[0]),
        seen.profile,
        profile,
        task.space.group,
        len(task.space.groups),
    )


def overlap(
    chance: Float[Array, " steps"],
    before: Float[Array, " steps"],
    group: Int[Array, " steps"],
    groups: int,
) -> Figures:
    """Return how well the people accepted before represent the rejected, per group.

    Over the people of a rollout, these are the largest weight w = D_R / D_A (Eq. 3), the smallest
    probability of having been accepted before, and d2(D_R || D_A). For a group without people, the
    weight is 0, the probability 1 and the divergence 1.

    Args:
        chance: pi, the policy's probability of acceptance.
        before: P, the probability of having been accepted before.
        group: the group of each person.
        groups: the number of groups.
    """
    member = group[:, None] == jnp.arange(groups)[None, :]
    ratio = jnp.where(member, ((1 - chance) / before)[:, None], 0.0)
    rejected = group_mean(1 - chance, group, groups)
    scale = group_mean(before, group, groups) / jnp.where(rejected > 0, rejected, 1.0)
    divergence = renyi_population(chance, before, group, groups)
    return {
        "largest_weight": jnp.where(rejected > 0, scale, 0.0) * jnp.max(ratio, axis=0),
        "smallest_acceptance": jnp.min(jnp.where(member, before[:, None], 1.0), axis=0),
        "divergence": jnp.where(jnp.isfinite(divergence), divergence, 1.0),
    }


def renyi_scale(task: Task, seen: Seen, before: Float[Array, " steps"]) -> Float[Array, " groups"]:
    """Return c_g, a group's weight in L_Renyi: a / r divided by the share the notion refers to.

    That share is 1 for notions about everyone and phi~ for opportunity; with several rates, it is
    the smallest one.
    """
    groups = len(task.space.groups)
    accepted = group_mean(before, seen.group, groups)
    rejected = group_mean(1.0 - seen.revealed.astype(jnp.float32), seen.group, groups)
    scale = accepted / jnp.maximum(rejected, 1 / seen.action.shape[0])
    spoken_of = [rate.among.total(seen.last) for rate in define(task.notion).rates]
    share = jnp.min(jnp.stack(spoken_of), axis=0) / jnp.maximum(seen.last.people, 1.0)
    scale = scale / jnp.maximum(share, 1e-3)
    return jnp.where(jnp.isnan(scale), 0.0, scale)  # nobody of the group was met


def _remember(task: Task, predictor: Predictor, seen: Seen, deciding: Deciding) -> Predictor:
    size = predictor.profile.shape[0]
    number = jnp.cumsum(seen.revealed.astype(jnp.int32))
    place = jnp.where(seen.revealed, (predictor.accepted + number - 1) % size, size)
    entry = (
        deciding.policy(jnp.arange(task.space.profiles)).chance(task.space.reveals)
        if task.space.small
        else deciding.parameters
    )
    return predictor._replace(
        profile=predictor.profile.at[place].set(seen.profile, mode="drop"),
        label=predictor.label.at[place].set(seen.positive, mode="drop"),
        accepted=predictor.accepted + number[-1],
        policies=jax.lax.dynamic_update_index_in_dim(
            predictor.policies, entry, predictor.iteration, 0
        ),
    )


def _accepted_before(task: Task, config: Any, predictor: Predictor, key: Key[Array, ""]) -> Chances:
    """Return the probability of acceptance by some of the policies so far, by profile."""
    iterations = predictor.policies.shape[0]
    kept = min(config.earlier_policies, iterations)
    known = jnp.arange(iterations) <= predictor.iteration
    luck = jnp.where(known, jax.random.uniform(key, (iterations,)), -1.0)
    rank, chosen = jax.lax.top_k(luck, kept)
    entries, real = predictor.policies[chosen], rank >= 0

    def pooled(each: Array) -> Array:
        there = real.reshape(-1, *(1,) * (each.ndim - 1))
        if config.density == "balance":
            chance = accepted_in_pool(each, real.astype(jnp.float32))
        else:
            chance = accepted_by_any(jnp.where(there, each, 0.0))
        return jnp.maximum(chance, 1e-6)

    if task.space.small:
        table = pooled(entries)
        return lambda profile: table[profile]

    def on_demand(profile: Array) -> Array:
        x = observe(task.space, task.space.flat(profile))

        def chance(flat: Array) -> Array:
            return Categorical(networks.run((task.actor,), flat, x)).chance(task.space.reveals)

        return pooled(jax.vmap(chance)(entries)).reshape(task.space.shape_of(profile))

    return on_demand
