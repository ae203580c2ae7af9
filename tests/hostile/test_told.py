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
        (["start=1e39"], "start is 1e+39: it must be above 0 and at most 1e+07"),
        (["cost=1e39"], "cost is 1e+39: it must be above 0 and at most 1e+07"),
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


def hears(process, number):
    """Wait until a process handles a signal itself, as Linux tells."""
    status = Path(f"/proc/{process.pid}/status")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        caught = next(line for line in status.read_text().splitlines() if "SigCgt" in line)
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.005)
    raise AssertionError("no signal is handled")


STUDY = """
name = "long"
cells = [["lending", "opportunity"]]
seeds = 2
steps = 100000000
[algorithms.ppo]
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize(
    ("command", "moments"),
    [
        ("train lending ppo --steps 100000000 --quiet --out run", (0.0, 0.5)),
        ("audit --example --notion all", (0.2, 0.7)),
        ("frontier lending --segments 5 --starts 50", (3.0,)),
        ("study run study.toml --store store --workers 1", (1.5,)),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_sigterm_ends_a_command_in_a_sentence(tmp_path, command, moments):
    """While it starts, imports, compiles or computes."""
    for moment in moments:
        _terminated(tmp_path, command.split(), moment)


def _terminated(tmp_path, command, moment):
    (tmp_path / "study.toml").write_text(STUDY)
    with subprocess.Popen(
        [sys.executable, "-m", "sellf", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": str(Path(sellf.__file__).parents[1]), "SELLF_CACHE": str(tmp_path / "c")},
    ) as process:
        hears(process, signal.SIGTERM)
        time.sleep(moment)
        process.terminate()
        printed, told = process.communicate(timeout=90)
    assert (process.returncode == 143 and "sellf: stopped" in told) or (
        process.returncode == 0 and "sellf: stopped" not in told and printed
    )
    assert "Traceback" not in told
    assert not list(tmp_path.glob("store/active/*"))


def test_sigterm_saves_a_training(tmp_path):
    small = ["--set", "population=300", "window=200", "rollout=64", "batch=32", "epochs=1"]
    with started(tmp_path, "--steps", "100000000", "--out", "run", *small) as process:
        while not (tmp_path / "run" / "checkpoint.safetensors").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait(60) == 143
        assert process.stderr is not None
        assert "stopped and saved: type `sellf train --resume run`" in process.stderr.read()


SWALLOWED = """
import sys, time
sys.argv, sys.orig_argv = ["-m"], ["python", "-m", "sellf"]
from sellf import cli, interrupts
from sellf.cli import commands
interrupts.PATIENCE = 0.5
def run(arguments):
    print("begun", flush=True)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
commands.run = run
cli.entry()
"""


def test_sigterm_that_a_library_swallows_still_ends_the_command():
    with subprocess.Popen(
        [sys.executable, "-c", SWALLOWED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(sellf.__file__).parents[1])},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (143, "sellf: stopped.\n")


def test_sigterm_is_left_alone_in_programs_of_other_people(monkeypatch):
    monkeypatch.setattr("sellf.cli.worlds.print_worlds", lambda _: None)
    before = signal.getsignal(signal.SIGTERM)
    with DeferredInterrupt():
        assert signal.getsignal(signal.SIGTERM) == before
    assert main(["worlds"]) == 0
    assert signal.getsignal(signal.SIGTERM) == before


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


SWALLOWS = """
import sys, time
from sellf.cli import audit, main

def swallows(*_):
    print("ready", flush=True)
    while True:
        try:
            time.sleep(30)
        except KeyboardInterrupt:  # as libraries do within a callback
            pass

audit._audit = swallows
sys.exit(main(["audit", "log.csv", "--group", "race", "--decision", "approved"]))
"""


def test_ctrl_c_that_a_library_swallows_ends_an_audit_all_the_same(tmp_path):
    (tmp_path / "log.csv").write_text("race,approved\na,1\nb,0\n")
    process = subprocess.Popen(
        [sys.executable, "-c", SWALLOWS],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said == "sellf: stopped.\n"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--continue-from runs/b", "--continue-from"),
        ("lending", "WORLD"),
        ("--out runs/c --set population=300", "--out, --set"),
        ("--omega 0.1", "--omega"),
        ("--steps 500000 --seed 0", "--steps, --seed"),
        ("--notion opportunity", "--notion"),
    ],
)
def test_what_resuming_would_pass_over_is_refused(tmp_path, capsys, monkeypatch, words, named):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words.split(), "--resume", "runs/a"]) == 2
    assert f"leave {named} out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("audit x.csv --group race --groups Black --groups White", "--groups"),
        ("audit x.csv --group race --decision a --omega 0.1 --omega=0.2", "--omega"),
        ("train lending ppo --set population=300 --set window=200", "--set"),
        ("train lending ppo --learning-rate 1e-4 --learning_rate 1e-3", "--learning-rate"),
        ("improve x.csv --feature a --feature b --cost 0.1 --cost 0.2", "--cost"),
        ("study run paper --workers 2 --workers 3", "--workers"),
    ],
)
def test_an_option_with_two_values_is_refused_rather_than_the_last_taken(capsys, words, name):
    assert main(words.split()) == 2
    assert f"{name} is typed twice" in capsys.readouterr().err


def test_options_that_may_be_repeated_are(tmp_path, capsys):
    log = tmp_path / "log.csv"
    rows = ["race,sex,approved", *["b,f,1", "w,m,0", "b,m,0", "w,f,1"] * 30]
    log.write_text("\n".join(rows) + "\n")
    words = ["--group", "race", "--group", "sex", "--decision", "approved"]
    typed = [*words, "--notion", "demographic", "--seed", "1", "--seed", "1", "--json", "--json"]
    assert main(["audit", str(log), *typed]) == 0
