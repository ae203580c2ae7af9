"""Two processes on one folder: one refuses or waits, and nothing is done twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sellf
from sellf import locks
from sellf.cli import main
from sellf.errors import InputError
from sellf.studies import plan, run
from sellf.studies.store import open_store
from tests.studies.tiny import TEXT, FakeEngine, folder, study

ALL = study('select = "all"\n' + TEXT)
ROOT = Path(__file__).parents[2]

STUDY = """
import sys, time
from sellf.studies.engines.base import Outcome
from sellf.studies.run import run
from sellf.studies.store import open_store
from tests.studies.tiny import FakeEngine, folder, study

def slowly(job):
    print(job.name, flush=True)
    time.sleep(float(sys.argv[2]))
    return Outcome(job, folder(job.run))

tally = run(study(), open_store(sys.argv[1]), FakeEngine(slowly))
print("complete" if tally.complete else "not complete")
"""
HOLD = """
import sys, time
from pathlib import Path
from sellf import locks
with locks.only_one(Path(sys.argv[1]), "held"):
    print("held", flush=True)
    time.sleep(60)
"""


def start(code, *arguments):
    paths = os.pathsep.join([str(Path(sellf.__file__).parents[1]), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )


def test_two_studies_on_one_store_do_every_run_once(tmp_path):
    pytest.importorskip("fcntl")
    both = [start(STUDY, tmp_path / "store", 0.2) for _ in range(2)]
    told = [process.communicate(timeout=120)[0].split() for process in both]
    assert [words[-1] for words in told] == ["complete", "complete"]
    did = [word for words in told for word in words if len(word) == 32]
    assert len(did) == len(set(did)) == len(open_store(tmp_path / "store").done())


def test_what_a_killed_process_was_at_is_taken_over(tmp_path):
    pytest.importorskip("fcntl")
    first = start(STUDY, tmp_path / "store", 60)
    assert len(first.stdout.readline().strip()) == 32
    second = start(STUDY, tmp_path / "store", 0)
    deadline = time.monotonic() + 60
    while len(open_store(tmp_path / "store").done()) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    # All but the first one's run, and what waits for its selection: that is not done twice.
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert second.communicate(timeout=60)[0].split()[-1] == "complete"
    open_store(tmp_path / "store")
    assert not list((tmp_path / "store" / "active").iterdir())


def test_a_run_that_came_in_meanwhile_is_not_done_again(tmp_path, monkeypatch):
    """Between looking into the store and beginning, another process may have done it."""
    made = open_store(tmp_path / "store")
    claim = run.Claims.claim
    runs = {plan.key(one): one for group in plan.groups(ALL) for one in group.first(ALL)}

    def late(self, name):
        made.put(name, folder(runs[name]))
        return claim(self, name)

    monkeypatch.setattr(run.Claims, "claim", late)
    engine = FakeEngine()
    tally = run.run(ALL, made, engine)
    assert tally.complete
    assert (engine.did, tally.fresh) == ([], 0)


def test_a_run_folder_is_one_process_s_until_that_ends(tmp_path, monkeypatch, capsys, jax):
    pytest.importorskip("fcntl")
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path / "cache"))
    small = {"population": 300, "window": 200}
    settings = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}

    def stop(iteration, row):
        raise MemoryError

    with pytest.raises(MemoryError):
        sellf.train(
            "lending", "ppo", world_settings=small, out=tmp_path / "run", log=stop, **settings
        )
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    other = start(HOLD, tmp_path / "run")
    assert other.stdout.readline() == "held\n"
    assert main(["train", "--resume", str(tmp_path / "run"), "--quiet"]) == 2
    assert "another process is training in" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert main(["train", "--resume", str(tmp_path / "run"), "--quiet"]) == 0
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 4
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "agent.safetensors",
        "checkpoint.safetensors",
        "config.json",
        "metrics.jsonl",
    ]


def test_two_threads_do_not_share_a_folder_either(tmp_path):
    pytest.importorskip("fcntl")
    with (
        locks.only_one(tmp_path, "first"),
        pytest.raises(InputError, match="second"),
        locks.only_one(tmp_path, "second"),
    ):
        raise AssertionError
    with locks.only_one(tmp_path, "third"):
        pass
