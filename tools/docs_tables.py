"""Write the tables of docs/ that code and measurements determine, so that they never go stale.

They stand between `<!-- table: KIND OF_WHAT -->` and `<!-- end of table -->`:

    table: settings MODULE:CLASS    the fields of a configuration, their defaults and docstrings
    table: coverage METHOD          the worst cells of docs/audit/coverage.csv

    python tools/docs_tables.py
"""

import ast
import csv
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from pages import DOCS, pages

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
        for field, text in field_docs(cls).items()
    )
    return table(("setting", "default", "what it is"), rows)


def field_docs(cls: type) -> dict[str, str]:
    """Return the docstring under each field of a dataclass, by field, as one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        said = text.value if isinstance(text, ast.Expr) else None
        if not isinstance(said, ast.Constant) or not isinstance(said.value, str):
            raise SystemExit(f"{cls.__name__}.{field.target.id} has no docstring.")
        docs[field.target.id] = " ".join(said.value.split())
    return docs


def coverage(method: str) -> str:
    """Return, by people a group, how often the worst cell's interval holds, and widths."""
    with (DOCS / "audit" / "coverage.csv").open(encoding="utf-8") as file:
        cells = [row for row in csv.DictReader(file) if row["method"] == method]
    rows: list[tuple[str, ...]] = []
    for size in sorted({int(cell["size"]) for cell in cells}):
        here = [cell for cell in cells if int(cell["size"]) == size]
        worst = min(here, key=lambda cell: float(cell["coverage"]))
        where = f"{worst['notion']}, {worst['setting']}, {worst['groups']} groups"
        usual = [
            float(cell["width"])
            for cell in here
            if (cell["setting"], cell["groups"]) == ("plain", "2")
        ]
        rows.append(
            (
                f"{size:,}",
                f"{float(worst['coverage']):.1%}",
                where,
                f"{max(float(cell['false_fair']) for cell in here):.1%}",
                f"{min(usual):.3f} to {max(usual):.3f}",
            )
        )
    heads = (
        "people a group",
        "covered, worst cell",
        "which",
        "called fair though not, at most",
        "mean width, plain, 2 groups",
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
