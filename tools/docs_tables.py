"""Write the tables of docs/ that code and measurements determine, so that they never go stale.

They stand between `<!-- table: KIND OF_WHAT -->` and `<!-- end of table -->`:

    table: settings MODULE:CLASS    the fields of a configuration, their defaults and docstrings
    table: coverage PROMISE         the worst cells of docs/audit/coverage.csv, by kind or by size

    python tools/docs_tables.py
"""

import csv
import dataclasses
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from pages import DOCS, pages
from sellf.cli.settings import own_docs

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
    """Return how often the worst cells hold: by kind, or by people a group where it is asymptotic.

    Args:
        promise: "finite-sample" or "asymptotic".
    """
    with (DOCS / "audit" / "coverage.csv").open(encoding="utf-8") as file:
        measured = [row for row in csv.DictReader(file) if row["coverage"]]
    cells = [row for row in measured if row["promise"] == promise]
    head, by = {
        "finite-sample": ("cells", "kind"),
        "asymptotic": ("people a group", "smallest_group"),
    }[promise]
    rows: list[tuple[str, ...]] = []
    for key in dict.fromkeys(cell[by] for cell in cells):
        here = [cell for cell in cells if cell[by] == key]
        worst = min(here, key=lambda cell: float(cell["coverage"]))
        groups = max(int(cell["groups_missed"]) / int(cell["logs"]) for cell in here)
        fair = max(int(cell["above"]) / int(cell["logs"]) for cell in here)
        rows.append(
            (
                key,
                f"{len({cell['cell'] for cell in here})}",
                f"{float(worst['coverage']):.1%}",
                f"{worst['notion']}, {worst['what']}",
                f"{1 - groups:.1%}",
                f"{fair:.1%}",
            )
        )
    heads = (
        head,
        "how many",
        "covered, worst",
        "which",
        "all groups covered, worst",
        "called fair though not, at most",
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
