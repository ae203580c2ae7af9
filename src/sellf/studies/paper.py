"""The figures published in the paper, for comparison."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Published(NamedTuple):
    """A cell of the paper's result tables; its spreads are over deployments of one training."""

    disparity: float
    disparity_std: float
    reward: float
    reward_std: float


def find(world: str, notion: str, algorithm: str, table: str | None = None) -> Published | None:
    """Return the figures that the paper reports for an algorithm, or None if there are none.

    Args:
        world: "lending", "recidivism", "school" or "school-continuous".
        notion: "opportunity", "accuracy" or "qualification".
        algorithm: its name in this package.
        table: "main", "relu", "extra" or "continuous"; by default any table (figures that appear
            in two tables are equal).
    """
    names = _results() if table is None else {k: v for k, v in _results().items() if k[0] == table}
    wanted = (world, notion, algorithm)
    return next((found for key, found in names.items() if key[1:] == wanted), None)


def minutes(algorithm: str, world: str) -> float | None:
    """Return the paper's training minutes for 500,000 steps, or None if not reported."""
    rows = {row["algorithm"]: row for row in _rows("training_minutes")}
    found = rows.get(algorithm, {}).get(world)
    return None if found is None else float(found)


def source(name: str = "results") -> str:
    """Return the source of the figures in "results" or "training_minutes"."""
    return _text(name).partition("\n")[0].removeprefix("# source:").strip()


@cache
def _results() -> dict[tuple[str, str, str, str], Published]:
    return {
        (row["table"], row["env"], row["notion"], row["algorithm"]): Published(
            *(float(row[name]) for name in Published._fields)
        )
        for row in _rows("results")
    }


@cache
def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(x for x in _text(name).splitlines() if not x.startswith("#")))


def _text(name: str) -> str:
    return (files(__package__ or "") / "data" / f"{name}.csv").read_text(encoding="utf-8")
