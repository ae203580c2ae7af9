"""Worker processes: closed by one, gone with who asked, and nothing of them left."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import sellf
from sellf import leftovers
from sellf.studies import plan
from sellf.studies.engines import base, local
from sellf.studies.store import open_store
from tests.studies.tiny import study

RUN = plan.groups(study())[0].first(study())[0]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "WORKER", "tests.studies.fake_worker")
    monkeypatch.setenv("FAKE_TALLY", str(tmp_path))


def work(engine, number):
    for i in range(number):
        run = replace(RUN, seed=10 * i)
        engine.submit(base.job(run, plan.key(run)))


def test_pipes_are_closed_by_the_thread_that_reads_them(fake, monkeypatch):
    """Two threads that close one pipe at a time ended complete studies with an error."""
    ended = []
    end = local._Process.end

    def told(self):
        ended.append((id(self), threading.current_thread() is threading.main_thread()))
        end(self)

    monkeypatch.setattr(local._Process, "end", told)
    engine = local.LocalEngine(2)
    work(engine, 4)
    found = []
    while len(found) < 4:
        found += engine.wait(1.0)
    engine.close()
    assert len(ended) == len({process for process, _ in ended}) == 2
    assert not any(main for _, main in ended)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.3, 0.6])
def test_an_engine_is_closed_whatever_its_workers_are_at(fake, moment):
    engine = local.LocalEngine(2)
    work(engine, 6)
    time.sleep(moment)
    engine.close()
    assert not any(thread.is_alive() for thread in engine.threads)
    assert not engine.processes


def test_a_worker_whose_parent_was_gone_before_it_looked_ends_too():
    nobody = subprocess.Popen([sys.executable, "-c", ""])
    nobody.wait()
    worker = subprocess.Popen(
        [sys.executable, "-m", "sellf.studies.engines.worker", "-1", str(nobody.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
    )
    try:
        # Its input is open, as if a run had been sent.
        assert worker.wait(60) == 1
    finally:
        worker.kill()
        worker.communicate()


def test_the_next_command_sweeps_what_killed_ones_left_in_a_store(tmp_path):
    kept = open_store(tmp_path / "store").folder
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mark = leftovers.mark().replace(str(os.getpid()), str(gone.pid))
    left = [
        kept / "tmp" / f".run.{mark}-1.tmp",
        kept / "failed" / f".run.json.{mark}-ab.tmp",
        kept / "active" / f".sign.json.{mark}-ab.tmp",
        kept / f".store.json.{mark}-ab.tmp",
        kept / "active" / "gone.json",
        kept / "active" / "strange.json",
    ]
    left[0].mkdir()
    for path in left[1:4]:
        path.write_text("half")
    sign = {"studies": ["a"], "quick": False, "running": [], "workers": 1, "time": 0.0}
    left[4].write_text(json.dumps(sign | {"host": socket.gethostname(), "pid": gone.pid}))
    left[5].write_text("[]")
    mine = kept / "active" / "mine.json"
    mine.write_text(json.dumps(sign | {"host": socket.gethostname(), "pid": os.getpid()}))
    open_store(kept)
    assert not any(path.exists() for path in left)
    assert mine.exists()
