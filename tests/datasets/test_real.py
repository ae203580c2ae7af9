"""The real files, where they are: each is audited with its own settings in one line."""

import csv
import gzip
import shlex
from pathlib import Path

import pytest

import sellf
from sellf.cli import main

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "real"

pytestmark = [
    pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not part of the project"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _offline(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SELLF_DATA", str(REAL))


def test_the_stops_are_audited_in_one_line_and_counted_as_by_hand():
    data = sellf.datasets.fetch_nypd_stops(2014)
    audit = sellf.audit(data.path, **data.audit_settings, omega=0.02)
    with gzip.open(data.path, "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["frisked"] == "Y"]
    weapons = data.audit_settings["outcome"].split(" | ")
    rates = {}
    for name, letter in data.audit_settings["groups"].items():
        own = [row for row in rows if row["race"] == letter]
        armed = sum(any(row[weapon] in ("Y", "1") for weapon in weapons) for row in own)
        rates[name] = armed / len(own)
    assert audit.difference.low < rates["White"] - rates["Black"] < audit.difference.high
    assert {name: row.value for name, row in audit.by_group.items()} == pytest.approx(rates)
    assert "45,787 rows" in str(data)


def test_the_applications_are_audited_by_the_command_that_is_printed(capsys):
    assert main(["datasets", "amex"]) == 0
    shown = capsys.readouterr().out
    assert "licence" in shown
    assert main(shlex.split(shown.splitlines()[-1])[1:]) == 0
    assert "62 or over" in capsys.readouterr().out
    data = sellf.datasets.fetch_amex()
    assert len(data.to_frame()) == len(data.to_frame("polars")) == 13_444
