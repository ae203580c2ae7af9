"""Rows are not people where people come back: --person, and what is warned of without it."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sellf
from sellf.audit import run as audit_run
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs import reading
from sellf.logs.cautions import may_name_people
from sellf.logs.columns import Columns
from sellf.logs.limits import Limits
from tests.audit.logs import COLUMNS, lending

ROWS = 1200
PEOPLE = np.arange(ROWS) % 100
LOG = {name: values for name, values in lending(ROWS).items() if name != "hidden"}
NAMES = Columns(("race",), "approved", "repaid", "p", "score", person="who")


@pytest.mark.parametrize(
    "who",
    [
        PEOPLE,
        [f"p{i}" for i in PEOPLE],
        [int(i) if row % 2 else f" {i}" for row, i in enumerate(PEOPLE)],
        [(int(i),) for i in PEOPLE],
    ],
    ids=["numbers", "words", "mixed", "tuples"],
)
def test_rows_of_one_person_share_a_number(who):
    rows = reading.open_log({**LOG, "who": who}, NAMES)
    unit = rows.person.unit
    assert len(np.unique(unit)) == 100
    for person in range(100):
        assert len(set(unit[person == PEOPLE])) == 1
    assert rows.people_in_several_groups
    assert rows.of_group(0).unit.tolist() == sorted(unit[rows.codes == 0].tolist())


def test_people_who_stay_in_their_group_and_rows_that_are_people():
    race = np.where(PEOPLE < 50, "a", "b")
    rows = reading.open_log({**LOG, "race": race, "who": PEOPLE}, NAMES)
    assert not rows.people_in_several_groups
    assert reading.open_log(LOG, Columns(("race",), "approved", "repaid")).person.unit is None


def test_a_person_without_a_name_and_a_log_too_long_are_refused(monkeypatch):
    who = [None, " ", *PEOPLE[2:]]
    with pytest.raises(InputError, match=r"person 'who' is missing in 2 rows .the first is row 0"):
        sellf.audit({**LOG, "who": who}, **COLUMNS, person="who")
    with pytest.raises(InputError, match="'race' is used in two roles"):
        sellf.audit(LOG, **COLUMNS, person="race")
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=10))
    frame = pd.DataFrame({**LOG, "who": PEOPLE})
    with pytest.raises(InputError, match=r"1,200 rows, .* audit a part .* one row per person"):
        sellf.audit(duckdb.from_df(frame), **COLUMNS, person="who")


def logs(frame, folder):
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_parquet(folder / "log.parquet")
    return {
        "mapping": {name: frame[name].tolist() for name in frame},
        "pandas": frame,
        "csv": folder / "log.csv",
        "parquet": folder / "log.parquet",
        "polars": pl.from_pandas(frame).lazy(),
        "duckdb": duckdb.from_df(frame),
    }


@pytest.mark.parametrize("fetch_rows", [2_000_000, 10])
def test_a_column_that_seems_to_name_people_who_come_back_is_warned_of(
    tmp_path, monkeypatch, fetch_rows
):
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=fetch_rows))
    frame = pd.DataFrame(LOG).assign(applicant_id=PEOPLE, row_id=np.arange(ROWS), member_age=PEOPLE)
    said = (
        "column 'applicant_id' has 100 different values in 1,200 rows: if it names people, type "
        "--person applicant_id, since the interval counts every row as a new person."
    )
    for name, log in logs(frame, tmp_path).items():
        assert sellf.audit(log, **COLUMNS).warnings == (said,), name
    if fetch_rows > ROWS:
        assert sellf.audit(frame, **COLUMNS, person="applicant_id").warnings == ()


def test_hundreds_of_columns_that_seem_to_name_people_are_not_listed_one_by_one():
    frame = pd.DataFrame({**LOG, **{f"id_{i}": PEOPLE for i in range(300)}})
    warnings = sellf.audit(frame, **COLUMNS).warnings
    assert [line.split("'")[1] for line in warnings[:-1]] == ["id_0", "id_1", "id_2"]
    assert warnings[-1] == "297 more columns may name people; they were not looked at."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("id", True), ("ApplicantID", True), ("customerNumber", True), ("borrower", True),
        ("client-id", True), ("national.id", True), ("ssn hash", True), ("id_applicant", True),
        ("Person", True), ("paid", False), ("customer_age", False), ("idea", False),
        ("approved", False), ("user_type", False), ("name", False),
    ],
)  # fmt: skip
def test_names_of_columns_that_name_people(name, expected):
    assert bool(may_name_people(Columns(("race",), "approved", None), [name])) is expected


def test_the_command_line_takes_the_column_of_people(tmp_path, capsys):
    frame = pd.DataFrame(LOG).assign(applicant_id=PEOPLE)
    frame.to_csv(tmp_path / "log.csv", index=False)
    options = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
    assert main(["audit", str(tmp_path / "log.csv"), *options]) == 0
    assert "type --person applicant_id" in capsys.readouterr().out
    assert main(["audit", str(tmp_path / "log.csv"), *options, "--person", "applicant_id"]) == 0
    assert "--person applicant_id" not in capsys.readouterr().out
    assert main(["audit", str(tmp_path / "log.csv"), *options, "--person", "aplicant_id"]) == 2
    assert "did you mean 'applicant_id'" in capsys.readouterr().err


@pytest.mark.parametrize("notion", ["demographic", "opportunity", "equalized-odds"])
def test_a_group_without_anybody_in_some_period(notion):
    log = {
        "group": ["a", "b", "a", "b", "a", "a"],
        "accepted": [1, 1, 0, 0, 1, 0],
        "repaid": [1, 0, None, None, 1, None],
        "id": [0, 1, 2, 3, 4, 5],
        "day": ["2024-01-05"] * 4 + ["2024-02-05"] * 2,
    }
    columns = {"group": "group", "decision": "accepted", "outcome": "repaid", "person": "id"}
    found = sellf.audit(log, **columns, notion=notion, time="day", by="month", seed=1)
    first, second = found.periods
    assert first.verdict == second.verdict == "undetermined"
    assert second.low == 0
    assert second.high == 1
