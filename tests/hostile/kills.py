"""Commands killed at random moments, and what the next one makes of it: `make kills`.

    python -m tests.hostile.kills --kills 200

Training, a study with two workers, a report and a merge are killed (SIGKILL, now and then SIGTERM
or Ctrl-C, which end in a sentence). The command that follows has to come to the same bits as one
that nobody disturbed, do nothing twice, and leave no process, lock or temporary file. Stopped, the
same command goes on where it was.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sellf import interrupts

SIGNALS = (*[signal.SIGKILL] * 14, *[signal.SIGTERM] * 3, *[signal.SIGINT] * 3)
MARK = "SELLF_KILLS"
"""A variable that all processes of a try have, to be found by."""
STUDY = """
name = "killed"
cells = [["lending", "opportunity"]]
seeds = 3
steps = 2048
deployments = 2

[algorithms.ppo]
settings = { rollout = 256, epochs = 1 }

[algorithms.pocar]
settings = { rollout = 256, epochs = 1 }
"""
TRAIN = [
    "train",
    "lending",
    "ppo",
    "--steps",
    "19200",
    "--quiet",
    "--out",
    "run",
    "--set",
    "rollout=64",
    "batch=32",
    "epochs=1",
    "population=300",
    "window=200",
]


@dataclass(frozen=True)
class Scenario:
    """A command that is killed, and how its result is looked at."""

    command: Callable[[Path], list[str]]
    """What to type in a folder, first or again."""
    result: Callable[[Path], dict[str, bytes]]
    """What has to be the same."""
    share: int
    """How many of 100 kills."""
    inputs: tuple[str, ...] = ()
    """What it reads."""
    twice: Callable[[Path, str, int], str | None] = lambda folder, said, before: None
    """Whether anything was done twice, from what the command said and how much there was."""
    count: Callable[[Path], int] = lambda folder: 0
    """How much was done already."""


def _train(folder: Path) -> list[str]:
    there = (folder / "run" / "config.json").exists()
    return ["train", "--resume", "run", "--quiet"] if there else TRAIN


def _files(folder: Path, pattern: str) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.glob(pattern))}


def _run_files(folder: Path) -> dict[str, bytes]:
    names = ("metrics.jsonl", "agent.safetensors", "checkpoint.safetensors")
    return {name: (folder / "run" / name).read_bytes() for name in names}


def _store_files(folder: Path) -> dict[str, bytes]:
    # Not the configuration, which holds how long it took.
    agents = _files(folder, "store/runs/*/agent.safetensors")
    return agents | _files(folder, "store/runs/*/results.safetensors")


def _runs_there(folder: Path) -> int:
    return len(list(folder.glob("store/runs/*")))


def _done_twice(folder: Path, said: str, before: int) -> str | None:
    found = re.search(r"(\d+) of (\d+) runs are done, (\d+) of them now", said)
    if found is None:
        return f"nothing was said of runs: {said[-300:]}"
    done, total, now = map(int, found.groups())
    return None if done == total == before + now else f"{before} were there, and {found[0]}"


SCENARIOS = {
    "train": Scenario(_train, _run_files, 30),
    "study": Scenario(
        lambda folder: ["study", "run", "study.toml", "--store", "store", "--workers", "2"],
        _store_files,
        10,
        ("study.toml",),
        _done_twice,
        _runs_there,
    ),
    "report": Scenario(
        lambda folder: ["report", "audit.json", "-o", "page.html"],
        lambda folder: {"page.html": (folder / "page.html").read_bytes()},
        30,
        ("audit.json",),
    ),
    "merge": Scenario(
        lambda folder: ["study", "merge", "other", "--store", "store"],
        lambda folder: _files(folder, "store/runs/*/*"),
        30,
        ("other",),
    ),
}


@dataclass
class Tally:
    """What became of the kills of one scenario."""

    kills: int = 0
    too_late: int = 0
    """It had ended before."""
    codes: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def start(folder: Path, words: list[str]) -> int:
    """Start a command in a folder as a child of this process, which has the modules already."""
    # As in a process of its own, where a command hears signals from its first import on.
    heard = set(interrupts.CODES)
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
        return child
    code = 70
    try:
        for number in heard:
            signal.signal(number, interrupts.leave)
        os.setsid()
        os.chdir(folder)
        os.environ[MARK] = str(folder)
        with Path("said").open("wb") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
        from sellf.cli import main

        code = main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(folder: Path, words: list[str]) -> tuple[int, float]:
    """Run a command to its end; return its code and how long it took."""
    begun = time.monotonic()
    _, status = os.waitpid(start(folder, words), 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun


def left(folder: Path, patience: float = 10.0) -> list[str]:
    """Return the processes, temporary files and signs of life that are left of a try."""
    until = time.monotonic() + patience
    while (alive := _processes(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    files = [str(path.relative_to(folder)) for path in folder.rglob("*.tmp")]
    signs = [path.name for path in folder.glob("store/active/*")]
    return [*(f"process {process}" for process in alive), *files, *signs]


def _processes(folder: Path) -> list[str]:
    wanted = f"{MARK}={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


class Kills:
    """Kills of all scenarios, in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.path = folder.parent / f"{folder.name}-{seed}.json"
        self.tallies = {name: Tally() for name in SCENARIOS}
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            self.tallies |= {name: Tally(**one) for name, one in kept.items() if name in SCENARIOS}
        self.whole: dict[str, tuple[dict[str, bytes], float]] = {}
        self._inputs()

    def _inputs(self) -> None:
        """Make what the commands read."""
        good = self.folder / "good"
        shutil.rmtree(self.folder, ignore_errors=True)
        good.mkdir(parents=True)
        (good / "study.toml").write_text(STUDY)
        run(good, ["audit", "--example", "--json"])
        (good / "audit.json").write_bytes((good / "said").read_bytes())
        child = os.fork()
        if not child:  # not in this process, whose children must find JAX as it was imported
            _many_runs(good / "other")
            os._exit(0)
        os.waitpid(child, 0)

    def place(self, name: str, number: int | str) -> Path:
        """Return a folder for a try."""
        folder = self.folder / f"{name}-{number}"
        folder.mkdir()
        for entry in SCENARIOS[name].inputs:
            source = self.folder / "good" / entry
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / entry)
        return folder

    def undisturbed(self, name: str) -> tuple[dict[str, bytes], float]:
        """Return what a command comes to that nobody kills, and how long it takes."""
        if name not in self.whole:
            seconds = 0.0
            for number in ("first", "whole"):  # the first one compiles
                folder = self.place(name, number)
                code, seconds = run(folder, SCENARIOS[name].command(folder))
                if code != 0:
                    raise SystemExit(f"{name} fails: {(folder / 'said').read_text()[-2000:]}")
            self.whole[name] = SCENARIOS[name].result(folder), seconds
        return self.whole[name]

    def kill(self, name: str, number: int) -> None:
        """Kill a command, run the next one, and note what is wrong with it."""
        scenario, tally = SCENARIOS[name], self.tallies[name]
        chance = random.Random(f"{name} {self.seed} {number}")
        expected, seconds = self.undisturbed(name)
        folder = self.place(name, number)
        moment, sent = chance.uniform(0, seconds), chance.choice(SIGNALS)
        child = start(folder, scenario.command(folder))
        time.sleep(moment)
        os.kill(child, sent)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        tally.kills += 1
        tally.too_late += code == 0
        tally.codes[str(code)] = tally.codes.get(str(code), 0) + 1
        wrong = self._code_wrong(folder, sent, code) or self._next(folder, scenario, expected)
        if wrong is None:
            shutil.rmtree(folder)
            return
        what = f"{name} {number}, {sent.name} after {moment:.2f} s: {wrong}; kept in {folder}"
        tally.wrong.append(what)
        print(what, file=sys.stderr, flush=True)

    def keep(self) -> None:
        """Write down how far it is."""
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps({name: asdict(one) for name, one in self.tallies.items()}))
        beside.replace(self.path)

    def _code_wrong(self, folder: Path, sent: signal.Signals, code: int) -> str | None:
        said = (folder / "said").read_text(errors="replace") if (folder / "said").exists() else ""
        usual = {0, -sent} if sent is signal.SIGKILL else {0, 128 + sent}
        silent = code in (130, 143) and "sellf: stopped" not in said
        if code not in usual or "Traceback" in said or silent:
            return f"ended with {code}: {said[-500:]}"
        return None

    def _next(self, folder: Path, scenario: Scenario, expected: dict[str, bytes]) -> str | None:
        """Run the command again, at once; return what is wrong."""
        before, begun = scenario.count(folder), (folder / "run").exists()
        deadline = time.monotonic() + 15
        code, _ = run(folder, scenario.command(folder))
        said = (folder / "said").read_text(errors="replace")
        while code == 2 and "another process" in said and time.monotonic() < deadline:
            time.sleep(0.5)  # workers take a moment to see that they are alone
            code, _ = run(folder, scenario.command(folder))
            said = (folder / "said").read_text(errors="replace")
        if code == 2 and begun and scenario.inputs == () and "has ended" in said:
            code = 0  # it was killed after its last word
        if code != 0:
            return f"the next command ended with {code}: {said[-500:]}"
        found = scenario.result(folder)
        if found != expected:
            differ = [name for name in expected | found if expected.get(name) != found.get(name)]
            return f"{', '.join(differ)} differ"
        rest = left(folder)
        return f"left behind: {rest}" if rest else scenario.twice(folder, said, before)

    def table(self) -> str:
        """Return what became of all kills, as a table in Markdown."""
        lines = [
            "| command | kills | ended before | exit codes | wrong |",
            "| --- | ---: | ---: | --- | ---: |",
        ]
        for name, tally in self.tallies.items():
            codes = ", ".join(f"{code}: {n}" for code, n in sorted(tally.codes.items()))
            lines.append(
                f"| {name} | {tally.kills} | {tally.too_late} | {codes} | {len(tally.wrong)} |"
            )
        return "\n".join(lines)


def _many_runs(folder: Path) -> None:
    """Write a store of runs that were never trained."""
    from dataclasses import replace

    from sellf.studies import plan
    from sellf.studies.store import open_store
    from tests.studies import tiny

    store, study = open_store(folder), tiny.study()
    first = plan.groups(study)[0].first(study)[0]
    for seed in range(150):
        one = replace(first, seed=seed)
        store.put(plan.key(one), tiny.folder(one))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(SCENARIOS))
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.gettempdir()) / "sellf-kills"
    os.environ["SELLF_CACHE"] = str(folder.resolve() / "cache")
    # A shell lets what it runs in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Imported once, for all commands; JAX begins to work in the children only.
    import sellf.cli.commands
    import sellf.cli.report
    import sellf.cli.study
    import sellf.cli.train
    import sellf.training  # noqa: F401

    kills = Kills(folder.resolve(), given.seed)
    for name in [given.only] if given.only else SCENARIOS:
        share = 100 if given.only else SCENARIOS[name].share
        number = max(given.kills * share // 100, 1)
        for i in range(kills.tallies[name].kills, number):
            kills.kill(name, i)
            kills.keep()
        print(f"{name}: {number} kills, {len(kills.tallies[name].wrong)} wrong", flush=True)
    print(f"seed {given.seed}\n{kills.table()}")
    if any(tally.wrong for tally in kills.tallies.values()):
        raise SystemExit("something went wrong: see above")


if __name__ == "__main__":
    main()
