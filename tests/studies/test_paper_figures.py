"""The paper's own figures, as the package carries them."""

import csv
from pathlib import Path

import pytest

from sellf.studies import paper

SHARED = Path(__file__).resolve().parents[3] / "shared" / "paper"


def rows(name):
    if not (SHARED / name).exists():
        pytest.skip("the paper's tables are not beside this folder")
    return list(csv.DictReader((SHARED / name).read_text().splitlines()))


def test_every_cell_of_the_papers_tables_is_found():
    given = rows("results.csv")
    assert len(given) == 90
    for row in given:
        found = paper.find(row["env"], row["notion"], row["algorithm"], row["table"])
        assert found == tuple(float(row[name]) for name in paper.Published._fields)


def test_every_time_is_found():
    for row in rows("training_minutes.csv"):
        for world in ("lending", "recidivism", "school"):
            assert paper.minutes(row["algorithm"], world) == float(row[world])


def test_a_cell_is_found_without_its_table_and_means_the_same():
    assert paper.find("lending", "opportunity", "sellf") == (0.03, 0.01, 1246.24, 14.7)
    assert paper.find("lending", "opportunity", "sellf", "main") == paper.find(
        "lending", "opportunity", "sellf", "relu"
    )


def test_what_the_paper_does_not_report_is_none():
    assert paper.find("lending", "opportunity", "sellf-direct") is None
    assert paper.find("lending", "accuracy", "sellf", "main") is None
    assert paper.minutes("sellf-semi", "lending") is None
    assert paper.minutes("sellf", "school-continuous") is None


def test_the_source_is_named():
    assert "Long-term Fairness with Selective Labels" in paper.source()
    assert "500,000 steps" in paper.source("training_minutes")
