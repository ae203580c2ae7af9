"""Killed between two files that belong together: nothing is lost, and nothing made up."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sellf
from sellf import files, leftovers
from sellf.cli import main
from sellf.errors import InputError
from sellf.training import loop, metrics, run_folder

SETTINGS = {"steps": 256 * 6, "rollout": 256, "epochs": 1, "progress": False}
SMALL = {"population": 300, "window": 200}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, jax):
    """A run that nobody disturbed, with a checkpoint after every second iteration."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELLF_CACHE", str(folder / "cache"))
        patch.setattr(run_folder, "CHECKPOINT_EVERY", 2)
        sellf.train("lending", "sellf-direct", world_settings=SMALL, out=folder / "run", **SETTINGS)
        yield folder / "run"


class Killed(BaseException):
    """What stops a process at once, as far as one process can play it."""


@pytest.mark.parametrize(
    "at", [1, 4, 7, *(pytest.param(at, marks=pytest.mark.slow) for at in (2, 3, 5, 6))]
)
def test_killed_at_any_write_a_run_ends_the_same(whole, tmp_path, monkeypatch, at):
    count = 0

    def counting(call):
        def counted(*arguments, **options):
            nonlocal count
            count += 1
            if count == at:
                raise Killed
            return call(*arguments, **options)

        return counted

    with monkeypatch.context() as patch:
        # Every write of the training ends in one of these.
        patch.setattr(files.os, "fsync", counting(os.fsync))
        with pytest.raises(Killed):
            sellf.train(
                "lending", "sellf-direct", world_settings=SMALL, out=tmp_path / "run", **SETTINGS
            )
    if not (tmp_path / "run").exists():
        return
    loop.resume(tmp_path / "run", progress=False)
    for name in ("metrics.jsonl", "agent.safetensors", "checkpoint.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes()


def test_metrics_that_lack_iterations_are_refused(whole, tmp_path, capsys):
    kept = {path.name: path.read_bytes() for path in whole.iterdir()}
    lines = kept["metrics.jsonl"].splitlines(keepends=True)
    short = files.write_folder(tmp_path / "short", kept | {"metrics.jsonl": b"".join(lines[:3])})
    assert main(["train", "--resume", str(short)]) == 2
    assert "are not as they were written" in capsys.readouterr().err
    # As earlier versions filled them up.
    bare = b"".join(lines[:3]) + b"".join(b'{"iteration": %d}\n' % i for i in (3, 4, 5))
    bare_run = files.write_folder(tmp_path / "bare", kept | {"metrics.jsonl": bare})
    for command in (["report", str(bare_run), "-o", str(tmp_path / "page.html")],
                    ["evaluate", str(bare_run)]):  # fmt: skip
        assert main(command) == 2
        assert "are not as they were written" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", [b"[1]", b"\xff", b'{"iteration": 0, "reward": Infinity}', b'{"a": ' * 5000, b"1"]
)
def test_a_damaged_line_is_told_of(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_bytes(line + b"\n{}\n")
    with pytest.raises(InputError, match="line 1"):
        metrics.read(tmp_path / "metrics.jsonl", 10)


def test_a_report_of_a_run_that_was_killed_is_of_what_there_is(whole, tmp_path):
    kept = {path.name: path.read_bytes() for path in whole.iterdir()}
    del kept["agent.safetensors"]
    # The last line was being written.
    cut = kept | {"metrics.jsonl": kept["metrics.jsonl"] + b'{"iteration": 6, "rew'}
    folder = files.write_folder(tmp_path / "run", cut)
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0


WRITE = """
import os, signal, sys
from pathlib import Path
from sellf import files
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
files.write(Path(sys.argv[1]), b"page") if sys.argv[2] == "file" else files.write_folder(
    Path(sys.argv[1]), {"config.json": b"{}"})
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_a_killed_write_leaves_is_swept_by_the_next(tmp_path, what):
    target = tmp_path / "page"
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(target), what],
        env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".tmp")
    mine = tmp_path / f".page.{leftovers.mark()}-abc.tmp"
    mine.write_text("this process is at it")
    files.check_output(target)
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]


def test_only_what_is_ours_is_swept(tmp_path):
    for name in (".page.tmp", "page.00000000-1-a.tmp", ".page.0000000-99999999-a.tmp", "notes"):
        (tmp_path / name).write_text(json.dumps(name))
    before = sorted(path.name for path in tmp_path.iterdir())
    leftovers.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
