"""The loop: only what is missing, whatever happened before, and what is said about it."""

import json
import os
import time

import pytest

from sellf.cli import main
from sellf.studies import plan, spec
from sellf.studies.engines.base import job as job_of
from sellf.studies.progress import Progress
from sellf.studies.results import results
from sellf.studies.run import run
from sellf.studies.status import status
from sellf.studies.store import open_store
from tests.studies.tiny import TEXT, FakeEngine, Outcome, folder, study

TOTAL = 3 + 4 + 2
"""ppo on three seeds; sellf's grid of four, and two seeds more for the one selected."""


def test_a_second_run_does_nothing_and_a_third_only_what_is_missing(tmp_path):
    kept = open_store(tmp_path)
    first = FakeEngine()
    tally = run(study(), kept, first)
    assert (tally.complete, tally.fresh, tally.total) == (True, TOTAL, TOTAL)
    assert len(set(first.did)) == len(first.did) == TOTAL
    again = FakeEngine()
    assert run(study(), kept, again).complete
    assert again.did == []
    lost = [first.did[0], first.did[-1]]
    for name in lost:
        kept.drop(name)
    third = FakeEngine()
    assert run(study(), kept, third).complete
    assert sorted(third.did) == sorted(lost)


def test_what_was_selected_is_trained_before_the_next_grid(tmp_path):
    kept = open_store(tmp_path)
    two = study(TEXT.replace('"opportunity"]]', '"opportunity"], ["lending", "accuracy"]]'))

    def interrupted(job):
        # The first cell's runs, and one of the next grid.
        if len(engine.did) > TOTAL + 1:
            raise KeyboardInterrupt
        return Outcome(job, folder(job.run))

    engine = FakeEngine(interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(two, kept, engine)
    whole = [cell.algorithm for cell in results(two, kept).cells if len(cell.final) == 3]
    assert whole[:2] == ["ppo", "sellf"]


@pytest.mark.parametrize("stop", range(0, TOTAL, 2))
def test_stopped_after_any_run_it_ends_the_same(tmp_path, stop):
    whole, cut = open_store(tmp_path / "whole"), open_store(tmp_path / "cut")
    run(study(), whole, FakeEngine())

    def interrupted(job):
        if len(engine.did) > stop:
            raise KeyboardInterrupt
        return Outcome(job, folder(job.run))

    engine = FakeEngine(interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(study(), cut, engine)
    assert engine.closed
    assert len(cut.done()) == stop
    rest = FakeEngine()
    assert run(study(), cut, rest).complete
    assert len(rest.did) == TOTAL - stop
    assert cut.done() == whole.done()
    assert not list((tmp_path / "cut" / "active").iterdir())


def test_a_damaged_run_is_done_again_and_told_of(tmp_path, capsys):
    kept = open_store(tmp_path)
    run(study(), kept, FakeEngine())
    name = sorted(kept.done())[0]
    (kept.path(name) / "agent.safetensors").write_bytes(b"")
    found = status(study(), kept, check=True)
    assert found.damaged == [name]
    engine = FakeEngine()
    tally = run(study(), kept, engine, Progress(study().title))
    assert engine.did == tally.damaged == [name]
    assert f"run {name} is damaged" in capsys.readouterr().err
    kept.check(name)


def test_a_run_that_cannot_be_trained_is_left_out_of_the_selection(tmp_path):
    kept = open_store(tmp_path)

    def outcome(job):
        if job.run.hyperparameters.get("beta_disparity") == 5:
            return Outcome(job, None, "diverged", "loss is not a number")
        return Outcome(job, folder(job.run))

    tally = run(study(), kept, FakeEngine(outcome))
    assert len(tally.failed) == len(tally.diverged) == 2
    assert tally.complete  # nothing is left that could be done
    found = status(study(), kept)
    assert (sum(row.done for row in found.rows), found.seconds_left) == (TOTAL - 2, 0)
    sellf = results(study(), kept).cells[1]
    assert sellf.chosen["beta_disparity"] == 1
    assert len(sellf.final) == 3
    # It would diverge again: nothing is tried a second time.
    again = FakeEngine()
    run(study(), kept, again)
    assert again.did == []


def test_a_run_whose_workers_died_is_recorded_and_tried_again_next_time(tmp_path):
    kept = open_store(tmp_path)

    def outcome(job):
        if job.run.seed == 2:
            return Outcome(job, None, "died", "the worker died (signal 9)")
        return Outcome(job, folder(job.run))

    tally = run(study(), kept, FakeEngine(outcome))
    assert len(tally.done) == TOTAL - 2
    found = status(study(), kept)
    assert [reason for _, reason in found.failed.values()] == ["the worker died (signal 9)"] * 2
    assert sum(row.failed for row in found.rows) == 2
    assert found.seconds_left == pytest.approx(2 * 1.5)
    again = FakeEngine()
    assert run(study(), kept, again).complete
    assert len(again.did) == 2
    assert not kept.failed()


def test_a_run_that_is_refused_is_tried_again_next_time(tmp_path, monkeypatch):
    from sellf.errors import InputError
    from sellf.studies import execute
    from sellf.studies.engines.task import attempt

    def refuse(_):
        raise InputError("there is no such file.")

    monkeypatch.setattr(execute, "perform", refuse)
    kept = open_store(tmp_path)
    refusing = FakeEngine(lambda job: Outcome(job, None, **attempt(job.run.to_json())[0]))
    tally = run(study(), kept, refusing)
    assert set(tally.failed.values()) == {"there is no such file."}
    assert not tally.complete
    again = FakeEngine()
    assert run(study(), kept, again).complete
    assert len(again.did) == TOTAL


def test_a_grid_with_a_hole_is_not_selected_from(tmp_path):
    kept = open_store(tmp_path)

    def outcome(job):
        died = job.run.hyperparameters.get("beta_renyi") == 0.1
        return Outcome(job, None, "died", "gone") if died else Outcome(job, folder(job.run))

    tally = run(study(), kept, FakeEngine(outcome))
    assert not tally.complete
    cell = results(study(), kept).cells[1]
    assert (len(cell.grid), cell.chosen, cell.final) == (2, {}, [])


def test_status_shows_what_runs_now_and_not_what_ran_before(tmp_path):
    kept = open_store(tmp_path)
    seen = []

    def outcome(job):
        seen.append(status(study(), kept))
        return Outcome(job, folder(job.run))

    run(study(), kept, FakeEngine(outcome))
    assert seen[0].workers == 1
    assert sum(row.running for row in seen[0].rows) == 1
    assert status(study(), kept).workers == 0
    # A process that was killed leaves its sign behind.
    sign = {"study": "tiny", "quick": False, "host": os.uname().nodename, "pid": 2**22 + 1}
    sign |= {"time": time.time(), "running": [], "workers": 2}
    (tmp_path / "active" / "gone.json").write_text(json.dumps(sign))
    assert status(study(), kept).workers == 0


def test_what_is_typed_and_what_is_answered(tmp_path, capsys, monkeypatch):
    made = {}

    def engine(name, workers, address):
        made.update(name=name, workers=workers, address=address)
        return FakeEngine()

    monkeypatch.setattr("sellf.studies.engines.make", engine)
    file = tmp_path / "mine.toml"
    file.write_text(TEXT.replace("512", "50_000"))
    monkeypatch.setenv("SELLF_STORE", str(tmp_path / "store"))
    assert main(["study", "list"]) == 0
    assert "paper-main" in capsys.readouterr().out
    assert main(["study", "run", str(file), "--workers", "3", "--quick"]) == 0
    assert made == {"name": "local", "workers": 3, "address": None}
    err = capsys.readouterr().err
    assert f"`sellf study table {file} --quick`" in err
    assert "first look" in err
    assert main(["study", "status", str(file)]) == 0
    out = capsys.readouterr().out
    assert "…" not in out  # nothing is cut off in 80 columns
    assert all(len(line) <= 80 for line in out.splitlines())
    # Shrunk runs are other runs.
    assert f"0 of {TOTAL} runs are done" in out
    assert main(["study", "status", str(file), "--quick"]) == 0
    assert "5 of 5 runs are done" in capsys.readouterr().out
    for typed, words in {
        ("run", "paper-mani"): "did you mean 'paper-main'",
        ("run",): "type `sellf study run NAME`",
        ("walk", str(file)): "action is 'walk'",
        ("table", str(file)): "no run of tiny is final yet",
    }.items():
        assert main(["study", *typed]) == 2
        assert words in capsys.readouterr().err


def test_the_same_run_asked_for_by_two_studies_is_done_once(tmp_path):
    kept = open_store(tmp_path)
    run(study(), kept, FakeEngine())
    wider = study(TEXT.replace("seeds = 3", "seeds = 4"))
    engine = FakeEngine()
    assert run(wider, kept, engine).complete
    assert len(engine.did) == 2
    assert all(
        plan.key(run) in kept.done() for group in plan.groups(wider) for run in group.first(wider)
    )


def test_runs_that_are_timed_are_kept_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TEXT)
    (tmp_path / "timed.toml").write_text("alone = true\n" + TEXT)
    run(spec.load("tiny.toml"), open_store("store"), FakeEngine())
    assert main(["study", "status", "timed.toml", "--store", "store"]) == 0
    assert f"0 of {TOTAL} runs are done" in capsys.readouterr().out
    run(spec.load("timed.toml"), open_store("store", alone=True), FakeEngine())
    assert main(["study", "status", "timed.toml", "--store", "store"]) == 0
    assert f"{TOTAL} of {TOTAL} runs are done" in capsys.readouterr().out
    assert (tmp_path / "store-alone" / "runs").is_dir()


def test_a_run_that_another_process_is_at_has_not_failed(monkeypatch):
    made = study()
    said = []
    progress = Progress(made, shown=False)
    monkeypatch.setattr(progress, "message", said.append)
    (first, *_) = plan.groups(made)
    job = job_of(first.first(made)[0], "name")
    progress.took(Outcome(job, kind="elsewhere"))
    assert said == []
    progress.took(Outcome(job, kind="died", reason="the machine went away"))
    assert len(said) == 1
    assert said[0].endswith("the machine went away")
