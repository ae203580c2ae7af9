"""What the system refuses, and what a file says that it should not: a sentence, exit code 2."""

import errno
import os
from pathlib import Path

import pytest

from sellf.cli import main
from tests.studies.tiny import TEXT


@pytest.mark.parametrize(
    "command",
    [
        ["train", "lending", "ppo", "--steps", "512", "--quiet", "--out", "/proc/nowhere/run"],
        ["train", "lending", "ppo", "--steps", "512", "--quiet", "--out", "file/run"],
        ["train", "lending", "ppo", "--steps", "512", "--quiet", "--out", "x" * 300],
        ["train", "--resume", "file/run"],
        ["evaluate", "x" * 300],
        ["evaluate", "loop"],
        ["report", "loop", "-o", "page.html"],
        ["report", "folder", "-o", "page.html"],
        ["report", "saved.json", "-o", "file/page.html"],
        ["report", "saved.json", "-o", "/proc/page.html"],
        ["study", "run", "tiny.toml", "--store", "file/store"],
        ["study", "run", "tiny.toml", "--store", "/proc/store"],
        ["study", "run", "folder", "--store", "store"],
        ["study", "status", "x" * 300 + ".toml"],
        ["study", "merge", "file", "--store", "store"],
        ["study", "table", "tiny.toml", "--store", "file"],
    ],
    ids=lambda command: " ".join(command)[:60],
)
def test_every_command_answers_what_the_system_refuses(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("a file")
    Path("saved.json").write_text("{}")
    Path("folder").mkdir()
    Path("tiny.toml").write_text(TEXT)
    Path("loop").symlink_to("loop")
    assert main(command) == 2
    told = capsys.readouterr().err
    assert told.startswith("sellf: ")
    assert "Traceback" not in told


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EMFILE, errno.EIO])
def test_whatever_the_system_says_is_passed_on(code, monkeypatch, capsys):
    def refuse(*_, **__):
        raise OSError(code, "no", "some/file")

    monkeypatch.setattr("sellf.cli.worlds.print_worlds", refuse)
    assert main(["worlds"]) == 2
    assert "cannot use some/file: no. Check that it exists" in capsys.readouterr().err


def test_a_machine_without_memory_says_so(monkeypatch, capsys):
    def refuse(*_, **__):
        raise MemoryError

    monkeypatch.setattr("sellf.cli.worlds.print_worlds", refuse)
    assert main(["worlds"]) == 2
    assert "not enough memory" in capsys.readouterr().err


DEEP = 100_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = " + b"[" * DEEP, "nested too deeply"),
        (b"a = " + b"{a = " * DEEP, "nested too deeply"),
        (b"\xff\xfe", "give a study file in TOML"),
        (TEXT.replace("seeds = 3", "seeds = 1000000000").encode(), "seeds is 1000000000"),
        (TEXT.replace("seeds = 3", f"seeds = {'9' * 5000}").encode(), "TOML"),
        (TEXT.replace("seeds = 3", "seeds = 3\nomega = inf").encode(), "omega is inf"),
    ],
    ids=["lists", "tables", "not UTF-8", "seeds", "digits", "inf"],
)  # fmt: skip
def test_a_study_file_that_cannot_be_is_refused(content, message, tmp_path, capsys):
    (tmp_path / "study.toml").write_bytes(content)
    assert main(["study", "status", str(tmp_path / "study.toml"), "--store", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_a_grid_that_no_machine_could_run_is_refused_before_it_is_made(tmp_path, capsys):
    names = ("gamma", "gae_lambda", "clip", "entropy", "value", "gradient_norm", "adam_epsilon")
    values = [round(0.1 + i / 1000, 3) for i in range(50)]
    grid = ", ".join(f"{name} = {values}" for name in names)
    text = TEXT.replace("[algorithms.ppo]", f"[algorithms.ppo]\ngrid = {{ {grid} }}")
    (tmp_path / "study.toml").write_text(text)
    assert main(["study", "status", str(tmp_path / "study.toml")]) == 2
    assert "take a smaller one" in capsys.readouterr().err
    text = TEXT.replace("seeds = 3", "seeds = 900000")
    (tmp_path / "study.toml").write_text(text)
    assert main(["study", "status", str(tmp_path / "study.toml")]) == 2
    assert "4,500,000 runs, more than 1,000,000" in capsys.readouterr().err


def test_a_name_of_very_many_parts_takes_neither_memory_nor_time(tmp_path, capsys):
    path = tmp_path / "deep.toml"
    for text in (".".join(["a"] * 40_000) + " = 1", "[" + ".".join(["a"] * 40_000) + "]"):
        path.write_text(text)
        assert main(["study", "status", str(path)]) == 2
        assert "too many parts" in capsys.readouterr().err


def test_what_has_nothing_to_read_yet_is_refused(capsys):
    if not Path("/proc/kmsg").exists() or os.geteuid():
        pytest.skip("needs Linux and root")
    assert main(["study", "status", "/proc/kmsg"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_ctrl_c_within_a_callback_is_not_reported_as_an_error(capsys):
    import gc
    import warnings

    from sellf import interrupts

    def callback(phase, info):
        raise KeyboardInterrupt

    with warnings.catch_warnings():
        # What other tests left behind is not this one's.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()

    with interrupts.listening():
        gc.callbacks.append(callback)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(callback)
    assert "KeyboardInterrupt" not in capsys.readouterr().err
