"""Chance in transitions: tables with several successors, stated or drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sellf
from sellf.envs import saving, transitions
from sellf.envs import world as worlds
from sellf.envs.policy import of_chances
from sellf.envs.rollout import episodes_within, rollout
from sellf.envs.table import successors
from sellf.planning.law import law_of
from sellf.planning.mean_field import population

LEVELS = 5
UP = 0.7
"""A good outcome lifts a level with this chance; a bad one lowers it with the chance below."""
DOWN = 0.4


def alpha(level):
    return 0.25 + 0.12 * level


def stated(x, accepted, positive):
    step, chance = (1, UP) if positive else (-1, DOWN)
    moved = {"level": np.clip(x["level"] + step, 0, LEVELS - 1)}
    return [(chance, moved), (1 - chance, None)] if accepted else None


def drawing(x, accepted, positive, rng):
    if not accepted:
        return None
    luck = rng.random(len(x["level"]))
    step = np.where(luck < UP, 1, 0) if positive else np.where(luck < DOWN, -1, 0)
    return {"level": np.clip(x["level"] + step, 0, LEVELS - 1)}


def noisy(transition=stated, **settings):
    return sellf.world_from_frame(
        {"group": ["a", "b"] * LEVELS, "level": np.repeat(np.arange(LEVELS), 2)},
        group="group",
        numeric=["level"],
        label=lambda x: alpha(x["level"]) - 0.1 * (x["group"] == "b"),
        transition=transition,
        **{"cost": 0.2, "horizon": 4096, "start": 1e6, "window": 100, **settings},
    )


def kernel(group):
    """The chain of levels when everybody is accepted, by hand."""
    chain = np.zeros((LEVELS, LEVELS))
    for level in range(LEVELS):
        good = alpha(level) - 0.1 * group
        up, down = min(level + 1, LEVELS - 1), max(level - 1, 0)
        chain[level, up] += good * UP
        chain[level, down] += (1 - good) * DOWN
        chain[level, level] += good * (1 - UP) + (1 - good) * (1 - DOWN)
    return chain


def stationary(chain):
    values, vectors = np.linalg.eig(chain.T)
    vector = np.real(vectors[:, np.argmax(np.real(values))])
    return vector / vector.sum()


def levels(world, profile):
    """How many people of each group are at each level."""
    moved = np.asarray(world.encoding.changes)[np.asarray(world.encoding.changing), 0]
    level = np.unique(moved, return_inverse=True)[1]
    return np.bincount(
        np.asarray(world.group)[profile] * LEVELS + level[profile], minlength=2 * LEVELS
    ).reshape(2, LEVELS)


def accept_all(profile):
    return jnp.ones(profile.shape)


@pytest.mark.slow  # the next compares the same law with a simulation and with the exact figures
@pytest.mark.parametrize("transition", [stated, drawing])
def test_people_are_distributed_as_the_chain_s_stationary_distribution(transition):
    world = noisy(transition, population=1000)
    run = jax.jit(lambda key, state: rollout(world, key, state, 4096, of_chances(accept_all))[0])
    state = worlds.reset(world, jax.random.key(0))
    total = np.zeros((2, LEVELS))
    for i in range(150):
        state = run(jax.random.key(i), state._replace(over=jnp.asarray(False)))
        if i >= 20:
            total += levels(world, np.asarray(state.profile))
    for group in (0, 1):
        exact = stationary(kernel(group))
        distance = 0.5 * abs(total[group] / total[group].sum() - exact).sum()
        assert distance < 0.02


def test_a_simulation_one_person_at_a_time_comes_to_the_same():
    """Plain NumPy, from the rule as it is written, with draws of its own."""
    world = noisy(population=200, horizon=600)
    rng = np.random.default_rng(0)
    slow = np.zeros((2, LEVELS))
    for _ in range(150):
        group, level = rng.integers(0, 2, 200), rng.integers(0, LEVELS, 200)
        for person in rng.integers(0, 200, 600):
            good = rng.random() < alpha(level[person]) - 0.1 * group[person]
            if good and rng.random() < UP:
                level[person] = min(level[person] + 1, LEVELS - 1)
            elif not good and rng.random() < DOWN:
                level[person] = max(level[person] - 1, 0)
        slow += np.bincount(group * LEVELS + level, minlength=2 * LEVELS).reshape(2, LEVELS)

    def episode(key):
        first, second = jax.random.split(key)
        state = worlds.reset(world, first)
        return rollout(world, second, state, 600, of_chances(accept_all))[0].profile

    people = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(1), 150))
    fast = levels(world, np.asarray(people).ravel())
    assert 0.5 * abs(slow / slow.sum() - fast / fast.sum()).sum() < 0.02
    law = law_of(world)
    everyone = np.stack([np.zeros(law.profiles), np.ones(law.profiles)])
    expected = population(law, everyone, np.array([600]))[0]
    exact = np.bincount(
        law.group * LEVELS + levels_of(world), expected, minlength=2 * LEVELS
    ).reshape(2, LEVELS)
    assert 0.5 * abs(fast / fast.sum() - exact).sum() < 0.02


def levels_of(world):
    moved = np.asarray(world.encoding.changes)[np.asarray(world.encoding.changing), 0]
    return np.unique(moved, return_inverse=True)[1]


def test_stated_chances_are_exact_and_drawn_ones_are_frequencies():
    exact, drawn = noisy(), noisy(drawing, draws=4000)
    for world, within in ((exact, 1e-6), (drawn, 4 * np.sqrt(0.25 / 4000))):
        law, level = law_of(world), levels_of(world)
        for group in (0, 1):
            mine = law.group == group
            order = np.argsort(level[mine])
            chain = law.transition[1].toarray()[mine][:, mine][order][:, order]
            np.testing.assert_allclose(chain, kernel(group), atol=within)
        assert (law.transition[0].toarray() == np.eye(law.profiles)).all()


def test_a_rollout_with_chance_is_the_same_as_one_step_after_the_other():
    """Chance is drawn beforehand, so that both take the same."""
    world = noisy(population=60, horizon=700)
    steps, keys = 512, jax.random.split(jax.random.key(3), 4)
    assert episodes_within(world, steps) > 1
    chance_of = jnp.asarray(np.random.default_rng(0).uniform(0.2, 0.9, world.profiles), jnp.float32)
    state = worlds.reset(world, keys[0])
    run = jax.jit(lambda k, s: rollout(world, k, s, steps, of_chances(lambda p: chance_of[p])))
    after, got = run(keys[1], state)
    _, _, key_chance, _ = jax.random.split(keys[1], 4)
    chance = jax.tree.map(np.asarray, worlds.draws(world, key_chance, (steps,)))
    moves, odds = np.asarray(world.moves), np.asarray(world.odds)
    profile, person = np.asarray(state.profile).copy(), int(state.person)
    for t in range(steps):
        who = profile[person]
        action, label = int(got.outcome.action[t]), int(got.outcome.label[t])
        assert got.profile[t] == who
        assert label == int(chance.label[t] < float(world.alpha[who]))
        place = int((chance.move[t] < odds[who, action, label]).sum())
        profile[person] = moves[who, action, label, place]
        assert got.outcome.moved[t] == profile[person]
        person = int(chance.person[t])
    assert np.asarray(after.profile).tolist() == profile.tolist()
    again, same = run(keys[1], state)
    assert jax.tree.all(
        jax.tree.map(lambda a, b: bool((a == b).all()), (after, got), (again, same))
    )


def test_the_same_seed_makes_the_same_world_and_agent(tmp_path):
    small = {"population": 100, "horizon": 512}
    one, other = noisy(drawing, **small), noisy(drawing, **small)
    assert saving.same(one, other)
    assert not saving.same(one, noisy(drawing, seed=1, **small))
    settings = {"steps": 512, "rollout": 256, "epochs": 2, "progress": False}
    agents = [sellf.train(world, "ppo", **settings) for world in (one, other)]
    np.testing.assert_array_equal(agents[0].parameters, agents[1].parameters)
    agents[0].save(tmp_path / "agent")
    again = sellf.load(tmp_path / "agent")
    assert saving.same(again.world, one)
    moves, chances = successors(again.world)
    assert moves.shape == chances.shape
    np.testing.assert_allclose(chances.sum(axis=-1), 1)


def hidden(x, accepted, positive, own=np.random.default_rng(0)):  # noqa: B008
    return {"level": np.clip(x["level"] + own.integers(-1, 2, len(x["level"])), 0, 4)}


def reseeded(x, accepted, positive):
    return hidden(x, accepted, positive, np.random.default_rng(0))


def beside(x, accepted, positive, rng):
    return {"level": np.clip(x["level"] + np.random.randint(-1, 2, len(x["level"])), 0, 4)}  # noqa: NPY002


def once(x, accepted, positive, rng):
    return {"level": np.clip(x["level"] + rng.integers(-1, 2), 0, 4)}


@pytest.mark.parametrize(
    ("transition", "says"),
    [
        (hidden, r"def transition\(people, action, outcome, rng\)"),
        (reseeded, r"def transition\(people, action, outcome, rng\)"),
        (beside, "a generator of its own beside"),
        (once, "one number for everybody"),
        (lambda x, a, y: [(0.5, None), (0.6, None)], "probabilities that sum to 1.1"),
        (lambda x, a, y: [(np.array([0.5]), None)], r"shape \(1,\) for 10 people"),
        (lambda x, a, y: [0.5, {"level": x["level"]}], "a list of pairs"),
        (lambda x, a, y: [(1.0, {"group": x["group"]})], "a person's group stays"),
        (lambda x, a, y, rng: {"level": rng.normal(size=len(x["level"]))}, "world_from_functions"),
        (lambda x, a, y, rng: {"level": x["level"][:3]}, "return one value each"),
    ],
)  # fmt: skip
def test_what_is_no_transition_is_refused_with_what_to_do_instead(transition, says, monkeypatch):
    monkeypatch.setattr(transitions, "MOST_PROFILES", 5_000)  # not half a million, for speed
    with pytest.raises(ValueError, match=says):
        noisy(transition)


def test_a_default_that_is_no_generator_does_not_make_a_rule_a_drawn_one():
    world = noisy(
        lambda x, a, y, step=1: {"level": np.clip(x["level"] + step, 0, 4)} if a else None
    )
    assert world.odds is None
    assert world.moves.shape == (10, 2, 2)


def test_chances_that_do_not_fit_their_table_are_refused():
    from sellf.envs.build import Features, Rules, build

    def make(chances, moves=np.zeros((2, 2, 2, 2), int)):  # noqa: B008
        moves = moves + np.arange(2).reshape(2, *(1,) * (moves.ndim - 1))
        return build(
            "two", Rules(0.5, 10), groups=["a", "b"], group=np.arange(2), alpha=np.full(2, 0.5),
            moves=moves, chances=chances, share=np.full(2, 0.5),
            features=Features(np.zeros(2, int), np.zeros((1, 0)), []),
        )  # fmt: skip

    assert make(np.full((2, 2, 2, 2), 0.5)).odds is not None
    with pytest.raises(ValueError, match=r"sum to 1\.2"):
        make(np.full((2, 2, 2, 2), 0.6))
    with pytest.raises(ValueError, match="give the chance of each profile"):
        make(np.full((2, 2, 2, 3), 1 / 3))
    with pytest.raises(ValueError, match="in a fourth axis"):
        make(np.full((2, 2, 2), 1.0), np.zeros((2, 2, 2), int))


def test_saved_chances_that_are_none_are_refused():
    world = noisy()
    rules, tables = saving.plain_settings(saving.rules_of(world)), saving.tables_of(world)
    assert saving.same(saving.restore(rules, dict(tables)), world)
    with pytest.raises(ValueError, match="not between 0 and 1"):
        saving.restore(rules, tables | {"odds": tables["odds"] + 1.5})
    with pytest.raises(ValueError, match="odds has shape"):
        saving.restore(rules, tables | {"odds": tables["odds"][..., :0]})
    with pytest.raises(ValueError, match="lacks 'odds'"):
        saving.restore(rules, {k: v for k, v in tables.items() if k != "odds"})
