"""Any kind of log to checked rows in memory, or to a frame whose engine adds up for us."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sellf.audit.columns import Columns, check_names
from sellf.audit.lazy import LazyLog, collect
from sellf.audit.rows import Rows, Values, check_rows
from sellf.errors import InputError

FETCH_ROWS = 2_000_000
"""Logs up to this long are brought into memory as a whole."""


def open_log(log: Any, columns: Columns, *, fetch_rows: int = FETCH_ROWS) -> Rows | LazyLog:
    """Return a log's rows if it is small or in memory already, else a frame to push sums down to.

    Args:
        log: a path, a mapping of columns, or a frame of any kind that narwhals knows.
        columns: what the columns mean.
        fetch_rows: frames that live elsewhere are brought here up to this many rows.
    """
    if isinstance(log, str | Path):
        return _file(Path(log), columns, fetch_rows)
    if isinstance(log, Mapping):
        check_names(columns, list(log))
        return check_rows(columns, _table(columns, log))
    import narwhals as nw

    if type(log).__module__.startswith(("pandas", "pyarrow")):
        # Before narwhals, which refuses repeated names in its own words.
        check_names(columns, list(getattr(log, "column_names", log.columns)))
    try:
        frame = nw.from_native(log)
    except TypeError:
        raise InputError(
            f"the log is a {type(log).__name__}: give a path to a CSV or Parquet file, a data "
            "frame (pandas, Polars, PyArrow, DuckDB, Spark), or a mapping of columns."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        return _lazy(frame, columns, fetch_rows)
    check_names(columns, frame.columns)
    return check_rows(columns, _arrays(frame, columns))


def _file(path: Path, columns: Columns, fetch_rows: int) -> Rows | LazyLog:
    import narwhals as nw

    from sellf.audit.files import open_file

    relation, names = open_file(path)
    check_names(columns, names)
    return _lazy(nw.from_native(relation), columns, fetch_rows)


def _lazy(frame: Any, columns: Columns, fetch_rows: int) -> Rows | LazyLog:
    import narwhals as nw

    check_names(columns, frame.collect_schema().names())
    count = int(collect(frame.select(nw.len())).item())
    if count == 0:
        raise InputError("the log has no rows: there is nobody to audit.")
    if count <= fetch_rows:
        return check_rows(columns, fetch(frame, columns))
    return LazyLog(frame, columns, count)


def fetch(frame: Any, columns: Columns) -> dict[str, Values]:
    """Bring the columns that are named into memory."""
    return _arrays(collect(frame.select(*columns.named())), columns)


def _arrays(frame: Any, columns: Columns) -> dict[str, Values]:
    return {name: _array(name, frame[name]) for name in columns.named()}


def _table(columns: Columns, log: Mapping[str, Any]) -> dict[str, Values]:
    table = {name: _array(name, log[name]) for name in columns.named()}
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"unequal lengths: {given}. Give one value per person in each.")
    return table


def _array(name: str, values: Any) -> Values:
    """Return one column as a NumPy array; of objects if its values are of several kinds."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values
    if not isinstance(values, np.ndarray) and hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
        if array.ndim == 1:
            return array
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise InputError(f"column {name!r} is {values!r}: give one value per person.")
    items = list(values)
    kinds = {type(item) for item in items}
    if len(kinds) == 1 and kinds <= {bool, int, float} and all(map(_moderate, items)):
        return np.array(items)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _moderate(item: Any) -> bool:
    return not isinstance(item, int) or -(2**63) <= item < 2**63
