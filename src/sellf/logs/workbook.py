"""Logs in workbooks (.xlsx): a sheet as an Arrow table."""

import importlib.util
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from sellf.errors import InputError
from sellf.logs.names import missing
from sellf.logs.sheet_checks import MOST_COLUMNS, DamagedError, check_parts, check_sheet


def read_sheet(path: Path, sheet: str | None) -> Any:
    """Return a sheet of a workbook as an Arrow table; its first row holds the columns' names.

    Args:
        path: the workbook.
        sheet: the name of the sheet; None: the first.
    """
    if importlib.util.find_spec("openpyxl") is None:
        raise InputError(
            "reading .xlsx files needs openpyxl: type `pip install 'sellf[audit]'`, or save the "
            "sheet as CSV."
        )
    import openpyxl

    try:
        # Opened here, since openpyxl leaves a file open that it cannot read.
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and the like, which do not affect values
            with zipfile.ZipFile(file) as packed:
                texts = check_parts(packed)
                book = openpyxl.load_workbook(
                    file, read_only=True, data_only=True, keep_links=False
                )
                try:
                    chosen = _chosen(book, sheet, path)
                    check_sheet(packed, chosen._worksheet_path, texts)
                    return _table(chosen, path)
                finally:
                    book.close()
    except InputError:
        raise
    except DamagedError as error:
        raise InputError(
            f"{path.name} is damaged, or not made by a spreadsheet program: {error}. Open it and "
            "save it again as .xlsx, or save the sheet as CSV."
        ) from None
    except Exception as error:  # damaged parts raise errors of many kinds
        raise InputError(
            f"{path.name} is not a workbook that can be read ({type(error).__name__}): save it "
            "again as .xlsx, or as CSV."
        ) from None


def _chosen(book: Any, sheet: str | None, path: Path) -> Any:
    names = [one.title for one in book.worksheets]
    if sheet is None and names:
        return book.worksheets[0]
    if not names:
        raise InputError(
            f"{path.name} has no sheet with cells: save the log as a sheet, or as CSV."
        )
    if sheet not in names:
        shown = ", ".join(map(repr, names[:12]))
        raise InputError(
            f"{path.name} has no sheet {sheet!r}: it has {shown}; type --sheet with one of these."
        )
    return book[sheet]


def _table(sheet: Any, path: Path) -> Any:
    sheet.reset_dimensions()  # the size that a file records may be wrong
    rows = sheet.iter_rows(values_only=True)
    header = list(next(iter(rows), ()))
    while header and header[-1] is None:
        header.pop()
    if not header or len(header) > MOST_COLUMNS:
        raise InputError(
            f"{path.name} has no column names in the first row of sheet {sheet.title!r}: put "
            "them there, or type --sheet with another one."
        )
    width = len(header)
    whole = [(*row[:width], *(None,) * (width - len(row))) for row in rows if any(
        value is not None for value in row)]  # fmt: skip
    names = [
        f"column {i + 1}" if missing(name) else str(name).strip() for i, name in enumerate(header)
    ]
    return table_of(names, zip(*whole, strict=True) if whole else [()] * width)


def table_of(names: Sequence[str], columns: Iterable[Sequence[Any]]) -> Any:
    """Return an Arrow table from columns of Python values; mixed types in one become strings."""
    import pyarrow

    made = [column_of(values) for values in columns]
    return pyarrow.Table.from_arrays(made, names=list(names))


def column_of(values: Sequence[Any]) -> Any:
    """Return an Arrow column from Python values: numbers, Booleans, dates, or else strings."""
    import pyarrow

    values = [None if isinstance(value, str) and not value.strip() else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} and all(v is None or -(2**63) <= v < 2**63 for v in values):
        return pyarrow.array(values, pyarrow.int64())
    if kinds <= {int, float}:
        return pyarrow.array([None if v is None else float(v) for v in values], pyarrow.float64())
    if kinds == {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if kinds <= {date, datetime}:
        days = [v.date() if isinstance(v, datetime) else v for v in values]
        plain = all(not isinstance(v, datetime) or v.time() == time() for v in values)
        moments = [v if v is None or isinstance(v, datetime) else datetime(v.year, v.month, v.day)
                   for v in values]  # fmt: skip
        return (
            pyarrow.array(days, pyarrow.date32())
            if plain
            else pyarrow.array(moments, pyarrow.timestamp("us"))
        )
    return pyarrow.array([None if v is None else _word(v) for v in values], pyarrow.string())


def _word(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
