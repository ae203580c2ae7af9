"""Saved agents and runs: the same world again, and nothing that was damaged passes."""

import json
import random

import numpy as np
import pytest

import sellf
from sellf import files
from sellf.cli import main
from sellf.errors import InputError
from sellf.training import loop

SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
SMALL = {"population": 300, "window": 200, "horizon": 200}


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory):
    """Compiled programs are shared between the tests of this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELLF_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def people(name):
    return sellf.world_from_frame(
        {"group": ["a", "b"] * 20, "score": [0, 1, 2, 3] * 10},
        group="group",
        categorical=["score"],
        label=lambda x: x["score"] / 4,
        cost=0.3,
        name=name,
        **SMALL,
    )


@pytest.fixture(scope="module")
def kept(jax, tmp_path_factory):
    """The files of a run in a world of one's own."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    sellf.train(people("mine"), "ppo", out=folder, **SHORT)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def run(kept, tmp_path):
    return files.write_folder(tmp_path / "run", kept)


@pytest.fixture(scope="module")
def agent(jax):
    # As in other tests, so that what these compiled is found on disk.
    small = {"population": 300, "window": 200}
    return sellf.train("lending", "sellf", world_settings=small, **SHORT)


def tables(world):
    from sellf.envs.saving import rules_of, tables_of

    return rules_of(world), {name: table.tolist() for name, table in tables_of(world).items()}


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(lambda: sellf.make_world("lending", cost=0.3, **SMALL), id="settings"),
        pytest.param(lambda: people("lending"), id="own"),
    ],
)
def test_a_world_given_as_an_object_is_loaded_and_resumed_as_it_was(world, tmp_path, monkeypatch):
    made = world()
    whole = sellf.train(made, "ppo", out=tmp_path / "whole", **SHORT)
    assert tables(sellf.load(tmp_path / "whole").world) == tables(made)

    class Stop(Exception):  # noqa: N818
        pass

    def stop(iteration, row):
        raise Stop

    with pytest.raises(Stop):
        sellf.train(made, "ppo", out=tmp_path / "run", log=stop, **SHORT)
    resumed = loop.resume(tmp_path / "run", progress=False)
    assert tables(resumed.world) == tables(made)
    assert np.array_equal(np.asarray(resumed.parameters), np.asarray(whole.parameters))
    resumed.save(tmp_path / "again")
    assert tables(sellf.load(tmp_path / "again").world) == tables(made)


def test_a_world_by_name_needs_no_tables(agent, tmp_path):
    agent.save(tmp_path / "agent")
    assert sorted(path.name for path in (tmp_path / "agent").iterdir()) == [
        "agent.safetensors",
        "config.json",
        "metrics.jsonl",
    ]
    assert tables(sellf.load(tmp_path / "agent").world) == tables(agent.world)


def test_a_world_whose_rules_are_not_those_that_were_saved_is_refused(tmp_path, capsys):
    """As earlier versions saved a world that was given as an object."""
    made = sellf.make_world("lending", cost=0.3, **SMALL)
    sellf.train(made, "ppo", out=tmp_path / "run", **SHORT)
    (tmp_path / "run" / "world.safetensors").unlink()
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    old = {name: v for name, v in config.items() if name not in ("world_tables", "sha256")}
    (tmp_path / "run" / "config.json").write_bytes(files.sealed_json(old))
    assert main(["evaluate", str(tmp_path / "run")]) == 2
    assert "with other rules" in capsys.readouterr().err
    assert main(["train", "--resume", str(tmp_path / "run")]) == 2


def test_settings_of_a_world_that_is_given_as_an_object_are_refused():
    with pytest.raises(InputError, match="world_settings are for a world by name"):
        sellf.train(sellf.make_world("lending"), "ppo", world_settings=SMALL, **SHORT)


def test_every_flipped_bit_of_an_agent_or_world_is_found(run):
    before = sellf.load(run)
    chance = random.Random(0)
    for name in ("agent.safetensors", "world.safetensors", "config.json"):
        path = run / name
        whole = path.read_bytes()
        for _ in range(40):
            damaged = bytearray(whole)
            damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            try:
                found = sellf.load(run)
            except InputError:
                continue
            # White space, say: then nothing may have changed.
            assert tables(found.world) == tables(before.world)
            assert (found.config, found.seed) == (before.config, before.seed)
            assert np.array_equal(np.asarray(found.parameters), np.asarray(before.parameters))
        path.write_bytes(whole)


def test_parameters_that_are_no_numbers_are_not_evaluated(agent, tmp_path, capsys):
    from dataclasses import replace

    broken = replace(agent, parameters=agent.parameters * np.float32("nan"))
    with pytest.raises(InputError, match="not a number"):
        sellf.evaluate(broken, deployments=2)
    broken.save(tmp_path / "agent")
    assert main(["evaluate", str(tmp_path / "agent")]) == 2
    assert "contains a value that is not a number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("moves", lambda x: x + 1000),
        ("group", lambda x: x - 1),
        ("alpha", lambda x: x * 3),
        ("alpha", lambda x: x[:-1]),
        ("arrivals.cumulative", lambda x: x[::-1].copy()),
        ("encoding.changes", lambda x: x.astype(np.int32)),
    ],
)
def test_a_world_that_cannot_be_is_refused(run, table, change):
    """The checksum is right here: somebody made this on purpose, or by another program."""
    path = run / "world.safetensors"
    found = files.read_tensors(path)
    found[table] = change(found[table])
    path.write_bytes(files.tensors_to_bytes(found))
    with pytest.raises(InputError, match="the saved world is damaged"):
        sellf.load(run)


def test_the_agent_of_another_run_is_not_taken_for_this_one_s(tmp_path, jax):
    for seed in (1, 2):
        sellf.train(people("mine"), "ppo", out=tmp_path / str(seed), seed=seed, **SHORT)
    other = (tmp_path / "2" / "agent.safetensors").read_bytes()
    (tmp_path / "1" / "agent.safetensors").write_bytes(other)
    with pytest.raises(InputError, match="not the agent that config"):
        sellf.load(tmp_path / "1")


def rewrite(kept, folder, **changed):
    folder.mkdir()
    for name, content in (kept | changed).items():
        (folder / name).write_bytes(content)
    return folder


def test_a_checksum_that_was_taken_out_is_missed(tmp_path, kept):
    config = json.loads(kept["config.json"])
    del config["sha256"]
    config["notion"] = "accuracy"
    edited = {"config.json": json.dumps(config).encode()}
    with pytest.raises(InputError, match="not as it was written"):
        sellf.load(rewrite(kept, tmp_path / "a", **edited))
    from safetensors.numpy import load, save

    arrays = {name: -array for name, array in load(kept["agent.safetensors"]).items()}
    with pytest.raises(InputError, match="not as they were written"):
        sellf.load(rewrite(kept, tmp_path / "b", **{"agent.safetensors": save(arrays)}))


@pytest.mark.parametrize("checkpoint", [True, False])
def test_metrics_of_a_finished_run_are_as_they_were_written(tmp_path, kept, checkpoint):
    files_of = {n: c for n, c in kept.items() if checkpoint or n != "checkpoint.safetensors"}
    rows = kept["metrics.jsonl"].splitlines()
    last = json.loads(rows[-1])
    more = json.dumps(last | {"iteration": last["iteration"] + 1}).encode()
    for number, lines in enumerate(([*rows, more], [*rows[:-1], rows[-1].replace(b"0", b"9")])):
        edited = {"metrics.jsonl": b"\n".join(lines) + b"\n"}
        with pytest.raises(InputError, match="damaged"):
            sellf.load(rewrite(files_of, tmp_path / str(number), **edited))
    assert sellf.load(rewrite(files_of, tmp_path / "whole")).history
