"""The worlds as Gymnasium environments, and what they must not tell."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sellf.envs.gymnasium import WorldEnv, WorldVectorEnv
from sellf.envs.registration import IDS


@pytest.mark.parametrize("name", IDS.values())
def test_gymnasium_s_own_checks_pass_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import gymnasium, sellf", "sellf/Lending-v0"),
        ("import sellf, gymnasium, sellf.envs.gymnasium", "sellf/Lending-v0"),
        ("import sellf, gymnasium", "sellf.envs.gymnasium:sellf/Lending-v0"),
    ],
)
def test_worlds_are_known_whichever_is_imported_first(imports, name):
    import subprocess
    import sys

    code = f"{imports}; print(gymnasium.make({name!r}).observation_space)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "(12,)" in done.stdout


def play(env, seed, steps, actions=None):
    seen = [env.reset(seed=seed)[0]]
    told = []
    rng = np.random.default_rng(0)
    for t in range(steps):
        action = int(rng.integers(2)) if actions is None else actions[t]
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        told.append((reward, terminated, truncated, info))
        if terminated or truncated:
            seen.append(env.reset()[0])
    return np.array(seen), told


def test_a_seed_reproduces_an_episode_exactly_and_another_does_not():
    env = WorldEnv("lending", population=300)
    first, told = play(env, 7, 500)
    again, told_again = play(WorldEnv("lending", population=300), 7, 500)
    np.testing.assert_array_equal(first, again)
    assert told == told_again
    assert (play(env, 8, 500)[0] != first).any()


def test_rewards_add_up_to_the_resource_and_an_empty_one_ends_the_episode():
    env = WorldEnv("lending", start=5.0, population=50)
    env.reset(seed=0)
    total, terminated = 5.0, False
    while not terminated:
        _, reward, terminated, truncated, info = env.step(1)
        total += reward
        assert info["resource"] == pytest.approx(total, abs=1e-4)
        assert not truncated
    assert total == pytest.approx(0, abs=1e-5)


def test_the_horizon_truncates():
    env = WorldEnv("school", horizon=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]


def test_every_world_has_an_id_and_every_id_is_registered():
    from sellf.envs.worlds import WORLDS

    assert set(IDS) == {name for name, kind in WORLDS.items() if kind.rules is not None}
    registered = {name for name in gymnasium.registry if name.startswith("sellf/")}
    assert registered == set(IDS.values())


def test_info_tells_the_label_of_the_accepted_only_and_the_oracle_everything():
    env = WorldEnv("recidivism", notion="accuracy", oracle=True, population=500)
    env.reset(seed=0)
    hidden, rng = [], np.random.default_rng(0)
    for _ in range(300):
        action = int(rng.integers(2))
        info = env.step(action)[4]
        assert info["group"] in env.machine.world.groups
        if action:
            assert info["label"] == info["hidden_label"]
        else:
            assert np.isnan(info["label"])
            hidden.append(info["hidden_label"])
    assert set(hidden) == {0.0, 1.0}
    assert 0 < info["disparity_true"] < 1
    assert info["disparity"] != info["disparity_true"]
    blind = WorldEnv("recidivism", population=500)
    blind.reset(seed=0)
    assert set(blind.step(0)[4]) == {"group", "label", "resource", "disparity"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("lending", marks=pytest.mark.slow),  # with amounts it is the same, and more
        "lending-amounts",
        "recidivism",
        "attention",
        "admission",
    ],
)
def test_flipping_every_hidden_label_changes_nothing_that_is_told(name, monkeypatch):
    """Where a rejected person's label moves nothing, nobody could ever notice it."""
    import jax.numpy as jnp

    from sellf.envs import world as worlds

    plain = play(WorldEnv(name, population=300), 3, 400)
    decide = worlds.decide

    def flipped(world, profile, action, chance, *rest):
        # A rejected person's label is drawn from the other end of the same chance.
        turned = jnp.where(action > 0, chance.label, 1 - chance.label)
        return decide(world, profile, action, chance._replace(label=turned), *rest)

    monkeypatch.setattr(worlds, "decide", flipped)
    other = play(WorldEnv(name, population=300), 3, 400)
    np.testing.assert_array_equal(plain[0], other[0])
    assert plain[1] == other[1]

    told = [
        [step[3]["hidden_label"] for step in play(WorldEnv(name, oracle=True), 3, 200)[1]]
        for _ in range(1)
    ]
    monkeypatch.undo()
    told.append([step[3]["hidden_label"] for step in play(WorldEnv(name, oracle=True), 3, 200)[1]])
    assert told[0] != told[1]  # the labels really were other ones


def test_in_school_a_hidden_label_shows_only_in_the_person_s_own_next_state():
    env = WorldEnv("school", population=2, oracle=True)
    columns = env.machine.world.columns
    boost, older = columns.index("accepted or passed before"), columns.index("older")
    passed = []
    for seed in range(100):
        env.reset(seed=seed)
        observation, *_, info = env.step(0)
        other, *_ = env.reset(seed=seed)
        assert other[boost] == 0  # nobody arrives with a boost
        same = np.delete(other, [boost, older, older - 1])
        if (np.delete(observation, [boost, older, older - 1]) == same).all():
            assert observation[boost] == info["hidden_label"]
            passed.append(info["hidden_label"])
        else:
            assert observation[boost] == 0
    assert 0 < np.mean(passed) < 1


def test_many_populations_at_once_behave_like_single_ones():
    env = WorldVectorEnv(num_envs=5, world="lending", population=100, horizon=40, start=20.0)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    rng = np.random.default_rng(0)
    over = np.zeros(5, bool)
    total = np.full(5, 20.0)
    ended = 0
    for _ in range(200):
        action = rng.integers(0, 2, 5)
        observation, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        assert (reward[over] == 0).all()
        assert not (terminated | truncated)[over].any()
        total = np.where(over, 20.0, total + reward)
        np.testing.assert_allclose(info["resource"], total, atol=1e-3)
        assert np.isnan(info["label"][(action == 0) | over]).all()
        over = terminated | truncated
        ended += over.sum()
    assert ended > 10
    made = gymnasium.make_vec("sellf/School-v0", num_envs=3, population=50)
    assert made.reset(seed=0)[0].shape == (3, 121)
    made.close()


@pytest.fixture(scope="module")
def machines():
    """One population, and two side by side, compiled once for all that is refused."""
    return WorldEnv("lending", population=50), WorldVectorEnv(2, "lending", population=50)


@pytest.mark.parametrize("action", [2, -1, 0.5, None, "1", [1], np.float32(1)], ids=str)
def test_what_is_no_action_is_refused(action, machines):
    env, many = machines
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"give one of 0 \(reject\), 1 \(accept\)") as error:
        env.step(action)
    assert "np." not in str(error.value)
    many.reset(seed=0)
    with pytest.raises(ValueError, match="for each of the 2 populations"):
        many.step([0, action])
    env.step(np.int64(1))
    env.step(True)


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(ValueError, match=r"call reset\(\) before step\(\)"):
        WorldEnv("lending", population=50).step(0)
    with pytest.raises(ValueError, match=r"call reset\(\) before step\(\)"):
        WorldVectorEnv(num_envs=2, world="lending", population=50).step(np.zeros(2, int))
