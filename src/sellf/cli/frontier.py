"""`sellf frontier`: the largest reward that any policy can earn."""

import json
from collections.abc import Sequence
from pathlib import Path

from sellf import interrupts
from sellf.cli.showing import bar, check_plot, draw
from sellf.envs.worlds import WORLDS
from sellf.errors import InputError
from sellf.planning.frontier import frontier
from sellf.text import plain


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
    """Compute a frontier, print it, and plot it if a file is named."""
    if world is None:
        raise InputError("no world named: type for example `sellf frontier lending`.")
    WORLDS.find(world, typed=True)
    check_plot(plot)
    with bar(f"{notion} in {world}") as progress, interrupts.nothing_to_lose():
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
    draw(found, plot)
