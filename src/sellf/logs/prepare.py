"""Preparation of a log: rows are filtered, groups renamed, and columns derived.

Every step is a narwhals expression, so it has the same meaning in memory, in DuckDB and in Spark,
and only the distinct values of a column are loaded.
"""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import narwhals as nw

from sellf.errors import InputError
from sellf.fairness.checks import sorted_names
from sellf.logs.binary import AS_NUMBERS, Meant, which_are_yes
from sellf.logs.columns import Columns, check_present, check_roles
from sellf.logs.condition import parse
from sellf.logs.config import Reading
from sellf.logs.engine import MOST_VALUES, collect, different, is_one_of, words
from sellf.logs.names import missing, no_names, read_as, say, short
from sellf.logs.person import LeftOut
from sellf.logs.values import MOST_GROUPS, many_groups


def sources(columns: Columns, reading: Reading, present: list[str]) -> dict[str, str]:
    """Return the columns of a log that are needed, with the option that named each."""
    needed: dict[str, str] = {}
    for name, option in columns.named().items():
        needed |= dict.fromkeys(parts_of(name, option, present), option)
    if reading.where is not None:
        needed |= {name: "where" for name in parse(reading.where).columns() if name not in needed}
    return needed


def parts_of(name: str, option: str, present: list[str]) -> list[str]:
    """Return the columns that 'a | b' names as a decision or an outcome."""
    if option not in ("decision", "outcome") or name in present or "|" not in name:
        return [name]
    parts = [part.strip() for part in name.split("|")]
    if not all(parts) or len(set(parts)) < len(parts):
        raise InputError(
            f"{option} is {name!r}: name each column once, with | between them, for example "
            "'pistol | knife'."
        )
    return parts


def check_sources(columns: Columns, reading: Reading, present: list[str]) -> None:
    """Refuse columns that are absent or used in two roles, and bands of other than groups."""
    needed = sources(columns, reading, present)
    check_present(needed, present)
    made_of = {"decision": columns.decision, "outcome": columns.outcome}
    parts = {
        part: option
        for option, name in made_of.items()
        if name is not None
        for part in parts_of(name, option, present)
    }
    check_roles(columns, parts)
    for name in reading.bands:
        if name not in columns.group:
            raise InputError(
                f"--bands cuts {name!r}, which is not a group: name it with --group as well."
            )


def changes(columns: Columns, reading: Reading, present: list[str]) -> bool:
    """Return whether a log has to be prepared before it is read."""
    asked = (reading.where, reading.groups, reading.missing_value, reading.date_format)
    derived = sources(columns, Reading(), present).keys() != columns.named().keys()
    derived = derived or columns.decided.names_blank or columns.turned_out.names_blank
    return derived or bool(reading.bands) or any(asked)


def prepare(frame: Any, columns: Columns, reading: Reading) -> tuple[Any, Columns, list[LeftOut]]:
    """Return the prepared log, what its columns mean, and which rows were left out.

    Args:
        frame: a lazy narwhals frame.
        columns: what the columns of the log mean.
        reading: how the log is to be prepared.
    """
    frame = _without_missing(frame, columns, reading)
    frame, columns = _derived(frame, columns)
    frame, columns = _dated(frame, columns, reading)
    left_out: list[LeftOut] = []
    if reading.where is not None:
        schema = dict(frame.collect_schema())
        kept = frame.filter(parse(reading.where).expression(schema))
        left_out.append(LeftOut(f"not {reading.where}", _count(frame) - _count(kept)))
        if not _count(kept):
            raise InputError(
                f"where {reading.where!r} leaves no row: compare with values that the log has."
            )
        frame = kept
    frame, columns = _banded(frame, columns, reading)
    if reading.groups:
        frame, columns, more = _grouped(frame, columns, reading)
        left_out += more
    return frame, columns, left_out


def _count(frame: Any) -> int:
    return int(collect(frame.select(nw.len())).item())


def _without_missing(frame: Any, columns: Columns, reading: Reading) -> Any:
    """Return the frame with null in place of values that mean missing."""
    if not reading.missing_value:
        return frame
    schema = frame.collect_schema()
    numbers = [number for number in map(_number, reading.missing_value) if number is not None]
    changed = []
    for name in sources(columns, reading, schema.names()):
        kind, column = schema[name], words(nw.col(name), schema[name])
        if kind.is_numeric():
            gone = is_one_of(column.cast(nw.Float64), numbers) if numbers else None
        elif kind in (nw.String, nw.Categorical, nw.Enum):
            gone = is_one_of(column.str.strip_chars(), list(reading.missing_value))
        else:
            gone = None
        if gone is not None:
            # For a null value the condition is unknown, and the value stays null.
            changed.append(nw.when(~gone).then(column).alias(name))
    return frame.with_columns(*changed) if changed else frame


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _derived(frame: Any, columns: Columns) -> tuple[Any, Columns]:
    """Return the log with decisions and outcomes that are yes where any of several columns is."""
    present = frame.collect_schema().names()
    meant = {"decision": columns.decided, "outcome": columns.turned_out}
    for option, name in (("decision", columns.decision), ("outcome", columns.outcome)):
        if name is None:
            continue
        parts = parts_of(name, option, present)
        if parts == [name] and not meant[option].names_blank:
            continue
        read = _all_of(frame, parts, option, meant[option])
        yes = nw.any_horizontal(*(yes for yes, _ in read), ignore_nulls=True)
        gone = nw.any_horizontal(*(gone for _, gone in read), ignore_nulls=True)
        value = nw.when(yes).then(nw.lit(1)).otherwise(nw.when(~gone).then(nw.lit(0)))
        frame = frame.with_columns(value.alias(name))
        field = "decided" if option == "decision" else "turned_out"
        columns = replace(columns, **{field: AS_NUMBERS})
    return frame, columns


def _all_of(frame: Any, parts: list[str], option: str, meant: Meant) -> list[tuple[Any, Any]]:
    """Return expressions for whether each of several columns means yes, and whether it is missing.

    The meaning of values is determined for all of the columns together: a column that never means
    yes, such as one for a weapon that nobody carried, is not an error.
    """
    schema = frame.collect_schema()
    columns = {name: words(nw.col(name), schema[name]) for name in parts}
    found = {
        name: [value for (value,) in different(frame.select(_v=column), MOST_VALUES)]
        for name, column in columns.items()
    }
    everything = [value for values in found.values() for value in values]
    known = list(dict.fromkeys(value for value in everything if not missing(value)))
    if meant.names_blank and any(map(missing, everything)):
        known.append("")
    chosen = which_are_yes(known, " | ".join(parts), option, meant)
    yes = {value for value, means in zip(known, chosen, strict=True) if means}
    read = []
    for name, column in columns.items():
        blank = [value for value in found[name] if value is not None and missing(value)]
        gone = column.is_null() | is_one_of(column, blank)
        says_yes = is_one_of(column, [value for value in found[name] if value in yes]) & ~gone
        says_yes = says_yes | gone if "" in yes else says_yes
        read.append((says_yes, nw.lit(False) if meant.names_blank else gone))
    return read


FIELD = re.compile(r"YYYY|YY|MM|DD|M|D")
DIGITS = {"YYYY": 4, "YY": 2, "MM": 2, "DD": 2, "M": 1, "D": 1}
STRPTIME = {"YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "M": "%m", "D": "%d"}
DATE_ADVICE = (
    "write years as YYYY, months as MM and days as DD, with their separators, for example "
    "DD/MM/YYYY, YYYYMMDD, or MDDYYYY where a leading zero is left out."
)


def check_date_format(text: str) -> list[str]:
    """Return the fields of a date format, in order."""
    found = FIELD.findall(text)
    if sorted(name[0] for name in found) != ["D", "M", "Y"]:
        raise InputError(f"--date-format is {text!r}: {DATE_ADVICE}")
    if not re.fullmatch(r"[-/. ]*", FIELD.sub("", text)):
        raise InputError(f"--date-format is {text!r}: {DATE_ADVICE}")
    return found


def _dated(frame: Any, columns: Columns, reading: Reading) -> tuple[Any, Columns]:
    """Return the log with strings and numbers that stand for dates converted to dates."""
    if reading.date_format is None:
        return frame, columns
    fields = check_date_format(reading.date_format)
    named = [name for name in (columns.time, columns.decided_on) if name is not None]
    if not named:
        raise InputError(
            "--date-format says how dates are written: name their column with --time or "
            "--decided-on."
        )
    schema = frame.collect_schema()
    for name in named:
        if schema[name] in (nw.Date, nw.Datetime):
            continue
        text = nw.col(name)
        text = text.cast(nw.Int64) if schema[name].is_float() else text
        text = text.cast(nw.String).str.strip_chars()
        _check_dates(frame.select(_v=text), name, reading.date_format)
        frame = frame.with_columns(_as_date(text, fields, reading.date_format).alias(name))
    return frame, columns


def pattern_of(text: str) -> str:
    """Return a regular expression that matches dates in a format."""
    parts = re.split(f"({FIELD.pattern})", text)
    between = any(part and part not in DIGITS for part in parts)
    digits = {"YYYY": "[0-9]{4}", "YY": "[0-9]{2}", "M": "[0-9]{1,2}", "D": "[0-9]{1,2}"}
    two = "[0-9]{1,2}" if between else "[0-9]{2}"
    return "^" + "".join(digits.get(part, two if part in DIGITS else re.escape(part))
                         for part in parts) + "$"  # fmt: skip


def _check_dates(there: Any, name: str, text: str) -> None:
    fits = nw.col("_v").str.contains(pattern_of(text))
    wrong = collect(there.filter(~nw.col("_v").is_null() & ~fits).head(1))
    if len(wrong):
        raise InputError(
            f"column {name!r} holds {short(wrong['_v'].to_list()[0])}, which is not written as "
            f"--date-format {text}: {DATE_ADVICE}"
        )


def _as_date(text: Any, fields: list[str], form: str) -> Any:
    if FIELD.sub("", form):
        pattern = form
        for name in ("YYYY", "YY", "MM", "DD", "M", "D"):
            pattern = re.sub(rf"(?<![%A-Za-z]){name}(?![A-Za-z])", STRPTIME[name], pattern)
        return text.str.to_datetime(pattern).cast(nw.Date)
    # Without separators a leading zero may be missing: it is restored.
    widths = [max(DIGITS[name], 2) for name in fields]
    text = text.str.zfill(sum(widths))
    at, found = 0, {}
    for name, width in zip(fields, widths, strict=True):
        found[name[0]] = text.str.slice(at, width)
        at += width
    year = found["Y"] if "YYYY" in fields else nw.concat_str(nw.lit("20"), found["Y"])
    iso = nw.concat_str(year, found["M"], found["D"], separator="-")
    return iso.str.to_datetime("%Y-%m-%d").cast(nw.Date)


def _banded(frame: Any, columns: Columns, reading: Reading) -> tuple[Any, Columns]:
    """Return the log with columns of groups in which bands replace numbers."""
    schema = frame.collect_schema()
    for name, cuts in reading.bands.items():
        if not schema[name].is_numeric():
            raise InputError(
                f"--bands cuts {name!r}, which holds {schema[name]} values: it needs numbers; if "
                "some words in it mean that the value is missing, type --missing-value with each."
            )
        banded = f"{name} in bands"
        frame = frame.with_columns(band(nw.col(name).cast(nw.Float64), cuts).alias(banded))
        group = tuple(banded if one == name else one for one in columns.group)
        columns = replace(columns, group=group)
    return frame, columns


def band(value: Any, cuts: tuple[float, ...]) -> Any:
    """Return an expression for the name of the band that contains a number."""
    names = band_names(cuts)
    found = nw.when(value >= cuts[-1]).then(nw.lit(names[-1]))
    for cut, name in list(zip(cuts, names, strict=False))[::-1]:
        found = nw.when(value < cut).then(nw.lit(name)).otherwise(found)
    return found


def band_names(cuts: tuple[float, ...]) -> list[str]:
    """Return the names of bands, the lowest first."""
    between = [f"{low:g} to under {high:g}" for low, high in pairwise(cuts)]
    return [f"under {cuts[0]:g}", *between, f"{cuts[-1]:g} or over"]


def _grouped(frame: Any, columns: Columns, reading: Reading) -> tuple[Any, Columns, list[LeftOut]]:
    """Return the log with the requested groups, under the names given to them."""
    schema = frame.collect_schema()
    given = [words(nw.col(name), schema[name]) for name in columns.group]
    raw = different(frame.select(*given), 10 * MOST_GROUPS + 1)
    if len(raw) > 10 * MOST_GROUPS:
        raise InputError(many_groups(columns, MOST_GROUPS + 1))
    names = _names(raw, columns)
    known = {say(name) for name in names if name is not None}
    _check_groups(reading, known, columns)
    called = {own: name for name, several in reading.groups.items() for own in several}
    target: dict[str, list[tuple[Any, ...]]] = {}
    for values, name in zip(raw, names, strict=True):
        if name is not None:
            chosen = called.get(say(name), reading.other)
            if chosen is not None:
                target.setdefault(chosen, []).append(values)
    found: Any = None
    for name, rows in target.items():
        tests = (
            nw.all_horizontal(*(c == v for c, v in zip(given, row, strict=True)), ignore_nulls=True)
            for row in rows
        )
        here = nw.when(nw.any_horizontal(*tests, ignore_nulls=True)).then(nw.lit(name))
        found = here if found is None else here.otherwise(found)
    label = "/".join(columns.group)
    label = label if label not in schema.names() else f"{label} as named"
    kept = frame.with_columns(found.alias(label))
    kept = kept.filter(~nw.col(label).is_null())
    own = " and ".join(columns.group)
    left = LeftOut(f"{own} is none of {', '.join(target)}", _count(frame) - _count(kept))
    return kept, replace(columns, group=(label,)), [left]


def _names(raw: list[tuple[Any, ...]], columns: Columns) -> list[Any]:
    read = []
    for column, values in zip(columns.group, zip(*raw, strict=True), strict=True):
        try:
            kinds = list(dict.fromkeys(values))
        except TypeError:
            raise InputError(no_names("group", column)) from None
        read.append(dict(zip(kinds, read_as(kinds, column, "group"), strict=True)))
    rows: list[tuple[Any, ...]] = [
        tuple(own[v] for own, v in zip(read, row, strict=True)) for row in raw
    ]
    several = len(columns.group) > 1
    return [None if None in row else row if several else next(iter(row)) for row in rows]


def _check_groups(reading: Reading, known: set[str], columns: Columns) -> None:
    for several in reading.groups.values():
        for name in several:
            if name not in known:
                shown = ", ".join(map(repr, sorted_names(known)[:12]))
                label = " and ".join(map(repr, columns.group))
                raise InputError(
                    f"--groups names {name!r}, but group {label} has no such value: it has "
                    f"{shown}. Name some of these."
                )
