"""A group is one group however its name is written, in memory and in an engine."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sellf
from sellf.audit import run as audit_run
from sellf.errors import InputError
from sellf.logs.limits import Limits
from sellf.logs.names import read_as
from tests.audit.logs import COLUMNS, lending

LOG = {name: values for name, values in lending(300).items() if name != "hidden"}
THIRD = np.arange(300) % 3


@pytest.fixture(params=[2_000_000, 10], ids=["in memory", "pushed down"])
def limit(request, monkeypatch):
    limits = Limits(in_memory=request.param)
    monkeypatch.setattr(audit_run, "DEFAULT", limits)
    return limits


def everywhere(log, folder):
    frame = pd.DataFrame(log)
    frame.to_csv(folder / "log.csv", index=False)
    found = {"mapping": log, "pandas": frame, "csv": folder / "log.csv"}
    found["polars"] = pl.from_pandas(frame.astype({"race": "str"})).lazy()
    found["duckdb"] = duckdb.from_df(frame.astype({"race": "str"}))
    return found


def test_blanks_around_a_name_do_not_make_a_group(limit, tmp_path):
    known = sellf.audit(LOG, **COLUMNS, seed=1)
    padded = np.where(THIRD == 0, " a\t", np.where(THIRD == 1, "a ", "a"))
    race = np.where(LOG["race"] == "a", padded, "b")
    for name, log in everywhere({**LOG, "race": race.tolist()}, tmp_path).items():
        found = sellf.audit(log, **COLUMNS, seed=1)
        assert list(found.by_group) == ["a", "b"], name
        for mine, theirs in zip(known.by_group.values(), found.by_group.values(), strict=True):
            assert mine[:8] == pytest.approx(theirs[:8], nan_ok=True), name
            assert mine.method == theirs.method, name  # the rows were found in the engine


def test_a_blank_name_is_missing(limit, tmp_path):
    race = LOG["race"].tolist()
    race[3] = race[7] = "  "
    for log in everywhere({**LOG, "race": race}, tmp_path).values():
        with pytest.raises(InputError, match="group 'race' is missing in 2 rows"):
            sellf.audit(log, **COLUMNS)


def test_numbers_and_the_words_for_them_are_one_group(limit, tmp_path):
    one = [1, 1.0, "1"]
    race = [one[i] if r == "a" else "other" for i, r in zip(THIRD, LOG["race"], strict=True)]
    for name, log in everywhere({**LOG, "race": race}, tmp_path).items():
        assert list(sellf.audit(log, **COLUMNS).by_group) == ["1", "other"], name


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([1, 1.0, 2], [1, 1, 2]),
        ([1.5, 2.0], [1.5, 2]),
        ([1, 1.0, "1", " 1 ", "1.0", "007"], ["1", "1", "1", "1", "1", "007"]),
        ([True, "true", "TRUE ", "a"], ["True", "True", "True", "a"]),
        (["true", "True"], ["true", "True"]),
        ([1, True], ["1", "True"]),
        ([None, float("nan"), "", " \t", "a"], [None, None, None, None, "a"]),
        ([np.datetime64("2020-01-01"), "2020-01-01"], ["2020-01-01"] * 2),
        ([("a", 1), "b"], [("a", 1), "b"]),
    ],
)
def test_what_values_of_a_column_read_as(raw, expected):
    assert read_as(raw, "race", "group") == expected


def test_names_that_differ_in_case_or_inner_blanks_are_warned_of(limit, tmp_path):
    for twin in ("A", "a  b"):
        race = np.where(LOG["race"] == "a", np.where(THIRD == 0, twin, twin.lower()), "b")
        if twin != "A":
            race = np.where(LOG["race"] == "a", np.where(THIRD == 0, "a  b", "ab"), "b")
        for name, log in everywhere({**LOG, "race": race.tolist()}, tmp_path).items():
            said = " ".join(sellf.audit(log, **COLUMNS).warnings)
            assert f"group 'race' has '{twin}' and 'a" in said, name
            assert "which differ in case or blanks only" in said, name


def test_decisions_and_outcomes_in_words_lose_their_blanks(limit, tmp_path):
    known = sellf.audit(LOG, **COLUMNS, seed=1).difference
    yes = np.where(THIRD == 0, " yes", "yes")
    approved = np.where(LOG["approved"] == 1, yes, np.where(THIRD == 1, "no ", "no"))
    good = np.where(THIRD == 0, "paid ", "paid")
    blank = np.where(THIRD == 0, "", "  ")
    repaid = np.where(np.isnan(LOG["repaid"]), blank, np.where(LOG["repaid"] == 1, good, "default"))
    log = {**LOG, "approved": approved.tolist(), "repaid": repaid.tolist()}
    said = {"accepted_value": "yes", "positive_value": "paid", "seed": 1}
    for name, same in everywhere(log, tmp_path).items():
        assert sellf.audit(same, **COLUMNS, **said).difference == pytest.approx(known), name
    truths = np.where(LOG["approved"] == 1, "true", "FALSE").tolist()
    for name, same in everywhere({**LOG, "approved": truths}, tmp_path).items():
        assert sellf.audit(same, **COLUMNS, seed=1).difference == pytest.approx(known), name


@pytest.mark.parametrize("name", ["applicant.race", "race ", ' "race"', "it's", "a b.c", "sum(1)"])
def test_any_name_of_a_column_works_in_an_engine(limit, name):
    limits = replace(limit, fetched=620)  # one group by its rows, one by its sums
    plain = pd.DataFrame(LOG)
    frame = plain.rename(columns={"race": name})
    for stored in (pd.DataFrame, duckdb.from_df, lambda log: pl.from_pandas(log).lazy()):
        known = sellf.audit(stored(plain), **COLUMNS, seed=1, limits=limits)
        found = sellf.audit(stored(frame), **{**COLUMNS, "group": name}, seed=1, limits=limits)
        assert found.difference == pytest.approx(known.difference)
        assert found.method == known.method
