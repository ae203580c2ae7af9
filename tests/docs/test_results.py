"""The results in docs: what is said to be there is, and claims quote tables."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "docs" / "claims.md"
OF_TRAINING = {1, 2, 3, 13, 14, 15, 16, 18, 19}
"""Claims about single trainings: their figures are printed by tools/claims.py, from runs."""
EARLIER = "*Earlier.*"
"""Begins a verdict that was told before the baselines had their originals' form."""


@pytest.fixture(scope="module")
def cells():
    pytest.importorskip("jax")
    import cells

    return cells


def told():
    """Return number, study and verdict of every claim."""
    rows = [line.split(" | ") for line in CLAIMS.read_text().splitlines() if line.startswith("| ")]
    return [
        (int(row[0].strip("| ")), row[3].strip("`"), row[4].rstrip(" |"))
        for row in rows
        if row[0].strip("| ").isdigit()
    ]


def figures(text):
    """Return disparities (three decimals) and rewards (a comma) that a text quotes."""
    return set(re.findall(r"\b0\.\d{3}\b|\b\d,\d{3}\b", text))


def quotable(rows):
    """Return everything that rows of a table say, rounded as texts round it."""
    found = set()
    for row in rows:
        for name, value in row.items():
            if name.startswith(("reward", "paper_reward")) and value:
                found.add(f"{float(value):,.0f}")
            elif name.startswith(("disparity", "exact", "seen")) and value:
                found.add(f"{float(value):.3f}")
    return found


def test_the_page_of_cells_says_what_the_tables_have(cells):
    assert (ROOT / "docs" / "results" / "cells.md").read_text() == cells.page(), (
        "run `python tools/cells.py`"
    )
    assert len(cells.states()) == 90


def test_every_claim_has_a_verdict():
    verdicts = ("**holds", "**holds partly", "**does not hold here")
    rows = told()
    assert [number for number, *_ in rows] == list(range(1, 26))
    for number, _, verdict in rows:
        assert verdict.removeprefix(EARLIER).strip().startswith(verdicts), number


def test_every_figure_of_a_claim_is_from_a_table(cells):
    """From a current one, or, where the claim says that it is told from an earlier one, any."""
    tables = {path.parent: cells.rows(path) for path in cells.RESULTS.rglob("table.csv")}
    every = [row for rows in tables.values() for row in rows]
    for number, study, verdict in told():
        if number in OF_TRAINING or study == "timing":
            continue
        current = verdict.startswith("**")
        own = tables[cells.RESULTS / study] if current else every
        old = re.findall(r"\*[Ee]arlier\*,.*?(?=; |\. |$)", verdict)
        paper = figures(" ".join(re.findall(r"the paper's? [^;.]*", verdict)))
        rest = verdict
        for part in old:
            rest = rest.replace(part, "")
        strange = figures(rest) - quotable(own) - paper - {"1,000"}
        strange |= figures(" ".join(old)) - quotable(every)
        assert not strange, f"claim {number} quotes {sorted(strange)}, which no table has"


def test_a_claim_is_current_only_where_its_cells_are(cells):
    states = cells.states()
    for number, study, verdict in told():
        own = [state for cell, state in states.items() if cell[0] == study]
        if own and set(own) == {"earlier"}:
            assert verdict.startswith(EARLIER), number


def test_the_runs_beside_a_table_are_those_that_it_was_made_from(cells, tmp_path):
    """Merged into an empty store they give the same table."""
    from sellf.studies import archive, tables
    from sellf.studies.results import results
    from sellf.studies.spec import load
    from sellf.studies.store import open_store

    for path in cells.RESULTS.rglob(f"runs{archive.SUFFIX}"):
        name = path.parent.name
        store = open_store(tmp_path / name)
        came, _, damaged = archive.merge(store, path)
        assert came > 0
        assert not damaged
        rows = [
            {key: value for key, value in row.items() if key.startswith(("disparity", "reward"))}
            for row in tables.cells(results(load(name), store))
        ]
        written = cells.rows(path.parent / "table.csv")
        assert len(rows) == len(written)
        for ours, theirs in zip(rows, written, strict=True):
            for key, value in ours.items():
                assert value == pytest.approx(float(theirs[key]), rel=1e-4), (name, key)
