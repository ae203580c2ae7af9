"""The study of the panel as a table of all cells, and as a page that says what it came to."""

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

from coverage_study.panels import FINITE, Cell
from coverage_study.report import LEVEL, at_least, detectable, holm, markdown

EXACT = "standardised, exact"


class Line(NamedTuple):
    """One kind of interval in one cell."""

    cell: Cell
    measure: str
    finite_sample: bool
    audited: int
    missed: int
    refused: int
    p: float
    """Of so many misses at 5 %, corrected for the cells with this kind of interval (Holm)."""


def lines(cells: list[Cell], done: dict[int, dict[str, Any]]) -> list[Line]:
    """Return what was measured, by cell and kind of interval, with exact tests."""
    found: list[Line] = []
    for cell in cells:
        one = done.get(cell.number)
        for measure, (audited, missed) in (one["counts"] if one else {}).items():
            finite = cell.finite_sample and measure in (*FINITE, EXACT)
            refused = one["refused"] if one else 0
            found.append(Line(cell, measure, finite, audited, missed, refused, 1.0))
    made: list[Line] = []
    for key in dict.fromkeys((line.measure, line.finite_sample) for line in found):
        here = [line for line in found if (line.measure, line.finite_sample) == key]
        corrected = holm([at_least(line.missed, line.audited) for line in here])
        made += [line._replace(p=p) for line, p in zip(here, corrected, strict=True)]
    return made


def write(folder: Path, cells: list[Cell], done: dict[int, dict[str, Any]], command: str) -> None:
    """Write panel_coverage.csv and panel_coverage.md, each whole or not at all."""
    found = lines(cells, done)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("csv", as_csv(found)), ("md", page(cells, found, done, command))):
        part = folder / f"panel_coverage.{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(folder / f"panel_coverage.{name}")


def as_csv(found: list[Line]) -> str:
    """Return every line."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    heads = ("cell", "what", "measure", "promise", "logs", "refused", "missed", "coverage", "p")
    table.writerow(heads)
    for line in found:
        promise = "finite-sample" if line.finite_sample else "asymptotic"
        figures = (
            line.audited,
            line.refused,
            line.missed,
            f"{_covered([line]):.5f}",
            f"{line.p:.3g}",
        )
        table.writerow((line.cell.number, str(line.cell), line.measure, promise, *figures))
    return file.getvalue()


def page(
    cells: list[Cell], found: list[Line], done: dict[int, dict[str, Any]], command: str
) -> str:
    """Return the page: what it came to, by measure, the worst cells."""
    finite = [line for line in found if line.finite_sample]
    broken = [line for line in finite if line.p < LEVEL]
    logs = sum(one["logs"] for one in done.values())
    refused = sum(one["refused"] for one in done.values())
    missing = len(cells) - len(done)
    told = [
        f"- **{len(done):,} cells, {logs:,} logs**, of which {refused:,} were refused (nobody was "
        "rejected, for example) and are not counted.",
        *([f"- Not complete: {missing} cells are not measured."] if missing else []),
        "- Cells where an interval of the panel or of a stratum misses significantly more often "
        "than in 5 % of logs, of those that are to hold at every sample size (exact binomial test, "
        f"Holm): **{f'in {len(broken)}' if broken else 'in none'}**.",
    ]
    parts = [
        "# How often the panel's intervals hold\n",
        f"Made by `{command}`, which audits simulated logs with `sellf.audit` and compares with "
        "the truth that they were drawn from. Every figure is in "
        "[panel_coverage.csv](panel_coverage.csv). Cells have groups of 15 to 9,000 people. All "
        "intervals of one kind in a log (all ratios, all strata) have to hold together.\n",
        "\n".join(told) + "\n",
        "## By measure\n",
        "All cells together; p is the chance of so many misses or more at 5 %, in all logs and in "
        "the least likely cell (corrected for the number of cells).\n",
        by_measure(finite),
        "## What it would have found\n",
        "The share of misses that the test would have found with a chance of 80 %: in a single "
        "cell, corrected for the number of cells; and in all cells of a measure, if all of them "
        "missed so often. A cell of few logs finds gross faults alone.\n",
        power(finite),
        "## By kind of log\n",
        by_kind(finite),
        "## Worst\n",
        "The ten cells with the lowest coverage.\n",
        worst(finite),
        "## Asymptotic intervals\n",
        "These are normal approximations, and the audit says so. They are no part of what is "
        "promised at every sample size.\n",
        by_kind([line for line in found if not line.finite_sample]),
    ]
    return "\n".join(parts)


def _covered(some: list[Line]) -> float:
    return 1 - sum(line.missed for line in some) / max(sum(line.audited for line in some), 1)


def _total(some: list[Line]) -> tuple[int, int]:
    return sum(line.missed for line in some), sum(line.audited for line in some)


def _grouped(found: list[Line], *fields: str) -> dict[tuple[str, ...], list[Line]]:
    groups: dict[tuple[str, ...], list[Line]] = {}
    for line in found:
        key = tuple(line.cell.kind if f == "kind" else line.measure for f in fields)
        groups.setdefault(key, []).append(line)
    return groups


def by_measure(found: list[Line]) -> str:
    """Return one row a measure."""
    rows = []
    for (measure,), here in _grouped(found, "measure").items():
        missed, logs = _total(here)
        least = min(here, key=lambda line: line.p)
        rows.append(
            (measure, f"{len(here)}", f"{logs:,}", f"{_covered(here):.2%}",
             f"{at_least(missed, logs):.2g}", f"{least.p:.2g}")
        )  # fmt: skip
    return markdown(("interval", "cells", "logs", "covered", "p", "p, least likely cell"), rows)


def power(found: list[Line]) -> str:
    """Return one row a measure: what its cells, and all of them together, would have found."""
    rows = []
    for (measure,), here in _grouped(found, "measure").items():
        logs = sorted(line.audited for line in here)
        level = LEVEL / len(here)
        single = (logs[0], logs[len(logs) // 2], logs[-1])
        rows.append(
            (measure, *(f"{detectable(many, level):.0%} ({many:,} logs)" for many in single),
             f"{detectable(sum(logs), LEVEL):.1%} ({sum(logs):,})")
        )  # fmt: skip
    heads = ("interval", "the cell with fewest logs", "a middling one", "the one with most", "all")
    return markdown(heads, rows)


def by_kind(found: list[Line]) -> str:
    """Return one row a kind of log and measure."""
    rows = []
    for (kind, measure), here in _grouped(found, "kind", "measure").items():
        low = min(here, key=lambda line: _covered([line]))
        rows.append(
            (kind, measure, f"{len(here)}", f"{_total(here)[1]:,}", f"{_covered(here):.2%}",
             f"{_covered([low]):.1%} of {low.audited}")
        )  # fmt: skip
    return markdown(("logs of", "interval", "cells", "logs", "covered", "worst cell"), rows)


def worst(found: list[Line]) -> str:
    """Return the ten cells with the lowest coverage."""
    rows = [
        (str(line.cell.number), str(line.cell), line.measure, f"{line.audited:,}",
         f"{_covered([line]):.1%}", f"{line.p:.2g}")
        for line in sorted(found, key=lambda line: _covered([line]))[:10]
    ]  # fmt: skip
    return markdown(("cell", "what", "interval", "logs", "covered", "p"), rows)
