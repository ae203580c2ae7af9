"""The index: one page over any number of audits and runs, each line leading to its details."""

import json

import pytest

import sellf
from sellf import report
from sellf.cli import main
from tests.audit.logs import COLUMNS, lending
from tests.report.pages import HOSTILE, Reader

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the files of two audits: one of two notions, one with an odd name."""
    place = tmp_path_factory.mktemp("audits")
    log = lending(2000)
    both = sellf.audit_all(log, notions=["opportunity", "demographic"], **COLUMNS)
    (place / "both.json").write_text(both.to_json(), encoding="utf-8")
    one = sellf.audit(log, notion="demographic", omega=0.9, **COLUMNS)
    odd = place / "<b>odd & co.json"
    odd.write_text(one.to_json(), encoding="utf-8")
    return [place / "both.json", odd]


def written(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *map(str, arguments), "-o", "index.html"]) == 0
    return (tmp_path / "index.html").read_text(encoding="utf-8")


def test_every_audit_has_a_line_with_the_figures_that_its_file_holds(saved, tmp_path, monkeypatch):
    page = Reader(written(saved, tmp_path, monkeypatch))
    lines = page.tables["A line for each audit"]
    held = [*json.loads(saved[0].read_text()).values(), json.loads(saved[1].read_text())]
    assert len(lines) == len(held) == 3
    for line, one in zip(lines, held, strict=True):
        assert line["verdict"][1] == one["verdict"]
        assert one["notion"] in line["audit"][1]
        for name, value in (("disparity", "value"), ("low", "low"), ("high", "high")):
            assert float(line[name][0]) == pytest.approx(one["difference"][value], rel=1e-6)
    fair = sum(one["verdict"] == "fair" for one in held)
    assert f"{fair} {'is' if fair == 1 else 'are'} fair" in "".join(page.texts)


def test_lines_lead_to_sections_that_are_there(saved, folder, tmp_path, monkeypatch):
    page = Reader(written([*saved, folder], tmp_path, monkeypatch))
    links = [v[1:] for tag, name, v in page.attributes if (tag, name) == ("a", "href")]
    assert len(set(links)) >= 3 + 4  # audits, and runs with one that is not finished
    assert set(links) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_runs_and_audits_stand_on_one_page(saved, folder, tmp_path, monkeypatch):
    page = Reader(written([saved[0], folder], tmp_path, monkeypatch))
    runs = page.tables["A line for each run"]
    assert len(runs) == 4
    alone = Reader(report.runs([folder])).tables["Every run"]
    for line, same in zip(runs, alone, strict=True):
        assert line["reward"] == same["reward"]
        assert line["true disparity"] == same["true disparity"]
    assert [line["reward"][1] for line in runs].count("—") == 1  # not finished


def test_names_are_text(saved, tmp_path, monkeypatch):
    text = written(saved, tmp_path, monkeypatch)
    assert "<b>odd" not in text
    assert "<b>odd & co" in "".join(Reader(text).texts)
    assert HOSTILE[0] not in text


def test_a_file_that_is_no_audit_is_refused_by_its_name(saved, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    assert main(["report", str(saved[0]), "other.json", "-o", "index.html"]) == 2
    assert "other.json" in capsys.readouterr().err
    assert not (tmp_path / "index.html").exists()
