"""The report of an audit: whole, safe to open, and with the audit's own figures."""

import hashlib
import json
import shlex
from dataclasses import replace
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sellf
from sellf import report
from sellf.audit.result import Audits
from sellf.audit.saved import read
from sellf.cli import main
from sellf.errors import InputError
from sellf.report.charts import shown
from sellf.report.page import LARGEST, in_script
from tests.audit.logs import COLUMNS, lending
from tests.report.pages import Reader, dated_log, strange_log

OPTIONS = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]


@pytest.fixture(scope="module")
def audited():
    return sellf.audit(lending(2000), **COLUMNS)


@pytest.fixture
def path(tmp_path):
    pd.DataFrame(lending(1000)).to_csv(tmp_path / "log.csv", index=False)
    return tmp_path / "log.csv"


def figures(table, column):
    return [None if row[column][0] is None else float(row[column][0]) for row in table]


def test_the_answer_comes_first_and_then_the_data_the_picture_the_numbers_and_the_rest(audited):
    text = report.audit(audited)
    main_ = text.index("<main>")
    assert text.index("<h1>") < main_
    parts = ["The data", "The picture", "The numbers", "What was assumed", "How to reproduce this"]
    places = [text.index(f">{part}</h2>", main_) for part in parts]
    assert places == sorted(places)
    low, _, high = audited.difference
    assert f"is between {low:.3f} and {high:.3f}" in text[: text.index("<main>")]


def test_tables_hold_the_audits_own_figures(audited):
    found = Reader(report.audit(audited)).tables["Opportunity by group"]
    frame = audited.to_frame()
    assert [row["group"][1] for row in found] == list(frame["group"])
    for column in frame.columns.drop("group"):
        assert figures(found, column) == pytest.approx(list(frame[column]), rel=1e-6)
    behind = Reader(report.audit(audited)).tables["Figures of “Opportunity by group”"]
    by_name = {row[" "][1]: row for row in behind}
    for name, group in audited.by_group.items():
        row = by_name[name]
        assert float(row["low"][0]) == pytest.approx(group.low, rel=1e-6)
        assert float(row["accepted only"][0]) == pytest.approx(group.naive, rel=1e-6)


def test_a_page_loads_nothing_and_stays_small(audited):
    for result in (audited, sellf.audit_all(lending(2000), **COLUMNS)):
        text = report.audit(result)
        page = Reader(text)
        assert len(text.encode()) < LARGEST < 3_000_000
        loading = {"src", "href", "action", "data", "srcset", "poster"}
        links = [value for _, name, value in page.attributes if name in loading]
        assert all(value.startswith("#") for value in links)
        style = text[text.index("<style>") : text.index("</style>")]
        assert "url(" not in style
        assert "@import" not in style
        rules = [value for tag, _, value in page.attributes if tag == "meta" and "-src" in value]
        assert len(rules) == 1
        assert rules[0].startswith("default-src 'none'")
        assert len(page.ids) == len(set(page.ids))


@pytest.fixture(scope="module")
def usual_tags(audited):
    return Reader(report.audit(replace(audited, certificate=None, needed=None))).tags


@given(names=st.lists(st.text(max_size=40), min_size=2, max_size=2, unique=True))
@settings(max_examples=40)
def test_whatever_a_group_is_called_shows_as_text(audited, usual_tags, names):
    usual = list(audited.by_group)
    groups = dict(zip(names, audited.by_group.values(), strict=True))
    overlap = audited.overlap._replace(
        by_group=dict(zip(names, audited.overlap.by_group.values(), strict=True)),
        below=dict(zip(names, audited.overlap.below.values(), strict=True)),
    )
    renamed = replace(audited, by_group=groups, overlap=overlap, certificate=None, needed=None)
    page = Reader(report.audit(renamed))
    assert page.tags == usual_tags, (names, usual)
    shown_names = [row["group"][1] for row in page.tables["Opportunity by group"]]
    # A browser turns a carriage return into a line feed; what is shown has neither.
    assert shown_names == [shown(name) for name in names]


@pytest.mark.parametrize("name", ["</script>", "<!--", "\u2028\u2029", "]]>", "&lt;", "\ud800"])
def test_names_between_script_tags_are_text_too(name):
    text = in_script({"name": name})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"name": name}


def test_many_groups_hostile_names_three_people_and_no_propensity():
    log, columns = strange_log()
    result = sellf.audit_all(log, **columns)
    text = report.audit(result)
    page = Reader(text)
    assert len(text.encode()) < LARGEST
    assert len(page.scripts) == 3
    assert "window.hacked" not in page.scripts[2]
    table = page.tables["Opportunity by group"]
    assert len(table) == len(np.unique(log["race"].astype(str)))
    assert next(row for row in table if row["group"][1] == "three people")["people"][1] == "3"
    assert any("no propensities" in piece for piece in page.texts)
    assert "40 of 201 are drawn" in text


@pytest.mark.parametrize("letters", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_a_thousand_groups_and_all_notions_stay_below_three_megabytes(tmp_path, letters):
    """The largest audit that there is, as the command writes it."""
    names = [f"branch {i}, ".ljust(letters, "x") for i in range(1000)]
    audits = sellf.audit_all(lending(2000), **COLUMNS)
    many = {notion: _of_groups(audit, names) for notion, audit in audits.by_notion.items()}
    (tmp_path / "audit.json").write_text(Audits(many).to_json())
    path = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "audit.json"), "-o", str(path)]) == 0
    assert path.stat().st_size < LARGEST
    text = path.read_text()
    page = Reader(text)
    for notion in ("Opportunity", "Accuracy", "Qualification", "Demographic"):
        rows = page.tables[f"{notion} by group"]
        assert len({row["group"][1] for row in rows}) == 1000
        assert len(page.tables[f"Figures of “{notion} by group”"]) == 40
    assert len(page.tables["Figures of “Chance of acceptance, by group”"]) == 1000
    assert "40 of 1000 are drawn, those at both ends; the table of numbers has all." in text


def _of_groups(audit, names):
    """Return an audit in which its groups come again and again, under other names."""

    def many(by_group):
        return dict(zip(names, cycle(by_group.values()), strict=False))

    needed, overlap = audit.needed, audit.overlap
    if needed is not None:
        needed = replace(needed, people=many(needed.people), labels=many(needed.labels))
    if overlap is not None:
        overlap = overlap._replace(by_group=many(overlap.by_group), below=many(overlap.below))
    groups = many(audit.by_group)
    return replace(audit, by_group=groups, needed=needed, overlap=overlap, certificate=None)


def test_overlap_by_group_counts_everyone_once():
    log = lending(3000)
    result = sellf.audit(log, **COLUMNS, overlap=0.15)
    for name in ("a", "b"):
        mine = log["race"] == name
        p = log["p"][mine]
        assert result.overlap.below[name] == (p < 0.15).sum()
        strong = p[p >= 0.15]
        assert list(result.overlap.by_group[name]) == list(
            np.histogram(strong, np.linspace(0, 1, 11))[0]
        )
    found = Reader(report.audit(result)).tables["Figures of “Chance of acceptance, by group”"]
    share = {row[" "][1]: float(row["0.3 to 0.7"][0]) for row in found}
    p = log["p"][log["race"] == "a"]
    assert share["a"] == pytest.approx(((p >= 0.3) & (p < 0.7)).mean(), rel=1e-6)


def test_over_time_and_sensitivity_are_drawn_where_the_log_allows():
    log, columns = dated_log()
    dated = Reader(report.audit(sellf.audit(log, **columns)))
    assert len(dated.tables["The disparity in opportunity by period"]) == 6
    assert any("hidden knowledge" in caption for caption in dated.tables)
    plain = Reader(report.audit(sellf.audit(lending(1000), **COLUMNS, notion="demographic")))
    assert not any("period" in caption or "hidden" in caption for caption in plain.tables)


def test_an_audit_says_how_to_get_it_again(path, capsys):
    assert main(["audit", str(path), *OPTIONS, "--omega", "0.1", "--json"]) == 0
    first = capsys.readouterr().out
    origin = json.loads(first)["origin"]
    assert origin["fingerprint"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert origin["rows"] == 1000
    words = shlex.split(origin["command"])
    assert words[:2] == ["sellf", "audit"]
    assert main([*words[1:], "--json"]) == 0
    assert capsys.readouterr().out == first
    assert main(["audit", "--example", "--notion", "accuracy", "--delta", "0.1", "--json"]) == 0
    first = capsys.readouterr().out
    assert main([*shlex.split(json.loads(first)["origin"]["command"])[1:], "--json"]) == 0
    assert capsys.readouterr().out == first


def test_a_log_in_memory_has_a_fingerprint_of_its_columns():
    log = lending(500)
    mark = sellf.audit(log, **COLUMNS).origin.fingerprint
    assert sellf.audit(pd.DataFrame(log), **COLUMNS).origin.fingerprint == mark
    assert sellf.audit(log | {"unused": np.arange(500)}, **COLUMNS).origin.fingerprint == mark
    log["p"] = log["p"] * 0.999
    assert sellf.audit(log, **COLUMNS).origin.fingerprint != mark


@pytest.mark.parametrize("notion", ["opportunity", "all"])
def test_a_saved_audit_gives_the_same_report(path, tmp_path, capsys, notion):
    options = [str(path), *OPTIONS, "--notion", notion]
    assert main(["audit", *options, "--json", "--html", str(tmp_path / "direct.html")]) == 0
    (tmp_path / "audit.json").write_text(capsys.readouterr().out)
    assert main(["report", str(tmp_path / "audit.json"), "-o", str(tmp_path / "saved.html")]) == 0
    assert "The report is in" in capsys.readouterr().err
    direct, saved = ((tmp_path / f"{name}.html").read_text() for name in ("direct", "saved"))
    assert Reader(saved).tables == Reader(direct).tables
    assert saved == direct


def test_what_is_read_back_is_what_was_saved(tmp_path):
    log, columns = strange_log(2000, 10)
    log |= {"sex": np.where(np.arange(2000) % 2 == 0, "f", "m")}
    several = sellf.audit_all(log, **columns | {"group": ["race", "sex"]})
    for result in (several, sellf.audit(lending(300), **COLUMNS, omega=0.9)):
        (tmp_path / "audit.json").write_text(result.to_json(), encoding="utf-16")
        found = read(tmp_path / "audit.json")
        assert found.to_json() == result.to_json()
        assert str(found) == str(result)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not JSON", "is not JSON"),
        ("[1, 2]", "does not hold an audit"),
        ("{}", "does not hold an audit"),
        ('{"notion": "opportunity"}', "does not hold an audit"),
        ('{"a": {"b": 1}}', "does not hold an audit"),
    ],
)
def test_a_file_that_is_no_audit_is_answered_in_a_sentence(tmp_path, capsys, content, message):
    (tmp_path / "audit.json").write_text(content)
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "audit.json"), "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "--json" in error
    assert not out.exists()


def test_damaged_figures_are_refused(tmp_path, audited):
    for key, value in {"omega": "0.05", "by_group": 3, "verdict": "good", "pairs": None}.items():
        (tmp_path / "audit.json").write_text(json.dumps(audited.to_dict() | {key: value}))
        with pytest.raises(InputError):
            read(tmp_path / "audit.json")


def test_without_jinja_one_is_told_what_to_install_before_the_work(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("sellf.report.find_spec", lambda name: None)
    assert main(["audit", "--example", "--html", str(tmp_path / "page.html")]) == 2
    shown_ = capsys.readouterr()
    assert "pip install 'sellf[report]'" in shown_.err
    assert shown_.out == ""


def test_results_show_themselves_in_notebooks(audited):
    renamed = replace(audited, by_group={"<b>": audited.by_group["a"], **audited.by_group})
    page = Reader(renamed._repr_html_())
    assert page.tags["tr"] == 4
    assert page.tags["b"] == 0
    many = {str(i): audited.by_group["a"] for i in range(120)}
    text = replace(audited, by_group=many)._repr_html_()
    assert Reader(text).tags["tr"] == 51
    assert "70 more rows" in text


def test_only_intervals_that_hold_one_by_one_are_said_to():
    wanted = {"notions": ["opportunity", "demographic"], **COLUMNS}
    log = lending(1000)
    each = report.audit(sellf.audit_all(log, **wanted))
    jointly = report.audit(sellf.audit_all(log, joint=True, **wanted))
    assert "holds separately" in each
    assert "holds separately" not in jointly
    assert "all 2 notions hold together with 95% confidence" in jointly


def test_a_log_with_everybodys_outcome_is_not_said_to_hide_any():
    log = lending(1000)
    log["repaid"] = np.where(np.isnan(log["repaid"]), 0.0, log["repaid"])
    hidden = report.audit(sellf.audit(log, **COLUMNS, hide_rejected_outcomes=True))
    known = report.audit(sellf.audit(log, **COLUMNS, trust_rejected_outcomes=True))
    assert "known for accepted people only" in hidden
    assert "known for accepted people only" not in known
