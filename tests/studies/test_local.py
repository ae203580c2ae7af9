"""Worker processes: who dies is replaced, who fails is told of, and nobody is left behind."""

import os
import time
from dataclasses import replace

import pytest

from sellf.errors import InputError
from sellf.studies import engines, plan
from sellf.studies.engines import base, local
from tests.studies.tiny import study

RUN = plan.groups(study())[0].first(study())[0]


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "WORKER", "tests.studies.fake_worker")
    monkeypatch.setenv("FAKE_TALLY", str(tmp_path))
    made = local.LocalEngine(2)
    yield made
    made.close()


def do(engine, runs):
    for run in runs:
        engine.submit(base.job(run, plan.key(run)))
    found = {}
    deadline = time.monotonic() + 60
    while len(found) < len(runs) and time.monotonic() < deadline:
        found |= {outcome.job.run.seed: outcome for outcome in engine.wait(1.0)}
    return found


def test_a_worker_s_death_is_survived_twice_and_not_a_third_time(engine, tmp_path):
    # Seed n dies n times, seeds from 10 on by a signal.
    found = do(engine, [replace(RUN, seed=seed) for seed in (0, 1, 2, 3, 13, 20)])
    assert {seed: found[seed].files is not None for seed in sorted(found)} == {
        0: True,
        1: True,
        2: True,
        3: False,
        13: False,
        20: True,
    }
    assert found[20].files == {"a": b"1\n2", "b": b"20"}
    assert found[3].kind == found[13].kind == "died"
    assert "exit code 9" in found[3].reason
    assert "noise of a library" in found[3].reason
    assert "signal 6" in found[13].reason
    tries = {seed: (tmp_path / str(seed)).read_text().split() for seed in found}
    assert {seed: len(cores) for seed, cores in tries.items()} == {
        0: 1,
        1: 2,
        2: 3,
        3: 3,
        13: 3,
        20: 1,
    }


def test_a_run_that_diverges_is_not_tried_again(engine, tmp_path):
    found = do(engine, [replace(RUN, steps=1)])
    assert (found[0].kind, found[0].reason) == ("diverged", "loss is not a number")
    assert len((tmp_path / "0").read_text().split()) == 1


def test_a_worker_that_cannot_be_started_is_told_of(engine, monkeypatch):
    def full(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(local.subprocess, "Popen", full)
    found = do(engine, [RUN])
    assert found[0].kind == "died"
    assert "temporarily unavailable" in found[0].reason


def test_closing_ends_the_processes(engine):
    do(engine, [replace(RUN, seed=seed) for seed in (10, 20)])
    pids = [process.process.pid for process in engine.processes.values()]
    assert pids
    engine.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_keeps_to_its_program(engine):
    runs = [replace(RUN, seed=10 * i, notion=n) for i in range(2) for n in ("accuracy", RUN.notion)]
    jobs = [base.job(run, plan.key(run)) for run in runs]
    with engine.change:
        for job in jobs:
            engine.jobs.setdefault(job.program, local.deque()).append(job)
        # The queue has accuracy first; who did the other notion before goes on with that.
        assert engine._take(7, jobs[1].program) == jobs[1]
        # Whoever comes new takes what no other is at.
        assert engine._take(8, "") == jobs[0]
        engine.jobs.clear()
        engine.current.clear()


def test_engines_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="did you mean 'local'"):
        engines.make("locla")
    with pytest.raises(InputError, match="type engine='ray'"):
        engines.make("local", address="auto")
    with pytest.raises(InputError, match="workers is -1"):
        engines.make("local", workers=-1)
