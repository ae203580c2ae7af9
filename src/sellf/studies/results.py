"""Reading the results of a study from its store."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from sellf.studies import frontiers, plan
from sellf.studies.plan import Group
from sellf.studies.records import Cell, Record, Results
from sellf.studies.select import remark, select
from sellf.studies.spec import Study
from sellf.studies.store import DamagedError, Store

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec


def results(study: Study, store: Store, notify: Callable[[str], None] | None = None) -> Results:
    """Return every cell with its finished runs; damaged runs are reported and left out.

    Args:
        study: from `spec.load`, shrunk or not.
        store: from `store.open_store`.
        notify: called with a sentence about each damaged run; by default, it is written to standard
            error.
    """
    reader = Reader(store, notify or _to_stderr)
    groups = list(plan.groups(study))
    cells = [cell for group in groups for cell in _cells(study, group, reader)]
    known = {
        frontiers.key(group.world, group.notion): curve
        for group in groups
        if (curve := frontiers.stored(store, group.world, group.notion)) is not None
    }
    return Results(study.name, study.quick, cells, study.source, known)


class Reader:
    """Reads runs from a store, each once."""

    def __init__(self, store: Store, notify: Callable[[str], None]) -> None:
        """List the runs of the store.

        Args:
            store: the store to read from.
            notify: called with a sentence about each damaged run.
        """
        self.store, self.notify = store, notify
        self.done = store.done()
        self.failed = store.failed()
        self.damaged: set[str] = set()

    def read(self, run: "RunSpec") -> Record | None:
        """Return a run; None if it is missing or damaged."""
        name = plan.key(run)
        if name not in self.done or name in self.damaged:
            return None
        try:
            return self.store.read(name)
        except DamagedError as error:
            self.damaged.add(name)
            self.notify(f"{error} It is left out here; `sellf study run` repeats it.")
            return None

    def diverged(self, name: str) -> bool:
        """Return whether a run has diverged and would diverge again."""
        return self.failed.get(name, {}).get("kind") == "diverged"


def chosen(study: Study, group: Group, reader: Reader) -> tuple[int | None, list[list[Record]]]:
    """Return the selected configuration of a group, if its grid is complete, and the grid."""
    grid: list[list[Record]] = []
    complete = True
    for i in range(len(group.varied)):
        runs = group.runs(study, i, study.selection_seeds)
        records = [record for run in runs if (record := reader.read(run)) is not None]
        missing = len(records) < len(runs) and not any(
            reader.diverged(plan.key(run)) for run in runs
        )
        complete = complete and not missing
        grid.append(records if len(records) == len(runs) else [])
    return (select(grid, group.view, study.omega) if complete else None), grid


def _cells(study: Study, group: Group, reader: Reader) -> list[Cell]:
    def cell(i: int | None, grid: list[Record] | None, said: str = "") -> Cell:
        runs = [] if i is None else group.runs(study, i, study.seeds)
        final = [record for run in runs if (record := reader.read(run)) is not None]
        own = final[:1] if grid is None else grid
        taken = {} if i is None else group.varied[i]
        return Cell(group.world.name, group.notion, group.algorithm, own, taken, final, said)

    if not group.selects(study):
        return [cell(i, None) for i in range(len(group.varied))]
    index, grid = chosen(study, group, reader)
    said = "" if index is None else remark(grid, group.view)
    return [cell(index, [record for records in grid for record in records], said)]


def _to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr)
