"""A world (F-MDP): people, a label law, and what decisions do to people; all of it as tables.

Whatever a person can be, group and features together, is one of finitely many *profiles*. So a
world is a few arrays over profiles: the group, alpha (the chance of a good label), the profile
that follows each decision and label, and how a network sees it. A population is one profile
number per person, and everything here is a pure function that compiles and vectorises.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from sellf.envs import window as windows
from sellf.envs.window import Window
from sellf.fairness import Counts, Notion, define, gap

SMALL = 4096
"""Worlds of at most this many profiles have their policies tabulated; others ask on demand."""

Chances: TypeAlias = Callable[[Int[Array, "*n"]], Float[Array, "*n"]]
"""Probabilities by profile: of acceptance (a policy), or of a good label (a predictor)."""


class Encoding(NamedTuple):
    """How networks see a profile: one-hot fixed features, numbers, changing features, group."""

    fixed: Int[Array, " profiles"]
    """The row of `codes` and `numbers` that holds what never changes of the profile."""
    changing: Int[Array, " profiles"]
    """The row of `changes` that holds what decisions may change."""
    codes: UInt8[Array, "rows features"]
    feature: Int[Array, " onehot"]
    """One-hot column j is 1 where feature `feature[j]` ..."""
    category: UInt8[Array, " onehot"]
    """... has this category."""
    numbers: Float[Array, "rows numeric"]
    changes: Float[Array, "states columns"]


class Arrivals(NamedTuple):
    """Who may be in a new population, and how likely."""

    profile: Int[Array, " rows"]
    cumulative: Float[Array, " rows"]


class World(eqx.Module):
    """The tables of a world and its rules; see `sellf.make_world`."""

    name: str = eqx.field(static=True)
    groups: tuple[str, ...] = eqx.field(static=True)
    columns: tuple[str, ...] = eqx.field(static=True)
    """What each input of a network is, in order."""
    cost: float = eqx.field(static=True)
    """c: an acceptance is worth y - c."""
    horizon: int = eqx.field(static=True)
    population: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    """How many decisions Delta_t looks back."""
    start: float = eqx.field(static=True)
    """The resource an episode starts with."""
    group: Int[Array, " profiles"]
    alpha: Float[Array, " profiles"]
    """alpha(x, z) = P(Y = 1 | x, z)."""
    moves: Int[Array, "profiles 2 2"]
    """The profile that follows, by decision and label."""
    encoding: Encoding
    arrivals: Arrivals

    @property
    def inputs(self) -> int:
        """How many numbers a network is given of a person."""
        return len(self.columns)

    @property
    def profiles(self) -> int:
        """How many different people there can be."""
        return self.group.shape[0]


class State(NamedTuple):
    """An episode under way."""

    profile: Int[Array, " people"]
    window: Window
    person: Int[Array, ""]
    """Whose turn it is."""
    time: Int[Array, ""]
    """Decisions taken in this episode."""
    accepted: Int[Array, ""]
    """Acceptances in this episode ..."""
    positive: Int[Array, ""]
    """... and those with a good label: whole numbers, so that the resource does not drift."""
    over: Bool[Array, ""]
    """The episode has ended; `reset` starts another."""


class Draws(NamedTuple):
    """All the chance in what follows a decision, drawn beforehand."""

    label: Float[Array, "*n"]
    later_label: Float[Array, "*n"]
    guess: Float[Array, "*n"]
    person: Int[Array, "*n"]
    """Who comes next."""


class Outcome(NamedTuple):
    """What a decision leads to for the person it is about."""

    action: Bool[Array, "*n"]
    label: Bool[Array, "*n"]
    later_label: Bool[Array, "*n"]
    """A label drawn after the person changed."""
    guess: Bool[Array, "*n"]
    """The label that a predictor drew for the person, as the window counts them."""
    moved: Int[Array, "*n"]
    """The person's profile afterwards."""
    entry: Int[Array, "*n"]
    """The decision as the window keeps it."""


class Step(NamedTuple):
    """One decision and what it led to.

    It holds everyone's label: whoever passes it on must hide those of the rejected.
    """

    profile: Int[Array, "*n"]
    """The person decided about, before the decision changed them."""
    outcome: Outcome
    following: Int[Array, "*n"]
    """The person who comes next, or would if the episode had not ended."""
    reward: Float[Array, "*n"]
    terminated: Bool[Array, "*n"]
    """The resource is used up."""
    truncated: Bool[Array, "*n"]
    """The horizon is reached."""
    histogram: Int[Array, "*n kinds"]
    """The decision window, this decision included."""


def observe(world: World, profile: Int[Array, "*n"]) -> Float[Array, "*n inputs"]:
    """Return what a network is given of people."""
    table = world.encoding
    fixed, changing = table.fixed[profile], table.changing[profile]

    def along_last(values: Array) -> Array:
        return values.reshape((1,) * profile.ndim + values.shape)

    category = jnp.take(table.codes[fixed], table.feature, axis=-1)
    group = world.group[profile][..., None] == along_last(jnp.arange(len(world.groups)))
    parts = (
        (category == along_last(table.category)).astype(jnp.float32),
        table.numbers[fixed],
        table.changes[changing],
        group.astype(jnp.float32),
    )
    return jnp.concatenate(parts, axis=-1)


def newcomers(
    world: World, key: Key[Array, ""], populations: int = 1
) -> Int[Array, "populations people"]:
    """Draw the profiles of new populations."""
    chance = jax.random.uniform(key, (populations, world.population))
    row = jnp.searchsorted(world.arrivals.cumulative, chance, side="right")
    # The last cumulative share may be a rounding error below 1.
    return world.arrivals.profile[jnp.minimum(row, world.arrivals.profile.shape[0] - 1)]


def reset(world: World, key: Key[Array, ""]) -> State:
    """Draw a new population and whose turn is first; nothing was decided yet."""
    key_people, key_person = jax.random.split(key)
    return State(
        profile=newcomers(world, key_people)[0],
        window=windows.without_decisions(world.window, len(world.groups)),
        person=jax.random.randint(key_person, (), 0, world.population),
        time=jnp.zeros((), jnp.int32),
        accepted=jnp.zeros((), jnp.int32),
        positive=jnp.zeros((), jnp.int32),
        over=jnp.zeros((), jnp.bool_),
    )


def refill(
    world: World,
    key: Key[Array, ""],
    profile: Int[Array, " people"],
    accept: Chances,
    predict: Chances | None = None,
) -> Window:
    """Return a window full of decisions of a policy on a population as it is now.

    Everyone is decided about once (or as often as the window has room), and nobody changes by it.
    """
    profile = profile[jnp.arange(world.window) % world.population]
    chance = jax.random.uniform(key, (3, world.window))
    action, label = chance[0] < accept(profile), chance[1] < world.alpha[profile]
    guess = chance[2] < predict(profile) if predict else jnp.zeros_like(action)
    entries = windows.entry(world.group[profile], action, label, guess)
    return windows.of_entries(entries, len(world.groups))


def draws(world: World, key: Key[Array, ""], shape: tuple[int, ...] = ()) -> Draws:
    """Draw the chance for one decision, or for many."""
    key_chance, key_person = jax.random.split(key)
    chance = jax.random.uniform(key_chance, (3, *shape))
    person = jax.random.randint(key_person, shape, 0, world.population)
    return Draws(chance[0], chance[1], chance[2], person)


def decide(
    world: World,
    profile: Int[Array, "*n"],
    action: Bool[Array, "*n"],
    chance: Draws,
    notion: Notion,
    predict: Chances | None = None,
) -> Outcome:
    """Return what decisions about people lead to: the label, the change, the window's entry."""
    label = chance.label < world.alpha[profile]
    moved = world.moves[profile, action.astype(jnp.int32), label.astype(jnp.int32)]
    later_label = chance.later_label < world.alpha[moved]
    # Qualification is acted on through the change that a decision brings about (Sec. 4).
    after = define(notion).delayed
    counted, counted_label = (moved, later_label) if after else (profile, label)
    guess = chance.guess < predict(counted) if predict else jnp.zeros_like(action)
    entry = windows.entry(world.group[profile], action, counted_label, guess)
    return Outcome(action, label, later_label, guess, moved, entry)


def resource(world: World, accepted: Int[Array, "*n"], positive: Int[Array, "*n"]) -> Array:
    """Return what is left of the resource; never below 0."""
    spent = world.cost * accepted.astype(jnp.float32)
    return jnp.maximum(world.start + positive.astype(jnp.float32) - spent, 0.0)


def reward(
    world: World, before: Float[Array, "*n"], after: Float[Array, "*n"], outcome: Outcome
) -> Float[Array, "*n"]:
    """Return a (y - c), or what was left where that would be more than there was."""
    gain = jnp.where(outcome.action, outcome.label.astype(jnp.float32) - world.cost, 0.0)
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
        world: the tables and rules.
        state: the episode under way.
        action: 1 (or True) accepts.
        chance: all the randomness in what follows.
        notion: what the decision window is for: some count labels after the change.
        predict: the predictor behind imputed labels; without one they are all 0.
    """
    profile = state.profile[state.person]
    outcome = decide(world, profile, action.astype(jnp.bool_), chance, notion, predict)
    people = jax.lax.dynamic_update_index_in_dim(state.profile, outcome.moved, state.person, 0)
    window = windows.push(state.window, outcome.entry)
    accepted = state.accepted + outcome.action.astype(jnp.int32)
    positive = state.positive + (outcome.action & outcome.label).astype(jnp.int32)
    before = resource(world, state.accepted, state.positive)
    after = resource(world, accepted, positive)
    terminated = after <= 0
    truncated = (state.time + 1 >= world.horizon) & ~terminated
    result = Step(
        profile=profile,
        outcome=outcome,
        following=people[chance.person],
        reward=reward(world, before, after, outcome),
        terminated=terminated,
        truncated=truncated,
        histogram=window.histogram,
    )
    over = terminated | truncated
    time = state.time + 1
    return State(people, window, chance.person, time, accepted, positive, over), result


def exact_counts(world: World, profile: Int[Array, "*n people"], accept: Chances) -> Counts:
    """Return the expected counts of a whole population under alpha and a policy."""
    chance, alpha = accept(profile), world.alpha[profile]
    group = world.group[profile][..., None]
    member = group == jnp.arange(len(world.groups)).reshape((1,) * profile.ndim + (-1,))

    def total(values: Array) -> Array:
        return jnp.sum(jnp.where(member, values[..., None], 0.0), axis=-2)

    everyone = jnp.ones_like(alpha)
    return Counts(
        people=total(everyone),
        accepted=total(chance),
        accepted_positive=total(chance * alpha),
        rejected_positive=total((1 - chance) * alpha),
    )


def exact_disparity(world: World, state: State, accept: Chances, notion: Notion) -> Array:
    """Return the true disparity of the current population, free of sampling noise.

    The expectation over everyone in the population, their labels (alpha) and the policy's
    decisions: no window and no draws.
    """
    return gap(notion, exact_counts(world, state.profile, accept))
