"""`sellf audit` as its users meet it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import sellf
from sellf.cli import main
from sellf.fairness.notions import NOTIONS
from tests.audit.logs import COLUMNS, lending

OPTIONS = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]


@pytest.fixture
def path(tmp_path):
    log = pd.DataFrame(lending(3000))
    log["sex"] = np.where(np.arange(3000) % 2 == 0, "f", "m")
    log["date"] = np.datetime64("2025-01-01") + np.arange(3000) % 300
    log.to_parquet(tmp_path / "log.parquet")
    return str(tmp_path / "log.parquet")


def test_the_example_is_audited_beside_its_truth(capsys):
    assert main(["audit", "--example"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("opportunity disparity")
    assert "UNFAIR at tolerance 0.05" in shown
    assert "The true disparity of the lender that made this simulated log is 0.2" in shown
    for part in ("naive", "imputed", "Assumed:", "overturns the verdict", "The paper's conditions"):
        assert part in shown


def test_json_has_the_figures_of_the_table(capsys, path):
    assert main(["audit", path, *OPTIONS, "--json", "--seed", "7"]) == 0
    found = json.loads(capsys.readouterr().out)
    known = sellf.audit(path, **COLUMNS, seed=7)
    assert found == json.loads(known.to_json())
    frame = known.to_frame()
    for row, group in zip(frame.to_dict("records"), found["by_group"], strict=True):
        assert row["group"] == group["group"]
        assert row["ours"] == group["value"]
        assert (row["low"], row["high"]) == (group["low"], group["high"])
        assert (row["naive"], row["imputed"]) == (group["naive"], group["imputed"])


def test_all_notions_and_several_groups_at_once(capsys, path):
    options = [*OPTIONS, "--group", "sex", "--notion", "all", "--omega", "0.1"]
    assert main(["audit", path, *options]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Disparity by notion, tolerance 0.1")
    for part in ("qualification", "accuracy", "opportunity", "demographic", "a/f", "b/m"):
        assert part in shown
    assert main(["audit", path, *options, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(NOTIONS)


def test_an_audit_by_month(capsys, path):
    assert main(["audit", path, *OPTIONS, "--time", "date", "--by", "month"]) == 0
    shown = capsys.readouterr().out
    assert "2025-01" in shown
    assert "2025-10" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one log"),
        (["log.csv", "--example"], "name one log"),
        (["log.csv"], "group is missing: type --group"),
        (["log.csv", *OPTIONS], "there is no file log.csv"),
        (["--example", "--notion", "equality"], "did you mean"),
        (["--example", "--omega", "2"], "omega is 2"),
        (["log.csv", "--save", "copy.csv"], "--example --save loans.csv"),
        (["--example", "--save", "loans.parquet"], "--example --save loans.csv"),
        (["--example", "--save", "no/loans.csv"], "there is no folder no"),
    ],
)
def test_a_mistake_ends_with_exit_code_2_and_writes_nothing(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_result_becomes_frames_and_a_picture(tmp_path):
    audit = sellf.audit(lending(500), **COLUMNS)
    assert list(audit.to_frame()["group"]) == ["a", "b"]
    figure = audit.plot()
    figure.savefig(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 5000
    both = sellf.audit_all(lending(500), **COLUMNS)
    both.plot().savefig(tmp_path / "audits.png")
    assert (tmp_path / "audits.png").stat().st_size > 5000
    assert list(both.to_frame()["notion"]) == list(NOTIONS)
    with pytest.raises(ValueError, match="leave notion out"):
        sellf.audit_all(lending(500), **COLUMNS, notion="accuracy")


def test_small_groups_are_shown_with_the_width_they_deserve():
    log = lending(3000)
    log["race"] = np.where(np.arange(3000) < 4, "c", log["race"])
    audit = sellf.audit(log, **COLUMNS)
    assert audit.by_group["c"].people == 4
    assert audit.by_group["c"].high - audit.by_group["c"].low > 0.9
    assert set(audit.pairs) == {("a", "b"), ("a", "c"), ("b", "c")}


def test_a_page_of_the_audit_is_whole_and_names_in_it_are_text(tmp_path, capsys):
    import polars as pl

    rng = np.random.default_rng(0)
    chance = rng.uniform(0.3, 0.9, 600)
    approved = rng.random(600) < chance
    log = pl.DataFrame(
        {
            "race": rng.choice(["<script>alert(1)</script>", "b & c"], 600),
            "approved": approved.astype(int),
            "p": chance,
            "repaid": np.where(approved, rng.integers(0, 2, 600), np.nan),
        }
    )
    log.write_parquet(tmp_path / "log.parquet")
    columns = ["--group", "race", "--decision", "approved", "--outcome", "repaid"]
    page = tmp_path / "page.html"
    for notion in ("opportunity", "all"):
        arguments = [str(tmp_path / "log.parquet"), *columns, "--propensity", "p"]
        assert main(["audit", *arguments, "--notion", notion, "--html", str(page)]) == 0
        text = page.read_text()
        assert text.rstrip().endswith("</html>")
        assert "<script>alert" not in text
        assert "&lt;script&gt;" in text
        assert "b &amp; c" in text
        assert text.count("<figure ") == (5 if notion == "opportunity" else 14)
        page.unlink()
    assert main(["audit", "--example", "--html", str(tmp_path / "no" / "page.html")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_the_examples_log_can_be_kept_and_audited_by_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "--example", "--save", "loans.csv", "--seed", "1"]) == 0
    shown = capsys.readouterr().out
    columns = {"group": "race", "decision": "approved", "outcome": "repaid"}
    known = {"propensity": "p_approve", "score": "p_repay"}
    again = sellf.audit("loans.csv", **columns, **known, seed=1)
    assert str(again).splitlines()[0] == shown.splitlines()[0]
    assert main(["audit", "--example", "--save", "loans.csv"]) == 0  # the same again: nothing lost
    (tmp_path / "loans.csv").write_text("mine")
    assert main(["audit", "--example", "--save", "loans.csv"]) == 2
    assert (tmp_path / "loans.csv").read_text() == "mine"


def test_output_that_nobody_reads_to_the_end_is_no_error():
    command = f"{sys.executable} -m sellf audit --example | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stderr == ""
