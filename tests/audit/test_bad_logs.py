"""A log that cannot be used is answered with the row or the column, and what to type instead."""

import contextlib
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sellf
from sellf.audit import run as audit_run
from sellf.cli import main
from sellf.errors import InputError
from sellf.fairness.notions import NOTIONS
from sellf.logs.limits import Limits
from tests.audit.logs import COLUMNS, lending, opportunity_gap

LOG = lending(400)


def change(column, row, value):
    values = np.array(LOG[column], dtype=object)
    values[row] = value
    return {**LOG, column: values}


ACCEPTED = int(np.flatnonzero(LOG["approved"] == 1)[0])
REJECTED = int(np.flatnonzero(LOG["approved"] == 0)[0])


@pytest.mark.parametrize(
    ("log", "options", "message"),
    [
        (LOG, {"outcome": "repayed"}, "no column 'repayed' .outcome.: did you mean 'repaid'"),
        (LOG, {"group": "Race"}, "did you mean 'race'"),
        (LOG, {"group": ["race", "race"]}, "group names a column twice"),
        (LOG, {"group": "approved"}, "'approved' is used in two roles"),
        (LOG, {"score": "repaid"}, "the decision or the outcome itself"),
        (LOG, {"features": ["repaid"]}, "feature 'repaid' is the outcome itself"),
        (LOG, {"group": []}, "group is empty"),
        (LOG, {"decision": None}, "decision is None: give a column's name"),
        (LOG, {"decision": "x"}, "decision 'x' has 400 values"),
        (change("approved", 7, 2), {}, "decision 'approved' has 3 values"),
        (change("approved", 7, None), {}, "decision 'approved' is missing in 1 rows .* row 7"),
        (
            {**LOG, "approved": np.where(LOG["approved"] == 1, "yes", "no")},
            {},
            "say which of them means accepted with accepted_value",
        ),
        (LOG, {"accepted_value": "yes"}, "never 'yes'; it is 0, 1: type accepted_value"),
        (
            change("repaid", REJECTED, 1),
            {},
            f"given for 1 rejected rows .the first is row {REJECTED}",
        ),
        (LOG, {"trust_rejected_outcomes": True}, "needs the outcome of everyone"),
        ({**LOG, "repaid": [None] * 400}, {}, r"missing for everyone who was accepted \(\d+ rows"),
        (LOG, {"drop_missing": True}, "may be 0 or 1.* type decided_on='COLUMN' matures_after="),
        ({**LOG, "approved": [1] * 400}, {}, "in all 400 rows: this log holds accepted people"),
        (
            {**LOG, "approved": [1] * 400},
            {"notion": "demographic"},
            "Give a log of all applications with the decision on each, the rejected ones included",
        ),
        (change("p", REJECTED, 1), {}, f"'p' is 1 at row {REJECTED}: this person was rejected"),
        (LOG, {"seed": -1}, "seed is -1: it must be at least 0 and below"),
        (LOG, {"seed": 2**63}, "below 2.63"),
        (LOG, {"seed": 1.5}, "seed is 1.5: give a whole number"),
        (change("repaid", ACCEPTED, 3), {}, "outcome 'repaid' has 3 values"),
        (change("repaid", ACCEPTED, "?"), {}, "outcome 'repaid' has 3 values"),
        (change("p", ACCEPTED, 0), {}, f"propensity 'p' is 0 at row {ACCEPTED}: .* was accepted"),
        (change("p", 5, 1.2), {}, "propensity 'p' is 1.2 at row 5: a chance lies between"),
        (change("p", 5, -0.1), {}, "propensity 'p' is -0.1 at row 5"),
        (change("p", 5, "high"), {}, "propensity 'p' is high at row 5: every row needs a number"),
        (change("p", 5, None), {}, "propensity 'p' is None at row 5"),
        (change("score", 3, 700), {}, "score 'score' is 700 at row 3: .* predicted chance"),
        (change("race", 3, None), {}, "group 'race' is missing in 1 rows .the first is row 3"),
        ({**LOG, "race": ["a"] * 400}, {}, "group 'race' has one value only, 'a'"),
        ({name: [] for name in LOG}, {}, "the log has no rows"),
        ({}, {}, "the log has no columns"),
        ({**LOG, "p": LOG["p"][:10]}, {}, "unequal lengths: .* p has 10"),
        (pd.DataFrame(LOG).iloc[:0], {}, "the log has no rows"),
        (
            pd.concat([pd.DataFrame(LOG), pd.DataFrame(LOG)[::-1].reset_index()], axis=1),
            {},
            "has 2 columns named",
        ),
        (42, {}, "the log is a int: give a path"),
        ("nowhere.csv", {}, "there is no file nowhere.csv"),
        ("log.ods", {}, "give a .csv, .csv.gz, .parquet, .xlsx, .sqlite or .duckdb file"),
        (LOG, {"omega": -1}, "omega is -1: it must be at least 0"),
        (LOG, {"delta": 0}, "delta is 0: it must be above 0"),
        (LOG, {"notion": "oportunity"}, "did you mean 'opportunity'"),
        (LOG, {"outcome": None}, "outcome is missing: opportunity needs"),
        (LOG, {"by": "month"}, "by is 'month' and time is missing"),
        (LOG, {"time": "x"}, "time is 'x': say what for"),
        (LOG, {"time": "x", "by": "month"}, "time 'x' is .* at row 0: give dates"),
        (LOG, {"model": "forest"}, "model is 'forest'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_a_mistake_is_named(log, options, message):
    with pytest.raises(InputError, match=message):
        sellf.audit(log, **{**COLUMNS, **options})


def test_what_the_user_says_of_odd_values_is_believed():
    plain = sellf.audit(LOG, **COLUMNS, seed=1).difference
    words = {
        **LOG,
        "approved": np.where(LOG["approved"] == 1, "yes", "no"),
        "repaid": [None if np.isnan(y) else "paid" if y else "default" for y in LOG["repaid"]],
        "score": 1 - LOG["score"],
    }
    said = {"accepted_value": "yes", "positive_value": "paid", "score_is_risk": True}
    assert sellf.audit(words, **COLUMNS, **said, seed=1).difference == pytest.approx(plain)


def test_outcomes_of_the_rejected_are_trusted_only_if_asked():
    everyone = {**LOG, "repaid": LOG["hidden"]}
    trusted = sellf.audit(everyone, **COLUMNS, trust_rejected_outcomes=True)
    known = sellf.disparity(
        "opportunity", group=LOG["race"], action=LOG["approved"], label=LOG["hidden"]
    )
    assert trusted.difference.value == pytest.approx(known.value)
    assert trusted.difference.width < sellf.audit(LOG, **COLUMNS).difference.width


def test_wrong_propensities_and_a_turned_score_are_warned_of():
    assert sellf.audit(LOG, **COLUMNS).warnings == ()
    wrong = sellf.audit({**LOG, "p": np.clip(LOG["p"] * 0.5, 0.02, 1)}, **COLUMNS)
    assert "the propensities contradict the decisions" in wrong.warnings[0]
    assert wrong.void == wrong.warnings[0]
    assert wrong.verdict == "undetermined"
    large = lending(4000)
    turned = sellf.audit({**large, "score": 1 - large["score"]}, **COLUMNS)
    assert "--score-is-risk" in turned.warnings[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("race,approved,repaid,p,score\n", "no rows"),
        ("race,approved,repaid,p,score,p\na,1,1,0.5,0.5,0.1\n", "2 columns named 'p'"),
    ],
)
def test_a_broken_file_ends_with_exit_code_2_and_one_sentence(tmp_path, capsys, text, message):
    path = tmp_path / "log.csv"
    path.write_text(text)
    options = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
    assert main(["audit", str(path), *options]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("fetch_rows", [2_000_000, 10])
def test_a_broken_line_far_down_a_csv_is_named(tmp_path, capsys, monkeypatch, fetch_rows):
    monkeypatch.setattr(audit_run, "DEFAULT", Limits(in_memory=fetch_rows))
    path = tmp_path / "log.csv"
    pd.DataFrame(lending(300_000)).to_csv(path, index=False)
    lines = path.read_text().splitlines()
    lines[250_000] = "a,0.5,1,not a number,1.0,0.5,1"
    path.write_text("\n".join(lines))
    options = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
    assert main(["audit", str(path), *options]) == 2
    error = capsys.readouterr().err
    assert "250001" in error.replace(",", "")
    assert "Traceback" not in error


junk = st.one_of(
    st.none(),
    st.integers(-2, 3),
    st.integers(),
    st.floats(),
    st.sampled_from([0, 1, 0.0, 1.0, True, False, "0", "1", "yes", "no", "", " ", "nan"]),
    st.text(max_size=2),
    st.tuples(st.integers(0, 1)),
    st.lists(st.integers(0, 1), max_size=1),
    st.dates(),
)
bits = st.lists(st.integers(0, 1), min_size=6, max_size=6)
chances = st.lists(st.floats(0, 1), min_size=6, max_size=6)
column = st.one_of(bits, chances, st.lists(junk, min_size=6, max_size=6), st.lists(junk), junk)
sane = st.fixed_dictionaries(
    {
        "race": st.lists(st.sampled_from(["a", "b", "c"]), min_size=6, max_size=6),
        "approved": bits,
        "repaid": st.one_of(bits, st.lists(st.sampled_from([0, 1, None]), min_size=6, max_size=6)),
        "p": chances,
        "score": chances,
    }
)
names = st.sampled_from(["race", "approved", "repaid", "p", "score", "rase", "", None])
options = st.fixed_dictionaries(
    {},
    optional={
        "group": st.one_of(names, st.lists(names, max_size=3)),
        "outcome": names,
        "propensity": names,
        "score": names,
        "notion": st.sampled_from([*NOTIONS, "all"]),
        "omega": st.one_of(st.sampled_from([0.05, 0.5]), junk),
        "delta": st.one_of(st.sampled_from([0.05, 0.1, 0.5]), junk),
        "overlap": st.one_of(st.sampled_from([0.01, 0.5]), junk),
        "accepted_value": junk,
        "positive_value": junk,
        "anytime": st.booleans(),
        "trust_rejected_outcomes": st.booleans(),
        "seed": st.one_of(st.none(), junk),
        "score_is_risk": st.booleans(),
    },
)


def assert_sound(result):
    assert result.verdict in ("fair", "unfair", "undetermined")
    low, value, high = result.difference
    assert 0 <= low <= value <= high <= 1
    for group in result.by_group.values():
        assert 0 <= group.low <= group.value <= group.high <= 1
    expected = "fair" if high <= result.omega else "unfair" if low > result.omega else None
    if result.void is not None:
        assert result.void in result.warnings
        expected = None
    assert result.verdict == (expected or "undetermined")
    json.loads(result.to_json())
    assert str(result)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    log=sane,
    broken=st.dictionaries(st.sampled_from(["race", "approved", "repaid", "p", "score"]), column),
    dropped=st.sets(st.sampled_from(["race", "approved", "repaid", "p", "score"]), max_size=1),
    chosen=options,
    frame=st.booleans(),
)
def test_any_log_ends_in_a_result_or_a_clear_error(log, broken, dropped, chosen, frame):
    log = {name: values for name, values in {**log, **broken}.items() if name not in dropped}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if frame:
            with contextlib.suppress(ValueError, TypeError, OverflowError):
                log = pd.DataFrame(log)
        try:
            result = sellf.audit(log, **{**COLUMNS, **chosen})
        except InputError as error:
            assert len(str(error)) > 20
        else:
            assert_sound(result)
            # Six people cannot tell anything apart, whatever they are, with little chance to err.
            trivial = result.omega >= result.difference.high
            assert result.verdict == "undetermined" or trivial or result.delta > 0.1


TRUTH = opportunity_gap()


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(
    column=st.sampled_from(["race", "approved", "repaid", "p", "score"]),
    rows=st.lists(st.integers(0, 399), max_size=3),
    value=junk,
    omega=st.sampled_from([0.02, 0.1, TRUTH - 0.01, TRUTH + 0.01, 0.6, 0.9]),
)
def test_a_log_with_a_few_broken_rows_is_never_judged_wrongly(column, rows, value, omega):
    values = np.array(LOG[column], dtype=object)
    for row in rows:
        values[row] = value
    try:
        result = sellf.audit({**LOG, column: values}, **COLUMNS, omega=omega)
    except InputError as error:
        # A changed decision shows in an outcome that is now of somebody rejected, or missing.
        assert column in str(error) or column == "approved"
        return
    assert_sound(result)
    wrong = "unfair" if omega >= TRUTH else "fair"
    assert result.verdict != wrong


words = st.sampled_from(["a", "b", "1", "0", "0.5", "2", "-1", "", "nan", "x y", '"', "é", "1e400"])


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.lists(words, min_size=4, max_size=6), max_size=8),
    header=st.sampled_from(["race,approved,repaid,p,score", "race,approved,repaid", "race;p", ""]),
    separator=st.sampled_from([",", ",", ";", "\t"]),
)
def test_any_text_file_ends_in_a_result_or_a_clear_error(tmp_path_factory, rows, header, separator):
    path = tmp_path_factory.mktemp("text") / "log.csv"
    path.write_text("\n".join([header, *(separator.join(row) for row in rows)]), encoding="utf-8")
    try:
        result = sellf.audit(path, **COLUMNS)
    except InputError as error:
        assert len(str(error)) > 20
    else:
        assert_sound(result)


def test_a_file_that_is_no_text_or_no_parquet_is_said_to_be_so(tmp_path):
    for name in ("log.csv", "log.parquet"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 10)
        with pytest.raises(InputError, match=name):
            sellf.audit(tmp_path / name, **COLUMNS)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        sellf.audit(tmp_path / "folder.csv", **COLUMNS)
