"""Opening of logs of any kind: as checked rows in memory, or as a frame that its engine sums."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sellf.errors import InputError
from sellf.logs.arrays import array, arrays, fetch
from sellf.logs.cautions import may_name_people, repeated_people
from sellf.logs.columns import Columns, check_names
from sellf.logs.config import Reading
from sellf.logs.databases import is_server, open_server
from sellf.logs.engine import collect, is_nan, words
from sellf.logs.facts import look
from sellf.logs.files import are_files, named_files, open_files, with_own_names, without_copies
from sellf.logs.lazy import LazyLog
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.log import Log
from sellf.logs.names import LONGEST_TEXT, TOO_LONG, Values, is_missing, numbered
from sellf.logs.person import LeftOut
from sellf.logs.prepare import changes, check_sources, prepare, sources
from sellf.logs.rows import Rows, check_rows
from sellf.logs.workbook import table_of

AS_IT_IS = Reading()
MOST_WARNINGS = 3
"""Most columns with a warning each: a log may have hundreds of similar columns."""


def open_log(
    log: Any, columns: Columns, limits: Limits = DEFAULT, reading: Reading = AS_IT_IS
) -> Log:
    """Return a log's rows if it is small or in memory already, else a frame that its engine sums.

    Args:
        log: a path, a list of paths, the address of a database, a mapping of columns, or a data
            frame that narwhals supports.
        columns: what the columns mean.
        limits: the largest number of rows that are loaded into memory.
        reading: how the log is read, and which rows are used.
    """
    import narwhals as nw

    if is_server(log):
        log = open_server(log, reading.table, reading.query)
    elif are_files(log):
        log, names = open_files(named_files(log), reading, limits)
        names = without_copies(log, names, sources(columns, reading, names))
        check_sources(columns, reading, names)
        if not hasattr(log, "column_names"):
            log = with_own_names(log, names, sources(columns, reading, names))
    elif isinstance(log, Mapping):
        if not changes(columns, reading, list(log)):
            check_names(columns, list(log))
            rows = check_rows(columns, _table(columns, log))
            return _cautioned(rows, columns, list(log), lambda name: _distinct(name, log[name]))
        check_sources(columns, reading, list(log))
        log = table_of(list(map(str, log)), [array(name, log[name]).tolist() for name in log])
    if type(log).__module__.startswith(("pandas", "pyarrow")):
        log = _each_name_once(log, columns, reading)
    try:
        frame = nw.from_native(log)
    except TypeError:
        raise InputError(
            f"the log is a {type(log).__name__}: give a path to a CSV, Parquet, Excel or database "
            "file, a data frame (pandas, Polars, PyArrow, DuckDB, Spark), or a mapping of columns."
        ) from None
    present = frame.collect_schema().names()
    check_sources(columns, reading, present)
    left_out: list[LeftOut] = []
    eager = not isinstance(frame, nw.LazyFrame)
    if changes(columns, reading, present):
        frame, columns, left_out = prepare(frame.lazy(), columns, reading)
        frame = collect(frame) if eager else frame
    if not eager:
        return _lazy(frame, columns, limits, tuple(left_out))
    rows = check_rows(columns, arrays(frame, columns))
    seen = look(frame.lazy(), columns, rows.count)
    rows = replace(rows, left_out=tuple(left_out), facts=seen)
    return _cautioned(rows, columns, present, lambda name: _distinct(name, frame[name]))


def _each_name_once(log: Any, columns: Columns, reading: Reading) -> Any:
    """Return a pandas or Arrow frame without repeated columns, which narwhals refuses.

    Columns that are used may be repeated only if they are identical, as in a file.
    """
    names = list(getattr(log, "column_names", log.columns))
    first: dict[Any, int] = {}
    for place, name in enumerate(names):
        first.setdefault(name, place)
    if len(first) == len(names):
        check_sources(columns, reading, names)
        return log
    wanted = set(sources(columns, reading, names))
    copies = {
        place
        for place, name in enumerate(names)
        if place != first[name] and name in wanted and _alike(log, first[name], place)
    }
    check_sources(columns, reading, [x for place, x in enumerate(names) if place not in copies])
    kept = sorted(first.values())
    return log.select(kept) if hasattr(log, "column_names") else log.iloc[:, kept]


def _alike(log: Any, place: int, other: int) -> bool:
    """Return whether two columns of a frame are identical, including missing values."""
    if not hasattr(log, "column_names"):
        return bool(log.iloc[:, place].equals(log.iloc[:, other]))
    one, two = log.column(place), log.column(other)
    # In Arrow, NaN is different from itself.
    return one.equals(two) or (
        one.type == two.type and str(one.to_pylist()) == str(two.to_pylist())
    )


def _cautioned(
    source: Rows | LazyLog,
    columns: Columns,
    present: Iterable[Any],
    distinct: Callable[[str], tuple[int, int]],
) -> Log:
    """Return the log with warnings about its unused columns.

    Args:
        source: the log.
        columns: what its columns mean.
        present: all columns.
        distinct: returns the number of distinct values of a column, and of all its values.
    """
    found: list[str] = []
    candidates = may_name_people(columns, present)
    for place, name in enumerate(candidates):
        if len(found) == MOST_WARNINGS:
            rest = len(candidates) - place
            found.append(f"{rest:,} more columns may name people; they were not looked at.")
            break
        # A column that is not used must not end the audit, whatever it holds.
        with contextlib.suppress(InputError):
            found += repeated_people(name, *distinct(name))
    return replace(source, warnings=tuple(found)) if found else source


def _distinct(name: str, values: Any) -> tuple[int, int]:
    """Return the number of distinct values of a column in memory, and of all its values."""
    found = array(name, values)
    known = found[~is_missing(found)]
    return len(numbered(known, name, "person")[0]), len(known)


def _lazy(frame: Any, columns: Columns, limits: Limits, left_out: tuple[LeftOut, ...]) -> Log:
    import narwhals as nw

    if frame.implementation.is_spark_like():
        for name, option in columns.named().items():
            if "." in name or "`" in name:
                raise InputError(
                    f"{option} is {name!r}, and Spark takes a dot in a name for a field of a "
                    "column: rename it with withColumnRenamed before the audit."
                )
    count = _counted(frame, columns)
    if count == 0:
        raise InputError("the log has no rows: there is nobody to audit.")
    if count <= limits.in_memory:
        source = replace(check_rows(columns, fetch(frame, columns)), left_out=left_out)
    elif columns.person is not None:
        raise InputError(
            f"the log has {count:,} rows, and putting the rows of each person together needs them "
            f"in memory, up to {limits.in_memory:,} rows: audit a part of the log that holds all "
            "rows of some people, or one row per person without --person."
        )
    else:
        source = LazyLog(frame, columns, count, left_out=left_out)

    source = replace(source, facts=look(frame, columns, count))

    def distinct(name: str) -> tuple[int, int]:
        there, kind = nw.col("_v"), frame.collect_schema()[name]
        known = frame.select(_v=words(nw.col(name), kind)).filter(~there.is_null())
        if kind.is_float():
            known = known.filter(~is_nan(there))
        if kind == nw.String:
            known = known.filter(there.str.strip_chars() != "")
        counted = collect(known.select(nw.col("_v").n_unique().alias("n"), nw.len().alias("rows")))
        # For no values at all, some engines return null rather than 0.
        return int(counted["n"].to_list()[0] or 0), int(counted["rows"].to_list()[0])

    return _cautioned(source, columns, frame.collect_schema().names(), distinct)


def _counted(frame: Any, columns: Columns) -> int:
    """Return the number of rows of a log in an engine; refuse values that are too long.

    The engine checks this before anything is loaded: a file of some kilobytes can hold hundreds of
    values of a million characters.
    """
    import narwhals as nw

    schema = frame.collect_schema()
    texts = {name: option for name, option in columns.named().items() if schema[name] == nw.String}
    lengths = [
        nw.col(name).str.len_chars().max().alias(f"_l{place}") for place, name in enumerate(texts)
    ]
    found = collect(frame.select(nw.len().alias("_rows"), *lengths))
    for place, (name, option) in enumerate(texts.items()):
        longest = int(found[f"_l{place}"].to_list()[0] or 0)
        if longest > LONGEST_TEXT:
            told = TOO_LONG.format(letters=longest, most=LONGEST_TEXT)
            raise InputError(f"{option} {name!r}: {told}")
    return int(found["_rows"].to_list()[0])


def _table(columns: Columns, log: Mapping[str, Any]) -> dict[str, Values]:
    table = {name: array(name, log[name]) for name in columns.named()}
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"unequal lengths: {given}. Give one value per person in each.")
    return table
