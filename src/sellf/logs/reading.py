"""Any kind of log to checked rows in memory, or to a frame whose engine adds up for us."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sellf.errors import InputError
from sellf.logs.arrays import array, arrays, fetch
from sellf.logs.cautions import may_name_people, repeated_people
from sellf.logs.columns import Columns, check_names
from sellf.logs.engine import collect, is_nan, words
from sellf.logs.files import are_files, named_files, open_files, with_own_names
from sellf.logs.lazy import LazyLog
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.log import Log
from sellf.logs.names import Values, is_missing, numbered
from sellf.logs.rows import Rows, check_rows


def open_log(log: Any, columns: Columns, limits: Limits = DEFAULT) -> Log:
    """Return a log's rows if it is small or in memory already, else a frame to push sums down to.

    Args:
        log: a path, a list of paths, a mapping of columns, or a frame of a kind narwhals knows.
        columns: what the columns mean.
        limits: up to how many rows a frame that lives elsewhere is brought here.
    """
    if are_files(log):
        return _files(named_files(log), columns, limits)
    if isinstance(log, Mapping):
        check_names(columns, list(log))
        rows = check_rows(columns, _table(columns, log))
        return _cautioned(rows, columns, list(log), lambda name: _distinct(name, log[name]))
    import narwhals as nw

    if type(log).__module__.startswith(("pandas", "pyarrow")):
        log = _each_name_once(log, columns)
    try:
        frame = nw.from_native(log)
    except TypeError:
        raise InputError(
            f"the log is a {type(log).__name__}: give a path to a CSV or Parquet file, a data "
            "frame (pandas, Polars, PyArrow, DuckDB, Spark), or a mapping of columns."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        return _lazy(frame, columns, limits)
    check_names(columns, frame.columns)
    rows = check_rows(columns, arrays(frame, columns))
    return _cautioned(rows, columns, frame.columns, lambda name: _distinct(name, frame[name]))


def _each_name_once(log: Any, columns: Columns) -> Any:
    """Return a pandas or Arrow frame without repeated columns, which narwhals refuses.

    None that is used is among them.
    """
    names = list(getattr(log, "column_names", log.columns))
    check_names(columns, names)
    first = {name: place for place, name in reversed(list(enumerate(names)))}
    if len(first) == len(names):
        return log
    kept = sorted(first.values())
    return log.select(kept) if hasattr(log, "column_names") else log.iloc[:, kept]


def _cautioned(
    source: Rows | LazyLog,
    columns: Columns,
    present: Iterable[Any],
    distinct: Callable[[str], tuple[int, int]],
) -> Log:
    """Return the log with what its unused columns make one doubt.

    Args:
        source: the log.
        columns: what its columns mean.
        present: all columns.
        distinct: how many different values a column has, and how many in all.
    """
    found: list[str] = []
    for name in may_name_people(columns, present):
        # A column that nobody asked for must not end the audit, whatever it holds.
        with contextlib.suppress(InputError):
            found += repeated_people(name, *distinct(name))
    return replace(source, warnings=tuple(found)) if found else source


def _distinct(name: str, values: Any) -> tuple[int, int]:
    """Return how many different values a column in memory has, and how many in all."""
    found = array(name, values)
    known = found[~is_missing(found)]
    return len(numbered(known, name, "person")[0]), len(known)


def _files(paths: list[Path], columns: Columns, limits: Limits) -> Log:
    import narwhals as nw

    relation, names = open_files(paths)
    check_names(columns, names)
    relation = with_own_names(relation, names, columns.named())
    return _lazy(nw.from_native(relation), columns, limits)


def _lazy(frame: Any, columns: Columns, limits: Limits) -> Log:
    import narwhals as nw

    check_names(columns, frame.collect_schema().names())
    if frame.implementation.is_spark_like():
        for name, option in columns.named().items():
            if "." in name or "`" in name:
                raise InputError(
                    f"{option} is {name!r}, and Spark takes a dot in a name for a field of a "
                    "column: rename it with withColumnRenamed before the audit."
                )
    count = int(collect(frame.select(nw.len())).item())
    if count == 0:
        raise InputError("the log has no rows: there is nobody to audit.")
    if count <= limits.in_memory:
        source = check_rows(columns, fetch(frame, columns))
    elif columns.person is not None:
        raise InputError(
            f"the log has {count:,} rows, and putting the rows of each person together needs them "
            f"in memory, up to {limits.in_memory:,} rows: audit a part of the log that holds all "
            "rows of some people, or one row per person without --person."
        )
    else:
        source = LazyLog(frame, columns, count)

    def distinct(name: str) -> tuple[int, int]:
        there, kind = nw.col("_v"), frame.collect_schema()[name]
        known = frame.select(_v=words(nw.col(name), kind)).filter(~there.is_null())
        if kind.is_float():
            known = known.filter(~is_nan(there))
        if kind == nw.String:
            known = known.filter(there.str.strip_chars() != "")
        counted = collect(known.select(nw.col("_v").n_unique().alias("n"), nw.len().alias("rows")))
        # Of no values at all some engines count nothing rather than 0.
        return int(counted["n"].to_list()[0] or 0), int(counted["rows"].to_list()[0])

    return _cautioned(source, columns, frame.collect_schema().names(), distinct)


def _table(columns: Columns, log: Mapping[str, Any]) -> dict[str, Values]:
    table = {name: array(name, log[name]) for name in columns.named()}
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"unequal lengths: {given}. Give one value per person in each.")
    return table
