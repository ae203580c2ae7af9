"""Helpers that commands share: progress bars, and plots in files."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Timer
from typing import Any

from sellf import durations, files
from sellf.errors import InputError
from sellf.text import plain

PICTURES = (".png", ".svg", ".pdf")
PATIENCE = 3.0
"""Seconds after which a bar is shown."""


def check_plot(plot: Path | None, inputs: Iterable[Path] = ()) -> None:
    """Refuse a plot file that cannot be written, before any work is done."""
    if plot is None:
        return
    if plot.suffix not in PICTURES:
        raise InputError(f"--plot {plot}: give a name that ends in {', '.join(PICTURES)}.")
    files.check_output(plot, inputs, "--plot")


def draw(result: Any, plot: Path | None) -> None:
    """Plot a result to a file, if one was named."""
    if plot is not None:
        picture = BytesIO()
        result.plot().savefig(picture, dpi=150, format=plot.suffix[1:])
        files.write(plot, picture.getvalue())


@contextmanager
def waiting(title: str, kind: str = "", size: float = 1.0) -> Iterator[None]:
    """Show the elapsed time of a task, and its expected time if it was run here before.

    Args:
        title: the task, in words.
        kind: a name for tasks whose time is proportional to their size.
        size: the size of the task, in any unit.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    about = durations.expected(kind, size) if kind else None
    told = "" if about is None else f"of about {_spoken(about)}, judging by the last run"
    bar, _ = _bar(title, TimeElapsedColumn(), TextColumn(told))
    soon = Timer(PATIENCE, bar.start)
    soon.daemon = True
    soon.start()
    since = time.monotonic()
    try:
        yield
        taken = time.monotonic() - since
        if kind and taken > PATIENCE:
            durations.note(kind, taken, size)
    finally:
        soon.cancel()
        soon.join()
        bar.stop()


def _spoken(seconds: float) -> str:
    """Return a time in whole seconds, or in whole minutes if it is long."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def bar(title: str) -> Iterator[Any]:
    """Show a progress bar, in a terminal and if the task takes longer than a few seconds."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TaskProgressColumn, TimeRemainingColumn

    since = time.monotonic()
    bar, task = _bar(title, TaskProgressColumn(), TimeRemainingColumn())

    def progress(done: int, total: int) -> None:
        if time.monotonic() - since > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield progress
    finally:
        bar.stop()


def _bar(title: str, *columns: Any) -> tuple[Any, Any]:
    """Return a progress bar that is not shown yet, and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    # A title may hold the name of a column or a world, in which brackets are no markup.
    words = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    bar = Progress(words, BarColumn(), *columns, console=console, transient=True)
    return bar, bar.add_task(plain(title), total=None)
