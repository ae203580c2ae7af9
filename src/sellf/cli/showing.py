"""What commands share: a bar for long work, and pictures in files."""

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
    """Refuse a picture's file, before any work is done, that cannot be written."""
    if plot is None:
        return
    if plot.suffix not in PICTURES:
        raise InputError(f"--plot {plot}: give a name that ends in {', '.join(PICTURES)}.")
    files.check_output(plot, inputs, "--plot")


def draw(result: Any, plot: Path | None) -> None:
    """Draw a result into a file, if one was named."""
    if plot is not None:
        picture = BytesIO()
        result.plot().savefig(picture, dpi=150, format=plot.suffix[1:])
        files.write(plot, picture.getvalue())


@contextmanager
def waiting(title: str, kind: str = "", size: float = 1.0) -> Iterator[None]:
    """Show for how long something goes on, and how long it will if it was done here before.

    Args:
        title: what is done.
        kind: work that takes as long, in proportion to its size.
        size: of the work, in any unit.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    about = durations.expected(kind, size) if kind else None
    told = "" if about is None else f"of about {_spoken(about)}, going by the last time"
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
    """Return a time as short as it is known well."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def bar(title: str) -> Iterator[Any]:
    """Show how far it is, in a terminal and if it takes longer than one would wait."""
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
    """Return a bar that is not shown yet, and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    # A title may hold the name of a column or a world, in which brackets are letters.
    words = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True)
    bar = Progress(words, BarColumn(), *columns, console=console, transient=True)
    return bar, bar.add_task(plain(title), total=None)
