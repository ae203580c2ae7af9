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
