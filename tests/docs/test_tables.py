"""What code determines in the pages is what the code says: settings, coverage, notebooks."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def tables():
    pytest.importorskip("jax")
    import docs_tables

    return docs_tables


def test_the_tables_in_the_pages_are_current(tables):
    from pages import pages

    stale = [page.name for page in pages() if tables.fresh(page.read_text()) != page.read_text()]
    assert stale == [], "type `make docs`"


def test_every_algorithm_has_a_page_with_all_of_its_own_settings(tables):
    from sellf.algorithms.catalogue import ALGORITHMS
    from sellf.algorithms.config import PPO
    from sellf.algorithms.predictor import PredictorConfig

    shared = {field.name for base in (PPO, PredictorConfig) for field in dataclasses.fields(base)}
    for name, algorithm in ALGORITHMS.items():
        page = (DOCS / "algorithms" / f"{name}.md").read_text()
        for field in dataclasses.fields(algorithm.config):
            if field.name not in shared or algorithm.config is PPO:
                assert f"| `{field.name}` | `{field.default!r}` |" in page, (name, field.name)
        for heading in ("## The idea", "## Settings"):
            assert heading in page, name


def test_a_settings_table_follows_its_class(tables):
    page = "<!-- table: settings sellf.algorithms.pocar:POCAR -->\nold\n<!-- end of table -->\n"
    fresh = tables.fresh(page)
    assert "old" not in fresh
    assert "| `beta_increase` | `2.0` | beta_2: weight of a decision's increase" in fresh
    assert tables.fresh(fresh) == fresh


def test_the_table_of_coverage_counts_every_interval_once(tables):
    import csv

    with (DOCS / "audit" / "coverage.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["coverage"]]
    rows = [
        row for row in rows if row["promise"] == "finite-sample" and row["intervals"] != "earlier"
    ]
    shown = re.findall(
        r"^\| [^|]+ \| \d+ \| ([\d,]+) \| ([\d.]+)% ", tables.coverage("finite-sample"), re.M
    )
    logs = [int(row["logs"]) for row in rows]
    assert sum(int(count.replace(",", "")) for count, _ in shown) == sum(logs)
    held = sum(float(row["coverage"]) * n for row, n in zip(rows, logs, strict=True)) / sum(logs)
    mean = sum(int(count.replace(",", "")) * float(share) for count, share in shown) / sum(logs)
    assert abs(mean - 100 * held) < 0.06


def test_the_notebooks_are_current():
    import notebooks

    made = notebooks.made()
    assert len(made) == 8
    for path, content in made.items():
        assert path.read_text("utf-8") == content, f"{path.name}: type `make docs`"
    assert {path.name for path in (DOCS / "notebooks").glob("*.ipynb")} == {p.name for p in made}


def test_a_notebook_holds_the_code_of_its_page_and_no_printed_results():
    import notebooks

    page = "# A\n\ntext\n\n```python\nx = 1\n```\n\n<!-- output -->\n```text\n7\n```\n\nend\n"
    page += "\n<!-- not run: it takes a day -->\n```python\ny = 2\n```\n"
    cells = json.loads(notebooks.notebook(page))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[1]["source"]) == "x = 1"
    assert "7" not in "".join(cells[2]["source"])
    assert "y = 2" in "".join(cells[2]["source"])


QUICK = ("naive",)
"""One shows that notebooks run; the code of audit and cluster is that of their pages, which are run
in test_pages.py."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=[] if path.stem in QUICK else [pytest.mark.slow])
        for path in sorted((DOCS / "notebooks").glob("*.ipynb"))
    ],
)
def test_a_notebook_runs_from_top_to_bottom(name):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # Apart: a kernel and its sockets have warnings of their own.
    command = [sys.executable, "tools/notebooks.py", "--run", f"docs/notebooks/{name}.ipynb"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "cells ran" in done.stdout
