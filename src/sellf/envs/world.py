"""A world (F-MDP): a space and the law behind it, which covers arrivals, labels and transitions.

A simulation uses only the six abstract methods of `World`; a population is a pytree whose leaves
have one entry per person. In `sellf.envs.table` these methods look up arrays over profiles, and a
population is one profile number per person. All functions here are pure, and can be compiled and
vectorised.
"""

from abc import abstractmethod
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from sellf.envs import window as windows
from sellf.envs.policy import Chances, Policy, Thresholds, drawn
from sellf.envs.space import Space
from sellf.envs.window import Window
from sellf.fairness import Counts, Notion, define, gap

People: TypeAlias = Any
"""Some people: a pytree of arrays whose first axis is the person. In a world of tables, it is the
profile of each person."""


class World(eqx.Module):
    """The rules of a world, and its interface for simulations; see `sellf.make_world`."""

    name: str = eqx.field(static=True)
    space: Space
    """What a decision-maker may know; the rest is hidden."""
    horizon: int = eqx.field(static=True)
    population: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    """Number of latest decisions that Delta_t is computed from."""
    start: float = eqx.field(static=True)
    """Initial resource of an episode."""

    @abstractmethod
    def arriving(self, key: Key[Array, ""], shape: tuple[int, ...]) -> People:
        """Draw newcomers."""

    @abstractmethod
    def seen(self, people: People) -> Array:
        """Return people in the form that a policy receives; see `sellf.envs.space.observe`."""

    @abstractmethod
    def group_of(self, people: People) -> Int[Array, "*n"]:
        """Return the group of each person, as a position in `groups`."""

    @abstractmethod
    def label_chance(self, people: People) -> Float[Array, "*n"]:
        """Return alpha(x, z) = P(Y = 1 | x, z) of each person."""

    @abstractmethod
    def luck(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Any:
        """Draw the random numbers of transitions; None if transitions are deterministic."""

    @abstractmethod
    def follow(self, people: People, action: Array, label: Array, luck: Any) -> People:
        """Return people after the transition, given decision, label and random numbers."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        return self.space.groups

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the network inputs, in order."""
        return self.space.columns

    @property
    def inputs(self) -> int:
        """Number of network inputs."""
        return self.space.inputs

    @property
    def cost(self) -> float:
        """c: an acceptance is worth y - c."""
        return -self.space.gain[-1][0]


def at(people: People, index: Any) -> People:
    """Return the people at an index."""
    return jax.tree.map(lambda leaf: leaf[index], people)


def choose(condition: Array, one: People, other: People) -> People:
    """Return the first where the condition holds, and the second elsewhere."""

    def leaf(yes: Array, no: Array) -> Array:
        if condition.ndim in (0, yes.ndim):
            return jnp.where(condition, yes, no)
        return jnp.where(condition.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)

    return jax.tree.map(leaf, one, other)


def differ(one: People, other: People) -> Bool[Array, " people"]:
    """Return whether each person has changed."""

    def leaf(new: Array, old: Array) -> Array:
        changed = new != old
        if jnp.issubdtype(new.dtype, jnp.inexact):
            changed = changed & ~(jnp.isnan(new) & jnp.isnan(old))
        return (
            jnp.any(changed.reshape(changed.shape[0], -1), axis=1) if changed.ndim > 1 else changed
        )

    first, *others = jax.tree.leaves(jax.tree.map(leaf, one, other))
    for changed in others:
        first = first | changed
    return first


class State(NamedTuple):
    """State of an episode."""

    profile: People
    """The whole population."""
    window: Window
    person: Int[Array, ""]
    """Index of the current person."""
    time: Int[Array, ""]
    """Number of decisions in this episode."""
    taken: Int[Array, "paying 2"]
    """Counts of each paying action in this episode, in total and with a good label. Whole numbers
    avoid rounding errors in the resource."""
    over: Bool[Array, ""]
    """Whether the episode has ended; `reset` starts another."""


class Draws(NamedTuple):
    """All random numbers for the consequences of a decision, drawn beforehand."""

    label: Float[Array, "*n"]
    later_label: Float[Array, "*n"]
    guess: Float[Array, "*n"]
    later_action: Float[Array, "*n"]
    person: Int[Array, "*n"]
    """Index of the next person."""
    move: Any = None
    """Random numbers of the transition: `World.luck`."""


class Outcome(NamedTuple):
    """The outcome of a decision for the person it is about."""

    action: Int[Array, "*n"]
    label: Bool[Array, "*n"]
    later_label: Bool[Array, "*n"]
    """A label drawn after the person changed."""
    moved: People
    """The person afterwards."""
    entry: Int[Array, "*n"]
    """The decision as encoded in the window."""


class Step(NamedTuple):
    """One decision and its consequences.

    It contains everyone's label; labels that no decision reveals must be removed before it is
    passed on.
    """

    profile: People
    """The person decided about, before the decision changed them."""
    outcome: Outcome
    following: People
    """The next person, or who would have been next if the episode had not ended."""
    reward: Float[Array, "*n"]
    terminated: Bool[Array, "*n"]
    """Whether the resource is used up."""
    truncated: Bool[Array, "*n"]
    """Whether the horizon is reached."""
    histogram: Int[Array, "*n kinds"]
    """Decision window, including this decision."""
    before: Int[Array, "*n kinds"]
    """Decision window before this decision."""


def reset(world: World, key: Key[Array, ""]) -> State:
    """Draw a new population and the first person; the decision window is empty."""
    key_people, key_person = jax.random.split(key)
    return State(
        profile=at(world.arriving(key_people, (1, world.population)), 0),
        window=windows.without_decisions(world.space, world.window),
        person=jax.random.randint(key_person, (), 0, world.population),
        time=jnp.zeros((), jnp.int32),
        taken=jnp.zeros((len(world.space.paying), 2), jnp.int32),
        over=jnp.zeros((), jnp.bool_),
    )


def refill(
    world: World,
    key: Key[Array, ""],
    profile: People,
    policy: Thresholds,
    predict: Chances | None = None,
) -> Window:
    """Return a window filled with a policy's decisions about the current population.

    Everyone is decided about once, or as often as the window has room, and nobody changes.
    """
    profile = at(profile, jnp.arange(world.window) % world.population)
    seen = world.seen(profile)
    chance = jax.random.uniform(key, (3, world.window))
    action, label = drawn(policy(seen), chance[0]), chance[1] < world.label_chance(profile)
    guess = chance[2] < predict(seen) if predict else jnp.zeros_like(label)
    entries = windows.entry(world.space, world.group_of(profile), action, label, guess)
    return windows.of_entries(world.space, entries)


def draws(world: World, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Draws:
    """Draw the random numbers for one decision, or for many."""
    key_chance, key_person = jax.random.split(key)
    chance = jax.random.uniform(key_chance, (3, *shape))
    later = jax.random.uniform(jax.random.fold_in(key_chance, 1), shape)
    person = jax.random.randint(key_person, shape, 0, world.population)
    move = world.luck(jax.random.fold_in(key_chance, 2), shape)
    return Draws(chance[0], chance[1], chance[2], later, person, move)


def decide(
    world: World,
    profile: People,
    action: Int[Array, "*n"],
    chance: Draws,
    notion: Notion,
    predict: Chances | None = None,
    policy: Thresholds | None = None,
) -> Outcome:
    """Return the outcomes of decisions about people: label, transition and window entry.

    Some notions count people after the transition. A second decision is then drawn about the
    changed person, and it determines whether the later label is revealed. Without a policy, the
    first decision is used for both.
    """
    label = chance.label < world.label_chance(profile)
    moved = world.follow(profile, action, label, chance.move)
    later_label = chance.later_label < world.label_chance(moved)
    # Decisions affect qualification through the transition (Sec. 4).
    after = define(notion).delayed
    counted, counted_label = (moved, later_label) if after else (profile, label)
    decision = drawn(policy(world.seen(moved)), chance.later_action) if after and policy else action
    guess = chance.guess < predict(world.seen(counted)) if predict else jnp.zeros_like(label)
    entry = windows.entry(world.space, world.group_of(profile), decision, counted_label, guess)
    return Outcome(action, label, later_label, moved, entry)


def taken(space: Space, outcome: Outcome) -> Int[Array, "*n paying 2"]:
    """Return indicators of each paying action, and of each with a good label."""
    each = [(outcome.action == a, (outcome.action == a) & outcome.label) for a in space.paying]
    return jnp.stack([jnp.stack(pair, -1) for pair in each], -2).astype(jnp.int32)


def resource(world: World, taken: Int[Array, "*n paying 2"]) -> Float[Array, "*n"]:
    """Return the remaining resource; never below 0."""
    number = taken.astype(jnp.float32)
    left = jnp.full(taken.shape[:-2], world.start, jnp.float32)
    for place, action in enumerate(world.space.paying):
        bad, good = world.space.gain[action]
        left = left + (good - bad) * number[..., place, 1] + bad * number[..., place, 0]
    return jnp.maximum(left, 0.0)


def reward(
    world: World, before: Float[Array, "*n"], after: Float[Array, "*n"], outcome: Outcome
) -> Float[Array, "*n"]:
    """Return the gain of a decision; a loss is limited to the remaining resource."""
    gain = jnp.zeros(before.shape)
    for action, worth in enumerate(world.space.gains(outcome.label.astype(jnp.float32))):
        gain = jnp.where(outcome.action == action, worth, gain)
    return jnp.where(after <= 0, -before, gain)


def step(
    world: World,
    key: Key[Array, ""],
    state: State,
    action: Array,
    notion: Notion = "opportunity",
    predict: Chances | None = None,
) -> tuple[State, Step]:
    """Decide about the current person; see `advance`."""
    return advance(world, state, action, draws(world, key), notion, predict)


def advance(
    world: World,
    state: State,
    action: Array,
    chance: Draws,
    notion: Notion = "opportunity",
    predict: Chances | None = None,
) -> tuple[State, Step]:
    """Decide about the current person, with given random numbers.

    Args:
        world: the law and the rules.
        state: the state of the episode.
        action: a position in `Space.actions`.
        chance: the random numbers for the consequences.
        notion: the fairness notion of the decision window; some count labels after the transition.
        predict: the predictor of imputed labels; without one, they are all 0.
    """
    profile = at(state.profile, state.person)
    outcome = decide(world, profile, action.astype(jnp.int32), chance, notion, predict)
    people = jax.tree.map(
        lambda all, one: jax.lax.dynamic_update_index_in_dim(all, one, state.person, 0),
        state.profile,
        outcome.moved,
    )
    window = windows.push(state.window, outcome.entry)
    total = state.taken + taken(world.space, outcome)
    before, after = resource(world, state.taken), resource(world, total)
    terminated = after <= 0
    truncated = (state.time + 1 >= world.horizon) & ~terminated
    result = Step(
        profile=profile,
        outcome=outcome,
        following=at(people, chance.person),
        reward=reward(world, before, after, outcome),
        terminated=terminated,
        truncated=truncated,
        histogram=window.histogram,
        before=state.window.histogram,
    )
    over = terminated | truncated
    time = state.time + 1
    return State(people, window, chance.person, time, total, over), result


def exact_counts(world: World, profile: People, chance: Float[Array, "*n people"]) -> Counts:
    """Return the expected counts of a whole population under alpha and a policy.

    Args:
        world: the world with the label law.
        profile: the whole population.
        chance: the probability of a favourable decision about each person.
    """
    alpha = world.label_chance(profile)
    group = world.group_of(profile)[..., None]
    member = group == jnp.arange(len(world.groups)).reshape((1,) * alpha.ndim + (-1,))

    def total(values: Array) -> Array:
        return jnp.sum(jnp.where(member, values[..., None], 0.0), axis=-2)

    everyone = jnp.ones_like(alpha)
    return Counts(
        people=total(everyone),
        accepted=total(chance),
        accepted_positive=total(chance * alpha),
        rejected_positive=total((1 - chance) * alpha),
    )


def observed(world: World, steps: Step) -> Step:
    """Return the steps with people in the form that a policy receives."""
    return steps._replace(
        profile=world.seen(steps.profile),
        following=world.seen(steps.following),
        outcome=steps.outcome._replace(moved=world.seen(steps.outcome.moved)),
    )


def exact_disparity(world: World, state: State, policy: Policy, notion: Notion) -> Array:
    """Return the true disparity of the current population, free of sampling noise.

    It is the expectation over everyone in the population, their labels (alpha) and the policy's
    decisions, without a window or random draws.
    """
    chance = policy(world.seen(state.profile)).chance(world.space.favourable)
    return gap(notion, exact_counts(world, state.profile, chance))
