"""Training as a whole: worlds whose answer is known, sameness, and what may not be seen."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from functools import cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sellf
from sellf.algorithms.catalogue import ALGORITHMS, resolve
from sellf.algorithms.trainer import permutations
from sellf.cli import main
from sellf.envs import world as worlds
from sellf.envs.policy import drawn
from sellf.envs.table import TableWorld
from sellf.training import loop, run_folder

SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
SMALL = {"population": 300, "window": 200}
SOON = {**SMALL, "horizon": 300}
"""For planning, which follows everybody over all of their visits: one each, not 33."""
FAST = {"learning_rate": 3e-3, "progress": False, "rollout": 512, "batch": 128}


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    """Compiled programs are shared between the tests of this module."""
    os.environ["SELLF_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    del os.environ["SELLF_CACHE"]


def short(algorithm, **settings):
    if algorithm == "sellf-plan":  # it takes no gradient steps
        settings = {"steps": 512, "rollout": 256, "progress": False, **settings}
        return sellf.train("lending", algorithm, world_settings=SOON, **settings)
    return sellf.train("lending", algorithm, world_settings=SMALL, **{**SHORT, **settings})


@cache
def trained(algorithm):
    """An agent that is only looked at: compiling its program costs more than all else here."""
    return short(algorithm)


def same(one, other):
    parts = [(one.parameters, other.parameters)]
    if one.predictor is not None:
        parts.append((one.predictor, other.predictor))
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in parts)


AGAIN = ("ppo", "sellf-direct", "sellf")
"""Their programs serve the tests that follow, and are not forgotten if they come last."""


@pytest.mark.parametrize("algorithm", [*sorted(set(ALGORITHMS) - set(AGAIN)), *AGAIN])
def test_every_algorithm_trains_and_one_seed_gives_one_agent(algorithm):
    first, again, other = trained(algorithm), *(short(algorithm, seed=seed) for seed in (0, 1))
    assert same(first, again)
    assert not same(first, other)
    assert len(first.history) == (2 if algorithm == "sellf-plan" else 4)
    assert np.isfinite(np.asarray(first.parameters)).all()


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_checkpoint(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(run_folder, "CHECKPOINT_EVERY", 1)
    check = loop._check
    monkeypatch.setattr(
        loop,
        "_check",
        lambda row, i, run: check(row | ({"loss": float("nan")} if i == 2 else {}), i, run),
    )
    with pytest.raises(loop.DivergedError, match="loss is not a number in iteration 2"):
        short("ppo", out=tmp_path / "run")
    monkeypatch.undo()
    assert len(loop.resume(tmp_path / "run", progress=False).history) == 4


class Stopped(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize(
    ("at", "algorithm", "notion"),
    [
        (0, "sellf", "opportunity"),
        (1, "sellf-direct", "opportunity"),
        pytest.param(2, "sellf-direct", "qualification", marks=pytest.mark.slow),
    ],
)
def test_stopping_after_any_iteration_and_going_on_changes_nothing(
    at, algorithm, notion, tmp_path, monkeypatch
):
    monkeypatch.setattr(run_folder, "CHECKPOINT_EVERY", 2)
    settings = {"out": tmp_path / "run", "notion": notion}
    whole = short(algorithm, **settings | {"out": tmp_path / "whole"})
    record = run_folder.Run.record

    def stop(self, iteration, *rest, **more):
        record(self, iteration, *rest, **more)
        if iteration == at:
            raise Stopped

    monkeypatch.setattr(run_folder.Run, "record", stop)
    with pytest.raises(Stopped):
        short(algorithm, **settings)
    monkeypatch.setattr(run_folder.Run, "record", record)
    resumed = loop.resume(tmp_path / "run", progress=False)
    assert same(whole, resumed)
    for name in ("metrics.jsonl", "agent.safetensors", "checkpoint.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_ctrl_c_finishes_the_iteration_saves_and_says_how_to_go_on(tmp_path, monkeypatch):
    settings = {"progress": True}
    whole = short("sellf", **settings, out=tmp_path / "whole")
    record = run_folder.Run.record

    def press(self, iteration, *rest, **more):
        record(self, iteration, *rest, **more)
        if iteration == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run_folder.Run, "record", press)
    with pytest.raises(KeyboardInterrupt) as stopped:
        short("sellf", **settings, out=tmp_path / "run")
    monkeypatch.undo()
    assert f"sellf train --resume {tmp_path / 'run'}" in str(stopped.value)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2
    assert same(whole, loop.resume(tmp_path / "run", progress=False))


def test_a_run_from_the_command_line_and_its_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", "lending", "sellf", "--steps", "1024", "--quiet", "--out", "runs/first"]
    settings = ["--set", "rollout=256", "epochs=2", "population=300", "window=200"]
    settings += ["--beta-renyi", "0.05"]
    assert main([*train, *settings]) == 0
    folder = tmp_path / "runs" / "first"
    config = json.loads((folder / "config.json").read_text())
    assert config["config"]["beta_renyi"] == 0.05
    assert config["config"]["rollout"] == 256
    assert config["world_settings"] == {"population": 300, "window": 200}
    assert {"sellf", "jax", "python", "git", "seed"} <= set(config)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [0, 1, 2, 3]
    assert {"reward", "acceptance", "disparity_true", "loss"} <= set(rows[0])
    capsys.readouterr()
    assert main(["evaluate", "runs/first", "--plot", "picture.xyz"]) == 2
    assert main(["evaluate", "runs/first", "--plot", "no/picture.png"]) == 2
    capsys.readouterr()
    assert main(["evaluate", "runs/first", "--deployments", "2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {
        "disparity",
        "disparity_std",
        "disparity_imputed",
        "disparity_accepted",
        "disparity_exact",
        "reward",
        "reward_std",
        "acceptance",
        "deployments",
    } <= set(figures)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*train, *settings]) == 2
    assert "--resume" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "checkpoint.safetensors").write_bytes(before["checkpoint.safetensors"][:100])
    assert main(["train", "--resume", "runs/first"]) == 2
    assert "damaged" in capsys.readouterr().err
    (folder / "config.json").write_text(json.dumps(config | {"format": 99}))
    assert main(["evaluate", "runs/first"]) == 2
    assert "format 99" in capsys.readouterr().err
    for lost in ("sellf", "steps", "config", "world_rules"):
        kept = {name: value for name, value in config.items() if name != lost}
        (folder / "config.json").write_text(json.dumps(kept))
        assert main(["train", "--resume", "runs/first"]) == 2
        assert f"lacks {lost}" in capsys.readouterr().err
    (folder / "config.json").write_text(json.dumps(config | {"config": "nothing"}))
    assert main(["evaluate", "runs/first"]) == 2
    assert "lacks config" in capsys.readouterr().err
    (folder / "config.json").write_text("{")
    assert main(["evaluate", "runs/first"]) == 2
    assert "not valid JSON" in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["sellf", pytest.param("focops", marks=pytest.mark.slow)])
def test_runs_side_by_side_are_the_runs_alone_to_float_tolerance(algorithm):
    rates = [{"learning_rate": rate} for rate in (1e-4, 3e-4)]
    if algorithm == "sellf":
        rates[1]["beta_increase"] = 1.0  # a weight that is 0 in the others: alone it is left out
    together = sellf.train(
        "lending", algorithm, world_settings=SMALL, configs=rates, seeds=[0, 1], **SHORT
    )
    alone = [short(algorithm, seed=s, **rate) for rate in rates for s in (0, 1)]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-4)
        assert one.config == other.config
    assert not same(together[0], together[2])


@pytest.mark.parametrize(
    ("algorithm", "notion"),
    [
        pytest.param("sellf", "accuracy", marks=pytest.mark.slow),
        pytest.param("sellf", "qualification", marks=pytest.mark.slow),
        pytest.param("sellf", "predictive-parity", marks=pytest.mark.slow),
        # With twenty groups it is trained in test_actions.py.
        pytest.param("sellf", "equalized-odds", marks=pytest.mark.slow),
        pytest.param("sellf-direct", "accuracy", marks=pytest.mark.slow),
        # Two groups are trained for qualification in test_direct.py.
        pytest.param("sellf-direct", "qualification", marks=pytest.mark.slow),
        pytest.param("sellf-direct", "predictive-parity", marks=pytest.mark.slow),
        ("sellf-direct", "equalized-odds"),  # the only one of two rates
    ],
)
def test_every_notion_and_four_groups(notion, algorithm):
    agent = sellf.train(
        "lending",
        algorithm,
        notion=notion,
        world_settings={**SOON, "groups": "all"},
        **SHORT,
    )
    result = sellf.evaluate(agent, deployments=2)
    assert set(result.summary()["acceptance"]) == {"Asian", "Black", "Hispanic", "White"}
    assert 0 <= result.disparity <= 1


@pytest.mark.slow
def test_a_floor_of_its_own_for_each_of_the_runs_side_by_side():
    settings = {"notion": "qualification", "credit_limit": 0.001, "learning_rate": 1e-3}
    floors = [{"floor": floor} for floor in (0.0, 1000.0)]
    together = sellf.train(
        "lending", world_settings=SMALL, configs=floors, seeds=[0], **settings, **SHORT
    )
    alone = [short("sellf-direct", **settings, **floor) for floor in floors]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-4)
    assert not same(*together)


QUICK = (
    "lending sellf",
    "lending sellf-direct",
    "lending sellf-plan",
)
"""Of recidivism, what a world tells is compared in tests/envs/test_gymnasium.py."""
BLIND = [
    pytest.param(
        world, name, "accuracy", marks=() if f"{world} {name}" in QUICK else pytest.mark.slow
    )
    for world in ("lending", "recidivism")
    for name in ALGORITHMS
    if name != "pocar-oracle"
] + [pytest.param("recidivism", "sellf-direct", "qualification", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("world", "algorithm", "notion"), BLIND)
def test_flipping_every_hidden_label_leaves_the_trained_agent_bit_for_bit(
    world, algorithm, notion, monkeypatch
):
    assert same(*_with_and_without_flipped_labels(world, algorithm, notion, monkeypatch))


def test_flipping_hidden_labels_does_change_what_the_oracle_learns(monkeypatch):
    names = ("lending", "pocar-oracle", "accuracy")
    assert not same(*_with_and_without_flipped_labels(*names, monkeypatch))


class Flippable(TableWorld):
    """A world with a switch that flips hidden labels: one program does both trainings."""

    flip: jax.Array | None = None


def _with_and_without_flipped_labels(name, algorithm, notion, monkeypatch):
    decide = worlds.decide
    world = sellf.make_world(name, **(SOON if algorithm == "sellf-plan" else SMALL))
    tables = {field.name: getattr(world, field.name) for field in fields(world)}

    def flipped(world, profile, action, chance, notion, predict=None, policy=None):
        turned = jnp.where((action == 1) | ~world.flip, chance.label, 1 - chance.label)
        # The label after a change is revealed by the decision about the person as they are then.
        label = (chance.label < world.alpha[profile]).astype(jnp.int32)
        moved = world.moves[profile, action, label]
        again = drawn(policy(moved), chance.later_action) if policy else action
        kept = (again == 1) | ~world.flip
        later = jnp.where(kept, chance.later_label, 1 - chance.later_label)
        chance = chance._replace(label=turned, later_label=later)
        return decide(world, profile, action, chance, notion, predict, policy)

    monkeypatch.setattr(worlds, "decide", flipped)
    loop.program.cache_clear()
    switched = [Flippable(**tables, flip=jnp.asarray(on)) for on in (False, True)]
    steps = {k: v for k, v in SHORT.items() if k != "epochs" or algorithm != "sellf-plan"}
    agents = [sellf.train(world, algorithm, notion=notion, **steps) for world in switched]
    loop.program.cache_clear()
    return agents


def people(score, chance, *, change=None, cost=0.5):
    """Make a world of two groups from scores and the chance of a good label by score."""
    rows = len(score)
    return sellf.world_from_frame(
        {"group": ["a", "b"] * (rows // 2), "score": np.asarray(score)},
        group="group",
        categorical=["score"],
        label=lambda x: np.array([chance[int(s)] for s in x["score"]]),
        transition=change,
        cost=cost,
        population=300,
        window=300,
        horizon=512,
    )


@pytest.mark.parametrize(("chance", "share"), [(0.8, 1.0), (0.2, 0.0)])
def test_where_labels_do_not_depend_on_features_all_or_none_are_accepted(chance, share):
    world = people([0, 0, 1, 1], {0: chance, 1: chance})
    agent = sellf.train(world, "ppo", steps=15_000, **FAST)
    accepted = sellf.evaluate(agent, deployments=2).acceptances.mean()
    assert accepted == pytest.approx(share, abs=0.05)


def test_a_two_state_world_is_decided_as_it_should_be():
    """Accept the good half and reject the bad one: the reward of that is known."""
    world = people([0, 0, 1, 1], {0: 0.1, 1: 0.9})
    agent = sellf.train(world, "ppo", steps=20_000, **FAST)
    features = np.eye(2, dtype=np.float32)
    chance = agent.probability(features, ["a", "a"])
    assert chance[0] < 0.05
    assert chance[1] > 0.95
    result = sellf.evaluate(agent, deployments=40)
    best = 1000 + 512 * 0.5 * (0.9 - 0.5)
    assert result.reward == pytest.approx(best, abs=12)


def test_an_agent_of_one_s_own_world_brings_the_world_along(tmp_path):
    world = people([0, 0, 1, 1], {0: 0.1, 1: 0.9})
    agent = sellf.train(world, "ppo", steps=1024, **FAST)
    agent.save(tmp_path / "agent")
    again = sellf.load(tmp_path / "agent")
    assert again.world.groups == ("a", "b")
    assert (
        sellf.evaluate(agent, deployments=2).summary()
        == sellf.evaluate(again, deployments=2).summary()
    )


def test_only_imputation_reveals_the_disparity():
    """Group b is rejected whatever it deserves: invisible among the accepted, seen once imputed."""
    world = sellf.world_from_frame(
        {"group": ["a", "b"] * 50, "score": [0, 1] * 50},
        group="group",
        categorical=["score"],
        label=lambda x: np.where(x["score"] == 0, 0.9, 0.6),
        cost=0.7,
        population=300,
        window=300,
        horizon=512,
    )
    blind = sellf.train(world, "pocar", steps=20_000, beta_disparity=10.0, **FAST)
    seeing = sellf.train(world, "sellf", steps=20_000, beta_disparity=10.0, beta_renyi=0.05, **FAST)
    unfair, fair = (sellf.evaluate(agent, deployments=3) for agent in (blind, seeing))
    # Where nobody of group b is accepted there is not even a disparity.
    assert not (unfair.disparities["accepted"] > 0).any()
    assert unfair.disparity > 0.5
    assert fair.disparities["imputed"].mean() == pytest.approx(fair.disparity, abs=0.1)
    assert fair.disparity < unfair.disparity - 0.3


def test_weights_make_the_predictor_right_about_the_rejected():
    """A straight line through a curve: fitted to the accepted it is wrong about the rejected."""
    from sellf.algorithms import predictor as predictors
    from sellf.algorithms.algorithm import Deciding
    from sellf.algorithms.catalogue import resolve
    from sellf.algorithms.source import Asked, Simulator
    from sellf.envs.policy import Categorical
    from sellf.envs.space import observe
    from tests.algorithms.rollouts import task_of

    grid = np.linspace(-2, 2, 41)
    world = sellf.world_from_frame(
        {"group": ["a", "b"] * 41, "x": np.repeat(grid, 2)},
        group="group",
        numeric=["x"],
        label=lambda x: 0.1 + 0.8 * np.abs(x["x"]) / 2,
        cost=0.5,
        population=2000,
    )
    x = np.asarray(observe(world.space, jnp.arange(world.profiles)))[:, 0]
    logit = jnp.asarray(1.5 * x, jnp.float32)  # accepts the right arm, where the label rises
    deciding = Deciding(lambda p: Categorical(logit[None, p]), jnp.zeros(1))
    source = Simulator(world, "opportunity")
    asked = Asked(deciding.policy, None, "accepted", 2048)
    # Both learn from the same decisions: these are drawn once, by one program.
    collect = jax.jit(lambda key, state: source.collect(key, state, asked)[:2])
    state, rollouts = source.start(jax.random.key(0)), []
    for i in range(100):
        state, seen = collect(jax.random.key(2 + i), state)
        rollouts.append(seen)
    task = task_of(world, "opportunity", 100)
    error = {}
    for weighted in (True, False):
        settings = {"weighted": weighted, "density": "balance", "predictor_decay": 0.97}
        _, config = resolve("sellf", settings, "opportunity")
        predictor = predictors.start(predictors.LINEAR, task, config, jax.random.key(1))

        @jax.jit
        def step(key, seen, predictor, config=config):
            return predictors.learn(
                predictors.LINEAR, task, config, predictor, seen, deciding, key
            )[0]

        for i, seen in enumerate(rollouts):
            predictor = step(jax.random.key(2 + i), seen, predictor)
        phi = np.asarray(predictors.chances(predictors.LINEAR, task, predictor)(
            jnp.arange(world.profiles)
        ))  # fmt: skip
        rejected = 1 - 1 / (1 + np.exp(-np.asarray(logit)))
        error[weighted] = abs(np.sum(rejected * (phi - np.asarray(world.alpha))) / rejected.sum())
    assert error[True] < 0.03
    assert error[False] > 0.1


def test_orders_are_permutations_and_differ():
    orders = np.asarray(permutations(jax.random.key(0), 5, 2048))
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.arange(2048)[None, :].repeat(5, 0))
    assert len({tuple(order) for order in orders.tolist()}) == 5
    place = np.argsort(orders, axis=1)[:, 0]
    assert len(set(place)) > 1
    odd = np.asarray(permutations(jax.random.key(0), 2, 100))
    np.testing.assert_array_equal(np.sort(odd, axis=1), np.arange(100)[None, :].repeat(2, 0))


@pytest.mark.slow
def test_a_run_killed_at_any_moment_goes_on_and_ends_the_same(tmp_path):
    """More kills than in tests/hostile, where two are for every day."""
    code = (
        "import sys, sellf; from sellf.training import loop, run_folder; "
        "run_folder.CHECKPOINT_EVERY = 1; "
        "loop.resume(sys.argv[1], progress=False) if len(sys.argv) > 2 else "
        "sellf.train('lending', 'sellf', steps=512 * 60, rollout=512, epochs=2, progress=False, "
        "world_settings={'population': 300, 'window': 200}, out=sys.argv[1])"
    )

    # Compiled once, so that most kills meet a training that is under way.
    environment = {**os.environ, "SELLF_CACHE": str(tmp_path / "cache")}

    def start(folder, *more):
        command = [sys.executable, "-c", code, str(folder), *more]
        return subprocess.Popen(command, env=environment)

    assert start(tmp_path / "whole").wait() == 0
    killed = 0
    process = start(tmp_path / "run")
    rng = np.random.default_rng(0)
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    for _ in range(5):
        deadline = time.monotonic() + 60
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while process.poll() is None and time.monotonic() < deadline:
            moved = checkpoint.exists() and checkpoint.stat().st_mtime_ns != before
            if moved:
                time.sleep(rng.uniform(0, 0.05))
                break
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        config = json.loads((tmp_path / "run" / "config.json").read_text())
        assert config["algorithm"] == "sellf"
        process = start(tmp_path / "run", "resume")
    assert process.wait() == 0
    assert killed >= 3
    for name in ("agent.safetensors", "checkpoint.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_agents_are_saved_and_loaded_whole_and_decide_the_same(tmp_path):
    agent = trained("sellf-relu")
    agent.save(tmp_path / "agent")
    again = sellf.load(tmp_path / "agent")
    assert same(agent, again)
    features, group = np.eye(10, dtype=np.float32), ["Black"] * 10
    np.testing.assert_array_equal(
        agent.probability(features, group), again.probability(features, group)
    )
    assert set(agent.decide(features, group, seed=1)) <= {0, 1}
    np.testing.assert_array_equal(
        agent.decide(features, group, seed=1), again.decide(features, group, seed=1)
    )
    assert (
        (again.predict_label(features, group) > 0) & (again.predict_label(features, group) < 1)
    ).all()
    assert (
        sellf.evaluate(agent, deployments=2).summary()
        == sellf.evaluate(again, deployments=2).summary()
    )
    with pytest.raises(ValueError, match="exists"):
        agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="one row per person with the 10 inputs"):
        agent.probability(features[:, :3], group)
    with pytest.raises(ValueError, match="group is 'Green'"):
        agent.probability(features, ["Green"] * 10)
    with pytest.raises(ValueError, match="ppo has no label predictor"):
        trained("ppo").predict_label(features, group)


def test_a_semi_stochastic_policy_rejects_for_certain_below_a_quarter():
    agent = trained("sellf-semi")
    features, group = np.eye(10, dtype=np.float32), ["White"] * 10
    chance = agent.probability(features, group)
    assert ((chance == 0) | (chance >= 0.25)).all()


def test_evaluation_shows_itself_as_table_frame_and_picture(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    result = sellf.evaluate(trained("sellf"), deployments=3)
    assert str(result).startswith("3 deployments: reward")
    assert len(result.to_frame("polars")) == 3
    assert result.by_time["time"][-1] == 10_000
    assert result.by_time["qualification"].shape == (3, 50, 2)
    np.testing.assert_allclose(result.by_time["reward"][:, -1], result.rewards)
    result.plot().savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lendng", "ppo"], "world is 'lendng': did you mean 'lending'"),
        (["lending", "sellff"], "algorithm is 'sellff': did you mean 'sellf"),
        (["lending", "ppo", "--notion", "oportunity"], "did you mean 'opportunity'"),
        (["lending", "ppo", "--notion", "demographic"], "notion is 'demographic'"),
        (["lending", "sellf", "--omega", "-0.1"], "omega is -0.1: give 0 or more"),
        (["lending", "--set", "guard_delta=20"], "guard_delta is 20"),
        (["lending", "ppo", "--omega", "0.1"], "--omega is not a setting of ppo"),
        (["lending", "ppo", "--set", "learning_rate=-1"], "learning_rate is -1"),
        (["lending", "ppo", "--set", "learning_rate=0"], "learning_rate is 0: give a number"),
        (["lending", "ppo", "--set", "batch=100"], "does not divide rollout, 2048"),
        (["lending", "ppo", "--set", "batch"], "write NAME=VALUE"),
        (["lending", "ppo", "--set", "batchh=64"], "did you mean 'batch'"),
        (["lending", "sellf", "--set", "density=some"], "density is 'some'"),
        (["lending", "ppo", "--steps", "0"], "steps is 0: it must be at least 1"),
        (["lending", "ppo", "--set", "groups=Black,Blue"], "two or more of"),
        (["lending", "focops", "--set", "cost=imputd"], "cost is 'imputd': did you mean 'imputed'"),
        (["lending", "ppo", "--set", "cost=imputed"], "cost is 'imputed'"),
        ([], "no world named"),
        (["--resume", "nowhere"], "there is no folder nowhere"),
    ],
    ids=str,
)
def test_mistakes_on_the_command_line_are_answered_with_exit_code_2(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_world_and_algorithm_both_have_goes_where_its_value_fits(
    tmp_path, monkeypatch
):
    told = {}
    agent = SimpleNamespace(algorithm="focops", world=SimpleNamespace(name="lending"), statement="")
    monkeypatch.setattr(
        "sellf.training.loop.train", lambda *_, **options: told.update(options) or agent
    )
    train = ["train", "lending", "focops", "--out", str(tmp_path / "run")]
    assert main([*train, "--set", "cost=imputed", "cost=0.7", "limit=5"]) == 0
    assert (told["cost"], told["limit"]) == ("imputed", 5)
    assert told["world_settings"] == {"cost": 0.7}
    hooks, _ = resolve("focops", {"cost": told["cost"], "limit": told["limit"]}, "opportunity")
    assert hooks.predictor is not None


def test_a_full_disk_is_answered_in_a_sentence_and_leaves_what_was_there(tmp_path, monkeypatch):
    from sellf import files

    target = tmp_path / "file"
    files.write(target, b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ValueError, match="No space left on device"):
        files.write(target, b"after")
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_configs_that_one_program_cannot_train_are_refused():
    with pytest.raises(ValueError, match="configs differ in epochs, which shapes the program"):
        sellf.train("lending", "ppo", configs=[{"epochs": 1}, {"epochs": 2}], progress=False)
    with pytest.raises(ValueError, match="out is one run's folder"):
        sellf.train("lending", "ppo", seeds=[0, 1], out="x", progress=False)
    with pytest.raises(ValueError, match="seeds is empty: give at least one"):
        sellf.train("lending", "ppo", seeds=[], progress=False)


def test_settings_that_mean_nothing_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"omega is 2\.0: give a number from 0 to 1"):
        sellf.train("lending", omega=2)
    with pytest.raises(ValueError, match=r"seeds is 3: give a list, for example seeds=range\(3\)"):
        sellf.train("lending", seeds=3)
    with pytest.raises(ValueError, match=r"epochs is 2\.5: give a whole number") as error:
        sellf.train("lending", epochs=np.float64(2.5))
    assert "np." not in str(error.value)


def test_an_algorithm_that_compares_one_rate_says_so_of_a_notion_that_has_two():
    with pytest.raises(ValueError, match="use 'opportunity' and 'false-positive-rate', one at a"):
        sellf.train("lending", "elbert", notion="equalized-odds", **SHORT)
