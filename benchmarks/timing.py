"""Fair timing: both sides warmed up, taken in turn, the best of several."""

from collections.abc import Callable
from time import perf_counter
from typing import Any


def best_seconds(sides: dict[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """Return the least time of each side; the sides take turns, so that drift hits all alike."""
    for run in sides.values():
        run()
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, run in sides.items():
            start = perf_counter()
            run()
            best[name] = min(best[name], perf_counter() - start)
    return best
