"""Workbooks whose parts are damaged or blown up: each was read with another result, or for ever."""

import re
import zipfile

import numpy as np
import pytest

import sellf
from sellf.errors import InputError

openpyxl = pytest.importorskip("openpyxl")
SHEET, TEXTS, STYLES = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"
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
        (SHEET, lambda x: re.sub(r'(r="A9" t="s"><v>)\d+', r"\1-1", x), "row 9 names a text"),
        (SHEET, lambda x: re.sub(r'(r="A9" t="s"><v>)\d+', r"\g<1>77", x), "row 9 names a text"),
        (SHEET, lambda x: x.replace('r="A9" t="s"', 'r="A9" t="q"'), "unknown kind"),
        (SHEET, lambda x: re.sub(r'(r="C9" t="b"><v>)\d', r"\g<1>2", x), "neither true nor false"),
        (TEXTS, lambda x: x.replace("White", "W" * 40_000), "more than 32,767 letters"),
        (STYLES, lambda x: x.replace("<cellXfs", "<xf/>" * 131_000 + "<cellXfs"), "formats"),
        (TEXTS, lambda x: '<!DOCTYPE sst [<!ENTITY a "b">]>' + x, "entities of its own"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_part_is_refused_in_a_sentence(book, part, change, says):
    with pytest.raises(InputError, match=says) as refused:
        sellf.audit(changed(book, part, change), **LOG)
    assert "save it anew as .xlsx, or save the sheet as CSV" in str(refused.value)


def test_a_part_that_is_there_twice_is_refused(book):
    with pytest.warns(UserWarning, match="Duplicate name"):
        other = changed(book, SHEET, lambda x: x.replace("<v>1</v>", "<v>0</v>"), SHEET)
    with pytest.raises(InputError, match="holds a part twice"):
        sellf.audit(other, **LOG)


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
