"""What is written: never over an input, never in place of a device, pipe or link."""

import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from sellf import files
from sellf.cli import main
from sellf.errors import InputError


@pytest.fixture(scope="module")
def text():
    with redirect_stdout(StringIO()) as printed:
        assert main(["audit", "--example", "--json"]) == 0
    return printed.getvalue()


@pytest.fixture
def saved(tmp_path, text, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(text)
    return Path("a.json")


@pytest.mark.parametrize("name", ["a.json", "./a.json", "soft.json", "hard.json"])
def test_a_report_is_not_written_over_what_it_is_made_from(saved, text, name, capsys):
    Path("soft.json").symlink_to("a.json")
    os.link("a.json", "hard.json")
    assert main(["report", "a.json", "-o", name]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert saved.read_text() == text


@pytest.mark.parametrize("name", ["config.json", "agent.safetensors", "metrics.jsonl"])
def test_a_report_is_not_written_over_a_run_s_files(tmp_path, name, capsys):
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    for file in ("config.json", "agent.safetensors", "metrics.jsonl"):
        (run / file).write_text("as it was")
    for given in (run, run.parent):
        assert main(["report", str(given), "-o", str(run / name)]) == 2
        assert "is read by this command" in capsys.readouterr().err
    assert (run / name).read_text() == "as it was"


def test_a_study_s_tables_are_not_written_into_its_store(tmp_path, capsys):
    from sellf.studies.run import run
    from sellf.studies.store import open_store
    from tests.studies.tiny import TEXT, FakeEngine, study

    (tmp_path / "tiny.toml").write_text(TEXT)
    run(study(), open_store(tmp_path / "store"), FakeEngine())
    told = ["--store", str(tmp_path / "store")]
    inside = tmp_path / "store" / "runs"
    command = ["study", "table", str(tmp_path / "tiny.toml"), *told, "--out", str(inside)]
    assert main(command) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert not (inside / "table.md").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["report", "a.json", "-o", "pipe.png"],
        ["audit", "--example", "--html", "pipe.png"],
        ["evaluate", "run", "--plot", "pipe.png"],
    ],
)
def test_a_named_pipe_is_not_waited_for(saved, command, capsys):
    """Without a reader, opening one to write takes for ever."""
    os.mkfifo("pipe.png")
    Path("run").mkdir()
    assert main(command) == 2
    assert "is not a regular file but a device, a pipe" in capsys.readouterr().err
    assert Path("pipe.png").is_fifo()


def test_what_another_program_reads_from_this_one_is_written_to(saved, capfdbinary):
    assert main(["report", "a.json", "-o", "/dev/stdout"]) == 0
    assert b"<!doctype html>" in capfdbinary.readouterr().out


def test_a_device_is_refused_and_stays_a_device(saved):
    if os.geteuid():
        pytest.skip("only root could replace it")
    # A device of our own, so that a failing test does no harm.
    try:
        os.mknod("null", 0o20666, os.makedev(1, 3))
        Path("null").write_bytes(b"")
    except OSError:
        pytest.skip("devices cannot be made here")
    assert main(["report", "a.json", "-o", "null"]) == 2
    assert Path("null").is_char_device()


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(saved):
    Path("pages").mkdir()
    Path("page.html").symlink_to("pages/real.html")
    for _ in range(2):
        assert main(["report", "a.json", "-o", "page.html"]) == 0
        assert Path("page.html").is_symlink()
        assert Path("pages/real.html").read_bytes().startswith(b"<!doctype html>")


def test_a_folder_is_not_written_to(saved, capsys):
    Path("folder").mkdir()
    assert main(["report", "a.json", "-o", "folder"]) == 2
    assert "is a folder: name a file in it" in capsys.readouterr().err
    assert main(["report", "a.json", "-o", "nowhere/page.html"]) == 2
    assert "make it first" in capsys.readouterr().err


def test_what_was_private_stays_private(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    path.chmod(0o600)
    files.write(path, b"after")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_that_is_nearly_too_long_can_be_written(tmp_path):
    path = tmp_path / ("ä" * 120 + ".html")
    files.write(path, b"page")
    assert path.read_bytes() == b"page"
    with pytest.raises(InputError, match="cannot write"):
        files.write(tmp_path / ("a" * 300), b"page")
