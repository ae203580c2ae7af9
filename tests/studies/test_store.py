"""The store: whole or not there, checked, mergeable, and quick for many runs."""

import errno
import json
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from sellf.cli import main
from sellf.errors import InputError
from sellf.studies import plan, run_files, store
from sellf.studies.engines.base import Outcome
from sellf.studies.results import results
from sellf.studies.run import run
from sellf.studies.status import status
from sellf.studies.store import DamagedError, FullError, open_store
from tests.studies.tiny import TEXT, FakeEngine, folder, study

RUN = plan.groups(study())[0].first(study())[0]
NAME = plan.key(RUN)


def test_a_run_comes_back_as_it_went_in(tmp_path):
    kept = open_store(tmp_path / "store")
    kept.put(NAME, folder(RUN))
    record = kept.read(NAME)
    assert record.spec == RUN
    assert record.seconds == 1.5
    assert record.metrics["reward"].dtype == np.float32
    assert record.evaluation.groups == ("black", "white")
    assert sorted(record.evaluation.disparities) == ["accepted", "exact", "imputed", "true"]
    assert not list((tmp_path / "store" / "tmp").iterdir())
    listed = kept.path(NAME) / "sha256sums"
    checked = subprocess.run(["sha256sum", "--check", listed], cwd=kept.path(NAME), check=False)
    assert checked.returncode == 0


def test_writing_that_is_interrupted_leaves_no_run(tmp_path, monkeypatch):
    kept = open_store(tmp_path)
    whole = folder(RUN)

    class Stop(BaseException):
        pass

    class Cut(dict):
        def items(self):
            yield from list(super().items())[:2]
            raise Stop

    with pytest.raises(Stop):
        kept.put(NAME, Cut(whole))
    assert kept.done() == set()
    monkeypatch.setattr(store, "STALE", -1.0)
    assert not list((open_store(tmp_path).folder / "tmp").iterdir())


@pytest.mark.parametrize("file", ["config.json", "agent.safetensors", "results.safetensors"])
def test_damage_by_hand_is_found_in_every_file(tmp_path, file):
    kept = open_store(tmp_path)
    kept.put(NAME, folder(RUN))
    path = kept.path(NAME) / file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=file):
        kept.read(NAME)
    path.unlink()
    with pytest.raises(DamagedError):
        kept.check(NAME)


def test_a_run_under_another_s_name_is_not_taken_for_it(tmp_path):
    kept = open_store(tmp_path)
    kept.put("0" * 32, folder(RUN))
    with pytest.raises(DamagedError, match="another run"):
        kept.read("0" * 32)


def test_a_full_disk_ends_in_a_sentence_and_leaves_nothing_half(tmp_path, monkeypatch):
    kept = open_store(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("sellf.studies.store.os.write", full)
        engine = FakeEngine()
        with pytest.raises(FullError, match=r"the disk is full.*type the same command again"):
            run(study(), kept, engine)
    assert engine.closed
    assert kept.done() == set()
    assert not list((tmp_path / "tmp").iterdir())
    assert run(study(), kept, FakeEngine()).complete


def test_stores_are_merged_and_what_is_damaged_stays_behind(tmp_path, capsys):
    here, there = (open_store(tmp_path / name) for name in ("here", "there"))
    runs = plan.groups(study())[1].first(study())
    for one in runs:
        there.put(plan.key(one), folder(one))
    here.put(plan.key(runs[0]), folder(runs[0]))
    (there.path(plan.key(runs[1])) / "agent.safetensors").write_bytes(b"other")
    code = main(["study", "merge", str(there.folder), "--store", str(here.folder)])
    out, err = capsys.readouterr()
    assert code == 0
    assert "2 runs were added" in out
    assert "1 were already there" in out
    assert "left out" in err
    assert here.done() == {plan.key(one) for one in runs} - {plan.key(runs[1])}
    assert here.read(plan.key(runs[2])).spec == runs[2]


def test_a_store_of_another_version_is_read_but_not_written_to(tmp_path):
    kept = open_store(tmp_path)
    kept.put(NAME, folder(RUN))
    mark = tmp_path / "store.json"
    content = json.loads(mark.read_text())
    mark.write_text(json.dumps(content | {"sellf": "0.0.1"}))
    with pytest.raises(InputError, match=r"holds runs of sellf 0\.0\.1.*another folder"):
        open_store(tmp_path)
    assert open_store(tmp_path, write=False).read(NAME).spec == RUN
    with pytest.raises(InputError, match="holds runs of sellf"):
        store.merge(open_store(tmp_path / "new"), tmp_path)
    mark.write_text(json.dumps(content | {"sellf": "0.1.0"}))
    assert open_store(tmp_path).read(NAME).spec == RUN
    mark.write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        open_store(tmp_path, write=False)


def test_a_folder_that_is_no_store_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="no store, and not empty"):
        open_store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.fixture
def memory(tmp_path):
    """A folder in memory, if there can be one: it is our cost that counts, not the disk's."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


def _own_time() -> float:
    """Seconds of this process outside system calls, whose cost is the file system's."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def test_ten_thousand_runs_cost_less_than_two_seconds_and_200_megabytes(memory):
    text = TEXT.replace("seeds = 3", 'seeds = 2000\nselect = "all"')
    made = study(text)
    ready = folder(RUN)
    engine = FakeEngine(lambda job: Outcome(job, ready))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent = float("inf")
    for attempt in range(3):  # the best of three: everything takes longer on a busy machine
        used = _own_time()
        kept = open_store(memory / f"store{attempt}")
        assert run(made, kept, engine).fresh == 10_000
        spent = min(spent, _own_time() - used)
        if spent < 2.0:
            break
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 200
    used = _own_time()
    found = status(made, kept)
    looked = _own_time() - used
    assert sum(row.done for row in found.rows) == 10_000
    assert spent < 2.0
    assert looked < 2.0


def test_results_tell_of_damage_and_go_on_without(tmp_path):
    kept = open_store(tmp_path)
    made = study('select = "all"\n' + TEXT)
    run(made, kept, FakeEngine())
    (kept.path(NAME) / "results.safetensors").write_bytes(b"")
    said: list[str] = []
    cells = results(made, kept, said.append).cells
    assert len(cells) == 1 + 4
    assert [record.spec.seed for record in cells[0].final] == [1, 2]
    assert len(said) == 1
    assert NAME in said[0]


def test_a_run_that_cannot_be_read_now_is_not_taken_for_damaged(tmp_path, monkeypatch):
    kept = open_store(tmp_path)
    kept.put("one", run_files.sealed({"config.json": b"{}"}))

    def busy(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(store.files, "read", busy)
    with pytest.raises(InputError, match="Too many open files") as caught:
        kept.check("one")
    assert not isinstance(caught.value, DamagedError)


def test_a_store_that_another_process_is_about_to_make_is_opened(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "tmp").mkdir()
    open_store(tmp_path)
    assert (tmp_path / "store.json").is_file()


def test_a_run_is_dropped_once_by_whoever_comes_first(tmp_path):
    kept = open_store(tmp_path)
    kept.put("one", run_files.sealed({"config.json": b"{}"}))
    kept.drop("one")
    kept.drop("one")
    assert kept.done() == set()
