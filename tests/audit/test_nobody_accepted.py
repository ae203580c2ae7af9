"""A group of which nobody is accepted: the log tells nothing of it, and no estimate is shown."""

import numpy as np
import pytest

import sellf
from sellf import report


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "nobody"], 100)
    decision = np.where(group == "nobody", 0, rng.integers(0, 2, 300))
    outcome = np.where(decision == 1, rng.integers(0, 2, 300).astype(float), np.nan)
    log = {"group": group, "decision": decision, "outcome": outcome}
    return sellf.audit(log, group="group", decision="decision", outcome="outcome",
                       notion="predictive-parity", seed=1)  # fmt: skip


def test_it_is_called_undefined_where_it_is_printed(found):
    title, *lines = str(found).splitlines()
    assert "disparity undefined, between 0.000 and 1.000" in title
    (row,) = (line.split() for line in lines if line.startswith("nobody "))
    head = next(line.split() for line in lines if line.startswith("group "))
    assert dict(zip(head, row, strict=True)) == {
        "group": "nobody", "people": "100", "accepted": "0", "naive": "undefined",
        "imputed": "undefined", "ours": "undefined", "low": "0.0000", "high": "1.0000",
        "unidentified": "1.0000",
    }  # fmt: skip
    assert "nan" not in str(found)
    assert "a group has no accepted people" in str(found.needed)


def test_other_groups_keep_their_estimates(found):
    frame = found.to_frame("pandas").set_index("group")
    for name in ("a", "b"):
        assert frame.loc[name, "ours"] == pytest.approx(frame.loc[name, "naive"])
    assert np.isnan(frame.loc["nobody", "ours"])


def test_the_report_marks_no_estimate(found):
    from sellf.report.audit_charts import groups

    chart = groups(found)
    (ours,) = (mark for mark in chart.marks if mark.name == "ours")
    values = dict(zip(chart.names, ours.values, strict=True))
    assert values["nobody"] is None
    assert values["a"] is not None
    assert "0.500" not in report.audit(found).split("nobody", 1)[1][:300]
