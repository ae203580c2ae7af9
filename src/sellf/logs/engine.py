"""Queries to an engine (DuckDB, Spark, lazy Polars), with values interpreted as in memory."""

import re
from typing import Any

import narwhals as nw

from sellf.errors import InputError
from sellf.logs.binary import AS_NUMBERS, Meant, which_are_yes
from sellf.logs.names import USUAL_DATES, missing

MOST_VALUES = 1000
"""Most distinct values that are fetched from a column that should have two."""


def collect(frame: Any) -> Any:
    """Run a query; an error of the engine is reported in its own words."""
    try:
        return frame.collect()
    except Exception as error:
        raise InputError(f"the log cannot be read: {plain(error)}") from error


def plain(error: Exception) -> str:
    """Return the error message of an engine, without its advice on its own options."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept: list[str] = []
    for line in lines:
        if line.lower().startswith(OF_NO_USE):
            break
        kept.append(line)
    text = " ".join(kept or lines[:1]) or type(error).__name__
    text = text.removeprefix("Invalid Input Error: ").removeprefix("Conversion Error: ")
    found = CSV.fullmatch(text)
    if found is not None:
        text = f"line {found['line']}: {found['reason']}"
    return text if len(text) < 500 else text[:500] + " ..."


REASONS = "Error when|Expected Number|Value with|Maximum line|Invalid unicode"
CSV = re.compile(rf"CSV Error on Line: (?P<line>\d+) .*?(?P<reason>(?:{REASONS}).*)", re.DOTALL)
"""DuckDB's message about a line of a CSV file; it repeats the whole line, however long it is."""
OF_NO_USE = ("possible", "* ", "this type was", "column ", "file ", "file=", "jvm stacktrace")
"""Beginnings of lines from which on a message is about the engine itself."""


def different(frame: Any, most: int) -> list[tuple[Any, ...]]:
    """Return the distinct rows of a frame, at most `most` of them."""
    found = collect(frame.unique().head(most))
    try:
        columns = [found[name].to_list() for name in found.columns]
    except ValueError as error:  # times with nanoseconds, where pandas is not installed
        raise InputError(f"the log cannot be read: {plain(error)}") from None
    except OverflowError:
        raise InputError(f"the log holds dates that are out of range: {USUAL_DATES}") from None
    return list(zip(*columns, strict=True))


def is_one_of(column: Any, values: list[Any]) -> Any:
    """Return an expression for whether a column holds one of some values."""
    # An expression of the column even without values: engines refuse sums of a constant.
    return column.is_in(values) if values else column.is_null() & nw.lit(False)


def words(column: Any, kind: Any) -> Any:
    """Return a column, as strings if it is categorical."""
    return column.cast(nw.String) if kind in (nw.Categorical, nw.Enum) else column


def where(condition: Any, value: Any, other: Any) -> Any:
    """Return one value where a condition holds and another where it does not."""
    one, two = (nw.lit(x) if isinstance(x, float) else x for x in (value, other))
    return nw.when(condition).then(one).otherwise(two)


def count(condition: Any) -> Any:
    """Return 1 where a condition holds, else 0."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def is_nan(value: Any) -> Any:
    """Return whether a number is NaN.

    DuckDB evaluates `isnan(y)` and `y > 1` from a Parquet file's statistics, which ignore NaN; for
    `isfinite(y)` it reads the values.
    """
    return ~value.is_finite() & (value.abs() != float("inf"))


class TwoValues:
    """Expressions for the meaning of a binary column."""

    yes: Any
    missing: Any
    odd: Any
    """Whether a value is neither of the two; counted later, since values are not fetched first."""

    def __init__(self, frame: Any, name: str, column: str, option: str, meant: Meant) -> None:
        """Fetch the distinct values of a column, unless they should be 0 and 1.

        Args:
            frame: the log.
            name: the column's name in the log.
            column: its name where the expressions are used.
            option: the role of the column.
            meant: the values that mean yes and no.
        """
        kind = frame.collect_schema()[name]
        here, there = words(nw.col(column), kind), words(nw.col(name), kind)
        self.missing, self.odd = here.is_null(), nw.lit(False)
        if kind.is_float():
            self.missing = self.missing | is_nan(here)
        if kind.is_numeric() or kind == nw.Boolean:
            here, there = here.cast(nw.Float64), there.cast(nw.Float64)
            if meant == AS_NUMBERS:
                self.yes = here == 1
                self.odd = ~self.missing & (here != 0) & (here != 1)
                return
        found = [value for (value,) in different(frame.select(_v=there), MOST_VALUES)]
        known = [value for value in found if not missing(value)]
        chosen = which_are_yes(known, name, option, meant)
        self.yes = is_one_of(here, [v for v, means in zip(known, chosen, strict=True) if means])
        blank = [value for value in found if isinstance(value, str) and missing(value)]
        self.missing = self.missing | is_one_of(here, blank)


def refuse_values(frame: Any, name: str, option: str) -> None:
    """Raise an error for a column with numbers other than 0 and 1."""
    there = frame.select(_v=nw.col(name).cast(nw.Float64))
    known = [value for (value,) in different(there, MOST_VALUES) if not missing(value)]
    which_are_yes(known, name, option, AS_NUMBERS)


def with_number(
    frame: Any,
    schema: Any,
    column: str | None,
    source: str,
    name: str,
    bad: str,
    option: str,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Any:
    """Add a column of probabilities, 1 where they are invalid, and a column that counts those."""
    if column is None:
        return frame.with_columns(**{name: nw.lit(1.0), bad: nw.lit(0)})
    if not schema[column].is_numeric():
        raise InputError(
            f"{option} {column!r} holds {schema[column]} values: every row needs a number; if some "
            "words in it mean that the value is missing, type --missing-value with each."
        )
    low, high = scale
    value = nw.col(source).cast(nw.Float64)
    fine = (value >= low) & (value <= high) & ~value.is_null() & value.is_finite()
    value = value if scale == (0.0, 1.0) else (value - low) / (high - low)
    return frame.with_columns(
        **{
            name: nw.when(fine).then(value).otherwise(nw.lit(1.0)),
            bad: nw.when(fine).then(nw.lit(0)).otherwise(nw.lit(1)),
        }
    )
