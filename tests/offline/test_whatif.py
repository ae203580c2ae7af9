"""What another policy would have done, through `sellf.whatif`."""

import numpy as np
import pytest
from scipy.stats import binom

import sellf
from sellf.errors import InputError
from tests.offline.logs import COLUMNS, good_chance, log, propensity

X = (np.arange(2000) + 0.5) / 2000


def rule(x, group):
    return (x > 0.4).astype(float)


def true_opportunity(chance):
    found = []
    for group in (0, 1):
        good = good_chance(X, group)
        found.append(float((chance(X, group) * good).mean() / good.mean()))
    return found


def test_intervals_contain_the_truth_as_often_as_promised():
    missed, logs = 0, 8
    new = true_opportunity(rule)
    old = true_opportunity(lambda x, group: propensity(x))
    for seed in range(logs):
        made = log(600, seed, new=rule)
        found = sellf.whatif(made, policy="new", notions=["opportunity"], seed=seed, **COLUMNS)
        gap = found["opportunity"]
        group = next(c for c in found.changes if c.measure == "opportunity" and c.group == "W")
        ends = (
            (gap.proposed, abs(new[1] - new[0])),
            (gap.change, abs(new[1] - new[0]) - abs(old[1] - old[0])),
            (group.change, new[1] - old[1]),
        )
        missed += any(not i.low <= value <= i.high for i, value in ends)
    assert binom.sf(missed - 1, logs, 3 * 0.05) > 1e-3


def test_the_policy_that_decided_changes_nothing():
    made = log(2000, 1)
    found = sellf.whatif(made, policy="p", cost=0.5, notions=["opportunity"], seed=1, **COLUMNS)
    for change in found.changes:
        assert change.change == (0, 0, 0)


def test_paired_differences_are_far_narrower_than_two_intervals():
    made = log(12_000, 2)
    made["new"] = np.where((made["x"] > 0.45) & (made["x"] < 0.55), 1.0, made["p"])
    how = {"notions": ["accuracy", "opportunity"], "cost": 0.5, "seed": 2, "score": "score"}
    found = sellf.whatif(made, policy="new", **how, **COLUMNS)
    for change in found.changes:
        if change.group is not None or change.measure == "reward":
            assert change.change.width < 0.6 * (change.now.width + change.proposed.width)


def test_a_column_an_array_a_function_and_a_model_are_the_same():
    made = log(1500, 3, new=rule)
    how = {"notions": ["opportunity"], "cost": 0.5, "seed": 3, **COLUMNS}

    class Model:
        def predict_proba(self, frame):
            chance = (np.asarray(frame["x"]) > 0.4).astype(float)
            return np.column_stack([1 - chance, chance])

    first = sellf.whatif(made, policy="new", **how)
    others = [
        sellf.whatif(made, policy=made["new"], **how),
        sellf.whatif(made, policy=lambda c: (c["x"] > 0.4) * 1.0, columns=["x"], **how),
        sellf.whatif(made, policy=Model(), columns=["x"], **how),
    ]
    for other in others:
        assert other.changes == first.changes


def test_people_whom_the_log_tells_nothing_of_widen_the_interval():
    made = log(4000, 4)
    made["p"] = np.where(made["x"] < 0.3, 0.0, made["p"])
    made["approved"] = np.where(made["p"] == 0, 0, made["approved"])
    made["repaid"] = np.where(made["approved"] == 1, made["repaid"], np.nan)
    made["everybody"] = np.ones(4000)
    made["above"] = (made["x"] > 0.3).astype(float)
    how = {"cost": 0.5, "notions": ["opportunity"], "seed": 4, **COLUMNS}
    known, unknown = (sellf.whatif(made, policy=name, **how) for name in ("above", "everybody"))
    assert known.unidentified == 0
    assert unknown.unidentified == pytest.approx(0.3, abs=0.03)
    assert unknown["reward"].proposed.width > known["reward"].proposed.width + 0.2
    truth = np.mean([good_chance(X, g).mean() for g in (0, 1)]) - 0.5
    assert unknown["reward"].proposed.low <= truth <= unknown["reward"].proposed.high
    assert "has no information" in str(unknown)


def test_wrong_propensities_are_not_used():
    made = log(3000, 5, new=rule)
    made["p"] = np.where(made["x"] > 0.5, 0.5, 0.6)
    found = sellf.whatif(made, policy="new", notions=["opportunity"], seed=5, **COLUMNS)
    assert found.void is not None
    assert "contradict" in str(found)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"policy": "nowhere"}, "no column 'nowhere'"),
        ({"policy": np.zeros(3)}, "unequal lengths"),
        ({"policy": lambda columns: np.zeros(3)}, "one probability of acceptance for each"),
        ({"policy": lambda columns: np.full(200, 1.5)}, "between 0 and 1"),
        ({"cost": 2}, "cost is 2"),
        ({"delta": 1e-320}, "delta is .*: it must be at least 1e-300"),
        ({"notions": ["fairness"]}, "notion"),
        ({"outcome": None}, "outcome is missing"),
        ({"colour": "red"}, "no option 'colour'"),
    ],
)
def test_bad_questions_get_a_sentence(change, sentence):
    made = log(200, 6, new=rule)
    with pytest.raises(InputError, match=sentence):
        sellf.whatif(made, **{"policy": "new", **COLUMNS, **change})


def test_cut_offs_hold_all_at_once_and_name_the_best():
    made = log(3000, 7)
    how = {"per_group": True, "seed": 7, "omega": 0.35, "score": "score"}
    found = sellf.cutoffs(made, by="x", cost=0.4, at=[0.2, 0.4, 0.6, 0.8], **how, **COLUMNS)
    for one in found.rules:
        true = true_opportunity(lambda x, group, at=one.at[0]: (x >= at).astype(float))
        assert one.disparity.low <= abs(true[1] - true[0]) <= one.disparity.high
    best = found.best()
    assert best is not None
    assert best.disparity.high <= 0.35
    assert {"now", "common", "by group"} == set(found.to_frame("pandas")["policy"])
    assert "shown to be within 0.35" in str(found)


def test_a_rate_over_nobody_is_undefined_and_not_zero():
    made = log(600, 9, new=lambda x, group: np.where(group == 1, 0.0, 1.0))
    found = sellf.whatif(made, policy="new", notions=["predictive-parity"], seed=9, **COLUMNS)
    gap = found["predictive-parity"]
    assert np.isnan(gap.proposed.value)
    assert np.isnan(gap.change.value)
    assert gap.proposed.low == 0
    nobody, all_of = sorted(
        (c.proposed for c in found.changes if c.measure == "predictive-parity" and c.group),
        key=lambda interval: -interval.width,
    )
    assert np.isnan(nobody.value)
    assert (nobody.low, nobody.high) == (0, 1)
    assert all_of.low < all_of.value < all_of.high
    assert "undefined (0.000 to" in str(found)
    assert "undefined, since the policy accepts nobody" in str(found)
    assert '"proposed_value": null' in found.to_json()
    assert len(found.to_frame("polars")) == len(found.changes)
    page = sellf.report.policy(found)
    assert "undefined" in page
    assert "NaN" not in page.split("<script")[0]
    found.plot()


def test_cut_offs_that_accept_nobody_are_undefined_and_never_the_best():
    made = log(600, 10)
    how = {"notion": "predictive-parity", "per_group": True, "seed": 10, **COLUMNS}
    found = sellf.cutoffs(made, by="x", cost=0.4, at=[0.3, 2.0], omega=1.0, **how)
    nobody = found.rules[1]
    assert np.isnan(nobody.disparity.value)
    assert nobody.disparity.high == 1
    assert all(not np.isnan(rule.disparity.value) for rule in found.by_group)
    assert "undefined" in str(found)
    assert '"disparity": null' in found.to_json()
    found.plot()
