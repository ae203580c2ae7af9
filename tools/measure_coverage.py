"""Measure how often intervals hold, through `sellf.audit`, and write docs/audit/coverage.*.

    python tools/measure_coverage.py docs/audit                # hours; end it when you like
    python tools/measure_coverage.py docs/audit --cells 10:20  # some cells, by number
    python tools/measure_coverage.py /tmp/study --quick        # minutes: does it run?
    python tools/measure_coverage.py --list                    # what the cells are

What is measured is kept in a folder (--runs), cell by cell: a run that was ended goes on where it
was, and cells that had no time for all of their logs get as much time again. After a change to the
audit name a new folder, since what is kept was measured before. Cells and notions that a change
leaves as they were need not be measured again: name them with --knowledge, --before and --same.
"""

import argparse
import os
import random
import sys
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

# Each worker has a core of its own; set before NumPy is imported, and inherited by workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coverage_study.cells import Cell, catalogue
from coverage_study.measure import measure
from coverage_study.report import write
from coverage_study.store import append, code, finished, from_table, joined

COMMAND = "python tools/measure_coverage.py docs/audit"


def options(arguments: list[str] | None) -> argparse.Namespace:
    """Return what was typed."""
    parser = argparse.ArgumentParser(description="How often intervals hold.")
    parser.add_argument("folder", type=Path, nargs="?", help="where coverage.csv and .md go")
    parser.add_argument(
        "--runs", type=Path, default=Path("build/coverage"), help="where finished cells are kept"
    )
    parser.add_argument("--cells", default=":", help="FIRST:LAST, without the last; or one number")
    parser.add_argument("--logs", type=int, default=2000, help="at most so many logs a cell")
    parser.add_argument("--least", type=int, default=200, help="at least so many, however long")
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for a cell")
    parser.add_argument("--knowledge", help="only cells whose audit is given this: propensity, ...")
    parser.add_argument("--before", type=Path, help="coverage.csv for what is not measured again")
    parser.add_argument(
        "--same", action="append", default=[], help="a notion that has not changed since --before"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="every tenth cell, ten logs")
    parser.add_argument("--list", action="store_true", help="print the cells and end")
    chosen = parser.parse_args(arguments)
    if chosen.folder is None and not chosen.list:
        parser.error("name the folder for coverage.csv and coverage.md")
    return chosen


def chosen_cells(cells: list[Cell], numbers: str) -> list[Cell]:
    """Return cells by number, as Python slices are written."""
    first, colon, last = numbers.partition(":")
    if not colon:
        return [cells[int(first)]]
    return cells[int(first or 0) : int(last) if last else None]


def run(
    cells: list[Cell], before: dict[int, int], folder: Path, how: dict[str, Any], workers: int
) -> None:
    """Measure cells, from how many logs there are `before`, and keep each as soon as it is done."""
    # Read once: what changes on disk meanwhile is not what is measured.
    measured = code()
    # Long and short cells mixed, so that the time left is told from the start.
    cells = random.Random(0).sample(cells, len(cells))
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    # Workers start afresh: forks of a process with threads may hang.
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_end_with, initargs=(os.getpid(),)
    )
    with pool, Progress(*columns, speed_estimate_period=3600) as progress:
        task = progress.add_task("cells", total=len(cells))
        waiting = iter(cells)
        under_way: dict[Future[list[dict[str, Any]]], Cell] = {}
        for cell in waiting:
            first = before.get(cell.number, 0)
            under_way[pool.submit(measure, cell, first=first, **how)] = cell
            if len(under_way) < workers:
                continue
            progress.advance(task, _keep(under_way, folder, measured))
        while under_way:
            progress.advance(task, _keep(under_way, folder, measured))


def _end_with(parent: int) -> None:
    """Have a worker end when the process that it works for is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(2)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _keep(under_way: dict[Future[Any], Cell], folder: Path, measured: str) -> int:
    """Store what is done, once something is; return how many cells that were."""
    done = wait(under_way, return_when=FIRST_COMPLETED).done
    for future in done:
        append(folder, under_way.pop(future), future.result(), measured)
    return len(done)


def main(arguments: list[str] | None = None) -> int:
    """Run the study, or what is left of it."""
    typed = options(arguments)
    cells = catalogue()
    if typed.list:
        for cell in cells:
            print(f"{cell.number:4} {cell.kind}: {cell}")
        return 0
    how = {"most": typed.logs, "least": min(typed.least, typed.logs), "seconds": typed.seconds}
    wanted = chosen_cells(cells, typed.cells)
    if typed.knowledge is not None:
        wanted = [cell for cell in wanted if cell.knowledge == typed.knowledge]
    older = {} if typed.before is None else from_table(typed.before, cells)
    if typed.quick:
        wanted, how = wanted[::10], {"most": 10, "least": 2, "seconds": 2}
    done, _ = finished(typed.runs, cells)
    before = {number: rows[0].logs for number, rows in done.items()}
    left = [cell for cell in wanted if before.get(cell.number, 0) < how["most"]]
    run(left, before, typed.runs, how, typed.workers)
    done, codes = finished(typed.runs, cells)
    done = joined(done, older, set(typed.same), {cell.number for cell in wanted})
    write(typed.folder, cells, done, COMMAND)
    print(f"{len(done)} of {len(cells)} cells are in {typed.folder}/coverage.md")
    if codes != {code()}:
        print(f"Some were measured before the audit changed: start anew with another --runs than "
              f"{typed.runs}.")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
