"""What an audit says of the data before it concludes anything."""

import json

import numpy as np
import pytest

import sellf
from sellf.audit.quality import auc_of
from sellf.audit.saved import read

from .logs import COLUMNS, lending

pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame():
    log = pd.DataFrame(lending(1200))
    log["application"] = [f"A{i}" for i in range(len(log))]
    log["amount_repaid"] = np.where(log["approved"] == 1, 100.0, np.nan)
    log["day"] = pd.date_range("2024-01-01", periods=len(log), freq="h")
    return pd.concat([log, log.iloc[:7]], ignore_index=True)


@pytest.fixture(scope="module")
def found(frame):
    return sellf.audit(frame, **COLUMNS, time="day", by="quarter", seed=1)


def test_copies_identifiers_and_what_came_after_the_decision_are_seen(frame, found):
    quality = found.quality
    assert (quality.rows, quality.used, quality.duplicates) == (1207, 1207, 7)
    assert (quality.first, quality.last) == ("2024-01-01", "2024-02-19")
    assert quality.after_decision == ("amount_repaid",)
    assert any("7 of 1,207 rows repeat another row" in line for line in found.warnings)
    whole = sellf.audit(frame.drop_duplicates(), **COLUMNS, seed=1)
    assert whole.quality.identifiers == ("application",)


def test_every_group_is_counted(frame, found):
    for group in found.quality.groups:
        mine = frame[frame["race"] == group.group]
        assert (group.rows, group.accepted) == (len(mine), mine["approved"].sum())
        assert group.pending == 0


def test_a_feature_that_was_recorded_later_is_warned_of(frame):
    asked = {"group": "race", "decision": "approved", "outcome": "repaid", "seed": 1}
    result = sellf.audit(frame, **asked, features=["x", "amount_repaid"], model="logistic")
    assert any("'amount_repaid'" in line and "--feature" in line for line in result.warnings)


def test_calibration_and_discrimination_are_those_of_scikit_learn(frame, found):
    metrics = pytest.importorskip("sklearn.metrics")
    accepted = frame[frame["approved"] == 1]
    expected = {
        "propensity": metrics.roc_auc_score(frame["approved"], frame["p"]),
        "score": metrics.roc_auc_score(accepted["repaid"], accepted["score"]),
    }
    for one in found.quality.calibration:
        assert one.auc == pytest.approx(expected[one.of])
    of_propensity = found.quality.calibration[0].bins
    tenth = (frame["p"] * 10).astype(int).clip(upper=9)
    by_hand = frame.groupby(tenth).agg(p=("p", "mean"), a=("approved", "mean"), n=("p", "size"))
    assert [b.predicted for b in of_propensity] == pytest.approx(by_hand["p"].tolist())
    assert [b.observed for b in of_propensity] == pytest.approx(by_hand["a"].tolist())
    assert [b.people for b in of_propensity] == by_hand["n"].tolist()


def test_ties_count_half_and_nothing_to_tell_apart_is_undefined():
    ones = np.ones(4)
    assert auc_of(np.zeros(4), ones, ones) == 0.5
    assert np.isnan(auc_of(np.arange(4.0), np.zeros(4), ones))


def test_it_is_kept_with_the_audit_and_stands_in_the_report(found, tmp_path):
    path = tmp_path / "audit.json"
    path.write_text(found.to_json())
    assert read(path).quality == found.quality
    assert json.loads(found.to_json())["quality"]["duplicates"] == 7
    pytest.importorskip("jinja2")
    page = sellf.report.audit(found)
    assert "The data" in page
    assert "amount_repaid" in page
    assert "How well the propensity is calibrated" in page


def test_rows_that_were_left_out_are_counted(frame):
    result = sellf.audit(frame, **COLUMNS, where="x > 0.5", seed=1)
    (left,) = result.quality.left_out
    assert left.rows == (frame["x"] <= 0.5).sum()
    assert result.quality.used == (frame["x"] > 0.5).sum()
