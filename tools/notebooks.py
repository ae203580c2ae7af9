"""Make docs/notebooks/*.ipynb from docs/tutorials/*.md: code becomes cells, the rest text.

Printed results of the page are left out; the notebook makes its own.

    python tools/notebooks.py            # write them
    python tools/notebooks.py --run docs/notebooks/audit.ipynb    # run one from top to bottom
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from pages import DOCS, parts

TUTORIALS = DOCS / "tutorials"
NOTEBOOKS = DOCS / "notebooks"


def notebook(page: str) -> str:
    """Return the notebook of a page as JSON, the same for the same page."""
    cells: list[tuple[str, str]] = []
    for part in parts(page):
        if part.mark.startswith("output"):
            continue
        kind = "code" if part.runs else "markdown"
        text = (part.text if part.runs else part.source).strip("\n")
        if kind == "markdown" and cells and cells[-1][0] == "markdown":
            cells[-1] = (kind, cells[-1][1] + "\n\n" + text)
        else:
            cells.append((kind, text))
    content = {
        "cells": [_cell(number, *cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    cell = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def made() -> dict[Path, str]:
    """Return every notebook's file and what it must hold."""
    tutorials = sorted(TUTORIALS.glob("*.md"))
    return {
        NOTEBOOKS / f"{page.stem}.ipynb": notebook(page.read_text("utf-8")) for page in tutorials
    }


def run(path: Path) -> None:
    """Run a notebook from top to bottom in a folder of its own; an error in a cell ends it."""
    import nbformat
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        content = nbformat.read(path, as_version=4)
        NotebookClient(content, timeout=900, resources={"metadata": {"path": folder}}).execute()
    cells = sum(cell.cell_type == "code" for cell in content.cells)
    print(f"{path.name}: {cells} cells ran.")


def main() -> None:
    """Write all notebooks, or run some."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--run", type=Path, nargs="+", default=[])
    chosen = arguments.parse_args().run
    for path in chosen:
        run(path)
    if not chosen:
        NOTEBOOKS.mkdir(exist_ok=True)
        for path, content in made().items():
            path.write_text(content, "utf-8")


if __name__ == "__main__":
    main()
