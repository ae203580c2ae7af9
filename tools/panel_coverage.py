"""Measure how often the panel's intervals hold, and write docs/audit/panel_coverage.*.

    python tools/panel_coverage.py docs/audit                 # half an hour; end it when you like
    python tools/panel_coverage.py docs/audit --seconds 600   # hours: 1,000 logs of every cell
    python tools/panel_coverage.py /tmp/study --quick         # a minute: does it run?

What is measured is kept in a folder (--runs), cell by cell: a run that was ended goes on where it
was, and with more --seconds or --logs every cell gets more logs. After a change to the audit name a
new folder, since what is kept was measured before.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

# One core; set before NumPy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from coverage_study.panel_report import write
from coverage_study.panels import Cell, catalogue, measure
from coverage_study.store import code

COMMAND = "python tools/panel_coverage.py docs/audit"
NAME = "panel.jsonl"


def options(arguments: list[str] | None) -> argparse.Namespace:
    """Return what was typed."""
    parser = argparse.ArgumentParser(description="How often the panel's intervals hold.")
    parser.add_argument("folder", type=Path, help="where panel_coverage.csv and .md go")
    parser.add_argument(
        "--runs", type=Path, default=Path("build/panel"), help="where finished cells are kept"
    )
    parser.add_argument("--logs", type=int, default=1000, help="at most so many logs a cell")
    parser.add_argument("--least", type=int, default=20, help="at least so many, however long")
    parser.add_argument("--seconds", type=float, default=6, help="of the processor, for a cell")
    parser.add_argument("--quick", action="store_true", help="every tenth cell, four logs")
    return parser.parse_args(arguments)


def read(folder: Path) -> tuple[dict[int, dict[str, Any]], set[str]]:
    """Return what was measured of every cell, by number, and the codes that is of."""
    known = {cell.number: str(cell) for cell in catalogue()}
    path = folder / NAME
    found: dict[int, dict[str, Any]] = {}
    codes: set[str] = set()
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # a run that was ended while writing
        if known.get(record["cell"]) == record["what"]:
            found[record["cell"]] = joined(found.get(record["cell"]), record["measured"])
            codes.add(record["code"])
    return found, codes


def joined(one: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of some logs of a cell and of further ones."""
    if one is None:
        return more
    counts = {
        name: [
            a + b
            for a, b in zip(
                one["counts"].get(name, [0, 0]), more["counts"].get(name, [0, 0]), strict=True
            )
        ]
        for name in {**one["counts"], **more["counts"]}
    }
    return {
        "logs": one["logs"] + more["logs"],
        "refused": one["refused"] + more["refused"],
        "counts": counts,
    }


def keep(folder: Path, cell: Cell, measured: dict[str, Any], of: str) -> None:
    """Add what was measured of a cell with the code `of`."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"cell": cell.number, "what": str(cell), "code": of, "measured": measured}
    with (folder / NAME).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the study, or what is left of it."""
    typed = options(arguments)
    cells = catalogue()
    how = {"most": typed.logs, "least": typed.least, "seconds": typed.seconds}
    wanted = cells
    if typed.quick:
        wanted, how = cells[::10], {"most": 4, "least": 2, "seconds": 1}
    done, _ = read(typed.runs)
    # Read once: what changes on disk meanwhile is not what is measured.
    measured = code()
    # Mixed, so that a run which is ended has some cells of every kind.
    for cell in random.Random(0).sample(wanted, len(wanted)):
        first = done[cell.number]["logs"] if cell.number in done else 0
        if first < how["most"]:
            keep(typed.runs, cell, measure(cell, first=first, **how), measured)
    done, codes = read(typed.runs)
    write(typed.folder, cells, done, COMMAND)
    print(f"{len(done)} of {len(cells)} cells are in {typed.folder}/panel_coverage.md")
    if codes != {code()}:
        print(f"Some were measured before the audit changed: start anew with another --runs than "
              f"{typed.runs}.")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
