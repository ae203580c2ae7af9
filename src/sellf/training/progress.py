"""Display of training progress: a bar in a terminal, occasional lines elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sellf import durations
from sellf.text import plain
from sellf.training.spec import RunSpec

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

LINES = 10
"""Number of progress lines of a training where there is no terminal."""


class Progress:
    """Shows the progress of iterations; used as a context manager."""

    def __init__(self, spec: RunSpec, shown: bool, runs: int = 1) -> None:
        """Prepare to show a training.

        Args:
            spec: the run.
            shown: whether to show anything.
            runs: number of runs that are trained side by side.
        """
        self.spec, self.shown, self.runs = spec, shown, runs
        self.total = spec.iterations
        self.terminal = shown and sys.stderr.isatty()
        self.bar: Bar | None = None
        self.task: Any = None
        self.since = time.monotonic()
        self.compiled = False

    @property
    def _compiling(self) -> str:
        """Key of programs whose compilation takes about as long as that of this one."""
        return f"compile {self.spec.algorithm.name} {self.spec.world.name} {self.runs}"

    def __enter__(self) -> Self:
        side = f" x {self.runs}" if self.runs > 1 else ""
        self.title = plain(f"{self.spec.algorithm.name}{side} on {self.spec.world.name}")
        if self.terminal:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("{task.description}", style="bold", markup=False),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[figures]}", markup=False),
                console=Console(stderr=True),
            )
            self.bar.start()
            about = durations.expected(self._compiling)
            told = "" if about is None else f", {about:.0f} s last time"
            self.task = self.bar.add_task(self.title, total=self.total, figures=f"compiling{told}")
        elif self.shown:
            self.message(f"{self.title}: {self.total} iterations, compiling")
        return self

    def begin(self, done: int) -> None:
        """Show the iterations that are already done."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def update(self, iteration: int, rows: list[dict[str, Any]]) -> None:
        """Show the figures of an iteration: of one run, or means over several."""
        if not self.shown:
            return
        figures = self._figures(rows)
        if self.bar is not None:
            if not self.compiled:
                self.compiled = True
                durations.note(self._compiling, time.monotonic() - self.since)
            self.bar.update(self.task, completed=iteration + 1, figures=figures)
        elif (iteration + 1) * LINES // self.total > iteration * LINES // self.total:
            seconds = time.monotonic() - self.since
            share = (iteration + 1) / self.total
            self.message(f"{self.title}: {share:4.0%}, {seconds:.0f} s, {figures}")

    def message(self, text: str) -> None:
        """Write a line."""
        if self.shown:
            print(plain(text), file=sys.stderr, flush=True)

    def _figures(self, rows: list[dict[str, Any]]) -> str:
        accepted = np.mean([row["acceptance"] for row in rows], axis=0)
        groups = self.spec.world.make().groups
        shares = ", ".join(f"{g} {a:.0%}" for g, a in zip(groups, accepted, strict=True))
        gap = np.mean(np.array([row["disparity_true"] for row in rows], float))
        reward = np.mean([row["reward"] for row in rows])
        return f"disparity {gap:.3f}, reward {reward:+.0f} per rollout, accepted {plain(shares)}"

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
