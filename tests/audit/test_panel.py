"""The panel of measures: fairlearn's figures where every outcome is known, and what is said."""

import json

import fairlearn.metrics as theirs
import numpy as np
import pytest
from scipy.stats import fisher_exact

import sellf
from sellf.audit.saved import read
from sellf.cli import main
from sellf.errors import InputError
from sellf.report import audit as page
from tests.audit.logs import COLUMNS, lending

FULL = {"group": "g", "decision": "a", "outcome": "y", "trust_rejected_outcomes": True}


def full_log(seed):
    """Return a log of two to four groups whose outcomes are all known."""
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(2, 5))
    people = int(rng.integers(60, 400))
    g = rng.choice([f"g{k}" for k in range(groups)], people)
    code = np.array([int(name[1]) for name in g])
    y = (rng.random(people) < rng.uniform(0.2, 0.8, groups)[code]).astype(int)
    a = (rng.random(people) < np.where(y, 0.3, 0.1) + rng.uniform(0.1, 0.5, groups)[code]).astype(
        int
    )
    return {"g": g, "a": a, "y": y}


def selection_of_accepted(y, a):
    return y[a == 1].mean()


def accuracy(y, a):
    return (y == a).mean()


def qualification(y, a):
    return y.mean()


METRICS = {
    "demographic": theirs.selection_rate,
    "opportunity": theirs.true_positive_rate,
    "false-positive-rate": theirs.false_positive_rate,
    "accuracy": accuracy,
    "predictive-parity": selection_of_accepted,
    "qualification": qualification,
}

DIFFERENCES = {
    "demographic": theirs.demographic_parity_difference,
    "opportunity": theirs.equal_opportunity_difference,
    "equalized-odds": theirs.equalized_odds_difference,
}
RATIOS = {
    "demographic": theirs.demographic_parity_ratio,
    "opportunity": theirs.equal_opportunity_ratio,
    "equalized-odds": theirs.equalized_odds_ratio,
}


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 100), marks=pytest.mark.slow)])
def test_fairlearn_agrees_on_every_measure_where_all_labels_are_known(seeds):
    for seed in seeds:
        log = full_log(seed)
        found = sellf.audit_all(log, panel=True, seed=0, **FULL)
        for notion, metric in METRICS.items():
            frame = theirs.MetricFrame(
                metrics=metric, y_true=log["y"], y_pred=log["a"], sensitive_features=log["g"]
            )
            ours = found[notion]
            assert ours.difference.value == pytest.approx(frame.difference(), abs=1e-9)
            panel = ours.measures["panel"]
            assert panel.impact_ratio.value == pytest.approx(frame.ratio(), abs=1e-9)
            for one in panel.comparisons:
                mine, other = frame.by_group[one.group], frame.by_group[one.against]
                assert one.difference.value == pytest.approx(mine - other, abs=1e-9)
                assert one.ratio.value == pytest.approx(mine / other, abs=1e-9)
                if mine == other == 1:
                    continue  # no odds
                odds = mine * (1 - other) / (other * (1 - mine)) if mine < 1 else np.inf
                assert one.odds_ratio.value == pytest.approx(odds, abs=1e-6)
            for name, figures in ours.by_group.items():
                assert figures.value == pytest.approx(frame.by_group[name], abs=1e-9)
        named = {"y_true": log["y"], "y_pred": log["a"], "sensitive_features": log["g"]}
        for notion, measure in DIFFERENCES.items():
            assert found[notion].difference.value == pytest.approx(measure(**named), abs=1e-9)
        for notion, measure in RATIOS.items():
            parts = found[notion].parts.values() or [found[notion]]
            ours = min(part.measures["panel"].impact_ratio.value for part in parts)
            assert ours == pytest.approx(measure(**named), abs=1e-9)
        rates = theirs.MetricFrame(metrics=theirs.selection_rate, **named)
        for row in found["demographic"].measures["panel"].selection:
            assert row.selection_rate.value == pytest.approx(rates.by_group[row.category])
            assert row.people == (log["g"] == row.category).sum()


@pytest.mark.parametrize("seed", range(3))
def test_fairlearn_agrees_within_strata(seed):
    """Its control features are our strata."""
    log = full_log(seed + 200)
    people = len(log["g"])
    log["branch"] = np.random.default_rng(seed).choice(["n", "s"], people)
    for notion in ("demographic", "opportunity", "false-positive-rate", "accuracy"):
        found = sellf.audit(log, notion=notion, within="branch", reference="g0", seed=0, **FULL)
        frame = theirs.MetricFrame(
            metrics=METRICS[notion],
            y_true=log["y"],
            y_pred=log["a"],
            sensitive_features=log["g"],
            control_features=log["branch"],
        )
        for row in found.measures["within"].strata:
            rates = frame.by_group[row.stratum.removeprefix("branch=")]
            assert row.rate == pytest.approx(rates[row.group], abs=1e-9)
            gap = rates[row.group] - rates["g0"]
            assert row.difference.value == pytest.approx(gap, abs=1e-9)


def test_the_classical_test_is_fisher_s_and_for_large_logs_the_z_test():
    log = full_log(3)
    found = sellf.audit(log, notion="demographic", reference="g0", seed=0, **FULL)
    for one in found.measures["panel"].comparisons:
        table = [
            [(log["a"][log["g"] == name] == value).sum() for value in (1, 0)]
            for name in (one.group, one.against)
        ]
        assert one.p_value == pytest.approx(fisher_exact(table).pvalue)
        assert one.against == "g0"
    large = lending(30_000, gap=0.02)
    found = sellf.audit(large, **COLUMNS, notion="demographic", panel=True, seed=0)
    (one,) = found.measures["panel"].comparisons
    accepted = {k: large["approved"][large["race"] == k] for k in "ab"}
    pooled = large["approved"].mean()
    error = (pooled * (1 - pooled) * sum(1 / len(x) for x in accepted.values())) ** 0.5
    from scipy.stats import norm

    z = (accepted["b"].mean() - accepted["a"].mean()) / error
    assert one.p_value == pytest.approx(2 * norm.sf(abs(z)))


def test_a_ratio_has_its_own_verdict_and_its_direction_in_words():
    found = sellf.audit(lending(4000), **COLUMNS, notion="demographic", reference="a", seed=0)
    panel = found.measures["panel"]
    (one,) = panel.comparisons
    assert one.impact == "below 0.8"
    assert panel.verdict == "below 0.8"
    assert "fewer are accepted in b than in a" in one.direction
    turned = sellf.audit(lending(4000), **COLUMNS, notion="demographic", reference="b", seed=0)
    (other,) = turned.measures["panel"].comparisons
    assert "more are accepted in a than in b" in other.direction
    assert other.ratio.low == pytest.approx(1 / one.ratio.high, rel=1e-3)
    assert "below 0.8".upper() in str(found)


def test_new_york_s_table_counts_the_unknown_and_marks_small_categories():
    rng = np.random.default_rng(0)
    g = np.repeat(["women", "men", "few", "not stated"], [500, 480, 10, 60])
    log = {"g": g, "a": rng.integers(0, 2, len(g))}
    found = sellf.audit(
        log, group="g", decision="a", notion="demographic", unknown_group="not stated", seed=0
    )
    rows = {row.category: row for row in found.measures["panel"].selection}
    assert rows["few"].small
    assert not rows["women"].small
    assert rows["not stated"].unknown
    assert np.isnan(rows["not stated"].impact_ratio.value)
    said = str(found)
    assert "less than 2% of the people" in said
    assert "not stated: " in said
    assert "category not known, counted only" in said
    rates = {k: log["a"][g == k].mean() for k in ("women", "men")}
    top = max(rates.values())
    for name, rate in rates.items():
        assert rows[name].selection_rate.value == pytest.approx(rate)
        assert rows[name].impact_ratio.value == pytest.approx(rate / top)


def test_calibration_counts_hidden_outcomes():
    log = lending(6000, seed=2)
    log["score"] = 0.2 + 0.6 * log["x"]  # the true chance
    bands = sellf.audit(log, **COLUMNS, panel=True, seed=0).measures["panel"].calibration
    assert len(bands) > 8
    assert all(band.inside for band in bands)
    log["score"] = np.clip(log["score"] + 0.25, 0, 1)
    bands = sellf.audit(log, **COLUMNS, panel=True, seed=0).measures["panel"].calibration
    assert sum(not band.inside for band in bands) > len(bands) / 2


def test_scores_are_compared_by_their_standardised_mean_difference():
    log = lending(6000, seed=2)
    found = sellf.audit(log, **COLUMNS, reference="a", seed=0).measures["panel"].scores[0]
    a, b = (log["score"][log["race"] == k] for k in "ab")
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2)
    assert found.smd.value == pytest.approx((b.mean() - a.mean()) / pooled**0.5)
    assert found.smd.low < 0 < found.smd.high


def test_the_panel_is_in_json_in_the_report_and_reads_back(tmp_path):
    found = sellf.audit(lending(1000), **COLUMNS, notion="equalized-odds", panel=True, seed=0)
    path = tmp_path / "audit.json"
    path.write_text(found.to_json())
    assert read(path).to_dict() == found.to_dict()
    assert "four fifths" in page(found)
    content = json.loads(found.to_json())
    content["parts"]["opportunity"]["measures"]["panel"]["verdict"] = "at least 0.8"
    from sellf.files import sealed

    content.pop("sha256")
    path.write_text(json.dumps(sealed(content)))
    with pytest.raises(InputError, match="does not follow"):
        read(path)


def test_a_reference_that_is_no_group_is_told(capsys):
    assert main(["audit", "--example", "--reference", "Blak"]) == 2
    assert "the groups are 'Black', 'White'" in capsys.readouterr().err
    with pytest.raises(InputError, match="anytime"):
        sellf.audit(lending(200), **COLUMNS, anytime=True, panel=True)


def test_where_no_outcome_is_hidden_nothing_is_imputed():
    rng = np.random.default_rng(0)
    approved, repaid = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    log = {"g": rng.choice(["a", "b"], 400), "approved": approved, "repaid": repaid}
    found = sellf.audit(
        log, group="g", decision="approved", outcome="repaid", notion="opportunity",
        trust_rejected_outcomes=True,
    )  # fmt: skip
    assert found.imputed == pytest.approx(found.difference.value)
    assert found.naive == 0
    assert "known for accepted people only" not in page(found)
