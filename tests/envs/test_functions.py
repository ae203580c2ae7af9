"""People of functions: continuous features, chance in transitions, policies without a table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sellf
from sellf.cli import main
from sellf.envs import world as worlds
from sellf.envs.gymnasium import WorldEnv, WorldVectorEnv
from sellf.envs.policy import Categorical, of_chances, thresholds
from sellf.envs.rollout import replay, rollout

SMALL = {"population": 60, "window": 50, "horizon": 300}


def arrive(key):
    first, second = jax.random.split(key)
    group = jax.random.randint(first, (), 0, 2)
    return {"skill": jax.random.normal(second) - 0.3 * group.astype(jnp.float32), "group": group}


def alpha(person):
    return jax.nn.sigmoid(person["skill"])


def learns(key, person, action, good):
    step = jnp.where(good, 0.3, -0.2) + 0.1 * jax.random.normal(key)
    return {**person, "skill": jnp.where(action > 0, person["skill"] + step, person["skill"])}


FUNCTIONS = {
    "alpha": alpha,
    "transition": learns,
    "encode": lambda person: person["skill"][None],
    "group": lambda person: person["group"],
    "groups": ["a", "b"],
    "columns": ["skill"],
    "cost": 0.5,
}


@pytest.fixture(scope="module")
def world():
    return sellf.world_from_functions(arrive, **FUNCTIONS, **SMALL)


def accepts(seen):
    return jax.nn.sigmoid(seen[..., 0] + 0.5)


def test_a_rollout_is_the_same_as_one_step_after_the_other(world):
    keys = jax.random.split(jax.random.key(0), 5)
    steps, policy = 200, of_chances(accepts)
    state = worlds.reset(world, keys[0])
    draw = thresholds(world.space, policy)
    people, window = jax.tree.map(lambda leaf: leaf[None], (state.profile, state.window))
    chance = worlds.draws(world, keys[1], (steps,))
    luck = jax.random.uniform(keys[2], (steps,))
    run = jax.jit(lambda: replay(world, state, people, window, chance, luck, draw, "opportunity"))
    after, got = run()
    advance = jax.jit(lambda s, a, c: worlds.advance(world, s, a, c))
    slow = state
    for t in range(steps):
        person = worlds.at(slow.profile, slow.person)
        action = jnp.sum(luck[t] < draw(world.seen(person))).astype(jnp.int32)
        slow, step = advance(slow, action, jax.tree.map(lambda leaf: leaf[t], chance))  # noqa: B023
        assert int(action) == int(got.outcome.action[t])
        assert bool(step.outcome.label) == bool(got.outcome.label[t])
        np.testing.assert_allclose(got.profile["skill"][t], person["skill"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.profile["skill"], slow.profile["skill"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(after.taken, slow.taken)
    np.testing.assert_array_equal(after.window.histogram, slow.window.histogram)


def test_skills_move_as_a_simulation_by_hand(world):
    """Plain NumPy, one person at a time, with draws of its own: mean and spread of skills."""
    rng = np.random.default_rng(0)
    slow = []
    for _ in range(60):
        group = rng.integers(0, 2, 60)
        skill = rng.normal(size=60) - 0.3 * group
        for person in rng.integers(0, 60, 300):
            if rng.random() < 1 / (1 + np.exp(-skill[person] - 0.5)):
                good = rng.random() < 1 / (1 + np.exp(-skill[person]))
                skill[person] += (0.3 if good else -0.2) + 0.1 * rng.normal()
        slow.append(skill)

    def episode(key):
        first, second = jax.random.split(key)
        state = worlds.reset(world, first)
        return rollout(world, second, state, 300, of_chances(accepts))[0].profile["skill"]

    fast = np.asarray(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(1), 60)))
    error = np.std(slow) / np.sqrt(np.size(slow))
    assert abs(np.mean(slow) - fast.mean()) < 5 * np.sqrt(2) * error
    assert abs(np.std(slow) - fast.std()) < 5 * error


def test_the_exact_disparity_is_that_of_alpha_over_everyone(world):
    state = worlds.reset(world, jax.random.key(3))
    ours = worlds.exact_disparity(world, state, of_chances(accepts), "opportunity")
    skill, group = (np.asarray(state.profile[name]) for name in ("skill", "group"))
    good, chance = 1 / (1 + np.exp(-skill)), 1 / (1 + np.exp(-skill - 0.5))
    by_group = [(good * chance)[group == g].sum() / good[group == g].sum() for g in (0, 1)]
    assert float(ours) == pytest.approx(abs(by_group[0] - by_group[1]), abs=1e-5)


# SELLF-direct learns from people of functions in the README's last example, which is run too.
@pytest.mark.parametrize("algorithm", ["ppo", pytest.param("sellf-direct", marks=pytest.mark.slow)])
def test_agents_train_and_are_evaluated_without_a_table(algorithm, world):
    fast = {"steps": 2048, "rollout": 512, "batch": 128, "progress": False}
    agents = [sellf.train(world, algorithm, learning_rate=3e-3, epochs=3, **fast) for _ in range(2)]
    np.testing.assert_array_equal(agents[0].parameters, agents[1].parameters)
    ours = sellf.evaluate(agents[0], deployments=2)
    assert np.isfinite(ours.disparities["exact"]).all()
    assert ours.imputes == (algorithm == "sellf-direct")
    if algorithm == "ppo":

        def policy(rows):
            names = np.array(world.groups)[rows[:, 1:].argmax(axis=1)]
            return agents[0].probability(rows[:, :1], names)

        theirs = sellf.evaluate(policy, world, deployments=2)
        np.testing.assert_allclose(ours.rewards, theirs.rewards, atol=1.5)
        with pytest.raises(ValueError, match="without a table of people"):
            sellf.plan(world)
        with pytest.raises(ValueError, match="saving is not possible"):
            agents[0].save("nowhere")


def test_gymnasium_finds_nothing_to_complain_about(world):
    env = WorldEnv(world)
    check_env(env, skip_render_check=True)
    _, info = env.reset(seed=0)
    for _ in range(20):
        seen, _, _, _, info = env.step(0)
        assert np.isnan(info["label"])
        assert seen.shape == (3,)
    one, two = (WorldVectorEnv(3, world) for _ in range(2))
    first, second = (env.reset(seed=5)[0] for env in (one, two))
    for _ in range(5):
        first, second = (env.step(np.ones(3, int))[0] for env in (one, two))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"alpha": lambda p: p["skill"]}, "alpha must be between 0 and 1"),
        ({"alpha": lambda p: p["skill"][None]}, "alpha returns .*: return one number"),
        ({"encode": lambda p: p["skill"]}, "an array of the 1 columns"),
        ({"group": lambda p: p["skill"]}, "no whole number"),
        ({"group": lambda p: p["group"] + 1}, "it is a place among 2"),
        ({"transition": lambda k, p, a, y: {"skill": p["skill"]}}, "of the same parts"),
        ({"transition": lambda k, p, a, y: {**p, "group": 1 - p["group"]}}, "changes a person's"),
        (
            {"transition": lambda k, p, a, y: {**p, "skill": jnp.log(p["skill"])}},
            "leaves its space",
        ),
        ({"transition": lambda k, p, a, y: p if a else {}}, "cannot be traced by JAX"),
        ({"groups": ["a"]}, "give two names or more"),
        ({"cost": None}, "and not both"),
    ],
)
def test_functions_that_make_no_world_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        sellf.world_from_functions(arrive, **{**FUNCTIONS, **change}, **SMALL)


def test_three_actions_are_decided_about_people_of_functions():
    actions = sellf.Actions(
        ("reject", "small", "large"), (False, True, True), (False, True, True),
        ((0.0, 0.0), (-0.2, 0.1), (-1.0, 0.2)),
    )  # fmt: skip
    functions = {**FUNCTIONS, "cost": None, "actions": actions}
    world = sellf.world_from_functions(arrive, **functions, **SMALL)
    policy = lambda seen: Categorical(jnp.zeros((2, *seen.shape[:-1])))  # noqa: E731
    state = worlds.reset(world, jax.random.key(0))
    # Compiled: operation by operation it takes four times as long.
    _, steps = jax.jit(lambda key: rollout(world, key, state, 300, policy))(jax.random.key(1))
    assert set(np.asarray(steps.outcome.action).tolist()) == {0, 1, 2}


MODULE = """
import jax, jax.numpy as jnp, sellf

def workshop(noise=0.1):
    def arrive(key):
        one, two = jax.random.split(key)
        return {"skill": jax.random.normal(one), "group": jax.random.randint(two, (), 0, 2)}
    def transition(key, person, action, good):
        step = jnp.where(good, 0.2, -0.1) + noise * jax.random.normal(key)
        step = jnp.where(action == 1, step, 0.0)
        return {**person, "skill": person["skill"] + step}
    return sellf.world_from_functions(
        arrive, alpha=lambda p: jax.nn.sigmoid(p["skill"]), transition=transition,
        encode=lambda p: p["skill"][None], group=lambda p: p["group"], groups=["a", "b"],
        columns=["skill"], cost=0.5, population=100, window=100, horizon=256)
"""


def test_a_world_of_functions_trains_from_the_command_line_and_comes_back(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "own_workshop.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    command = ["train", "own_workshop:workshop", "ppo", "--steps", "512", "--rollout", "256"]
    assert main([*command, "--set", "noise=0.3", "--out", "run", "--quiet"]) == 0
    assert main(["evaluate", "run", "--deployments", "1", "--json"]) == 0
    assert '"reward"' in capsys.readouterr().out
