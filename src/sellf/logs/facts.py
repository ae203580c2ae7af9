"""Descriptive facts about a log, computed where the log is stored."""

import contextlib
from datetime import date, datetime
from typing import Any

import narwhals as nw

from sellf.errors import InputError
from sellf.logs.columns import Columns
from sellf.logs.engine import TwoValues, collect, count, is_nan, words
from sellf.logs.person import Facts

MOST_COMPARED = 500_000
"""Logs with more rows are not searched for duplicates, nor are all their columns examined."""
MOST_COLUMNS = 300
NEARLY_NONE, SOME = 0.02, 0.5
"""A column that at most this share of the rejected and at least this share of the accepted have is
taken to be recorded after the decision."""


def look(frame: Any, columns: Columns, rows: int) -> Facts:
    """Return facts about a log; those that an engine cannot compute are left out.

    Args:
        frame: a lazy narwhals frame with all columns of the log.
        columns: what the columns mean.
        rows: number of rows.
    """
    found = Facts()
    # Arrow can hold dates that are out of range in Python.
    with contextlib.suppress(InputError, OverflowError, ValueError):
        first, last = _days(frame, columns)
        found = Facts(first=first, last=last)
    schema = frame.collect_schema()
    if rows > MOST_COMPARED or len(schema.names()) > MOST_COLUMNS:
        return found
    duplicates, identifiers, after = None, (), ()
    # Lists and records cannot be compared in every engine.
    flat = not any(schema[name].is_nested() for name in schema.names())
    with contextlib.suppress(InputError):
        if flat:
            duplicates = rows - int(collect(frame.unique().select(nw.len())).item())
    with contextlib.suppress(InputError):
        identifiers = _identifiers(frame, schema, columns, rows)
    with contextlib.suppress(InputError):
        after = _after_decision(frame, schema, columns)
    return Facts(duplicates, found.first, found.last, identifiers, after)


def _days(frame: Any, columns: Columns) -> tuple[str | None, str | None]:
    name = columns.decided_on or columns.time
    if name is None or frame.collect_schema()[name] not in (nw.Date, nw.Datetime):
        return None, None
    day = nw.col(name).cast(nw.Date)
    ends = collect(frame.select(day.min().alias("first"), day.max().alias("last")))
    return tuple(_day(ends[one].to_list()[0]) for one in ("first", "last"))  # pyright: ignore[reportReturnType]


def _day(value: Any) -> str | None:
    if isinstance(value, datetime):
        value = value.date()
    return value.isoformat() if isinstance(value, date) else None


def _identifiers(frame: Any, schema: Any, columns: Columns, rows: int) -> tuple[str, ...]:
    """Return columns of strings or integers in which all values are different."""
    if rows < 50:
        return ()
    used = columns.named()
    names = [
        name
        for name in schema.names()
        if name not in used and (schema[name] == nw.String or schema[name].is_integer())
    ]
    if not names:
        return ()
    counted = collect(
        frame.select(*(nw.col(name).n_unique().alias(f"n{i}") for i, name in enumerate(names)))
    )
    return tuple(n for i, n in enumerate(names) if counted[f"n{i}"].to_list()[0] == rows)


def _after_decision(frame: Any, schema: Any, columns: Columns) -> tuple[str, ...]:
    read = TwoValues(frame, columns.decision, columns.decision, "decision", columns.decided)
    names = [
        name
        for name in schema.names()
        if name not in (columns.decision, columns.outcome, *columns.group)
    ]
    if not names:
        return ()

    def filled(name: str) -> Any:
        column = words(nw.col(name), schema[name])
        gone = column.is_null()
        if schema[name].is_float():
            gone = gone | is_nan(column)
        if schema[name] in (nw.String, nw.Categorical, nw.Enum):
            gone = gone | (column.str.strip_chars() == "")
        return ~gone

    asked = {"yes": count(read.yes).sum(), "all": nw.len()}
    for i, name in enumerate(names):
        asked[f"a{i}"] = count(filled(name) & read.yes).sum()
        asked[f"n{i}"] = count(filled(name)).sum()
    table = collect(frame.select(**asked))
    found = {name: int(table[name].to_list()[0] or 0) for name in asked}
    accepted, rejected = found["yes"], found["all"] - found["yes"]
    if min(accepted, rejected) < 50:
        return ()
    return tuple(
        name
        for i, name in enumerate(names)
        if found[f"a{i}"] >= SOME * accepted
        and found[f"n{i}"] - found[f"a{i}"] <= NEARLY_NONE * rejected
    )
