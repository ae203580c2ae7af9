"""Write the tables of docs/ that code and measurements determine, so that they never go stale.

They stand between `<!-- table: KIND OF_WHAT -->` and `<!-- end of table -->`:

    table: settings MODULE:CLASS    the fields of a configuration, their defaults and docstrings
    table: coverage PROMISE         docs/audit/coverage.csv in short, by kind or by size

    python tools/docs_tables.py
"""

import csv
import dataclasses
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from pages import DOCS, pages
from sellf.cli.documented import own_docs

REGION = re.compile(r"(<!-- table: (\w+) (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def fresh(page: str) -> str:
    """Return a page with all its tables made anew."""
    return REGION.sub(lambda m: m[1] + "\n" + KINDS[m[2]](m[3]) + "\n" + m[4], page)


def settings(name: str) -> str:
    """Return the fields that a class declares itself, each with its docstring."""
    module, _, of = name.partition(":")
    cls: Any = getattr(import_module(module), of)
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    rows = (
        (f"`{field}`", f"`{defaults[field]!r}`", text.replace("|", "\\|"))
        for field, text in own_docs(cls).items()
    )
    return table(("setting", "default", "what it is"), rows)


def coverage(promise: str) -> str:
    """Return how often intervals hold: by kind, or by people a group where it is asymptotic.

    Args:
        promise: "finite-sample" or "asymptotic".
    """
    with (DOCS / "audit" / "coverage.csv").open(encoding="utf-8") as file:
        measured = [row for row in csv.DictReader(file) if row["coverage"]]
    # Intervals that have changed since are in the CSV alone.
    cells = [row for row in measured if row["promise"] == promise and row["intervals"] != "earlier"]
    head, by = {
        "finite-sample": ("cells", "kind"),
        "asymptotic": ("people a group", "smallest_group"),
    }[promise]
    rows: list[tuple[str, ...]] = []
    for key in dict.fromkeys(cell[by] for cell in cells):
        here = [cell for cell in cells if cell[by] == key]
        logs = sum(int(cell["logs"]) for cell in here)
        missed = sum(int(cell["above"]) + int(cell["below"]) for cell in here)
        groups = sum(int(cell["groups_missed"]) for cell in here)
        fair = sum(int(cell["above"]) for cell in here)
        worst = min(here, key=lambda cell: float(cell["p_disparity"]))
        rows.append(
            (
                key,
                f"{len({cell['cell'] for cell in here})}",
                f"{logs:,}",
                f"{1 - missed / logs:.1%}",
                f"{1 - groups / logs:.1%}",
                f"{fair / logs:.1%}",
                f"{float(worst['coverage']):.1%} of {worst['logs']} (p = "
                f"{float(worst['p_disparity']):.2g}): {worst['notion']}, {worst['what']}",
            )
        )
    heads = (
        head,
        "how many",
        "intervals",
        "covered",
        "all groups covered",
        "called fair though not",
        "least likely cell",
    )
    return table(heads, rows)


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


KINDS = {"settings": settings, "coverage": coverage}


def main() -> None:
    """Write every page whose tables have changed."""
    for path in pages():
        page = path.read_text("utf-8")
        if fresh(page) != page:
            path.write_text(fresh(page), "utf-8")
            print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
