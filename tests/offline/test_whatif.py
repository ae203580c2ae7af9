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
    assert "undefined under the policy, since it is about nobody in some group" in str(found)
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


def test_policies_that_agree_on_everyone_in_the_log_may_differ_on_others():
    """A rare kind of people, who are in few of the logs, decides about the change."""
    missed, logs, rare = 0, 25, 0.01
    for seed in range(logs):
        made = log(60, 100 + seed)
        kind = np.random.default_rng(seed).random(60) < rare
        made["new"] = np.where(kind, 1 - made["p"], made["p"])
        found = sellf.whatif(made, policy="new", notions=["demographic"], seed=seed, **COLUMNS)
        chance = propensity(X)
        truth = rare * float((1 - 2 * chance).mean())
        ends = found["acceptance"].change
        missed += not ends.low <= truth <= ends.high
        if not kind.any():
            assert ends.low < 0 < ends.high
    assert binom.sf(missed - 1, logs, 0.05) > 0.001


def test_a_policy_that_is_declared_to_be_the_current_one_changes_nothing():
    made = log(400, 11)
    found = sellf.whatif(made, policy="p", cost=0.4, seed=1, **COLUMNS)
    assert all(change.change == (0, 0, 0) for change in found.changes)


def test_a_rate_over_nobody_is_undefined_with_estimated_propensities_too():
    made = log(600, 12, new=lambda x, group: np.where(group == 1, 0.0, 0.5))
    how = {"features": ["x"], "notions": ["predictive-parity"], "seed": 1}
    columns = {name: value for name, value in COLUMNS.items() if name != "propensity"}
    found = sellf.whatif(made, policy="new", **how, **columns)
    gap = found["predictive-parity"]
    assert np.isnan(gap.proposed.value)
    assert (gap.proposed.low, gap.proposed.high) == (0, 1)
    assert gap.direction == "open"
    assert "fairer" not in str(found)
    assert "less fair" not in str(found)
    cuts = sellf.cutoffs(
        made, by="x", cost=0.4, at=[2.0], notion="predictive-parity", features=["x"], **columns
    )
    assert cuts.best() is None


def test_the_change_of_the_reward_in_percent_holds_as_often_as_promised():
    """The current reward is near 0, so that dividing by its estimate would mislead."""
    shown, wrong, logs, delta = 0, 0, 60, 0.3
    rng = np.random.default_rng(5)
    truth = (0.5 * 0.49) / (0.5 * (0.5 * 0.49 - 0.5 * 0.42)) - 1
    for seed in range(logs):
        people = 800
        good = rng.random(people) < 0.5
        accepted = (rng.random(people) < 0.5).astype(int)
        label = (rng.random(people) < np.where(good, 0.99, 0.08)).astype(float)
        made = {
            "race": rng.choice(["B", "W"], people),
            "approved": accepted,
            "repaid": np.where(accepted == 1, label, np.nan),
            "p": np.full(people, 0.5),
            "new": good.astype(float),
        }
        how = {"notions": ["demographic"], "cost": 0.5, "delta": delta, "seed": seed}
        found = sellf.whatif(made, policy="new", **how, **COLUMNS)
        relative = found["reward"].relative
        if relative is None:
            assert "per person" in str(found)
            continue
        shown += 1
        wrong += not relative.low <= truth <= relative.high
        assert "of what is earned now" in str(found)
    assert shown > 5
    assert binom.sf(wrong - 1, logs, delta) > 0.001


@pytest.mark.parametrize("rows", [2, 4, 6])
def test_fewer_rows_than_folds_can_be_compared(rows):
    made = log(rows, 1)
    made["race"] = np.array(["B", "W"] * (rows // 2))
    made["new"] = np.full(rows, 0.5)
    columns = {name: value for name, value in COLUMNS.items() if name != "propensity"}
    found = sellf.whatif(made, policy="new", features=["x"], seed=1, **columns)
    assert found["acceptance"].proposed.high <= 1
    made["x"] = np.full(rows, np.nan)
    sellf.whatif(made, policy="new", features=["x"], seed=1, **columns)


class Three:
    """A model of three classes."""

    def predict_proba(self, frame):
        return np.full((len(frame), 3), 1 / 3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"policy": None}, "policy is None: give a column"),
        ({"policy": 3}, "policy is 3: give a column"),
        ({"policy": ["a"] * 200}, "give a column with the probabilities"),
        ({"policy": lambda columns: columns["x"]}, "needs the column 'x'"),
        ({"policy": lambda columns: np.full(200, 0.5 + 1j)}, "returns no numbers"),
        ({"policy": Three(), "columns": ["x"]}, "shape \\(200, 3\\)"),
        ({"notions": 3}, "notions is 3"),
        ({"model": "nonsense"}, "model is 'nonsense'"),
    ],
)
def test_what_is_no_policy_gets_a_sentence(change, sentence):
    made = log(200, 6, new=rule)
    with pytest.raises(InputError, match=sentence):
        sellf.whatif(made, **{"policy": "new", **COLUMNS, **change})


@pytest.mark.parametrize("change", [{"at": 0.5}, {"by": None}, {"per_group": "no"}])
def test_what_are_no_cut_offs_gets_a_sentence(change):
    with pytest.raises(InputError, match=f"{next(iter(change))} is "):
        sellf.cutoffs(log(200, 6), **{"by": "x", "cost": 0.4, **COLUMNS, **change})


def test_the_decisions_of_a_log_are_no_policy():
    made = log(300, 13)
    for policy in (np.array(made["approved"], float), lambda columns: np.array(made["approved"])):
        with pytest.raises(InputError, match="equals the decisions of the log"):
            sellf.whatif(made, policy=policy, notions=["demographic"], seed=1, **COLUMNS)


@pytest.mark.parametrize("estimated", [False, True])
def test_a_disparity_is_undefined_if_any_group_is(estimated):
    made = log(900, 14)
    made["race"] = np.array(["A", "B", "C"] * 300)
    made["new"] = np.where(made["race"] == "B", 0.0, 0.5)
    columns = dict(COLUMNS)
    if estimated:
        del columns["propensity"]
        columns["features"] = ["x"]
    found = sellf.whatif(made, policy="new", notions=["predictive-parity"], seed=1, **columns)
    gap = found["predictive-parity"]
    assert np.isnan(gap.proposed.value)
    assert gap.proposed.high == 1
    with pytest.raises(KeyError, match="there are acceptance, predictive-parity"):
        found["opportunity"]


def test_values_that_are_all_the_same_have_an_interval_with_estimated_propensities_too():
    made = log(60, 15, new=lambda x, group: np.zeros(len(x)))
    columns = {name: value for name, value in COLUMNS.items() if name != "propensity"}
    how = {"policy": "new", "notions": ["demographic"], "features": ["x"], "seed": 1}
    found = sellf.whatif(made, **how, **columns)
    assert 0 < found["acceptance"].proposed.high < 0.1
    assert "-0.0" not in str(found)
