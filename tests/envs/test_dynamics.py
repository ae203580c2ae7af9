"""The compiled worlds against slow ones, with the same random numbers, decision by decision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sellf.envs import window as windows
from sellf.envs import world as worlds
from sellf.envs.policy import of_chances
from sellf.envs.rollout import episodes_within, replay, rollout, running_sum
from sellf.envs.worlds import make_world
from sellf.fairness import VIEWS, utility
from tests.envs.slow import RULES, Lending, Simulation

STEPS = 6_000


def policy_table(world, seed):
    """Return a policy and a predictor, by profile: anything between 0 and 1."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.random((2, world.profiles)), jnp.float32)


def sparing(kept, *rows):
    """Return all cases, those of them that are not kept for every day marked as slow."""
    return [pytest.param(*row, marks=() if row[:2] in kept else pytest.mark.slow) for row in rows]


# Every world, and both ways to count; the other pairs are the same code once more.
@pytest.mark.parametrize(
    ("name", "notion"),
    sparing(
        [
            ("lending", "opportunity"),
            ("recidivism", "qualification"),
            ("school", "qualification"),
            ("school-continuous", "opportunity"),
        ],
        *((name, notion) for name in RULES for notion in ("opportunity", "qualification")),
    ),
)
def test_steps_are_those_of_the_slow_world(name, notion):
    """`advance`, scanned over 6,000 decisions of as many episodes as it takes."""
    world = make_world(name)
    key = jax.random.key(1)
    accept, predict = policy_table(world, 2)
    chance = worlds.draws(world, key, (STEPS,))
    luck = jax.random.uniform(jax.random.key(3), (STEPS,))
    fresh = [worlds.reset(world, k) for k in jax.random.split(jax.random.key(4), 30)]

    def body(state, given):
        draw, u = given
        action = (u < accept[state.profile[state.person]]).astype(jnp.int32)
        return worlds.advance(world, state, action, draw, notion, lambda p: predict[p])

    advance = jax.jit(lambda state, given: jax.lax.scan(body, state, given))
    slow = Simulation(RULES[name](), [s.profile for s in fresh], world.groups, notion, world.window)
    person = int(fresh[0].person)
    state = fresh.pop(0)
    given = jax.tree.map(np.asarray, (chance, luck))
    table, guesses = np.asarray(accept), np.asarray(predict)
    t = 0
    while t < STEPS:
        part = slice(t, min(t + 1000, STEPS))
        state, steps = advance(state, _at(given, part))
        steps = jax.tree.map(np.asarray, steps)
        for i in range(part.stop - part.start):
            assert steps.before[i].tolist() == slow.recount()
            draw, u = _at(given, t)
            expected = slow.decide(
                person,
                lambda p: bool(u < table[p]),  # noqa: B023
                draw.label,
                draw.later_label,
                lambda p: bool(draw.guess < guesses[p]),  # noqa: B023
            )
            assert steps.profile[i] == expected["profile"]
            assert steps.outcome.moved[i] == expected["moved"]
            assert steps.outcome.label[i] == expected["label"]
            assert steps.reward[i] == pytest.approx(expected["reward"], abs=1e-4)
            assert steps.terminated[i] == expected["terminated"]
            assert steps.truncated[i] == expected["truncated"]
            assert steps.histogram[i].tolist() == slow.recount()
            person = int(draw.person)
            t += 1
            if expected["terminated"] or expected["truncated"]:
                slow.begin()
                state = fresh.pop(0)
                person = int(state.person)
                break


def _at(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def slow_replay(world, rules, state, people, window, chance, luck, accept, predict, notion):
    """Replay a rollout with the slow world: the lists of what each step gave."""
    slow = Simulation(rules, people, world.groups, notion, world.window)
    kinds = len(world.groups) * 8

    def entries(episode):
        numbers = np.roll(window.entries[episode], -int(window.oldest[episode]))
        return numbers[numbers < kinds]

    for decision in entries(0):
        slow.remember(decision)
    slow.time = int(state.time)
    slow.accepted, slow.positive = map(int, state.taken[0])
    person, episode = int(state.person), 0
    result = []
    for t in range(len(luck)):
        before = slow.recount()
        step = slow.decide(
            person,
            lambda p: bool(luck[t] < accept[p]),  # noqa: B023
            chance.label[t],
            chance.later_label[t],
            lambda p: bool(chance.guess[t] < predict[p]),  # noqa: B023
            lambda p: bool(chance.later_action[t] < accept[p]),  # noqa: B023
        )
        step["before"], step["histogram"] = before, slow.recount()
        person = int(chance.person[t])
        step["following"] = slow.rules.profile(slow.people[person])
        result.append(step)
        if (step["terminated"] or step["truncated"]) and t < len(luck) - 1:
            episode += 1
            slow.begin(entries(episode))
    return result, slow


ROLLOUTS = [
    ("lending", {}, 2048, (0, 0, 0)),
    ("lending", {"groups": "all"}, 2048, (9_000, 0, 0)),  # cut off in the middle
    ("lending", {"population": 300, "window": 500}, 2048, (10, 1_200, 0)),  # used up soon
    ("recidivism", {"population": 50}, 5_000, (0, 0, 0)),
    ("school", {"population": 100}, 2048, (0, 0, 0)),
    ("school-continuous", {"horizon": 700}, 2048, (300, 100, 60)),
]


@pytest.mark.parametrize(
    ("number", "notion"),
    sparing(
        # Each of them by one notion, and either notion in both kinds of worlds.
        [(i, ("accuracy", "qualification")[i % 2]) for i in range(len(ROLLOUTS))],
        *((i, notion) for i in range(len(ROLLOUTS)) for notion in ("accuracy", "qualification")),
    ),
)
def test_a_rollout_is_the_same_as_one_step_after_the_other(number, notion):
    name, settings, steps, used = ROLLOUTS[number]
    world = make_world(name, **settings)
    keys = jax.random.split(jax.random.key(5), 5)
    accept, predict = policy_table(world, 6)
    accept = accept**0.25 if used[1] else accept
    episodes = episodes_within(world, steps)
    people = world.arriving(keys[0], (episodes, world.population))
    window = jax.vmap(
        lambda k, p: worlds.refill(world, k, p, lambda s: accept[None, s], lambda s: predict[s])
    )(jax.random.split(keys[1], episodes), people)
    window = window._replace(oldest=window.oldest + 17)
    state = worlds.reset(world, keys[2])._replace(
        time=jnp.asarray(used[0]), taken=jnp.asarray([used[1:]])
    )
    chance = worlds.draws(world, keys[3], (steps,))
    luck = jax.random.uniform(keys[4], (steps,))
    final, got = jax.jit(replay, static_argnames=("policy", "notion", "predict"))(
        world,
        state,
        people,
        window,
        chance,
        luck,
        policy=lambda p: accept[None, p],
        notion=notion,
        predict=lambda p: predict[p],
    )
    given = jax.tree.map(np.asarray, (state, people, window, chance, luck, accept, predict))
    rules = Lending(world.groups) if name == "lending" else RULES[name]()
    rules.horizon = world.horizon
    expected, slow = slow_replay(world, rules, *given, notion)
    got = jax.tree.map(np.asarray, got)
    for t, step in enumerate(expected):
        assert got.profile[t] == step["profile"]
        assert got.outcome.moved[t] == step["moved"]
        assert got.outcome.label[t] == step["label"]
        assert got.terminated[t] == step["terminated"]
        assert got.truncated[t] == step["truncated"]
        assert got.reward[t] == pytest.approx(step["reward"], abs=1e-4)
        assert got.histogram[t].tolist() == step["histogram"]
        assert got.before[t].tolist() == step["before"]
        if step["terminated"] or step["truncated"] or t == steps - 1:
            assert got.following[t] == step["following"]
        else:
            assert got.following[t] == got.profile[t + 1]
    assert final.profile.tolist() == [slow.rules.profile(person) for person in slow.people]
    assert final.time == slow.time
    assert final.taken.tolist() == [[slow.accepted, slow.positive]]
    assert final.window.histogram.tolist() == slow.recount()
    ring = np.roll(final.window.entries, -int(final.window.oldest)).tolist()
    assert [kind for kind in ring if kind < len(world.groups) * 8] == slow.window().tolist()


def test_rollouts_join_up_and_start_anew_where_an_episode_ended():
    world = make_world("lending", horizon=1000, population=50, window=60)
    state = worlds.reset(world, jax.random.key(0))
    over = []
    run = jax.jit(
        lambda k, s: rollout(world, k, s, 500, of_chances(lambda p: jnp.full(p.shape, 0.2)))
    )
    for i in range(5):
        state, steps = run(jax.random.key(i), state)
        over.append(bool(steps.truncated[-1]))
        assert int(state.time) == (1000 if over[-1] else 500)
    assert over == [False, True, False, True, False]


def test_the_window_in_three_views_is_the_disparity_of_its_decisions():
    import sellf

    rng = np.random.default_rng(0)
    group, action, label, guess = rng.integers(0, 3, 500), *rng.integers(0, 2, (3, 500))
    space = make_world("lending", groups=["Asian", "Black", "White"]).space
    entries = windows.entry(space, *map(jnp.asarray, (group, action, label, guess)))
    window = windows.of_entries(space, entries)
    for notion in ("qualification", "accuracy", "opportunity"):
        for view in VIEWS:
            ours = utility(notion, windows.counts(space, window.histogram, view))
            rows = sellf.disparity(
                notion, group=group, action=action, label=label, prediction=guess, view=view
            )
            np.testing.assert_allclose(ours, list(rows.by_group.values()), rtol=1e-6)


def test_running_sums_are_exact():
    rng = np.random.default_rng(0)
    for steps in (1, 63, 64, 65, 2048, 10_000):
        values = rng.integers(-3, 4, (steps, 5))
        total = running_sum(jnp.asarray(values, jnp.int32))
        np.testing.assert_array_equal(total, np.cumsum(values, axis=0))


@pytest.mark.parametrize("name", ["lending", pytest.param("school", marks=pytest.mark.slow)])
def test_exact_disparity_is_what_many_draws_come_to(name):
    world = make_world(name, population=1000)
    state = worlds.reset(world, jax.random.key(0))
    accept, _ = policy_table(world, 1)
    import sellf

    profile = np.tile(np.asarray(state.profile), 400)
    rng = np.random.default_rng(2)
    label = rng.random(len(profile)) < np.asarray(world.alpha)[profile]
    action = rng.random(len(profile)) < np.asarray(accept)[profile]
    for notion in ("qualification", "accuracy", "opportunity", "demographic"):
        exact = worlds.exact_disparity(world, state, of_chances(lambda p: accept[p]), notion)
        drawn = sellf.disparity(
            notion, group=np.asarray(world.group)[profile], action=action, label=label
        )
        assert float(exact) == pytest.approx(drawn.value, abs=0.006)


@pytest.mark.slow  # every single step is compared above
def test_with_everyone_accepted_scores_settle_as_the_chain_s_eigenvector_says():
    # The two ends of the scale are sticky: it takes some thousand visits a person to settle.
    world = make_world("lending", population=2_000, window=1, horizon=10**9, start=1e7)
    state = worlds.reset(world, jax.random.key(0))
    everyone = jax.jit(
        lambda key, state: rollout(
            world, key, state, 20_000, of_chances(lambda p: jnp.ones(p.shape))
        )[0],
        compiler_options={"xla_backend_optimization_level": 3},  # here it is the running that takes
    )
    for i in range(600):
        state = everyone(jax.random.key(i), state)
    alpha, moves = np.asarray(world.alpha), np.asarray(world.moves)
    for g, name in enumerate(world.groups):
        rows = slice(10 * g, 10 * g + 10)
        chain = np.zeros((10, 10))
        for s in range(10):
            chain[s, moves[rows][s, 1, 1] - 10 * g] += alpha[rows][s]
            chain[s, moves[rows][s, 1, 0] - 10 * g] += 1 - alpha[rows][s]
        values, vectors = np.linalg.eig(chain.T)
        stationary = np.real(vectors[:, np.argmax(np.real(values))])
        stationary /= stationary.sum()
        members = np.asarray(state.profile)[np.asarray(world.group)[np.asarray(state.profile)] == g]
        found = np.bincount(members - 10 * g, minlength=10) / len(members)
        assert 0.5 * np.abs(found - stationary).sum() < 0.02, name


def test_worlds_vectorise_over_populations():
    world = make_world("recidivism", population=200, window=300)
    keys = jax.random.split(jax.random.key(0), 4)
    states = jax.vmap(lambda k: worlds.reset(world, k))(keys)
    alpha = lambda p: world.alpha[p]  # noqa: E731
    run = lambda key, state: rollout(  # noqa: E731
        world, key, state, 300, of_chances(alpha), "accuracy", alpha
    )
    together = jax.jit(jax.vmap(run))(keys, states)
    alone = jax.jit(run)(keys[2], jax.tree.map(lambda leaf: leaf[2], states))
    for one, many in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        np.testing.assert_array_equal(one, many[2])
