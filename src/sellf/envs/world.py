"""A world (F-MDP): a space, and the law behind it: who comes, whose label is good, what follows.

A simulation asks six things of a world, the methods of `World`, and knows nothing else of people:
a population is a pytree whose leaves have one entry per person. `sellf.envs.table` answers from
arrays over profiles, where a population is one profile number per person. Everything here is a pure
function that compiles and vectorises.
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
"""Some people: a pytree of arrays, each with one entry per person first. In a world of tables, the
profile of each."""


class World(eqx.Module):
    """The rules of a world, and what a simulation asks of it; see `sellf.make_world`."""

    name: str = eqx.field(static=True)
    space: Space
    """What a decision-maker may know; the rest is hidden."""
    horizon: int = eqx.field(static=True)
    population: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    """How many decisions Delta_t looks back."""
    start: float = eqx.field(static=True)
    """The resource an episode starts with."""

    @abstractmethod
    def arriving(self, key: Key[Array, ""], shape: tuple[int, ...]) -> People:
        """Draw newcomers."""

    @abstractmethod
    def seen(self, people: People) -> Array:
        """Return people as a policy is given them: see `sellf.envs.space.observe`."""

    @abstractmethod
    def group_of(self, people: People) -> Int[Array, "*n"]:
        """Return the group of each, as a place in `groups`."""

    @abstractmethod
    def label_chance(self, people: People) -> Float[Array, "*n"]:
        """Return alpha(x, z) = P(Y = 1 | x, z) of each."""

    @abstractmethod
    def luck(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Any:
        """Draw the chance in transitions; None if there is none."""

    @abstractmethod
    def follow(self, people: People, action: Array, label: Array, luck: Any) -> People:
        """Return what becomes of people, by decision, label and chance."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self.space.groups

    @property
    def columns(self) -> tuple[str, ...]:
        """What each input of a network is, in order."""
        return self.space.columns

    @property
    def inputs(self) -> int:
        """How many numbers a network is given of a person."""
        return self.space.inputs

    @property
    def cost(self) -> float:
        """c: an acceptance is worth y - c."""
        return -self.space.gain[-1][0]


def at(people: People, index: Any) -> People:
    """Return some of the people."""
    return jax.tree.map(lambda leaf: leaf[index], people)


def choose(condition: Array, one: People, other: People) -> People:
    """Return the first where the condition holds, and the second elsewhere."""

    def leaf(yes: Array, no: Array) -> Array:
        if condition.ndim in (0, yes.ndim):
            return jnp.where(condition, yes, no)
        return jnp.where(condition.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)

    return jax.tree.map(leaf, one, other)


def differ(one: People, other: People) -> Bool[Array, " people"]:
    """Return who is not the same any more."""

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
    """An episode under way."""

    profile: People
    """Everyone in the population."""
    window: Window
    person: Int[Array, ""]
    """Whose turn it is."""
    time: Int[Array, ""]
    """Decisions taken in this episode."""
    taken: Int[Array, "paying 2"]
    """How often each action that pays was taken in this episode, and how often with a good label:
    whole numbers, so that the resource does not drift."""
    over: Bool[Array, ""]
    """The episode has ended; `reset` starts another."""


class Draws(NamedTuple):
    """All the chance in what follows a decision, drawn beforehand."""

    label: Float[Array, "*n"]
    later_label: Float[Array, "*n"]
    guess: Float[Array, "*n"]
    later_action: Float[Array, "*n"]
    person: Int[Array, "*n"]
    """Who comes next."""
    move: Any = None
    """For the transition: `World.luck`."""


class Outcome(NamedTuple):
    """What a decision leads to for the person it is about."""

    action: Int[Array, "*n"]
    label: Bool[Array, "*n"]
    later_label: Bool[Array, "*n"]
    """A label drawn after the person changed."""
    moved: People
    """The person afterwards."""
    entry: Int[Array, "*n"]
    """The decision as the window keeps it."""


class Step(NamedTuple):
    """One decision and what it led to.

    It holds everyone's label: whoever passes it on must hide those that no decision reveals.
    """

    profile: People
    """The person decided about, before the decision changed them."""
    outcome: Outcome
    following: People
    """The person who comes next, or would if the episode had not ended."""
    reward: Float[Array, "*n"]
    terminated: Bool[Array, "*n"]
    """The resource is used up."""
    truncated: Bool[Array, "*n"]
    """The horizon is reached."""
    histogram: Int[Array, "*n kinds"]
    """The decision window, this decision included."""
    before: Int[Array, "*n kinds"]
    """The decision window as this decision found it."""


def reset(world: World, key: Key[Array, ""]) -> State:
    """Draw a new population and whose turn is first; nothing was decided yet."""
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
    """Return a window full of decisions of a policy on a population as it is now.

    Everyone is decided about once (or as often as the window has room), and nobody changes by it.
    """
    profile = at(profile, jnp.arange(world.window) % world.population)
    seen = world.seen(profile)
    chance = jax.random.uniform(key, (3, world.window))
    action, label = drawn(policy(seen), chance[0]), chance[1] < world.label_chance(profile)
    guess = chance[2] < predict(seen) if predict else jnp.zeros_like(label)
    entries = windows.entry(world.space, world.group_of(profile), action, label, guess)
    return windows.of_entries(world.space, entries)


def draws(world: World, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Draws:
    """Draw the chance for one decision, or for many."""
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
    """Return what decisions about people lead to: the label, the change, the window's entry.

    Some notions count people after the change, and they are decided about anew as they are then:
    the label after a change is revealed by that decision, not by the one before it. Where there is
    no policy to ask, the decision stands for both.
    """
    label = chance.label < world.label_chance(profile)
    moved = world.follow(profile, action, label, chance.move)
    later_label = chance.later_label < world.label_chance(moved)
    # Qualification is acted on through the change that a decision brings about (Sec. 4).
    after = define(notion).delayed
    counted, counted_label = (moved, later_label) if after else (profile, label)
    decision = drawn(policy(world.seen(moved)), chance.later_action) if after and policy else action
    guess = chance.guess < predict(world.seen(counted)) if predict else jnp.zeros_like(label)
    entry = windows.entry(world.space, world.group_of(profile), decision, counted_label, guess)
    return Outcome(action, label, later_label, moved, entry)


def taken(space: Space, outcome: Outcome) -> Int[Array, "*n paying 2"]:
    """Return which action that pays each decision is, and whether with a good label."""
    each = [(outcome.action == a, (outcome.action == a) & outcome.label) for a in space.paying]
    return jnp.stack([jnp.stack(pair, -1) for pair in each], -2).astype(jnp.int32)


def resource(world: World, taken: Int[Array, "*n paying 2"]) -> Float[Array, "*n"]:
    """Return what is left of the resource; never below 0."""
    number = taken.astype(jnp.float32)
    left = jnp.full(taken.shape[:-2], world.start, jnp.float32)
    for place, action in enumerate(world.space.paying):
        bad, good = world.space.gain[action]
        left = left + (good - bad) * number[..., place, 1] + bad * number[..., place, 0]
    return jnp.maximum(left, 0.0)


def reward(
    world: World, before: Float[Array, "*n"], after: Float[Array, "*n"], outcome: Outcome
) -> Float[Array, "*n"]:
    """Return the gain of a decision, or what was left where that would cost more than there was."""
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
    """Decide about the person whose turn it is; see `advance`."""
    return advance(world, state, action, draws(world, key), notion, predict)


def advance(
    world: World,
    state: State,
    action: Array,
    chance: Draws,
    notion: Notion = "opportunity",
    predict: Chances | None = None,
) -> tuple[State, Step]:
    """Decide about the person whose turn it is, with the chance given.

    Args:
        world: the law and the rules.
        state: the episode under way.
        action: a place in `Space.actions`.
        chance: all the randomness in what follows.
        notion: what the decision window is for: some count labels after the change.
        predict: the predictor behind imputed labels; without one they are all 0.
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
        world: with the label law.
        profile: of everyone.
        chance: of a favourable decision about each.
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
    """Return the same with people as a policy is given them."""
    return steps._replace(
        profile=world.seen(steps.profile),
        following=world.seen(steps.following),
        outcome=steps.outcome._replace(moved=world.seen(steps.outcome.moved)),
    )


def exact_disparity(world: World, state: State, policy: Policy, notion: Notion) -> Array:
    """Return the true disparity of the current population, free of sampling noise.

    The expectation over everyone in the population, their labels (alpha) and the policy's
    decisions: no window and no draws.
    """
    chance = policy(world.seen(state.profile)).chance(world.space.favourable)
    return gap(notion, exact_counts(world, state.profile, chance))
