"""Write docs/results/cells.md: which of the paper's results are there, and how old they are.

python tools/cells.py

A cell is *current* if its table was made by the study as it is now (its seeds, steps and
deployments), *earlier* if only a table of an earlier state of the study has it.
"""

import csv
from collections import Counter
from pathlib import Path

from sellf.studies import spec

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
PUBLISHED = Path(__file__).resolve().parents[1] / "src/sellf/studies/data/results.csv"
NAMES = ("paper-main", "paper-relu", "paper-extra", "paper-continuous")
STATES = ("current", "earlier", "missing")

HEAD = """# Which of the paper's results are here

Of each of the paper's 90 results, one algorithm in one world by one notion, whether a table of
ours has it: *current*, made with the studies as they are now (baselines in their originals' form,
fifty deployments); *earlier*, made before that, with ten deployments; or *missing*. Written by
`python tools/cells.py`.
"""


def rows(path: Path) -> list[dict[str, str]]:
    """Return a table that has comments before its head."""
    if not path.is_file():
        return []
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def found(name: str) -> dict[tuple[str, str, str], str]:
    """Return the state of every cell that a study's tables have."""
    study = spec.load(name)
    now = (str(len(study.seeds)), str(study.steps), str(study.deployments))
    states = {}
    for folder in (RESULTS / "earlier" / name, RESULTS / name):
        for row in rows(folder / "table.csv"):
            cell = (row["world"], row["notion"], row["algorithm"])
            same = (row["seeds"], row["steps"], row["deployments"]) == now
            states[cell] = "current" if same else "earlier"
    return states


def states() -> dict[tuple[str, str, str, str], str]:
    """Return the state of each of the paper's cells, by study, world, notion and algorithm."""
    known = {name: found(name) for name in NAMES}
    cells = {}
    for row in rows(PUBLISHED):
        study = f"paper-{row['table']}"
        cell = (row["env"], row["notion"], row["algorithm"])
        cells[(study, *cell)] = known[study].get(cell, "missing")
    return cells


def page() -> str:
    """Return the page."""
    cells = states()
    count = Counter(cells.values())
    parts = [HEAD, ", ".join(f"{count[state]} {state}" for state in STATES) + ".\n"]
    table = ["| study | world | notion | " + " | ".join(STATES) + " |", "| --- " * 6 + "|"]
    for task in dict.fromkeys(cell[:3] for cell in cells):
        of = {
            state: [cell[3] for cell in cells if cell[:3] == task and cells[cell] == state]
            for state in STATES
        }
        named = [", ".join(of[state]) or "-" for state in STATES]
        table.append(f"| {' | '.join([*task, *named])} |")
    return "\n".join([*parts, *table]) + "\n"


if __name__ == "__main__":
    (RESULTS / "cells.md").write_text(page(), "utf-8")
    print(RESULTS / "cells.md")
