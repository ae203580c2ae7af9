"""What is told when something goes wrong is what went wrong."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import sellf
from sellf import interrupts
from sellf.cli import main
from sellf.interrupts import DeferredInterrupt
from sellf.training import loop

TRAIN = ["train", "lending", "ppo", "--steps", "512", "--quiet"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["rollout=1", "batch=1"], "rollout is 1: give 2 or more"),
        (["rollout=64", "batch=1"], "batch is 1: give 2 or more"),
        (["rollout=99999999999"], "rollout is too large: give 10,000,000 or less"),
        (["population=99999999999"], "population is too large: give 10,000,000 or less"),
        ([f"clip={'9' * 400}"], "give a number"),
    ],
    ids=str,
)
def test_a_rollout_of_one_decision_is_not_blamed_on_the_learning_rate(
    settings, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main([*TRAIN, "--set", *settings]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_is_only_spoken_of_if_there_is_one(tmp_path, monkeypatch, capsys, jax):
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path / "cache"))
    plain = loop._plain
    monkeypatch.setattr(loop, "_plain", lambda m: plain(m) | {"loss": float("nan")})
    assert main([*TRAIN, "--set", "rollout=256", "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert "loss is not a number in iteration 0" in told
    assert "There is no checkpoint yet" in told
    assert "last good checkpoint" not in told


def test_ctrl_c_that_a_library_swallowed_still_stops_the_training(capsys, monkeypatch):
    """As it was swallowed while modules were imported, or in a callback."""

    def swallow(*_, **__):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with DeferredInterrupt():
            raise AssertionError("the training began")

    monkeypatch.setattr("sellf.cli.worlds.print_worlds", swallow)
    assert main(["worlds"]) == 130
    interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_a_program_is_compiled_is_not_lost(tmp_path, monkeypatch, jax):
    monkeypatch.setenv("SELLF_CACHE", str(tmp_path / "cache"))
    program = loop.program

    def press(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return program(*arguments, **options)

    monkeypatch.setattr(loop, "program", press)
    with pytest.raises(KeyboardInterrupt):
        sellf.train("lending", "ppo", steps=1024, rollout=256, progress=False, out=tmp_path / "run")
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("moment", [0.4, 0.9, 1.4])
def test_ctrl_c_stops_a_training_that_is_just_starting(moment, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "sellf", "train", "lending", "ppo", "--steps", "100000000"],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {"PYTHONPATH": str(Path(sellf.__file__).parents[1]), "SELLF_CACHE": str(tmp_path / "c")},
    )
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(90) in (130, -signal.SIGINT)
    finally:
        process.kill()
        process.wait()


def started(tmp_path, *arguments):
    """Start a command that trains for long, with nothing compiled before."""
    return subprocess.Popen(
        [sys.executable, "-m", "sellf", "train", "lending", "ppo", *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": str(Path(sellf.__file__).parents[1]), "SELLF_CACHE": str(tmp_path / "c")},
    )


def test_ctrl_c_while_a_command_compiles_ends_it_at_once_in_a_sentence(tmp_path):
    with started(tmp_path, "--steps", "100000000") as process:
        assert process.stderr is not None
        assert "compiling" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert process.wait(90) == 130
        # Compiling takes longer; a library that is compiling is not waited for.
        assert time.monotonic() - begun < 5
        assert process.stderr.read() == "sellf: stopped.\n"


IMPORTING = """
import signal, sys
sys.argv, sys.orig_argv = ["-m", "train"], ["python", "-m", {module!r}, "train"]
import sellf.interrupts
sys.modules.pop("this", None)
sys.path.insert(0, {folder!r})
import slow
print("and goes on")
"""


@pytest.mark.parametrize(("module", "code"), [("sellf", 130), ("sellf.other", -2), ("other", -2)])
def test_ctrl_c_while_a_command_is_starting(tmp_path, module, code):
    """From the first module on; programs of other people keep Python's own way."""
    (tmp_path / "slow.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING.format(module=module, folder=str(tmp_path))],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
        check=False,
    )
    assert done.returncode == code
    assert done.stdout == ""
    assert (done.stderr == "sellf: stopped.\n") == (code == 130)


def test_sigterm_ends_a_command(tmp_path):
    with started(tmp_path, "--steps", "100000000") as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM  # 143 to a shell


def test_ctrl_c_that_a_library_swallowed_stops_a_report_before_it_is_written(
    tmp_path, monkeypatch, capsys
):
    def of_paths(*_, **__):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return "a report"

    monkeypatch.setattr("sellf.report.of_paths", of_paths)
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html")]) == 130
    assert "stopped" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
