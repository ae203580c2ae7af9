"""An audit as a workbook, as a summary of one page, and as JSON with a schema."""

import io
import json
import re

import pytest

import sellf
from sellf import extras
from sellf.audit.schema import VERSION, schema
from sellf.cli import main
from sellf.report import pdf
from sellf.report.audits import page
from sellf.report.workbook import workbook
from tests.audit.logs import COLUMNS, lending

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def audited():
    log = lending(800)
    log["race"] = ["=1+1" if race == "a" else "b:*[]/" for race in log["race"]]
    return sellf.audit(log, **COLUMNS, seed=1)


def test_a_workbook_has_every_table_and_names_are_no_formulas(audited):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.load_workbook(io.BytesIO(workbook(page(audited))))
    assert made.sheetnames[0] == "Summary"
    sheet = made["Opportunity by group"]
    head = [cell.value for cell in sheet[1]]
    rows = {row[0].value: dict(zip(head, row, strict=True)) for row in sheet.iter_rows(min_row=2)}
    assert rows.keys() == {"=1+1", "b:*[]/"}
    assert rows["=1+1"]["group"].data_type == "s"
    for name, group in audited.by_group.items():
        assert rows[name]["low"].value == pytest.approx(group.low)
    assert all(len(name) <= 31 for name in made.sheetnames)


def test_json_follows_its_schema_and_says_which(audited, capsys):
    jsonschema = pytest.importorskip("jsonschema")
    assert main(["audit", "--json-schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema()
    jsonschema.Draft202012Validator.check_schema(printed)
    content = json.loads(audited.to_json())
    assert content["schema_version"] == VERSION
    for whole in (content, {"opportunity": content}):
        jsonschema.validate(whole, printed)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "verdict": "good"}, printed)


def test_without_a_browser_the_summary_says_what_to_type(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(extras, "BROWSERS", ("no-such-browser",))
    assert main(["audit", "--example", "--pdf", str(tmp_path / "page.pdf")]) == 2
    assert "type --html" in capsys.readouterr().err


def test_the_summary_keeps_the_answer_and_one_picture(audited):
    whole = page(audited)
    short = pdf.summary(whole)
    assert short.answer == whole.answer
    assert short.sections[0].title == "The picture and the numbers"
    assert len(short.sections) == 2


@pytest.mark.slow
def test_the_summary_is_one_page(audited):
    try:
        pdf.browser()
    except sellf.errors.InputError:
        pytest.skip("no browser is installed")
    made = pdf.pdf(page(audited))
    assert made.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", made)) == 1
