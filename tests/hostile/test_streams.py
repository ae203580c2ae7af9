"""Streams that are closed or full, narrow terminals, and what libraries leave in a folder."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sellf import leftovers
from sellf.errors import InputError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="closes streams as a POSIX shell does")
LOG = "race,approved\n" + "a,1\nb,0\na,0\nb,1\n" * 30
AUDIT = "audit log.csv --group race --decision approved --notion demographic --seed 1"

KILLED = """
import os, pathlib, signal, tempfile
from sellf import leftovers
with leftovers.temporary_files("workbook"):
    pathlib.Path(tempfile.gettempdir(), "openpyxl.1").write_text("a sheet")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def shell(folder, words, **environment):
    (folder / "log.csv").write_text(LOG)
    sellf = f"{sys.executable} -m sellf"
    return subprocess.run(
        ["sh", "-c", f"{sellf} {words}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_closed_standard_output_is_told_of_before_the_work(tmp_path):
    found = shell(tmp_path, f"{AUDIT} >&-")
    assert found.returncode == 2
    assert found.stderr.startswith("sellf: standard output is closed: type `> FILE`")


def test_nobody_to_tell_is_no_reason_not_to_work(tmp_path):
    found = shell(tmp_path, f"{AUDIT} 2>&-")
    assert found.returncode == 0
    assert "demographic disparity" in found.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(
    "words", ["--version >/dev/full", f"{AUDIT} --omega -1 2>/dev/full", "audit no.csv 2>&-"]
)
def test_a_full_or_closed_stream_ends_in_exit_code_2(tmp_path, words):
    found = shell(tmp_path, words)
    assert found.returncode == 2
    assert "Traceback" not in found.stdout + found.stderr


def test_the_help_ends_on_the_narrowest_terminal(tmp_path):
    assert "audit" in shell(tmp_path, "--help", COLUMNS="1").stdout


def test_temporary_files_of_a_killed_process_go_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", KILLED], env=own, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob("openpyxl.1"))) == 1

    def stopped():
        with leftovers.temporary_files("workbook"):
            Path(tempfile.gettempdir(), "openpyxl.2").write_text("a sheet")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []
    assert tempfile.tempdir == str(tmp_path)


def test_a_frontier_that_is_a_link_is_not_followed(tmp_path):
    from sellf.studies import frontiers
    from sellf.studies.store import open_store
    from sellf.training.spec import WorldSpec

    world = WorldSpec("lending", {})
    store = open_store(tmp_path / "store")
    frontiers.keep(store, world, "opportunity", frontiers.Curve((0.1, 0.2), (1.0, 2.0)))
    folder = tmp_path / "store" / "frontiers"
    (path,) = folder.iterdir()
    shutil.move(path, tmp_path / "outside.json")
    path.symlink_to(tmp_path / "outside.json")
    with pytest.raises(InputError, match="is a link"):
        frontiers.stored(store, world, "opportunity")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        frontiers.stored(store, world, "opportunity")
    path.unlink()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        frontiers.stored(store, world, "opportunity")
