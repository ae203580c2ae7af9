"""Disparity and its decomposition, against definitions by hand and against fairlearn."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sellf
from sellf.fairness import NOTIONS, VIEWS, define
from tests.fairness.samples import Log, logs, utility_by_hand

ALONE = [notion for notion in NOTIONS if len(define(notion).rates) == 1]
HIDING = [notion for notion in ALONE if define(notion).hides]


@pytest.fixture(autouse=True)
def _undefined_is_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sellf.UndefinedUtilityWarning)
        yield


@pytest.mark.parametrize("notion", ALONE)
@given(log=logs(), view=st.sampled_from(VIEWS))
def test_utilities_are_the_definitions_applied_person_by_person(notion, view, log):
    result = sellf.disparity(notion, **log.columns(), view=view)
    for group, mean in result.by_group.items():
        assert mean == pytest.approx(
            utility_by_hand(notion, log, group, view), abs=1e-12, nan_ok=True
        )
    defined = [mean for mean in result.by_group.values() if not np.isnan(mean)]
    if len(defined) >= 2:
        assert result.value == max(defined) - min(defined)
    else:
        assert np.isnan(result.value)


@pytest.mark.parametrize("notion", HIDING)
@given(log=logs(), weighted=st.booleans(), data=st.data())
def test_decomposition_is_an_identity_on_every_sample(notion, log, weighted, data):
    n = len(log.group)
    weight = st.floats(0, 1e6, allow_subnormal=False)
    weights = data.draw(st.lists(weight, min_size=n, max_size=n)) if weighted else None
    parts = sellf.decompose(notion, **log.columns(), weights=weights)
    assert parts.residual <= 1e-12
    # Not only in its own terms: both sides are the disparities that one measures.
    for view in ("imputed", "true"):
        measured = sellf.disparity(notion, **log.columns(), view=view, weights=weights)
        assert getattr(parts, view).by_group == pytest.approx(measured.by_group, nan_ok=True)
    if len(parts.true.by_group) == 2 and not np.isnan(parts.true.value + parts.imputed.value):
        assert parts.imputed.signed == pytest.approx(
            parts.true.signed + parts.bias.signed, abs=1e-12
        )


@pytest.mark.parametrize("notion", HIDING)
@given(log=logs())
def test_terms_of_the_decomposition_are_what_they_say(notion, log):
    parts = sellf.decompose(notion, **log.columns())
    z, a, y, p = (np.array(column) for column in log.columns().values())
    for i in parts.rejection_rate:
        rejected = (z == i) & (a == 0)
        assert parts.rejection_rate[i] == pytest.approx(np.mean(a[z == i] == 0))
        error = np.mean((p - y)[rejected]) if rejected.any() else 0.0
        assert parts.prediction_error[i] == pytest.approx(error, abs=1e-12)
        rate = np.mean(np.where(a == 1, y, p)[z == i])
        assert parts.imputed_positive_rate[i] == pytest.approx(rate, abs=1e-12)
        if rate > 1e-9:
            kappa = 1 - parts.rejection_rate[i] * error / rate
            assert parts.kappa[i] == pytest.approx(kappa, rel=1e-9, abs=1e-9)
        elif rate == 0:
            assert np.isnan(parts.kappa[i])


@pytest.mark.parametrize("notion", HIDING)
@given(log=logs(max_rows=20))
def test_expectation_over_draws_is_what_probabilities_give(notion, log):
    if define(notion).alone.among.rejected_positive:
        return  # a ratio of expectations, not an expectation of ratios
    rng = np.random.default_rng(0)
    draws = rng.random((4000, len(log.group))) < np.array(log.prediction)
    z, a, y, _ = (np.array(column) for column in log.columns().values())
    filled = np.where(a == 1, y, draws)
    hit = filled if notion == "qualification" else filled == a
    expected = sellf.disparity(notion, **log.columns(), view="imputed").by_group
    for i, mean in expected.items():
        assert mean == pytest.approx(hit[:, z == i].mean(), abs=0.04)


@given(log=logs(max_rows=200))
def test_accepted_view_of_opportunity_is_zero_on_every_sample(log):
    result = sellf.disparity("opportunity", **log.columns(), view="accepted")
    assert all(mean == 1 or np.isnan(mean) for mean in result.by_group.values())
    assert result.value == 0 or len(result.undefined) >= len(result.by_group) - 1


@pytest.mark.parametrize("notion", ["qualification", "accuracy"])
def test_a_search_finds_worlds_where_the_accepted_view_hides_a_large_disparity(notion):
    rng = np.random.default_rng(1)
    found = []
    group = np.repeat([0, 1], 60)
    for _ in range(3000):
        label = rng.random(120) < rng.random(2)[group]
        chance = rng.random((2, 2))  # by group and label: decisions know more than features show
        action = rng.random(120) < chance[group, label.astype(int)]
        log = {"group": group, "action": action, "label": label}
        if sellf.disparity(notion, **log, view="accepted").value == 0:
            found.append(sellf.disparity(notion, **log).value)
    assert max(found) > 0.3


def test_true_view_agrees_with_fairlearn_on_random_data():
    from fairlearn.metrics import (
        MetricFrame,
        equalized_odds_difference,
        false_positive_rate,
        selection_rate,
        true_positive_rate,
    )
    from sklearn.metrics import accuracy_score, precision_score

    def mean_label(y_true, y_pred, sample_weight):
        return np.average(y_true, weights=sample_weight)

    rng = np.random.default_rng(2)
    metrics = {
        "qualification": mean_label,
        "demographic": selection_rate,
        "accuracy": accuracy_score,
        "opportunity": true_positive_rate,
        "predictive-parity": precision_score,
        "false-positive-rate": false_positive_rate,
    }
    assert {rate.name for notion in NOTIONS for rate in define(notion).rates} <= set(metrics)
    for number in range(100 if os.environ.get("SELLF_TESTS") == "thorough" else 15):
        n, groups = rng.integers(50, 500), rng.integers(2, 6)
        group = rng.choice([f"group {i}" for i in range(groups)], n)
        group[: 2 * groups] = [f"group {i}" for i in range(groups)] * 2
        label, action = rng.integers(0, 2, n), rng.integers(0, 2, n)
        # fairlearn calls the rate of a group without positives 0, or without negatives.
        label[: 2 * groups] = action[: 2 * groups] = np.repeat([0, 1], groups)
        weights = rng.uniform(0.01, 1, n) if rng.random() < 0.5 else np.ones(n)
        frame = MetricFrame(
            metrics=metrics,
            y_true=label,
            y_pred=action,
            sensitive_features=group,
            sample_params={name: {"sample_weight": weights} for name in metrics},
        )
        log = {"group": group, "action": action, "label": label, "weights": weights}
        rates, differences = frame.by_group, frame.difference()
        for notion in NOTIONS:
            ours = sellf.disparity(notion, **log)
            for rate, by_group in ours.by_rate.items():
                assert by_group == pytest.approx(rates[rate].to_dict(), abs=1e-12)
            theirs = differences[list(ours.by_rate)].max()
            assert ours.value == pytest.approx(theirs, abs=1e-12)
        if number % 5 == 0:  # the same frame again, by their own name for it
            theirs = equalized_odds_difference(
                label, action, sensitive_features=group, sample_weight=weights
            )
            assert sellf.disparity("equalized-odds", **log).value == pytest.approx(
                theirs, abs=1e-12
            )


def test_predictions_cannot_change_what_no_label_of_the_rejected_is_in():
    log = {"group": [0, 0, 0, 1, 1, 1], "action": [1, 1, 0, 1, 1, 0], "label": [1, 0, 1, 1, 1, 0]}
    for notion in set(ALONE) - set(HIDING):
        with pytest.raises(ValueError, match=f"notion is '{notion}', which needs no label"):
            sellf.decompose(notion, **log, prediction=[0.5] * 6)
        with pytest.raises(ValueError, match=f"notion is '{notion}', which needs no label"):
            sellf.certify(notion, 0.05, imputed=0, rejection_rate=[0, 0], error_bound=[0, 0])
        hidden = log | {"label": [1, 0, np.nan, 1, 1, np.nan]}
        seen = sellf.disparity(notion, **hidden).by_group
        assert seen == sellf.disparity(notion, **log).by_group


def test_weights_count_people_as_repeated_rows_would():
    rng = np.random.default_rng(3)
    times = rng.integers(0, 4, 300)
    log = {
        "group": rng.integers(0, 3, 300),
        "action": rng.integers(0, 2, 300),
        "label": rng.integers(0, 2, 300),
        "prediction": rng.random(300),
    }
    repeated = {name: np.repeat(column, times) for name, column in log.items()}
    for notion in NOTIONS:
        for view in VIEWS:
            weighted = sellf.disparity(notion, **log, view=view, weights=times)
            plain = sellf.disparity(notion, **repeated, view=view)
            assert weighted.by_group == pytest.approx(plain.by_group, abs=1e-12)


@pytest.mark.parametrize(
    "names",
    [
        ["b", "a"],
        [("Black", "F"), ("Black", "M")],
        [False, True],
        [10**12, -5],
        [2.5, 1.5],
        [3, "three"],
        [np.datetime64("2020-01-01"), np.datetime64("2021-01-01")],
    ],
    ids=str,
)
def test_groups_may_be_named_by_any_hashable_value(names):
    group = [names[i] for i in (0, 0, 1, 1, 1)]
    result = sellf.disparity("demographic", group=group, action=[1, 1, 1, 0, 0])
    assert sorted(result.by_group.values()) == pytest.approx([1 / 3, 1.0])
    assert len(result.by_group) == 2


def test_columns_may_come_from_frames_lists_or_jax(jax):
    import pandas as pd
    import polars as pl

    log = {"group": ["x", "x", "y", "y"], "action": [1, 0, 1, 0], "label": [1, None, 0, None]}
    log["prediction"] = [None, 0.25, None, 0.75]
    expected = {"x": 1.25 / 2, "y": 0.75 / 2}
    for frame in (
        log,
        pd.DataFrame(log),
        pd.DataFrame(log).astype({"group": "category", "action": bool}),
        pl.DataFrame(log),
        pl.DataFrame(log).with_columns(pl.col("action").cast(pl.Boolean)),
    ):
        columns = {name: frame[name] for name in log}
        result = sellf.disparity("qualification", **columns, view="imputed")
        assert result.by_group == expected
    columns = {"group": [0, 0, 1, 1], "action": [1, 0, 1, 0], "label": [1, 0, 0, 0]}
    columns = {name: jax.numpy.asarray(column) for name, column in columns.items()}
    assert sellf.disparity("accuracy", **columns).value == 0.5


def test_many_rows_are_counted_the_same_in_chunks_as_at_once():
    rng = np.random.default_rng(4)
    n = 200_001
    log = Log(
        (rng.integers(0, 3, n) + 7).tolist(),
        rng.integers(0, 2, n).tolist(),
        rng.integers(0, 2, n).tolist(),
        rng.random(n).tolist(),
    )
    for view in VIEWS:
        result = sellf.disparity("accuracy", **log.columns(), view=view)
        for i in (7, 8, 9):
            expected = utility_by_hand("accuracy", log, i, view)
            assert result.by_group[i] == pytest.approx(expected, abs=1e-12)


def test_signed_is_second_minus_first_in_sorted_order():
    result = sellf.disparity("demographic", group=["w", "b", "b", "w"], action=[1, 0, 0, 1])
    assert list(result.by_group) == ["b", "w"]
    assert result.signed == 1.0
    three = sellf.disparity("demographic", group=[1, 2, 3], action=[1, 0, 1])
    with pytest.raises(ValueError, match="use value"):
        _ = three.signed


def test_results_print_and_become_frames():
    log = {"group": ["a", "b", "b"], "action": [1, 1, 0], "label": [1, 1, 1]}
    result = sellf.disparity("opportunity", **log)
    assert str(result).splitlines()[0] == "opportunity disparity (true view): 0.5000"
    assert "accepted_positive" in str(result)
    frame = result.to_frame("polars")
    assert frame["utility"].to_list() == [1.0, 0.5]
    assert result.to_frame("pandas")["people"].tolist() == [1, 2]
    parts = sellf.decompose("accuracy", **log, prediction=[0, 0, 0.25])
    assert "predictor's bias" in str(parts)
    assert list(parts.to_frame()["kappa"]) == list(parts.kappa.values())
    with pytest.raises(ImportError, match="pip install nosuchframes"):
        result.to_frame("nosuchframes")


def test_equalized_odds_has_two_utilities_a_group_and_the_larger_disparity_counts():
    log = {
        "group": ["a"] * 4 + ["b"] * 4,
        "action": [1, 1, 1, 0, 1, 0, 0, 0],
        "label": [1, 1, 0, 0, 1, 1, 0, 0],
    }
    both = sellf.disparity("equalized-odds", **log)
    parts = {name: sellf.disparity(name, **log) for name in both.by_rate}
    assert list(parts) == ["opportunity", "false-positive-rate"]
    assert both.value == max(part.value for part in parts.values()) == 0.5
    assert {name: part.by_group for name, part in parts.items()} == both.by_rate
    assert {"opportunity", "false-positive-rate"} <= set(both.to_frame("polars").columns)
    worse = sellf.disparity("equalized-odds", **log | {"action": [1, 1, 1, 1, 1, 0, 0, 0]})
    assert worse.by_group == worse.by_rate["false-positive-rate"] == {"a": 1.0, "b": 0.0}
    with pytest.raises(ValueError, match="use 'opportunity' and 'false-positive-rate', one at a"):
        sellf.decompose("equalized-odds", **log, prediction=[0.5] * 8)
    undefined = sellf.disparity("equalized-odds", **log | {"label": [0] * 4 + [1, 1, 0, 0]})
    assert undefined.undefined == ["a"]
    assert undefined.value == 0.75


def test_an_unknown_notion_is_refused_with_the_same_sentence_everywhere():
    pytest.importorskip("jax")
    from sellf.envs.gymnasium import WorldEnv

    log = {"group": [0, 1], "action": [1, 0], "label": [1, 1]}
    sentence = "notion is 'oportunity': did you mean 'opportunity'? It is one of"
    for ask in (
        lambda name: sellf.disparity(name, **log),
        lambda name: sellf.decompose(name, **log, prediction=[0, 0]),
        lambda name: sellf.certify(name, 0, imputed=0, rejection_rate=[0], error_bound=[0]),
        lambda name: sellf.audit(log, group="group", decision="action", notion=name),
        lambda name: sellf.train("lending", notion=name),
        lambda name: WorldEnv("lending", notion=name),
    ):
        with pytest.raises(sellf.errors.InputError) as error:
            ask("oportunity")
        assert str(error.value).startswith(sentence)
