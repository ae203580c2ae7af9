"""Stores that somebody else made: nothing outside of them is read or written."""

import os
from hashlib import sha256

import pytest

from sellf.cli import main
from sellf.studies import plan, run_files
from sellf.studies.store import open_store
from tests.studies.tiny import folder, study

RUN = plan.groups(study())[0].first(study())[0]
NAME = plan.key(RUN)


def merge(tmp_path):
    return main(["study", "merge", str(tmp_path / "there"), "--store", str(tmp_path / "a/b/here")])


@pytest.fixture
def there(tmp_path):
    """A store with one run, as it could be sent to somebody."""
    made = open_store(tmp_path / "there")
    made.put(NAME, folder(RUN))
    return made


@pytest.mark.parametrize("name", ["../../../planted.py", "notes.txt", "sub/file"])
def test_merging_writes_only_the_files_that_a_run_has(tmp_path, there, name, capsys):
    planted = there.path(NAME) / name
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_bytes(b"import this")
    with (there.path(NAME) / run_files.SUMS).open("a") as sums:
        sums.write(f"{sha256(b'import this').hexdigest()}  {name}\n")
    before = set(tmp_path.rglob("*"))
    assert merge(tmp_path) == 0
    assert "which no run has" in capsys.readouterr().err
    here = tmp_path / "a/b/here"
    fresh = set(tmp_path.rglob("*")) - before - {tmp_path / "a", tmp_path / "a/b", here}
    assert all(path.is_relative_to(here) for path in fresh)
    assert open_store(tmp_path / "a/b/here").done() == set()


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "link"])
def test_merging_reads_no_device_pipe_or_link(tmp_path, there, target, capsys):
    config = there.path(NAME) / "config.json"
    content = config.read_bytes()
    config.unlink()
    if target == "pipe":
        os.mkfifo(config)
    else:
        (tmp_path / "elsewhere").write_bytes(content)
        config.symlink_to(target if target == "/dev/zero" else tmp_path / "elsewhere")
    assert merge(tmp_path) == 0
    out, err = capsys.readouterr()
    assert "0 runs were added" in out
    assert "left out: run" in err


def test_merging_leaves_behind_a_run_under_another_s_name(tmp_path, there, capsys):
    there.path(NAME).rename(there.path("0" * 32))
    assert merge(tmp_path) == 0
    assert "holds another run" in capsys.readouterr().err


def test_a_store_that_was_being_made_when_its_process_was_killed_is_made_again(tmp_path):
    """As after a kill between writing `store.json` aside and putting it in its place."""
    from sellf import leftovers
    from sellf.studies.store import open_store

    begin, end = leftovers.affixes("store.json")
    (tmp_path / "store" / "runs").mkdir(parents=True)
    gone = begin.replace(f"-{os.getpid()}-", "-4194305-")
    (tmp_path / "store" / f"{gone}x{end}").write_bytes(b"{")
    open_store(tmp_path / "store")
    assert not list((tmp_path / "store").glob(".*"))
    assert (tmp_path / "store" / "store.json").is_file()
