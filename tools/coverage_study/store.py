"""What was measured, on disk, so that a run which was ended goes on where it was."""

import csv
import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import sellf
from coverage_study.cells import Cell
from coverage_study.measure import Counts

NAME = "cells.jsonl"
COUNTED = (
    "logs", "refused", "warned", "above", "below", "groups_missed", "judged", "wrong_verdicts",
    "contradictions",
)  # fmt: skip
"""Columns of coverage.csv that are fields of `Counts`."""


def fingerprint(cell: Cell) -> str:
    """Return what identifies a cell's logs: a changed cell is measured anew."""
    text = json.dumps(asdict(cell), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code() -> str:
    """Return what identifies the audit that is measured: a digest of its source."""
    digest = hashlib.sha256()
    for room in ("audit", "logs", "fairness"):
        for path in sorted((Path(sellf.__file__).parent / room).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def append(folder: Path, cell: Cell, rows: list[dict[str, Any]], of: str) -> None:
    """Add what was measured of a cell with the code `of`: its first logs, or more of them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    record = {"cell": cell.number, "fingerprint": fingerprint(cell), "code": of, "rows": rows}
    line = json.dumps(record)
    # A run that was ended while writing leaves half a line, which must not swallow this one.
    whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n" if whole else "\n" + line + "\n")


def finished(folder: Path, cells: list[Cell]) -> tuple[dict[int, list[Counts]], set[str]]:
    """Return what was measured of every cell, by number, and the codes that is of.

    Half a line does not count.
    """
    wanted = {cell.number: fingerprint(cell) for cell in cells}
    found: dict[int, list[Counts]] = {}
    codes: set[str] = set()
    path = folder / NAME
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        number = record["cell"]
        if wanted.get(number) == record["fingerprint"]:
            new = [Counts(**row) for row in record["rows"]]
            both = zip(found.get(number, []), new, strict=True)
            found[number] = [old.plus(more) for old, more in both] if number in found else new
            codes.add(record["code"])
    return found, codes


def from_table(path: Path, cells: list[Cell]) -> dict[int, dict[str, Counts]]:
    """Return what coverage.csv says of every cell, by number and notion.

    Of the groups it has the one that is missed most often alone.
    """
    known = {cell.number: str(cell) for cell in cells}
    found: dict[int, dict[str, Counts]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            number = int(row["cell"])
            if known.get(number) != row["what"]:
                continue
            counted = {name: int(row[name]) for name in COUNTED}
            found.setdefault(number, {})[row["notion"]] = Counts(
                number,
                row["notion"],
                float(row["truth"]),
                **counted,
                by_group=[int(row["worst_group"])],
                width=float(row["width"]),
                ratio=float(row["ratio"]) if row["ratio"] else None,
                earlier=row.get("intervals") == "earlier",
            )
    return found


def joined(
    new: dict[int, list[Counts]],
    before: dict[int, dict[str, Counts]],
    same: set[str],
    changed: set[int],
) -> dict[int, list[Counts]]:
    """Return what was measured, and of what was not measured again what was found before.

    Args:
        new: what was measured.
        before: what was found before.
        same: notions whose intervals are what they were: of these what has more logs counts.
        changed: cells in which the intervals of all other notions have changed since.
    """
    made: dict[int, list[Counts]] = {}
    for number in sorted({*new, *before}):
        older = before.get(number, {})
        by_notion = {one.notion: one for one in new.get(number, [])}
        for notion, counts in older.items():
            again = by_notion.get(notion)
            if again is None:
                gone = number in changed and notion not in same
                by_notion[notion] = replace(counts, earlier=counts.earlier or gone)
            elif notion in same and counts.logs > again.logs:
                by_notion[notion] = counts
        made[number] = [by_notion[notion] for notion in (older or by_notion)]
    return made
