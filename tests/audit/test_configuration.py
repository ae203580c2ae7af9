"""One reviewed file for an audit, a first one made from the log, and what a pipeline asks for."""

import json
import tomllib

import pytest

from sellf.audit.terms import Words
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs.configured import read_config

from .test_reading import as_csv, by_hand

pytest.importorskip("duckdb")

CONFIG = """
format = 1
[log]
file = "log.csv"
where = "year > 2000"
groups = { Black = ["B"], White = ["W"] }
[columns]
group = "race"
decision = "frisked"
accepted_value = "Y"
outcome = "gun | knife"
positive_value = "Y"
hide_rejected_outcomes = true
[audit]
notion = "predictive-parity"
seed = 1
words = "frisked,found"
"""


@pytest.fixture
def config(tmp_path):
    as_csv(tmp_path)
    path = tmp_path / "audit.toml"
    path.write_text(CONFIG)
    return path


def test_a_file_says_what_flags_say_and_flags_come_first(config, capsys):
    assert main(["audit", str(config), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    shown = {row["group"]: (row["people"], row["accepted"]) for row in found["by_group"]}
    assert shown == {name: row[:2] for name, row in by_hand().items()}
    assert found["notion"] == "predictive-parity"
    assert main(["audit", str(config), "--json", "--notion", "demographic", "--omega", "0.3"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert (other["notion"], other["omega"]) == ("demographic", 0.3)


def test_the_command_in_an_audit_repeats_it(config, capsys, monkeypatch):
    import shlex

    main(["audit", str(config), "--json"])
    first = json.loads(capsys.readouterr().out)
    assert main([*shlex.split(first["origin"]["command"])[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["by_group"] == first["by_group"]
    assert again["origin"]["command"] == first["origin"]["command"]


def test_a_configuration_serves_more_than_the_audit(config):
    found = read_config(config)
    assert found.config.columns.decision == "frisked"
    assert found.config.reading.groups == {"Black": ("B",), "White": ("W",)}
    assert found.log == str(config.parent / "log.csv")


def test_a_first_configuration_is_made_from_the_log(tmp_path, capsys, monkeypatch):
    log = as_csv(tmp_path)
    out = tmp_path / "first.toml"
    asked = ["audit", "--init", str(log), "--out", str(out), "--yes", "--outcome", "gun"]
    assert main(asked) == 0
    made = tomllib.loads(out.read_text())
    assert made["log"]["file"] == "log.csv"
    assert made["columns"]["group"] == ["race"]
    assert made["columns"]["decision"] == "frisked"
    assert made["columns"]["accepted_value"] == made["columns"]["positive_value"] == "Y"
    assert made["columns"]["hide_rejected_outcomes"] is True
    assert main(["audit", str(out), "--notion", "demographic"]) == 0
    assert main(asked) == 2
    assert "exists" in capsys.readouterr().err


def test_a_pipeline_can_stop_at_a_verdict(config, capsys):
    asked = ["audit", str(config), "--notion", "demographic", "--omega"]
    with pytest.raises(SystemExit) as stopped:
        main([*asked, "0", "--fail-on", "undetermined"])
    assert stopped.value.code == 3
    assert main([*asked, "0.99", "--fail-on", "unfair"]) == 0
    assert main([*asked, "0.99", "--fail-on", "fair"]) == 2


def test_a_report_of_stops_does_not_speak_of_the_accepted(config, capsys):
    pytest.importorskip("jinja2")
    page = config.parent / "report.html"
    assert main(["audit", str(config), "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "frisked" in printed
    for text in (printed, page.read_text().split("<script", 1)[0]):
        assert "accepted" not in text.replace("accepted-value", "").replace("accepted_value", "")


def test_words_keep_names_flags_and_capitals():
    words = Words("searched", "found")
    assert words.rewrite("Accepted only, --accepted-value") == "Searched only, --accepted-value"
    assert words.rewrite("people whose outcome is good") == 'people whose outcome is "found"'
    for wrong in ("searched", "a,b,c", "a,", "<b>,x"):
        with pytest.raises(InputError, match="searched,found"):
            Words.of(wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("format = 1", "format = 9"), "format = 1"),
        (("[audit]", "[audits]"), r"\[audits\]: it may have \[log\], \[columns\], \[audit\]"),
        (("where =", "were ="), "Did you mean where"),
        (('notion = "pred', 'motion = "pred'), "Did you mean notion"),
        (("file = ", "files = "), "not an option"),
        (('file = "log.csv"', 'query = "select 1"'), "names no log"),
        (("seed = 1", "seed = "), "not TOML"),
        (("seed = 1", "seed = { a = 1 }"), "write a value"),
        (('file = "log.csv"', 'file = "log.csv"\ngroup = "race"'), "write it once"),
        (("format = 1", 'format = 1\nomega = "x"'), "outside of a table"),
    ],
)
def test_a_mistake_in_the_file_is_named(config, change, message, capsys):
    import re

    config.write_text(CONFIG.replace(*change))
    assert main(["audit", str(config)]) == 2
    assert re.search(message, capsys.readouterr().err)
