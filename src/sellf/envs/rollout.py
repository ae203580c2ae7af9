"""Many decisions of one policy at once: equivalent to repeated calls of `advance`, but faster.

The order of people does not depend on decisions, so all visits are known beforehand. All first
visits are computed together, then all second visits (whose profiles depend on the first ones), and
so on: a few vectorised passes instead of thousands of small steps. Sums over time give the resource
and the decision window.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from sellf.envs import world as worlds
from sellf.envs.policy import Chances, Policy, Thresholds, drawn, thresholds
from sellf.envs.window import Window
from sellf.envs.world import Draws, Outcome, People, State, Step, World, at, choose, differ
from sellf.fairness import Notion

BLOCK = 64


class _Timeline(NamedTuple):
    """The episode of each step, and the step at which it began."""

    episode: Int[Array, " steps"]
    since: Int[Array, " steps"]
    """First step of the episode (in this rollout)."""


class _Visits(NamedTuple):
    """The person decided about at each step."""

    person: Int[Array, " steps"]
    previous: Int[Array, " steps"]
    """Step of the same person's previous visit, or -1."""
    last: Bool[Array, " steps"]
    """Whether no later step is a visit of the same person."""


def rollout(
    world: World,
    key: Key[Array, ""],
    state: State,
    steps: int,
    policy: Policy,
    notion: Notion = "opportunity",
    predict: Chances | None = None,
) -> tuple[State, Step]:
    """Let a policy decide `steps` times; every field of the result has that leading axis.

    The decision window is refilled at the start, and wherever a new episode begins, with
    decisions of the policy on the population as it is then.

    Args:
        world: the law and the rules.
        key: random key.
        state: the initial state; if its episode is over, a new one begins.
        steps: the number of decisions.
        policy: the policy.
        notion: the fairness notion of the decision window.
        predict: the predictor of imputed labels, by profile.
    """
    key_people, key_window, key_chance, key_action = jax.random.split(key, 4)
    episodes = episodes_within(world, steps)
    people = world.arriving(key_people, (episodes, world.population))
    first = choose(state.over, at(people, 0), state.profile)
    people = jax.tree.map(lambda one, new: jnp.concatenate([one[None], new[1:]]), first, people)
    draw = thresholds(world.space, policy)
    window = jax.vmap(lambda k, p: worlds.refill(world, k, p, draw, predict))(
        jax.random.split(key_window, episodes), people
    )
    state = state._replace(
        time=jnp.where(state.over, 0, state.time), taken=jnp.where(state.over, 0, state.taken)
    )
    chance = worlds.draws(world, key_chance, (steps,))
    luck = jax.random.uniform(key_action, (steps,))
    return replay(world, state, people, window, chance, luck, draw, notion, predict)


def replay(
    world: World,
    state: State,
    people: People,
    window: Window,
    chance: Draws,
    luck: Float[Array, " steps"],
    policy: Thresholds,
    notion: Notion,
    predict: Chances | None = None,
) -> tuple[State, Step]:
    """Return the result of a rollout for given random numbers.

    Args:
        world: the law and the rules.
        state: the initial state.
        people: the populations of this episode and of those that may follow it.
        window: the decision windows with which these episodes begin.
        chance: the random numbers for the consequences of each decision.
        luck: the random numbers from which decisions are drawn.
        policy: the policy, in the form used for sampling.
        notion: the fairness notion of the decision window.
        predict: the predictor of imputed labels.
    """
    steps = luck.shape[0]
    visits = _visits(jnp.concatenate([state.person[None], chance.person[:-1]]))
    given = _Given(world, state, people, chance, luck, policy, notion, predict, visits)
    line = _Timeline(jnp.zeros(steps, jnp.int32), jnp.zeros(steps, jnp.int32))
    if _length(people) > 1:
        line, _ = jax.lax.while_loop(lambda carry: carry[1], given.cut, (line, jnp.asarray(True)))
    profile, outcome = given.settle(line)
    terminated, truncated, before, after = given.ends(line, outcome)

    histogram = _histograms(window, line, outcome.entry)
    following = jax.tree.map(lambda leaf: jnp.concatenate([leaf[1:], leaf[:1]]), profile)
    apart = terminated | truncated | (given.time == steps - 1)
    would = _who_would_follow(people, line, visits, outcome.moved, chance.person)
    result = Step(
        profile=profile,
        outcome=outcome,
        following=choose(apart, at(would, line.episode), following),
        reward=worlds.reward(world, before, after, outcome),
        terminated=terminated,
        truncated=truncated,
        histogram=histogram,
        before=_found(window, line, histogram),
    )
    return _final(world, state, people, window, chance, line, visits, result), result


class _Given(NamedTuple):
    """The inputs of a rollout, which determine its steps once their episodes are known."""

    world: World
    state: State
    people: People
    """Population of each possible episode."""
    chance: Draws
    luck: Float[Array, " steps"]
    policy: Thresholds
    notion: Notion
    predict: Chances | None
    visits: _Visits

    @property
    def time(self) -> Int[Array, " steps"]:
        return jnp.arange(self.luck.shape[0])

    def settle(self, line: _Timeline) -> tuple[People, Outcome]:
        """Return the people at each step, before the decision, and the decisions' outcomes."""
        previous = self.visits.previous
        start = at(self.people, (line.episode, self.visits.person))
        linked = (previous >= 0) & (line.episode[previous] == line.episode)

        def decided(profile: People, odds: Array, *rest: Any) -> Outcome:
            action = drawn(odds, self.luck)
            return worlds.decide(self.world, profile, action, self.chance, self.notion, *rest)

        def again(carry: tuple[People, Array, Array]) -> tuple[People, Array, Array]:
            profile, odds, _ = carry
            moved = decided(profile, odds).moved
            settled = choose(linked, at(moved, previous), start)
            changed = differ(settled, profile)
            odds = renewed(self.world, self.policy, settled, odds, changed)
            return settled, odds, jnp.any(changed)

        # The n-th pass computes everyone's n-th visit; one more pass detects convergence.
        begin = (start, self.policy(self.world.seen(start)), jnp.asarray(True))
        profile, odds, _ = jax.lax.while_loop(lambda carry: carry[2], again, begin)
        return profile, decided(profile, odds, self.predict, self.policy)

    def spent(self, line: _Timeline, outcome: Outcome) -> tuple[Array, Array]:
        """Return the counts of paying actions in each step's episode, without and with the step."""
        each = worlds.taken(self.world.space, outcome)
        total = running_sum(each.reshape(each.shape[0], -1)).reshape(each.shape)
        begin = (total - each)[line.since]
        first = line.episode[:, None, None] == 0
        after = total - begin + jnp.where(first, self.state.taken[None], 0)
        return after - each, after

    def ends(self, line: _Timeline, outcome: Outcome) -> tuple[Array, Array, Array, Array]:
        """Return the steps that end an episode, and the resource before and after each step."""
        before, after = (worlds.resource(self.world, taken) for taken in self.spent(line, outcome))
        terminated = after <= 0
        age = self.time - line.since + jnp.where(line.episode == 0, self.state.time, 0)
        truncated = (age + 1 >= self.world.horizon) & ~terminated
        return terminated, truncated, before, after

    def cut(self, carry: tuple[_Timeline, Array]) -> tuple[_Timeline, Array]:
        """Begin a new episode after the first end that is not accounted for yet."""
        line, _ = carry
        _, outcome = self.settle(line)
        terminated, truncated, _, _ = self.ends(line, outcome)
        over = (terminated | truncated) & (self.time < self.time.shape[0] - 1)
        over &= line.episode == line.episode[-1]
        at = jnp.argmax(over)
        later = jnp.any(over) & (self.time > at)
        episode = line.episode + later.astype(jnp.int32)
        return _Timeline(episode, jnp.where(later, at + 1, line.since)), jnp.any(over)


def _length(people: People) -> int:
    return jax.tree.leaves(people)[0].shape[0]


def running_sum(values: Int[Array, "steps columns"]) -> Int[Array, "steps columns"]:
    """Return cumulative sums over the steps, by products with triangular blocks.

    The sums are exact below 2^24. This is much faster than a scan, both alone and vectorised.
    """
    steps, columns = values.shape
    blocks = -(-steps // BLOCK)
    padded = jnp.pad(values.astype(jnp.float32), ((0, blocks * BLOCK - steps), (0, 0)))
    padded = padded.reshape(blocks, BLOCK, columns)
    inside = jnp.einsum("ts,bsc->btc", jnp.tril(jnp.ones((BLOCK, BLOCK))), padded)
    earlier = jnp.tril(jnp.ones((blocks, blocks)), -1) @ inside[:, -1, :]
    total = (inside + earlier[:, None, :]).reshape(blocks * BLOCK, columns)[:steps]
    return jnp.round(total).astype(jnp.int32)


def episodes_within(world: World, steps: int) -> int:
    """Return the largest number of populations that a rollout can need."""
    # The resource lasts at least this long for any decisions.
    worst = -min(min(pair) for pair in world.space.gain)
    shortest = min(world.horizon, int(-(-world.start // worst)) if worst > 0 else world.horizon)
    if shortest == world.horizon and world.horizon % steps == 0:
        return 1  # episodes end only where a rollout ends
    return 2 + (steps - 1) // shortest


def renewed(
    world: World, policy: Thresholds, profile: People, odds: Array, changed: Array
) -> Float[Array, "others steps"]:
    """Return the action probabilities after some people have changed.

    In a small world all of them are looked up. Otherwise each needs a network evaluation, and few
    people are met twice, so the policy is evaluated for the changed people only, block by block.
    """
    if world.space.small:
        return policy(world.seen(profile))
    steps = _length(profile)
    number = jnp.cumsum(changed.astype(jnp.int32))
    place = jnp.where(changed, number - 1, steps)
    order = jnp.full(steps + BLOCK, steps).at[place].set(jnp.arange(steps), mode="drop")

    def block(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        done, odds = carry
        rows = jax.lax.dynamic_slice(order, (done,), (BLOCK,))
        asked = policy(world.seen(at(profile, jnp.minimum(rows, steps - 1))))
        return done + BLOCK, odds.at[:, rows].set(asked, mode="drop")

    return jax.lax.while_loop(lambda carry: carry[0] < number[-1], block, (jnp.asarray(0), odds))[1]


def _visits(person: Int[Array, " steps"]) -> _Visits:
    steps = person.shape[0]
    # Sorting person and step as one number puts a person's visits next to each other, in order.
    order = jnp.sort(person * steps + jnp.arange(steps))
    who, when = order // steps, order % steps
    same = jnp.concatenate([jnp.zeros(1, jnp.bool_), who[1:] == who[:-1]])
    before = jnp.where(same, jnp.concatenate([when[:1], when[:-1]]), -1)
    final = jnp.concatenate([~same[1:], jnp.ones(1, jnp.bool_)])
    return _Visits(
        person,
        jnp.zeros(steps, jnp.int32).at[when].set(before),
        jnp.zeros(steps, jnp.bool_).at[when].set(final),
    )


def _histograms(window: Window, line: _Timeline, entry: Array) -> Int[Array, "steps kinds"]:
    """Return the decision window after every step of the rollout."""
    steps, size = entry.shape[0], window.entries.shape[1]
    age = jnp.arange(steps) - line.since
    # A step replaces an initial entry of the window, or an earlier decision of the rollout.
    old = window.entries[line.episode, (window.oldest[line.episode] + age) % size]
    own = entry[jnp.maximum(jnp.arange(steps) - size, 0)]
    pushed_out = jnp.where(age >= size, own, old)
    kinds = jnp.arange(window.histogram.shape[1])[None, :]
    comes, goes = (x[:, None] == kinds for x in (entry, pushed_out))
    change = comes.astype(jnp.int32) - goes.astype(jnp.int32)
    total = running_sum(change)
    return window.histogram[line.episode] + total - (total - change)[line.since]


def _found(window: Window, line: _Timeline, histogram: Array) -> Int[Array, "steps kinds"]:
    """Return the decision window before every step; the refilled one where an episode begins."""
    first = jnp.arange(line.since.shape[0]) == line.since
    earlier = jnp.concatenate([histogram[:1], histogram[:-1]])
    return jnp.where(first[:, None], window.histogram[line.episode], earlier)


def _who_would_follow(
    people: People, line: _Timeline, visits: _Visits, moved: People, person: Array
) -> People:
    """Return the person who would be next after each episode's last step."""
    time = jnp.arange(line.episode.shape[0])

    def of(episode: Array, population: People) -> People:
        mine = line.episode == episode
        end = jnp.max(jnp.where(mine, time, 0))
        who = person[end]
        seen = jnp.max(jnp.where(mine & (visits.person == who), time, -1))
        return choose(seen >= 0, at(moved, seen), at(population, who))

    return jax.vmap(of)(jnp.arange(_length(people)), people)


def _final(
    world: World,
    state: State,
    people: People,
    window: Window,
    chance: Draws,
    line: _Timeline,
    visits: _Visits,
    steps: Step,
) -> State:
    """Return the state after the last step."""
    episode, since = line.episode[-1], line.since[-1]
    here = line.episode == episode
    population = at(people, episode)
    # Only a person's last visit is used; the others are placed out of bounds and dropped.
    place = jnp.where(here & visits.last, visits.person, world.population)
    population = jax.tree.map(
        lambda all, some: all.at[place].set(some, mode="drop"), population, steps.outcome.moved
    )
    each = worlds.taken(world.space, steps.outcome)
    first = episode == 0
    length = line.episode.shape[0]
    return State(
        profile=population,
        window=_pushed(jax.tree.map(lambda leaf: leaf[episode], window), steps, length - since),
        person=chance.person[-1],
        time=length - since + jnp.where(first, state.time, 0),
        taken=jnp.where(first, state.taken, 0)
        + jnp.sum(jnp.where(here[:, None, None], each, 0), axis=0, dtype=jnp.int32),
        over=steps.terminated[-1] | steps.truncated[-1],
    )


def _pushed(window: Window, steps: Step, number: Int[Array, ""]) -> Window:
    """Return the window after adding the last `number` decisions."""
    size, length = window.entries.shape[0], steps.outcome.entry.shape[0]
    age = jnp.arange(length) - (length - number)
    kept = (age >= 0) & (age >= number - size)
    place = jnp.where(kept, (window.oldest + age) % size, size)
    entries = window.entries.at[place].set(steps.outcome.entry, mode="drop")
    return Window(entries, steps.histogram[-1], (window.oldest + number) % size)
