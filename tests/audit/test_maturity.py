"""Outcomes take time: decisions that had too little of it are set aside, whatever was decided."""

import json
from datetime import date, datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sellf
from sellf.audit import run as audit_run
from sellf.audit.maturity import Maturity, read_maturity
from sellf.audit.saved import read
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs.limits import Limits
from tests.audit.logs import COLUMNS, lending

ROWS = 1500
DAY = np.arange(ROWS) % 500
LOG = {name: values for name, values in lending(ROWS).items() if name != "hidden"}
FRAME = pd.DataFrame(LOG).assign(date=np.datetime64("2025-01-01", "us") + DAY.astype("m8[D]"))
LAST = date(2026, 5, 15)
HOW = {**COLUMNS, "decided_on": "date", "matures_after": "365d"}
OLD = DAY <= 499 - 365


@pytest.fixture(params=[2_000_000, 10], ids=["in memory", "pushed down"])
def limit(request, monkeypatch):
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=request.param))


def logs(frame, folder=None):
    found = {"pandas": frame, "polars": pl.from_pandas(frame).lazy()}
    found["duckdb"] = duckdb.from_df(frame)
    if folder is not None:
        frame.to_csv(folder / "log.csv", index=False)
        frame.to_parquet(folder / "log.parquet")
        found |= {"csv": folder / "log.csv", "parquet": folder / "log.parquet"}
        found["mapping"] = {name: frame[name].tolist() for name in frame}
    return found


def test_only_decisions_that_had_time_count_accepted_or_not(limit, tmp_path):
    # Outcomes of late decisions are not known yet; some of the early ones never will be.
    early = FRAME["repaid"].notna() & (np.arange(ROWS) % 7 == 0)
    frame = FRAME.assign(repaid=FRAME["repaid"].where(pd.Series(OLD) & ~early))
    known = sellf.audit(frame[OLD].drop(columns="date"), **COLUMNS, seed=1)
    everyone = sellf.audit(FRAME, **COLUMNS, notion="demographic", seed=1)
    for name, log in logs(frame, tmp_path).items():
        found = sellf.audit_all(log, **HOW, seed=1)
        mine = found["opportunity"]
        assert mine.difference == pytest.approx(known.difference), name
        assert mine.by_group["a"].people == (LOG["race"][OLD] == "a").sum()
        late = {group: ((LOG["race"] == group) & ~OLD).sum() for group in "ab"}
        assert mine.waiting.immature == late, name
        pending = {group: ((LOG["race"] == group) & OLD & early).sum() for group in "ab"}
        assert mine.waiting.pending == pending, name
        assert mine.waiting.cutoff == "2025-05-15"
        said = f"the {(~OLD).sum():,} rows decided after 2025-05-15 are set aside (a: "
        assert said in " ".join(mine.assumptions)
        assert f"{sum(pending.values())} of " in " ".join(mine.warnings)
        assert "accepted people have no outcome" in " ".join(mine.warnings)
        parity = found["demographic"]
        assert parity.difference == pytest.approx(everyone.difference), name
        assert parity.waiting is None
        assert "no outcome" not in " ".join((*parity.warnings, *parity.assumptions))


def test_pending_outcomes_are_counted_without_dates_too(limit):
    frame = FRAME.assign(repaid=FRAME["repaid"].where(OLD))
    for log in logs(frame).values():
        found = sellf.audit(log, **COLUMNS)
        gone = {g: ((LOG["race"] == g) & ~OLD & (LOG["approved"] == 1)).sum() for g in "ab"}
        assert found.waiting.pending == gone
        assert found.waiting.cutoff is None
        assert "type --decided-on COLUMN --matures-after 365d" in " ".join(found.warnings)
        assert sellf.audit(log, **COLUMNS, notion="demographic").waiting is None


def test_periods_are_those_that_had_time(limit):
    for log in logs(FRAME).values():
        found = sellf.audit(log, **HOW, time="date", by="month")
        assert [period.name for period in found.periods] == [f"2025-0{m}" for m in range(1, 6)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"as_of": "2025-01-01"}, "has no date up to 2024-01-02: no decision had time"),
        ({"matures_after": None}, "matures_after is missing"),
        ({"decided_on": None}, "decided_on is missing: name the column"),
        ({"decided_on": None, "matures_after": None, "as_of": "2026-01-01"}, "is missing"),
        ({"matures_after": "soon"}, "matures_after is 'soon': give a whole number of days"),
        ({"matures_after": "0d"}, "matures_after is '0d'"),
        ({"matures_after": 365}, "matures_after is 365"),
        ({"as_of": "June"}, "as_of is 'June': give the day"),
        ({"decided_on": "x"}, "decided_on 'x' "),
        ({"decided_on": "day"}, "did you mean 'date'"),
        ({"as_of": "2026-01-01"}, "accepted people only"),
    ],
)
def test_what_cannot_be_set_aside_is_said(limit, options, message):
    frame = FRAME
    if message == "accepted people only":
        frame = FRAME[(DAY > 10) | (LOG["approved"] == 1)]
        options = {"as_of": "2026-01-05"}
    for log in logs(frame).values():
        with pytest.raises(InputError, match=message):
            sellf.audit(log, **{**HOW, **options})


def test_a_missing_date_is_refused_and_a_group_without_old_decisions_is_named(limit):
    frame = FRAME.copy()
    frame.loc[4, "date"] = pd.NaT
    for log in logs(frame).values():
        with pytest.raises(InputError, match="decided_on 'date' is missing in 1 rows"):
            sellf.audit(log, **HOW)
    frame = FRAME.assign(race=np.where(~OLD & (np.arange(ROWS) % 4 == 0), "new", LOG["race"]))
    for log in logs(frame).values():
        found = sellf.audit(log, **HOW)
        assert list(found.by_group) == ["a", "b"]
        assert "no decision on new was made up to 2025-05-15" in " ".join(found.warnings)
        assert read_back(found).waiting == found.waiting


def test_old_decisions_without_any_outcome_are_refused_but_for_demographic_parity(limit):
    frame = FRAME.assign(repaid=FRAME["repaid"].where(~OLD))
    for log in logs(frame).values():
        with pytest.raises(InputError, match="'repaid' is missing for everyone who was accepted"):
            sellf.audit(log, **HOW)
        assert sellf.audit(log, **HOW, notion="demographic").waiting is None


def read_back(audit):
    from sellf.audit.saved import _audit

    return _audit(json.loads(audit.to_json()))


@pytest.mark.parametrize(
    ("after", "as_of", "expected"),
    [
        ("365d", None, "2025-05-15"),
        ("2w", None, "2026-05-01"),
        ("3mo", "2026-05-31", "2026-02-28"),
        ("1 y", "2024-02-29", "2023-02-28"),
        ("12mo", datetime(2026, 1, 31, 12), "2025-01-31"),
        ("99999y", None, "0001-01-01"),
        ("99999w", date(2026, 1, 1), "0109-"),
    ],
)
def test_the_last_day_that_counts(after, as_of, expected):
    found = read_maturity("date", after, as_of)
    assert isinstance(found, Maturity)
    assert str(found.cutoff(LAST)).startswith(expected)


def test_the_command_line_sets_decisions_aside(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    options = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
    dates = ["--decided-on", "date", "--matures-after", "12mo", "--as-of", "2026-05-15"]
    assert main(["audit", str(tmp_path / "log.csv"), *options, *dates, "--json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert sum(group["people"] for group in found["by_group"]) == OLD.sum()
    for part in ("--decided-on date", "--matures-after 12mo", "--as-of 2026-05-15"):
        assert part in found["origin"]["command"]
    (tmp_path / "audit.json").write_text(printed)
    assert read(tmp_path / "audit.json").to_json() == printed.rstrip("\n")
