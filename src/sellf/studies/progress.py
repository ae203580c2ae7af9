"""Display of a study's progress: a bar in a terminal, occasional lines elsewhere."""

import json
import sys
import time
from dataclasses import dataclass, field
from statistics import mean
from typing import TYPE_CHECKING, Any, Self

from sellf.studies.engines.base import Job, Outcome
from sellf.text import plain

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from sellf.training.spec import RunSpec

EVERY = 30.0
"""Seconds between lines where there is no terminal."""


@dataclass
class Tally:
    """Counts of a study's runs."""

    wanted: dict[str, "RunSpec"] = field(default_factory=dict)
    """The runs of the study that are known so far, by name."""
    to_come: int = 0
    """Number of runs that selections will add."""
    done: set[str] = field(default_factory=set)
    fresh: int = 0
    """Number of runs done in this session."""
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons for failure, by the name of the run."""
    diverged: set[str] = field(default_factory=set)
    """Failed runs that diverge and would fail again."""
    damaged: list[str] = field(default_factory=list)
    """Runs that were damaged and are repeated."""

    @property
    def total(self) -> int:
        """Number of all runs, including those that selections will add."""
        return len(self.wanted) + self.to_come

    @property
    def complete(self) -> bool:
        """Whether every run is done or has diverged."""
        return len(self.done) + len(self.diverged) == self.total


class Progress:
    """Shows a study's progress; used as a context manager."""

    def __init__(self, title: str, shown: bool = True) -> None:
        """Prepare to show the progress.

        Args:
            title: title of the study.
            shown: whether to show anything.
        """
        self.title = title
        self.shown = shown
        self.took_seconds: dict[tuple[str, str], list[float]] = {}
        """Training times of finished runs, by world and algorithm."""
        self.terminal = shown and sys.stderr.isatty()
        self.bar: Bar | None = None
        self.task: Any = None
        self.last = 0.0
        self.since = time.monotonic()

    def __enter__(self) -> Self:
        if self.terminal:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            bar = self.bar = Bar(
                TextColumn("{task.description}", style="bold", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=Console(stderr=True, highlight=False),
            )
            bar.start()
            self.task = bar.add_task(self.title, total=None, note="")
        return self

    def update(self, tally: Tally, running: list[Job], workers: int) -> None:
        """Show the current progress."""
        if not self.shown:
            return
        left = self._left(tally)
        failed = f", {len(tally.failed)} failed" if tally.failed else ""
        if self.bar is not None:
            now = ", ".join(dict.fromkeys(describe(job.run) for job in running))
            self.bar.update(
                self.task,
                total=tally.total,
                completed=len(tally.done),
                note=f"{left}{failed} {now}",
            )
        elif time.monotonic() - self.last > EVERY:
            self.last = time.monotonic()
            count = f"{len(tally.done)} of {tally.total} runs"
            self.message(f"{self.title}: {count}{failed}, {len(running)} running{left}")

    def took(self, outcome: Outcome) -> None:
        """Record the training time of a run, or report its failure."""
        if self.shown and outcome.files is not None:
            seconds = json.loads(outcome.files["config.json"])["seconds"]
            self.took_seconds.setdefault(_kind(outcome.job.run), []).append(seconds)
        if outcome.files is None and outcome.kind != "elsewhere":
            self.message(f"failed: {describe(outcome.job.run)}: {outcome.reason}")

    def message(self, text: str) -> None:
        """Write a line."""
        if not self.shown:
            return
        text = plain(text)
        if self.bar is not None:
            self.bar.console.print(text, markup=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _left(self, tally: Tally) -> str:
        """Return an estimate of the time left, from the training times of similar runs."""
        known = {kind: mean(seconds) for kind, seconds in self.took_seconds.items()}
        spent = sum(map(sum, self.took_seconds.values()))
        if not spent:
            return ""
        usual = mean(known.values())
        settled = tally.done | tally.diverged
        left = [run for name, run in tally.wanted.items() if name not in settled]
        seconds = sum(known.get(_kind(run), usual) for run in left) + tally.to_come * usual
        # The elapsed time accounts for compilation, deployments and the number of workers.
        return f", about {duration((time.monotonic() - self.since) / spent * seconds)} left"

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def _kind(run: "RunSpec") -> tuple[str, str]:
    return run.world.name, run.algorithm.name


def describe(run: "RunSpec") -> str:
    """Return a short description of a run."""
    return f"{run.algorithm.name} on {run.world.name}, {run.notion}, seed {run.seed}"


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
