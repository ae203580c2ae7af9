"""`sellf frontier`: the most that any policy can earn."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from sellf import files, interrupts
from sellf.envs.worlds import WORLDS
from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.planning.frontier import frontier
from sellf.text import plain

PICTURES = (".png", ".svg", ".pdf")
PATIENCE = 3.0
"""Seconds after which a bar is shown."""


def run(
    world: str | None,
    notion: str,
    omega: Sequence[float],
    segments: int,
    starts: int,
    seed: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Plan, print, draw."""
    if world is None:
        raise InputError("no world named: type for example `sellf frontier lending`.")
    one_of("world", world, tuple(WORLDS))
    if plot is not None and plot.suffix not in PICTURES:
        raise InputError(f"--plot {plot}: give a name that ends in {', '.join(PICTURES)}.")
    with _bar(f"{notion} in {world}") as progress, interrupts.nothing_to_lose():
        found = frontier(
            world,
            notion,
            list(omega) or None,
            segments,
            starts=starts,
            seed=seed,
            progress=progress,
        )
    print(json.dumps(found.summary()) if as_json else plain(found))
    if plot is not None:
        picture = BytesIO()
        found.plot().savefig(picture, dpi=150, format=plot.suffix[1:])
        files.write(plot, picture.getvalue())


@contextmanager
def _bar(title: str) -> Iterator[Any]:
    """Show how far it is, in a terminal and if it takes longer than one would wait."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    since = time.monotonic()
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(plain(title), total=None)

    def progress(done: int, total: int) -> None:
        if time.monotonic() - since > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield progress
    finally:
        bar.stop()
