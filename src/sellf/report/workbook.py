"""All tables of a report in one workbook (.xlsx)."""

import importlib.util
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sellf import leftovers
from sellf.errors import InputError
from sellf.report.charts import Plot, Rows, Shares
from sellf.report.page import Block, Facts, Grid, Items, Page, Pair, Paragraph
from sellf.text import plain

LONGEST = 31
"""The largest length of a sheet's name."""


def check() -> None:
    """Refuse to write a workbook without openpyxl."""
    if importlib.util.find_spec("openpyxl") is None:
        raise InputError("--xlsx needs openpyxl: type `pip install 'sellf[audit]'`.")


def workbook(page: Page) -> bytes:
    """Return a workbook: a summary of the report, then one sheet per table."""
    check()
    import openpyxl

    written = io.BytesIO()
    # openpyxl leaves a file for each sheet behind if it is interrupted.
    with leftovers.temporary_files("workbook"):
        book = openpyxl.Workbook(write_only=True)
        taken: set[str] = set()
        _fill(book, _name("Summary", taken), [["Audit", "", ""], *_summary(page)])
        for title, columns in _tables(page):
            rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
            _fill(book, _name(title, taken), rows)
        book.save(written)
    return written.getvalue()


def _summary(page: Page) -> list[list[Any]]:
    rows: list[list[Any]] = [["Date", f"{page.date:%Y-%m-%d}"], ["Answer", page.answer]]
    rows += [["", text] for text in page.lead]
    rows += [[name, value, note] for name, value, note in page.tiles]
    rows += [[one.title, line] for one in page.callouts for line in one.lines]
    for section in page.sections:
        for block in section.blocks:
            if isinstance(block, Facts):
                rows += [[f"{section.title}: {name}", value] for name, value in block.facts]
            elif isinstance(block, Items):
                rows += [[section.title, item] for item in block.items]
            elif isinstance(block, Paragraph):
                rows.append([section.title, block.text])
    return rows


def _tables(page: Page) -> Iterator[tuple[str, Mapping[str, Sequence[Any]]]]:
    blocks = [block for section in page.sections for block in section.blocks]
    # Tables first: a chart may have the same title as the table of its figures.
    for block in sorted(blocks, key=lambda block: not isinstance(block, Grid)):
        yield from _of_block(block)


def _of_block(block: Block) -> Iterator[tuple[str, Mapping[str, Sequence[Any]]]]:
    if isinstance(block, Pair):
        for one in block.blocks:
            yield from _of_block(one)
    elif isinstance(block, Grid):
        yield block.caption, block.columns
    elif isinstance(block, Plot | Rows | Shares):
        yield block.title, block.columns()


def _name(title: str, taken: set[str]) -> str:
    """Return a valid and unique name for a sheet."""
    clean = re.sub(r"[\[\]:*?/\\']", " ", plain(title, keep="")).strip() or "Table"
    name, number = clean[:LONGEST], 1
    while name.lower() in taken:
        number += 1
        name = f"{clean[: LONGEST - 4]} {number}"
    taken.add(name.lower())
    return name


def _fill(book: Any, name: str, rows: list[list[Any]]) -> None:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    sheet = book.create_sheet(name)
    sheet.freeze_panes = "A2"
    for letter, width in zip("ABCDEFGH", (36, 24, 16, 16, 16, 16, 16, 16), strict=True):
        sheet.column_dimensions[letter].width = width
    for at, row in enumerate(rows):
        cells = []
        for value in row:
            cell = WriteOnlyCell(sheet, _value(value))
            if isinstance(cell.value, str):
                cell.data_type = "s"  # a name that begins with = is not a formula
            if at == 0:
                cell.font = Font(bold=True)
            cells.append(cell)
        sheet.append(cells)


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int | float):
        return value
    return plain(value, keep="")[:32_767]
