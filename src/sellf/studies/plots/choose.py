"""Which runs a figure is made from, and their curves."""

from typing import Any

import numpy as np

from sellf.studies.records import Cell, Record
from sellf.studies.statistics import half_widths, spread_name, thinned
from sellf.studies.summary import records_of, task_name

MOST_POINTS = 30
"""Points in a line over learning."""


def by_task(cells: list[Cell]) -> dict[str, list[Cell]]:
    """Return the cells by world and notion, those with runs."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.final or cell.grid:
            found.setdefault(task_name(cell), []).append(cell)
    return found


def by_setting(cells: list[Cell], name: str) -> tuple[str, dict[Any, list[Record]]]:
    """Return the runs by the value of a setting, all else as it was selected; and whose they are.

    Of several algorithms that have the setting, the one that varies it most is taken.
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
    """Return decisions, mean and half of the 95 % interval over runs.

    Iterations next to each other are averaged, run by run, until few points are left: what changes
    from one to the next is noise, under which lines cannot be told apart.
    """
    stacked = np.stack(values)
    x = (np.arange(stacked.shape[1]) + 1) * records[0].spec.config.rollout
    x, stacked = thinned(x, stacked, MOST_POINTS)
    return x, stacked.mean(axis=0), np.nan_to_num(half_widths(stacked))


def seeds_of(groups: dict[Any, list[Record]]) -> str:
    """Say how many seeds each value has."""
    numbers = sorted({len(records) for records in groups.values()})
    count = " to ".join(str(n) for n in dict.fromkeys((numbers[0], numbers[-1])))
    return f"seeds for each value: {count}; bands and bars: {spread_name(numbers)}"
