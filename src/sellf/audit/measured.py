"""Further results of an audit: tables with notes that can be printed and stored as JSON.

Each is a small frozen dataclass of numbers, strings, intervals and tuples of these. One function
converts any of them to plain values, and another reads them back and checks every value's type.
"""

import dataclasses
import json
import math
import types
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from sellf.audit.interval import Interval
from sellf.fairness.tables import Table


class Measured(Table):
    """A result in addition to the disparity of a notion."""

    key: ClassVar[str]
    """The name of the result in JSON."""
    heading: ClassVar[str]
    """The heading of the result in a report."""

    def notes(self) -> list[str]:
        """Return the notes that explain the figures, assumptions first, one sentence each."""
        return []

    def check(self) -> None:
        """Raise ValueError if a verdict does not follow from the figures beside it."""

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as plain values; NaN and infinite values become None."""
        return to_plain(self)

    def to_json(self) -> str:
        """Return every figure as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.notes()])


def to_plain(value: Any) -> Any:
    """Convert a result to values that JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if names := getattr(value, "_fields", None):
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_plain(kind: Any, saved: Any) -> Any:
    """Rebuild a result from plain values; raise TypeError or ValueError if they do not fit."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
        return None if saved is None else from_plain(kind, saved)
    if origin is Literal:
        if saved not in get_args(kind):
            raise ValueError(f"{str(saved)[:60]!r} is not one of {get_args(kind)}")
        return saved
    if origin is tuple:
        if not isinstance(saved, list):
            raise TypeError(f"{str(saved)[:60]!r} is not a list")
        return tuple(from_plain(get_args(kind)[0], item) for item in saved)
    if origin is dict:
        return {_simple(str, name): from_plain(get_args(kind)[1], x) for name, x in saved.items()}
    if kind is Interval:
        return _interval(saved)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        own = getattr(kind, "_fields", None) or [f.name for f in dataclasses.fields(kind)]
        make: Any = kind
        found = make(**{name: from_plain(hints[name], saved[name]) for name in own})
        if isinstance(found, Measured):
            found.check()
        return found
    return _simple(kind, saved)


def _interval(saved: dict[str, Any]) -> Interval:
    low, value, high = (_simple(float, saved[end]) for end in ("low", "value", "high"))
    high = math.inf if saved["high"] is None else high
    value = math.inf if saved["value"] is None and high == math.inf else value
    if not (math.isnan(low) or low - 1e-9 <= value <= high + 1e-9):
        raise ValueError(f"{value!r} is not between {low!r} and {high!r}")
    return Interval(low, value, high)


def _simple(kind: Any, saved: Any) -> Any:
    if kind is float:
        if saved is None:
            return math.nan
        if isinstance(saved, bool) or not isinstance(saved, int | float):
            raise TypeError(f"{str(saved)[:60]!r} is not a number")
        return float(saved)
    if type(saved) is not kind:
        raise TypeError(f"{str(saved)[:60]!r} is not of type {kind.__name__}")
    return saved
