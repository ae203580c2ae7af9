"""Selection of the runs for a figure, and their learning curves."""

from typing import Any

import numpy as np

from sellf.studies.records import Cell, Record
from sellf.studies.statistics import half_widths, spread_name, thinned
from sellf.studies.summary import records_of, task_name

MOST_POINTS = 30
"""Maximum number of points of a learning curve."""


def by_task(cells: list[Cell]) -> dict[str, list[Cell]]:
    """Return the cells that have runs, by world and notion."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.final or cell.grid:
            found.setdefault(task_name(cell), []).append(cell)
    return found


def by_setting(cells: list[Cell], name: str) -> tuple[str, dict[Any, list[Record]]]:
    """Return an algorithm and its runs by the value of a setting, with other settings as selected.

    Of several algorithms with the setting, the one with the most values is used.
    """
    best: tuple[str, dict[Any, list[Record]]] = ("", {})
    for algorithm in dict.fromkeys(cell.algorithm for cell in cells):
        kept: dict[str, Record] = {}
        for cell in cells:
            if cell.algorithm != algorithm:
                continue
            fixed = {key: value for key, value in cell.chosen.items() if key != name}
            for record in records_of([cell]):
                same = all(record.spec.hyperparameters.get(key) == fixed[key] for key in fixed)
                if same and name in record.spec.hyperparameters:
                    kept[record.spec.identity] = record
        groups: dict[Any, list[Record]] = {}
        for record in kept.values():
            groups.setdefault(record.spec.hyperparameters[name], []).append(record)
        if len(groups) > len(best[1]):
            best = (algorithm, dict(sorted(groups.items())))
    return best


def learning_curve(records: list[Record], values: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return decisions, means and half-widths of the 95% interval over runs.

    Neighbouring iterations of each run are averaged, until few points are left: their differences
    are noise, which would make lines hard to distinguish.
    """
    stacked = np.stack(values)
    x = (np.arange(stacked.shape[1]) + 1) * records[0].spec.config.rollout
    x, stacked = thinned(x, stacked, MOST_POINTS)
    return x, stacked.mean(axis=0), np.nan_to_num(half_widths(stacked))


def seeds_of(groups: dict[Any, list[Record]]) -> str:
    """Return the number of seeds of each value, in words."""
    numbers = sorted({len(records) for records in groups.values()})
    count = " to ".join(str(n) for n in dict.fromkeys((numbers[0], numbers[-1])))
    return f"seeds for each value: {count}; bands and bars: {spread_name(numbers)}"
