"""A mistake is answered with the argument, what it held and what was expected."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sellf

GOOD = {
    "group": ["a", "a", "b", "b"],
    "action": [1, 0, 1, 0],
    "label": [1, 0, 0, 1],
    "prediction": [0.5, 0.5, 0.5, 0.5],
}


def measure(notion="accuracy", view="true", **changes):
    return sellf.disparity(notion, **{**GOOD, **changes}, view=view)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"notion": "oportunity"}, "notion is 'oportunity': did you mean 'opportunity'"),
        ({"notion": "xyz"}, "It is one of 'qualification', 'accuracy'"),
        ({"notion": 3}, "notion is 3"),
        ({"view": "impute"}, "view is 'impute': did you mean 'imputed'"),
        ({"label": [1, 0, 1]}, "group has 4, action has 4, label has 3"),
        ({"label": [1, 0, 2, 1]}, "label is 2 at row 2: a label is 0 or 1"),
        ({"label": [1, 0, -1, -1]}, r"label is -1 at row 2 \(1 more like it\)"),
        ({"label": [1, "yes", 0, 1]}, "label holds 'yes' at row 1: give numbers"),
        ({"label": [np.nan, 0, 0, 1]}, "label of an accepted person must be known"),
        ({"label": [1, np.nan, 0, 1]}, "label is nan at row 1: this person was rejected"),
        ({"label": None}, "label is missing: accuracy needs the outcome"),
        ({"action": [1, 0, 1, 0.5]}, "action is 0.5 at row 3: it must be 0 or 1"),
        ({"action": [1, None, 1, 0]}, "action is nan at row 1"),
        ({"action": 1}, "action is 1: give a sequence"),
        ({"action": "1010"}, "action is a str: give a list"),
        ({"action": [[1, 0], [1, 0]]}, r"action has shape \(2, 2\)"),
        ({"view": "imputed", "prediction": None}, "prediction is missing: view='imputed'"),
        ({"view": "imputed", "prediction": [0, 1.5, 0, 0]}, "prediction is 1.5 at row 1"),
        ({"view": "imputed", "prediction": [0, np.nan, 0, 0]}, "prediction is nan at row 1"),
        ({"weights": [1, 1, -1, 1]}, "weights is -1 at row 2: a weight is a finite number"),
        ({"weights": [1, 1, np.inf, 1]}, "weights is inf at row 2"),
        ({"group": ["a"] * 4}, "group has one value only, 'a'"),
        ({"group": [7] * 4}, "group has one value only, 7"),
        ({"group": ["a", None, "b", "b"]}, r"group is missing in 1 rows \(the first is row 1\)"),
        ({"group": [1.0, np.nan, 2.0, 2.0]}, "group is missing in 1 rows"),
        ({"group": [{"a"}, {"a"}, {"b"}, {"b"}]}, "a group's name must be hashable"),
        ({name: [] for name in GOOD}, "group is empty"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_mistake_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        measure(**changes)


def test_labels_of_the_rejected_are_not_looked_at_where_a_view_may_not_see_them():
    for hidden in (0, 1, np.nan):
        label = [1, hidden, 0, hidden]
        seen = [measure(view=view, label=label).by_group for view in ("accepted", "imputed")]
        assert seen == [{"a": 1.0, "b": 0.0}, {"a": 0.75, "b": 0.25}]


def test_demographic_needs_no_label_and_has_nothing_to_decompose():
    assert measure("demographic", label=None, prediction=None).value == 0
    with pytest.raises(ValueError, match="nothing to decompose"):
        sellf.decompose("demographic", **GOOD)


@pytest.mark.parametrize(
    ("notion", "view", "changes", "message"),
    [
        ("qualification", "accepted", {"action": [0, 0, 1, 1]}, "group 'a': no accepted people"),
        ("opportunity", "accepted", {"label": [0, 0, 1, 1]}, "group 'a': no accepted positives"),
        ("opportunity", "true", {"label": [0, 0, 1, 1]}, "group 'a': no positives, so no utility"),
        ("opportunity", "true", {"label": [0, 0, 0, 0]}, "groups 'a', 'b': no positives"),
        ("accuracy", "true", {"weights": [0, 0, 1, 1]}, "group 'a': no people"),
    ],
)
def test_a_group_without_a_utility_is_nan_with_a_warning_that_names_it(
    notion, view, changes, message
):
    with pytest.warns(sellf.UndefinedUtilityWarning, match=message) as caught:
        result = measure(notion, view, **changes)
    assert np.isnan(result.by_group["a"])
    assert result.undefined[0] == "a"
    assert np.isnan(result.value)
    assert np.isnan(result.signed)
    assert caught[0].filename == __file__


def test_where_nobody_was_rejected_the_prediction_error_is_zero():
    parts = sellf.decompose("opportunity", **{**GOOD, "action": [1, 1, 1, 0]})
    assert parts.prediction_error == {"a": 0.0, "b": -0.5}
    assert parts.kappa["a"] == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"notion": "demographic"}, "nothing to certify"),
        ({"notion": "acuracy"}, "did you mean 'accuracy'"),
        ({"omega": -0.1}, "omega is -0.1: it must be at least 0"),
        ({"omega": float("nan")}, "omega is nan"),
        ({"omega": "a lot"}, "omega is 'a lot': give one number"),
        ({"imputed": 1.5}, "imputed is 1.5"),
        ({"rejection_rate": [0.5, 1.5]}, "rejection_rate is 1.5 for one group"),
        ({"error_bound": [-0.1, 0.1]}, "error_bound is -0.1 for one group: it must be at least 0"),
        ({"error_bound": [0.1]}, "give one number per group, for two groups or more"),
        ({"error_bound": ["x", "y"]}, "error_bound is .* give one number per group"),
        ({"error_bound": [0.1, 0.1, 0.1]}, "rejection_rate has 2, error_bound has 3"),
        ({"notion": "opportunity"}, "imputed_positive_rate is missing"),
        (
            {"rejection_rate": {"a": 0.1, "b": 0.1}, "error_bound": {"a": 0.1, "c": 0.1}},
            "another argument has",
        ),
    ],
    ids=str,
)
def test_a_mistake_in_certify_is_named(changes, message):
    arguments = {
        "notion": "accuracy",
        "omega": 0.1,
        "imputed": 0.0,
        "rejection_rate": [0.5, 0.5],
        "error_bound": [0.1, 0.1],
        **changes,
    }
    with pytest.raises(ValueError, match=message):
        sellf.certify(**arguments)


anything = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.booleans(),
    st.tuples(st.integers(0, 2)),
    st.lists(st.integers(0, 1), max_size=2),
)
columns = st.one_of(
    st.lists(anything, max_size=6), st.lists(st.integers(0, 1), min_size=4, max_size=4), anything
)


@given(
    notion=st.one_of(st.sampled_from(["accuracy", "opportunity", "demographic"]), anything),
    view=st.one_of(st.sampled_from(["true", "accepted", "imputed"]), anything),
    log=st.fixed_dictionaries(
        dict.fromkeys(("group", "action", "label", "prediction", "weights"), columns)
    ),
)
def test_any_input_ends_in_a_result_or_a_clear_error(notion, view, log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sellf.UndefinedUtilityWarning)
        try:
            result = sellf.disparity(notion, **log, view=view)
        except ValueError as error:
            assert any(word in str(error) for word in (*log, "notion", "view"))
        else:
            assert all(np.isnan(u) or 0 <= u <= 1 for u in result.by_group.values())


def test_values_are_shown_as_one_types_them():
    log = {"group": ["a", "b"], "action": [1, 0], "label": np.array(["yes", "no"])}
    with pytest.raises(ValueError, match="label holds 'yes' at row 0"):
        sellf.disparity("accuracy", **log)
    with pytest.raises(ValueError, match="notion is 3: "):
        sellf.disparity(np.int64(3), **log)
    with pytest.raises(ValueError, match="one value only, 'a'"):
        sellf.disparity("demographic", group=np.array(["a", "a"]), action=[1, 0])
