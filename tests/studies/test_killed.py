"""Real studies of a few steps from the command line, killed at any moment."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sellf
from sellf.studies import plan, spec
from sellf.studies.execute import EVALUATION_SEED
from sellf.studies.results import results
from sellf.studies.store import open_store
from sellf.training import evaluation, loop

STUDY = """
cells = [["lending", "opportunity"]]
seeds = 2
steps = 512
deployments = 2

[algorithms.ppo]
settings = { rollout = 256, epochs = 1 }
grid = { learning_rate = [1e-4, 1e-3, 1e-2] }

[world_settings.lending]
population = 300
window = 200
horizon = 100
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that nobody disturbed."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "study.toml").write_text(STUDY)
    os.environ["SELLF_CACHE"] = str(folder / "cache")
    assert start(folder, "whole").wait() == 0
    yield folder
    del os.environ["SELLF_CACHE"]


def start(folder, store, *options):
    command = [sys.executable, "-m", "sellf", "study", "run", "study.toml", "--store", store]
    errors = (folder / f"{store}.txt").open("a")
    with errors:
        return subprocess.Popen(
            [*command, "--workers", "1", *options],
            cwd=folder,
            stderr=errors,
            stdout=errors,
            env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
        )


def content(folder, store):
    """What a store's runs hold, without what they took."""
    return {
        path.name: [(path / file).read_bytes() for file in ("agent.safetensors", RESULTS)]
        for path in (folder / store / "runs").iterdir()
    }


RESULTS = "results.safetensors"


def kill_and_finish(whole, moments, name):
    folder = whole
    for moment in moments:
        process = start(folder, name)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert start(folder, name).wait() == 0
    assert content(folder, name) == content(folder, "whole")


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_killed_it_ends_the_same(whole, times):
    chance = random.Random(times)
    kill_and_finish(whole, [chance.uniform(2.0, 8.0) for _ in range(times)], f"times-{times}")


@pytest.mark.slow
def test_killed_twenty_times_it_ends_the_same(whole):
    chance = random.Random(2)
    for i in range(20):
        kill_and_finish(whole, [chance.uniform(0.0, 12.0)], f"twenty-{i}")


def test_no_worker_outlives_the_study(whole):
    folder = whole
    process = start(folder, "orphans")
    deadline = time.monotonic() + 60
    while not (mine := workers_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert mine
    process.send_signal(signal.SIGKILL)
    process.wait()
    while any(map(alive, mine)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, mine))


def workers_of(pid):
    """The children of a process; whichever thread started one is its parent."""
    lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
    if process_exists(pid) and not lists:
        pytest.skip("the system does not tell children")
    return [int(word) for path in lists for word in path.read_text().split()]


def process_exists(pid):
    return Path(f"/proc/{pid}").exists()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_stops_with_130_and_leaves_what_is_done(whole):
    folder = whole
    process = start(folder, "stopped")
    store = folder / "stopped" / "runs"
    deadline = time.monotonic() + 90
    while not (store.is_dir() and any(store.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait() in (0, 130)
    kept = content(folder, "stopped")
    assert kept
    assert kept.items() <= content(folder, "whole").items()


def test_a_stored_run_is_the_run_trained_by_hand(whole):
    folder = whole
    study = spec.load(folder / "study.toml")
    store = open_store(folder / "whole", write=False)
    cell = results(study, store).cells[0]
    assert len(cell.grid) == 3
    assert len(cell.final) == 2
    record = cell.final[1]
    agent = loop.train(
        "lending",
        "ppo",
        notion="opportunity",
        steps=512,
        seed=1,
        world_settings=study.world_settings["lending"],
        progress=False,
        **record.spec.hyperparameters,
    )
    loaded = sellf.load(store.path(plan.key(record.spec)))
    assert np.array_equal(np.asarray(loaded.parameters), np.asarray(agent.parameters))
    again = evaluation.evaluate(agent, deployments=2, seed=EVALUATION_SEED)
    assert np.array_equal(record.evaluation.rewards, again.rewards)
    for name, values in again.by_time.items():
        assert np.array_equal(record.evaluation.by_time[name], values, equal_nan=True)
    rows = [row["disparity_true"] for row in agent.history]
    assert np.array_equal(record.metrics["disparity_true"], np.asarray(rows, np.float32))
    assert record.seconds > 0
