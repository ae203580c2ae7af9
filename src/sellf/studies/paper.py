"""The paper's own figures, to stand beside ours."""

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
    """Return what the paper reports of an algorithm, or None where it reports nothing.

    Args:
        world: "lending", "recidivism", "school" or "school-continuous".
        notion: "opportunity", "accuracy" or "qualification".
        algorithm: by its name here.
        table: "main", "relu", "extra" or "continuous"; by default wherever it stands (where it
            stands twice, it says the same).
    """
    names = _results() if table is None else {k: v for k, v in _results().items() if k[0] == table}
    wanted = (world, notion, algorithm)
    return next((found for key, found in names.items() if key[1:] == wanted), None)


def minutes(algorithm: str, world: str) -> float | None:
    """Return the paper's minutes of training for 500,000 steps, or None where it has none."""
    rows = {row["algorithm"]: row for row in _rows("training_minutes")}
    found = rows.get(algorithm, {}).get(world)
    return None if found is None else float(found)


def source(name: str = "results") -> str:
    """Return where the figures come from: of "results" or of "training_minutes"."""
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
