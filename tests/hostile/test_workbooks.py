"""Workbooks whose parts are damaged or blown up: each was read with another result, or for ever."""

import re
import zipfile

import numpy as np
import pytest

import sellf
from sellf.errors import InputError

openpyxl = pytest.importorskip("openpyxl")
SHEET, TEXTS, STYLES = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"
RELATIONS = "xl/_rels/workbook.xml.rels"
LOG = {"group": "race", "decision": "approved", "notion": "demographic", "seed": 1}


@pytest.fixture
def book(tmp_path):
    rng = np.random.default_rng(0)
    made = openpyxl.Workbook()
    made.active.append(["race", "approved", "late"])
    for approved in rng.integers(0, 2, 60):
        made.active.append([str(rng.choice(["Black", "White"])), int(approved), bool(approved)])
    path = tmp_path / "log.xlsx"
    made.save(path)
    return _with_table_of_texts(path)


def _with_table_of_texts(path):
    """Have texts in a table of their own, as Excel does; newer versions of openpyxl do not."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name).decode() for name in packed.namelist()}
    if TEXTS in parts:
        return path
    texts = list(dict.fromkeys(re.findall(r"<is><t>(\w+)</t></is>", parts[SHEET])))
    parts[SHEET] = re.sub(
        r't="inlineStr"><is><t>(\w+)</t></is>',
        lambda found: f't="s"><v>{texts.index(found[1])}</v>',
        parts[SHEET],
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rows = "".join(f"<si><t>{text}</t></si>" for text in texts)
    parts[TEXTS] = f'<sst xmlns="{main}">{rows}</sst>'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    types = "[Content_Types].xml"
    override = f'<Override PartName="/{TEXTS}" ContentType="{kind}"/></Types>'
    parts[types] = parts[types].replace("</Types>", override)
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return path


def changed(book, part, change, *more):
    with zipfile.ZipFile(book) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    text = parts[part].decode()
    parts[part] = change(text).encode()
    assert parts[part] != text.encode()
    other = book.with_name("changed.xlsx")
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
        for name in more:
            packed.writestr(name, parts[name])
    return other


def test_a_sound_workbook_is_read(book):
    found = sellf.audit(book, **LOG)
    assert sum(group.people for group in found.by_group.values()) == 60


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        (SHEET, lambda x: x.replace('<row r="9"', '<row r="99"'), "after row 8 |row 99"),
        (SHEET, lambda x: x.replace('<row r="9"', '<row r="99999999"'), "after row 8 "),
        (SHEET, lambda x: x.replace('<row r="9"', '<row r="8"'), "after row 8 "),
        (SHEET, lambda x: x.replace('<row r="9"', '<row r="-9"'), "after row 8 "),
        (SHEET, lambda x: x.replace('r="B9"', 'r="A9"'), "cells of row 9"),
        (SHEET, lambda x: x.replace('r="B9"', 'r="B10"'), "cells of row 9"),
        (SHEET, lambda x: re.sub(r'(r="A9" t="s"><v>)\d+', r"\1-1", x), "string that is missing"),
        (SHEET, lambda x: re.sub(r'(r="A9" t="s"><v>)\d+', r"\g<1>77", x), "row 9 refers to a"),
        (SHEET, lambda x: x.replace('r="A9" t="s"', 'r="A9" t="q"'), "unknown kind"),
        (SHEET, lambda x: re.sub(r'(r="C9" t="b"><v>)\d', r"\g<1>2", x), "neither true nor false"),
        (SHEET, lambda x: re.sub(r'(r="A9" t="s">)', r"\1<v>0</v>", x), "row 9 has two values"),
        (SHEET, lambda x: re.sub(r'(r="B9"[^>]*>)<v>', r"\1<v><q/>", x), "does not belong there"),
        (SHEET, lambda x: re.sub(r'(r="B9"[^>]*>)<v>', r'\1<v xmlns="urn:x">', x), "does not bel"),
        (SHEET, lambda x: re.sub(r'<c( r="B9".*?)</c>', r"<q><c\1</c></q>", x), "does not belong"),
        (SHEET, lambda x: re.sub(r'<c( r="B9")', r'<c xmlns="urn:x"\1', x), "does not belong"),
        (SHEET, lambda x: x.replace('<row r="9"', '<row xmlns="urn:x" r="9"'), "does not belong"),
        (SHEET, lambda x: re.sub(r"</row>(<row r=.9.*?</row>)", r"\1</row>", x), "does not belong"),
        (SHEET, lambda x: re.sub(r'(r="B9"[^>]*>)<v>.*?</v>', r"\1<f>1</f><v></v>", x), "formula"),
        (SHEET, lambda x: re.sub(r'(r="B9"[^>]*>)<v>.*?</v>', r"\1<v>0_1</v>", x), "not a number"),
        (TEXTS, lambda x: x.replace("White", "Wh<q/>ite"), "strings holds an element that does"),
        (
            TEXTS,
            lambda x: x.replace("<si>", "<q><si>", 1).replace("</si>", "</si></q>", 1),
            "table",
        ),
        (RELATIONS, lambda x: re.sub(r"(<Relationship [^>]*/>)", r"\1\1", x, count=1), "same name"),
        (TEXTS, lambda x: x.replace("White", "W" * 40_000), "more than 32,767 characters"),
        (STYLES, lambda x: x.replace("<cellXfs", "<xf/>" * 131_000 + "<cellXfs"), "formats"),
        (TEXTS, lambda x: '<!DOCTYPE sst [<!ENTITY a "b">]>' + x, "entities of its own"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_part_is_refused_in_a_sentence(book, part, change, says):
    with pytest.raises(InputError, match=says) as refused:
        sellf.audit(changed(book, part, change), **LOG)
    assert "save it again as .xlsx, or save the sheet as CSV" in str(refused.value)


def test_a_part_that_is_there_twice_is_refused(book):
    with pytest.warns(UserWarning, match="Duplicate name"):
        other = changed(book, SHEET, lambda x: x.replace("<v>1</v>", "<v>0</v>"), SHEET)
    with pytest.raises(InputError, match="holds a part twice"):
        sellf.audit(other, **LOG)


def test_a_second_table_of_texts_is_refused(book):
    with zipfile.ZipFile(book, "a") as packed:
        texts = packed.read(TEXTS).decode()
        packed.writestr("xl/other.xml", texts.replace("White", "Blue"))
    with pytest.raises(InputError, match="two tables of shared strings"):
        sellf.audit(book, **LOG)


def test_formulas_with_their_values_and_rich_texts_are_read(book):
    once = sellf.audit(book, **LOG)
    values = changed(book, SHEET, lambda x: re.sub(r'(r="B\d+" t="n">)', r"\1<f>1+1</f>", x))
    assert sellf.audit(values, **LOG).difference == once.difference
    rich = "<si><r><rPr><b/></rPr><t>Wh</t></r><r><t>ite</t></r></si>"
    texts = changed(book, TEXTS, lambda x: x.replace("<si><t>White</t></si>", rich))
    assert sellf.audit(texts, **LOG).difference == once.difference


def test_a_workbook_that_unpacks_to_gigabytes_is_refused_at_once(book, monkeypatch):
    from sellf.logs import sheet_checks

    monkeypatch.setattr(sheet_checks, "LARGEST", 10_000)
    with pytest.raises(InputError, match="more than 10,000 bytes when it is unpacked"):
        sellf.audit(changed(book, SHEET, lambda x: x.replace("<row", " " * 20_000 + "<row")), **LOG)


def test_rows_without_numbers_and_prefixes_are_read(book):
    """Both are allowed; other programs than Excel write them."""
    bare = changed(book, SHEET, lambda x: re.sub(r'<(row|c) r="\w+"', r"<\1", x))
    once, again = sellf.audit(book, **LOG), sellf.audit(bare, **LOG)
    assert again.difference == once.difference
