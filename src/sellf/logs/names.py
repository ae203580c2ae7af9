"""Interpretation of a log's values: which are missing, and which names they stand for.

Logs in engines and in memory share these functions. An engine returns the distinct values of a
column, so that a word with blanks around it is read in the same way wherever the log is stored.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.fairness.checks import sorted_names

Values = NDArray[Any]
WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))\.0*")
"""Whole numbers as some programs write them: 1.0 for 1."""
USUAL_DATES = "give dates of the years 1 to 9999, for example 2026-03-31."
MOST_LETTERS = 200
"""Most characters of a value that a message repeats."""
TOO_FINE = (
    "a name is a time with fractions of a microsecond, which would be lost: write such names as "
    "words, or round them."
)
LONGEST = 1_000
"""Most characters of a name, which every table and message about a group repeats."""
LONGEST_TEXT = 100_000
"""Most characters of a value that is loaded from an engine."""
TOO_LONG = (
    "a value has {letters:,} characters, and at most {most:,} are allowed: name another column, or "
    "shorten the values."
)
LONG = 10_000
"""Number of rows from which on it pays to find out first what kind of values a column holds."""
FEW = 8
"""Largest number of distinct values that rows are compared with one by one."""
EXACT = 2**53
"""Floats represent whole numbers exactly up to here; beyond, different numbers become equal."""


def short(value: Any) -> str:
    """Return the repr of a name or value for a message, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


def is_missing(values: Values) -> NDArray[np.bool_]:
    """Return which values are None, NaN, NaT or blank words."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "U":
        return np.char.strip(values) == ""
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    coded = _coded_words(values)
    if coded is not None:
        return np.array([missing(item) for item in coded[0]], dtype=bool)[coded[1]]
    return np.fromiter((missing(item) for item in values), bool, len(values))


def missing(item: Any) -> bool:
    """Return whether one value is None, NaN, NaT or a blank word."""
    if item is None or (isinstance(item, str) and not item.strip()):
        return True
    try:
        return bool(item != item)  # NaN and NaT differ from themselves, pandas' NA cannot say
    except (TypeError, ValueError):
        return True


def numbered(values: Values, name: str, option: str) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values of a column, unchanged, and each row's index among them."""
    kind = values.dtype.kind
    if kind == "M":
        coarse = values.astype("datetime64[us]")  # finer ones turn into whole numbers in a list
        if ((coarse != values) & ~np.isnat(values)).any():
            raise InputError(f"{option} {name!r}: {TOO_FINE}")
        values = coarse
    if kind in "biufMmUS":
        found, codes = _few(values) or np.unique(values, return_inverse=True)
        return found.tolist(), codes.astype(np.intp)
    coded = _coded_words(values)
    if coded is not None:
        return coded
    places: dict[Any, int] = {}
    # By type too, since True and 1 are equal and would be one key.
    keys = ((type(item), item) if type(item) is not str else item for item in values)
    try:
        codes = np.fromiter(
            (places.setdefault(key, len(places)) for key in keys), np.intp, len(values)
        )
    except TypeError:
        raise InputError(no_names(option, name)) from None
    return [key[1] if type(key) is tuple else key for key in places], codes


def _few(values: Values) -> tuple[Values, NDArray[np.intp]] | None:
    """Return the distinct numbers of a column and each row's index, if there are only a few.

    Looking rows up among a few numbers takes a fraction of the time of sorting them.
    """
    if values.dtype.kind not in "biuf" or len(values) < LONG:
        return None
    found = np.unique(values[:LONG])
    if len(found) > FEW:
        return None
    codes, seen = np.zeros(len(values), dtype=np.int8), 0
    for place, value in enumerate(found):
        same = values == value
        codes[same] = place
        seen += int(np.count_nonzero(same))
    return (found, codes.astype(np.intp)) if seen == len(values) else None


def _coded_words(values: Values) -> tuple[list[Any], NDArray[np.intp]] | None:
    """Return the distinct words of a long column in order of appearance, and each row's index.

    None if the column holds anything else than words and missing values, or if Arrow, which is
    many times as fast as a loop, is not installed.
    """
    if len(values) < LONG or values.dtype.kind != "O":
        return None
    try:
        import pyarrow as pa

        found = pa.array(values, from_pandas=True)
        if not isinstance(found, pa.Array) or not pa.types.is_string(found.type):
            return None
        coded: Any = found.dictionary_encode("encode")
    except (ImportError, TypeError, ValueError, OverflowError):
        # Arrow's own exceptions are subclasses of these.
        return None
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.intp)


def read_as(raw: Sequence[Any], name: str, option: str) -> list[Any]:
    """Return the name that each of a column's distinct values stands for; None for missing ones.

    Strings are stripped, and whole numbers are written without a decimal point. If a column mixes
    strings with numbers, Booleans or dates, all become strings, so that 1, 1.0 and "1" are one
    name.
    """
    try:
        names = [None if missing(value) else _name(value) for value in raw]
    except InputError as error:
        raise InputError(f"{option} {name!r}: {error.typed}") from None
    kinds = {_kind(name) for name in names if name is not None}
    if len(kinds) < 2:
        return names
    truths = {"true": "True", "false": "False"} if "truth" in kinds else {}
    return [
        name if name is None or _kind(name) == "other" else truths.get(str(name).lower(), str(name))
        for name in names
    ]


def _name(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        word = value.strip()
        if "\x00" in word:
            raise InputError(
                "a name holds zero bytes, as in a file that was damaged while it was written: "
                "restore the file, or leave that row out."
            )
        if len(word) > LONGEST:
            begins = f" It begins {short(word[:40])}."
            raise InputError(TOO_LONG.format(letters=len(word), most=LONGEST) + begins)
        whole = WHOLE.fullmatch(word)
        return whole[1] if whole else word
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral() else float(value)
    if isinstance(value, float) and value.is_integer():
        if abs(value) >= EXACT:
            raise InputError(
                f"a name is {value:g}, too large a number for its last digits to be kept: write "
                "such names as words, for example with a letter before them."
            )
        return int(value)
    if isinstance(value, datetime) and hasattr(value, "to_pydatetime"):  # pandas' own times
        if value.nanosecond:  # pyright: ignore[reportAttributeAccessIssue]
            raise InputError(TOO_FINE)
        value = value.to_pydatetime()  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(value, datetime) and value == datetime(value.year, value.month, value.day):
        return value.date()
    return value


def _kind(name: Any) -> str:
    if isinstance(name, bool):
        return "truth"
    if isinstance(name, int | float):
        return "number"
    if isinstance(name, str):
        return "word"
    return "date" if hasattr(name, "isoformat") else "other"


def known(values: Values, name: str, option: str) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values of a column, and each row's index; none may be missing."""
    raw, codes = numbered(values, name, option)
    gone = np.array([missing(item) for item in raw], dtype=bool)[codes]
    if gone.any():
        row = int(np.flatnonzero(gone)[0])
        raise InputError(missing_names(option, name, int(gone.sum()), row))
    return raw, codes


def grouping(values: Values, name: str, option: str) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the names in a column in sorted order, and each row's index; none may be missing."""
    raw, codes = known(values, name, option)
    own = read_as(raw, name, option)
    names = sorted_names(dict.fromkeys(own))
    place = {item: i for i, item in enumerate(names)}
    return names, np.array([place[item] for item in own], dtype=np.intp)[codes]


def no_names(option: str, name: str) -> str:
    """Return the message for a column of groups or people that holds lists or the like."""
    return f"{option} {name!r} holds values that cannot be names: give words or numbers."


def missing_names(option: str, name: str, count: int, row: int | None = None) -> str:
    """Return the message for missing values among groups, people, decisions or dates."""
    first = "" if row is None else f" (the first is row {row})"
    advice = {
        "group": "leave those rows out, or name their group, for example 'unknown'.",
        "person": "leave those rows out, or give each of them a name of its own.",
        "decision": "every application has a decision; leave those rows out.",
    }.get(option, "leave those rows out.")
    return f"{option} {name!r} is missing in {count:,} rows{first}: {advice}"


def say(name: Any) -> str:
    """Return a group's name for display."""
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)
