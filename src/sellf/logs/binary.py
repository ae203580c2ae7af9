"""Binary columns (decisions and outcomes): which of their values mean yes."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from sellf.errors import InputError
from sellf.fairness.checks import sorted_names
from sellf.logs.names import short

NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
TRUTHS = {"true": 1, "false": 0}
MISSING_WORDS = frozenset({
    "na", "n/a", "#n/a", "nan", "null", "none", ".", "-", "?", "missing", "unknown", "-1", "-1.0",
    "-9", "-99", "-999", "9", "99", "999",
})  # fmt: skip
"""Codes that commonly stand for a missing value."""
MOST_SHOWN = 6


class Meant(NamedTuple):
    """The values that mean yes and those that mean no, as the user named them."""

    yes: tuple[Any, ...] = ()
    """If empty, 1 or True means yes, or every value that does not mean no."""
    no: tuple[Any, ...] = ()
    """If empty, the other value means no, provided that there is only one."""

    @property
    def names_blank(self) -> bool:
        """Whether an empty value is named, so that it does not count as missing."""
        return any(isinstance(value, str) and not value.strip() for value in (*self.yes, *self.no))


AS_NUMBERS = Meant()
"""1 means yes and 0 means no."""
FLAGS = {
    "decision": ("--accepted-value", "--rejected-value", "accepted", "rejected"),
    "outcome": ("--positive-value", "--negative-value", "a good outcome", "a bad one"),
}


def values_of(value: Any) -> tuple[Any, ...]:
    """Return the value or values of an option as a tuple."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)


def meaning(item: Any) -> Any:
    """Return the normalised form of a value: 1, 1.0, True, "1", " 1" and "true" are equal."""
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, bool):
        return int(item)
    if isinstance(item, Decimal):
        return float(item)
    if not isinstance(item, str):
        return item
    word = item.strip()
    return float(word) if NUMBER.fullmatch(word) else TRUTHS.get(word.lower(), word)


def which_are_yes(raw: Sequence[Any], name: str, option: str, meant: Meant) -> list[bool]:
    """Return which of a column's distinct values mean yes; none of them may be missing."""
    means = [meaning(value) for value in raw]
    try:
        kinds = dict(zip(reversed(means), reversed(raw), strict=True))
    except TypeError:  # lists and other values that are not hashable
        raise InputError(
            f"{option} {name!r} holds values that are neither words nor numbers: give two, 1 and 0."
        ) from None
    wanted = _yes(kinds, name, option, meant)
    return [item in wanted for item in means]


def _yes(kinds: dict[Any, Any], name: str, option: str, meant: Meant) -> list[Any]:
    """Return the normalised values that mean yes; refuse values whose meaning is unclear."""
    yes = [_named(value, kinds, name, option, 0) for value in meant.yes]
    no = [_named(value, kinds, name, option, 1) for value in meant.no]
    both = [kinds[kind] for kind in yes if kind in no]
    yes_flag, no_flag, word, opposite = FLAGS[option]
    if both:
        raise InputError(
            f"{option} {name!r}: {short(both[0])} is named with {yes_flag} and with {no_flag}: "
            "name it once."
        )
    others = [kind for kind in kinds if kind not in yes and kind not in no]
    if not yes and not no:
        if all(_equal(kind, 0) or _equal(kind, 1) for kind in kinds):
            return [1]
        raise InputError(_unclear(kinds, name, option))
    if len(others) > 1 or (others and yes and no):
        left = _listed([kinds[kind] for kind in others])
        raise InputError(
            f"{option} {name!r} is also {left}: type {yes_flag} or {no_flag} for each value that "
            f"means {word} or {opposite}, and leave out rows that are neither with "
            f"{_without(name, sorted_names([kinds[kind] for kind in others])[0])}."
        )
    return yes or others


def _named(value: Any, kinds: dict[Any, Any], name: str, option: str, flag: int) -> Any:
    """Return the normalised value of the column that the user named."""
    wanted = meaning(value)
    for kind in kinds:
        if _equal(kind, wanted) or (isinstance(value, str) and str(kind) == value.strip()):
            return kind
    raise InputError(
        f"{option} {name!r} is never {value!r}; it is {_listed(list(kinds.values()))}: type "
        f"{FLAGS[option][flag]} with one of these."
    )


def _unclear(kinds: dict[Any, Any], name: str, option: str) -> str:
    """Return the message for values other than 0 and 1, with the option to type."""
    yes_flag, _, word, _ = FLAGS[option]
    values = sorted_names(kinds.values())
    gone = [value for value in values if str(value).strip().lower() in MISSING_WORDS]
    advice = ""
    if gone and len(kinds) > 2:
        advice = f" If {gone[0]} means that the value is missing, type --missing-value {gone[0]}."
    if len(kinds) <= 2:
        return (
            f"{option} {name!r} has the values {_listed(values)}: say which of them means {word} "
            f"with {yes_flag}."
        )
    return (
        f"{option} {name!r} has {len(kinds):,} values ({_listed(values)}): say which of them mean "
        f"{word} with {yes_flag}, one after the other, and leave out rows that are neither with "
        f"{_without(name, values[-1])}.{advice}"
    )


def _without(name: str, value: Any) -> str:
    shown = str(value) if isinstance(value, int | float) else f"'{value}'"
    column = name if re.fullmatch(r"\w+", name) else f"`{name}`"
    return f'--where "{column} != {shown}"'


def _listed(values: list[Any]) -> str:
    shown = ", ".join(map(short, sorted_names(values)[:MOST_SHOWN]))
    return shown + (", ..." if len(values) > MOST_SHOWN else "")


def _equal(kind: Any, wanted: Any) -> bool:
    try:
        return bool(kind == wanted)
    except (TypeError, ValueError):
        return False
