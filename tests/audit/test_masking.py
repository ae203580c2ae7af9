"""The test on known outcomes, two logs compared, sample weights, and notions that hold together."""

import json

import numpy as np
import pandas as pd
import pytest

import sellf
from sellf.audit.change import audit_change
from sellf.audit.masking import mask_test
from sellf.cli import main
from sellf.errors import InputError
from tests.audit.logs import COLUMNS, lending

BARE = {"group": "race", "decision": "approved", "outcome": "repaid"}


def test_intervals_hold_on_a_log_s_own_people():
    log = lending(3000)
    found = mask_test(log, **BARE, score="score", repeats=12, seed=1)
    beliefs = {row.belief: row for row in found.results}
    assert {"nothing", "no better", "features", "propensities known"} <= set(beliefs)
    assert all(row.logs == 12 for row in found.results)
    assert min(row.held for row in found.results) >= 10
    assert beliefs["nothing"].width > beliefs["features"].width
    assert "is reached" in str(found)


def test_the_truth_of_simulated_decisions_is_their_expectation():
    log = lending(2000)
    found = mask_test(log, **BARE, score="score", repeats=1, seed=4)
    # Decided ten thousand times, the shares come to the same.
    from sellf.audit.masking import _chances, _known, _shown
    from sellf.logs.columns import Columns
    from sellf.logs.reading import open_log

    rows = open_log(log, Columns(("race",), "approved", "repaid", score="score")).rows
    known, label = _known(rows)
    rng = np.random.default_rng(4)
    chance = _chances(_shown(rows, known, label, rng), rows.codes[known], rng)
    accepted = np.random.default_rng(0).random((4000, len(known))) < chance
    good = {g: label * (rows.codes[known] == g) for g in (0, 1)}
    rates = [(accepted @ good[g]).mean() / good[g].sum() for g in (0, 1)]
    assert found.truth == pytest.approx(abs(rates[0] - rates[1]), abs=2e-3)


def test_two_logs_are_compared_with_the_chance_to_miss_divided_between_them():
    before, after = lending(4000, seed=1, gap=0.6), lending(4000, seed=2, gap=0.05)
    found = audit_change(before, after, **COLUMNS, notion="demographic", seed=0)
    assert found.verdict == "smaller"
    assert found.change.low <= (0.05 - 0.6) * 0.5 <= found.change.high
    same = audit_change(before, lending(4000, seed=3, gap=0.6), **COLUMNS, seed=0)
    assert same.verdict == "undetermined"
    renamed = {**after, "race": np.where(after["race"] == "a", "x", "y")}
    with pytest.raises(InputError, match="in common"):
        audit_change(before, renamed, **COLUMNS, notion="demographic")


def test_weighted_figures_are_those_of_the_log_with_rows_repeated():
    log = lending(3000, seed=6)
    weight = np.random.default_rng(0).integers(1, 4, 3000)
    log["w"] = weight
    repeated = {name: np.repeat(values, weight) for name, values in log.items()}
    for notion in ("opportunity", "demographic", "qualification"):
        ours = sellf.audit(log, **COLUMNS, notion=notion, weight="w", panel=True, seed=0)
        theirs = sellf.audit(repeated, **COLUMNS, notion=notion, panel=True, seed=0)
        for name in "ab":
            assert ours.by_group[name].value == pytest.approx(theirs.by_group[name].value, abs=1e-6)
            assert ours.by_group[name].naive == pytest.approx(theirs.by_group[name].naive, abs=1e-9)
        assert not ours.finite_sample
        assert any("effective" in line for line in ours.assumptions)


def test_weighted_intervals_hold():
    """The population has as many of a as of b with x below a half as above; the log does not."""
    held = 0
    for seed in range(40):
        log = lending(1500, seed=seed)
        rng = np.random.default_rng(seed)
        kept = rng.random(1500) < np.where(log["x"] < 0.5, 0.25, 1.0)
        log = {name: values[kept] for name, values in log.items()}
        log["w"] = np.where(log["x"] < 0.5, 4.0, 1.0)
        found = sellf.audit(log, **COLUMNS, notion="demographic", weight="w", seed=0)
        held += found.pairs[("a", "b")].low <= -0.25 <= found.pairs[("a", "b")].high
    assert held >= 34  # of 40 at 95 %: fewer has a chance of 1 in 300


def test_equal_weights_change_nothing_but_the_method():
    log = {**lending(2000, seed=7), "w": np.full(2000, 3.5)}
    weighted = sellf.audit(log, **COLUMNS, weight="w", seed=0)
    plain = sellf.audit(log, **COLUMNS, seed=0)
    assert weighted.difference.value == pytest.approx(plain.difference.value, abs=0.01)
    assert weighted.difference.width < plain.difference.width
    for bad, words in ((-1.0, "0 or less"), (np.nan, "number")):
        with pytest.raises(InputError, match=words):
            sellf.audit({**log, "w": np.full(2000, bad)}, **COLUMNS, weight="w")
    with pytest.raises(InputError, match="ladder"):
        sellf.audit(log, **COLUMNS, weight="w", ladder=True)


def test_joint_notions_share_delta():
    log = lending(1500)
    names = ["opportunity", "demographic", "qualification", "accuracy"]
    joint = sellf.audit_all(log, notions=names, joint=True, delta=0.08, seed=0, **COLUMNS)
    alone = sellf.audit(log, notion="accuracy", delta=0.02, seed=0, **COLUMNS)
    assert joint["accuracy"].difference == alone.difference
    assert "together with 92%" in str(joint["accuracy"])


def test_the_command_line_has_them(tmp_path, capsys):
    for name, seed in (("old", 1), ("new", 2)):
        pd.DataFrame(lending(500, seed=seed)).to_csv(tmp_path / f"{name}.csv", index=False)
    options = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
    old, new = (str(tmp_path / f"{name}.csv") for name in ("old", "new"))
    assert main(["audit", "--compare", old, new, *options, "--seed", "1"]) == 0
    assert "opportunity disparity" in capsys.readouterr().out
    assert main(["audit", "--compare", old, new, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] in ("larger", "smaller", "undetermined")
    words = [*options[:6], "--score", "score", "--mask-test", "--repeats", "2"]
    assert main(["audit", old, *words]) == 0
    assert "the nominal coverage of 95% is" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"examiner": "approved"}, "the decision itself"),
        ({"within": "repaid"}, "the outcome itself"),
        ({"unknown_group": "c"}, "the groups are 'a', 'b'"),
        ({"reference": "c"}, "the groups are 'a', 'b'"),
        ({"weight": "x", "anytime": True}, "anytime"),
    ],
)
def test_what_cannot_be_meant_is_told(options, words):
    with pytest.raises(InputError, match=words):
        sellf.audit(lending(200), **BARE, **options)
    with pytest.raises(InputError, match="1 log at least"):
        mask_test(lending(200), **BARE, repeats=0)
