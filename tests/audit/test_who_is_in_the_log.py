"""Who a log holds and who is missing from it: pending outcomes, absent rejections, seeds."""

import json
import shlex

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sellf
from sellf import files
from sellf.audit import run as audit_run
from sellf.audit.saved import read
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs import reading
from sellf.logs.cautions import nearly_all_accepted
from sellf.logs.columns import Columns
from sellf.logs.limits import Limits
from tests.audit.logs import COLUMNS, lending

LOG = {name: values for name, values in lending(2000).items() if name != "hidden"}
NAMES = Columns(("race",), "approved", "repaid", "p", "score")


def engines(frame):
    """Return the same rows in memory and in two engines."""
    return {
        "memory": frame,
        "duckdb": duckdb.from_df(frame),
        "polars": pl.from_pandas(frame).lazy(),
    }


@pytest.fixture
def pushed(monkeypatch):
    """Have engines keep whatever they hold."""
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=10))


def test_accepted_people_without_an_outcome_are_counted_and_stay(pushed):
    rng = np.random.default_rng(1)
    share = np.where(LOG["race"] == "a", 0.2, 0.6)
    gone = (rng.random(2000) < share) & (LOG["approved"] == 1)
    frame = pd.DataFrame({**LOG, "repaid": np.where(gone, np.nan, LOG["repaid"])})
    rows = reading.open_log(frame, NAMES)
    assert rows.pending == gone.sum()
    np.testing.assert_array_equal(rows.person.pending, gone)
    assert not rows.person.positive[gone].any()
    known = [gone[LOG["race"] == name].sum() for name in "ab"]
    for name, log in engines(frame).items():
        if name != "memory":
            _, sums = reading.open_log(log, NAMES).sums(0.01)
            assert sums.pending.sum(axis=-1).tolist() == known, name
        parity = sellf.audit(log, **COLUMNS, notion="demographic", seed=1)
        whole = sellf.audit(LOG, **COLUMNS, notion="demographic", seed=1)
        assert parity.by_group == whole.by_group, name


def test_a_log_without_pending_outcomes_says_so_by_none():
    assert reading.open_log(LOG, NAMES).person.pending is None


@pytest.mark.parametrize("notion", ["demographic", "opportunity"])
def test_a_log_of_accepted_people_is_refused_everywhere(notion, pushed):
    kept = LOG["approved"] == 1
    frame = pd.DataFrame({name: values[kept] for name, values in LOG.items()})
    for log in engines(frame).values():
        with pytest.raises(InputError, match=r"accepted people only.*the rejected ones included"):
            sellf.audit(log, **COLUMNS, notion=notion)


def test_a_chance_of_1_for_somebody_rejected_is_refused_everywhere(pushed):
    row = int(np.flatnonzero(LOG["approved"] == 0)[0])
    frame = pd.DataFrame(LOG)
    frame.loc[row, "p"] = 1.0
    for log in engines(frame).values():
        with pytest.raises(InputError, match=r"'p' is 1.* rejected"):
            sellf.audit(log, **COLUMNS)


def test_hardly_any_rejections_are_warned_of(pushed):
    rng = np.random.default_rng(2)
    rejected = LOG["approved"] == 0
    for thinned, said in (
        (rejected, "of the log are"),
        (rejected & (LOG["race"] == "b"), "group b"),
    ):
        kept = ~thinned | (rng.random(2000) < 0.005)
        frame = pd.DataFrame({name: values[kept] for name, values in LOG.items()})
        for name, log in engines(frame).items():
            found = sellf.audit(log, **COLUMNS, notion="demographic")
            assert said in " ".join(found.warnings), name
    assert nearly_all_accepted(["a", "b"], np.array([49.0, 100]), np.array([49.0, 50])) == []
    assert sellf.audit(LOG, **COLUMNS).warnings == ()


def test_the_seed_is_recorded_and_repeats_the_audit(tmp_path, capsys):
    path = tmp_path / "log.csv"
    pd.DataFrame(LOG).to_csv(path, index=False)
    first, second = sellf.audit(path, **COLUMNS), sellf.audit(path, **COLUMNS)
    assert first.origin.seed != second.origin.seed
    assert 0 <= first.origin.seed < 2**32
    assert f"--seed {first.origin.seed}" in first.origin.command
    assert main([*shlex.split(first.origin.command)[1:], "--json"]) == 0
    (tmp_path / "audit.json").write_text(capsys.readouterr().out)
    again = read(tmp_path / "audit.json")
    assert again.to_json() == first.to_json()
    old = json.loads(first.to_json())
    del old["origin"]["seed"]
    (tmp_path / "old.json").write_bytes(files.sealed_json(old))
    assert read(tmp_path / "old.json").origin.seed is None
    every = sellf.audit_all(LOG, **COLUMNS, seed=3)
    assert {found.origin.seed for found in every.by_notion.values()} == {3}
    assert "seed=3" in every["accuracy"].origin.command
    assert main(["audit", "--example", "--json", "--seed", "5"]) == 0
    command = json.loads(capsys.readouterr().out)["origin"]["command"]
    assert command == "sellf audit --example --notion opportunity --seed 5"
