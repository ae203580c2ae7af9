"""Checks of a log's values in memory, one column at a time, and messages for invalid values."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.logs.binary import Meant, which_are_yes
from sellf.logs.columns import Columns
from sellf.logs.names import (
    MOST_LETTERS,
    Values,
    grouping,
    is_missing,
    known,
    short,
)
from sellf.logs.person import Floats

MOST_GROUPS = 1000
MOST_LOOKED_AT = 100
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
NO_CHANCE = "a chance lies between 0 and 1."


def nothing_mature(name: str, cutoff: str) -> str:
    """Return the message for a log whose decisions are all too recent."""
    return (
        f"decided_on {name!r} has no date up to {cutoff}: no decision had time to show its "
        "outcome. Type a later --as-of or a shorter --matures-after, or --notion demographic, "
        "which needs no outcomes."
    )


def accepted_only(columns: Columns, rows: int) -> str:
    """Return the message for a log in which nobody was rejected."""
    return (
        f"decision {columns.decision!r} says accepted in all {rows:,} rows: this log holds "
        "accepted people only, and nothing can be concluded from it about those who were "
        "rejected. Give a log of all applications with the decision on each, the rejected ones "
        "included."
    )


def one_group(columns: Columns, names: list[Any]) -> str:
    """Return the message for a log of a single group."""
    label = " and ".join(map(repr, columns.group))
    shown = repr(names[0]) if names else "nobody"
    return (
        f"group {label} has one value only, {shown}: a disparity compares two groups or more. "
        "Name another column with --group."
    )


def many_groups(columns: Columns, count: int) -> str:
    """Return the message for a column that names people rather than groups."""
    label = " and ".join(map(repr, columns.group))
    return (
        f"group {label} has more than {MOST_GROUPS:,} values"
        + (f" ({count:,})" if count > MOST_GROUPS + 1 else "")
        + ": name a column of groups, not of people."
    )


def binary(values: Values, name: str, option: str, meant: Meant) -> NDArray[np.bool_]:
    """Return which rows of a binary column hold a value that means yes."""
    raw, codes = known(values, name, option)
    return np.array(which_are_yes(raw, name, option, meant), dtype=bool)[codes]


def outcomes(
    columns: Columns, table: dict[str, Values], accepted: Floats
) -> tuple[Floats, Floats | None, Floats | None]:
    """Return accepted positives, trusted rejected positives, and the accepted without outcome."""
    if columns.outcome is None:
        return np.zeros(len(accepted)), None, None
    values, name = table[columns.outcome], columns.outcome
    missing = is_missing(values)
    absent = missing & (accepted == 1)
    if columns.hide_rejected_outcomes:
        missing = missing | (accepted == 0)
    known = ~missing
    if absent.any() and absent.sum() == accepted.sum():
        raise InputError(missing_message(name, int(absent.sum())))
    given = known & (accepted == 0)
    if given.any() and not columns.trust_rejected_outcomes:
        raise InputError(rejected_message(name, int(given.sum()), int(np.flatnonzero(given)[0])))
    if columns.trust_rejected_outcomes and not known[accepted == 0].all():
        count = int((missing & (accepted == 0)).sum())
        raise InputError(untrusted_message(name, count))
    good = np.zeros(len(values))
    if known.any():
        good[known] = binary(values[known], name, "outcome", columns.turned_out)
    hidden = good * (1 - accepted) if columns.trust_rejected_outcomes else None
    return good * accepted, hidden, absent.astype(np.float64) if absent.any() else None


def missing_message(name: str, count: int) -> str:
    """Return the message for a log in which no accepted person has an outcome."""
    return (
        f"outcome {name!r} is missing for everyone who was accepted ({count:,} rows): name the "
        "column that holds outcomes, or leave --outcome out and type --notion demographic."
    )


def rejected_message(name: str, count: int, row: int | None) -> str:
    """Return the message for a log in which rejected people have an outcome."""
    first = "" if row is None else f" (the first is row {row})"
    return (
        f"outcome {name!r} is given for {count:,} rejected rows{first}: outcomes are observed for "
        "the accepted only. If it is a placeholder, such as a 0 for no outcome, type "
        "--hide-rejected-outcomes; if it is what really happened to them, type "
        "--trust-rejected-outcomes."
    )


def untrusted_message(name: str, count: int) -> str:
    """Return the message for missing outcomes of rejected people that were to be trusted."""
    return (
        f"outcome {name!r} is missing for {count:,} rejected rows: --trust-rejected-outcomes needs "
        "the outcome of everyone. Leave it out; then the outcomes of the rejected must be empty."
    )


def propensity(columns: Columns, table: dict[str, Values], accepted: Floats) -> Floats | None:
    """Return the chances of acceptance."""
    if columns.propensity is None:
        return None
    name = columns.propensity
    values = numbers(table[name], name, "propensity")
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        _refuse("propensity", name, table[name], bad, NO_CHANCE)
    impossible = (values == 0) & (accepted == 1)
    if impossible.any():
        expected = "this person was accepted, so the chance was not 0."
        _refuse("propensity", name, table[name], impossible, expected)
    certain = (values == 1) & (accepted == 0)
    if certain.any():
        expected = "this person was rejected, so the chance of acceptance was below 1."
        _refuse("propensity", name, table[name], certain, expected)
    return values


def score(columns: Columns, table: dict[str, Values]) -> Floats | None:
    """Return the predicted chances of a good outcome."""
    if columns.score is None:
        return None
    name, (low, high) = columns.score, columns.score_range
    values = numbers(table[name], name, "score")
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        _refuse("score", name, table[name], bad, expected_score(columns))
    values = (values - low) / (high - low)
    return 1 - values if columns.score_is_risk else values


def expected_score(columns: Columns) -> str:
    """Return what a score has to be, and what to type for another scale."""
    low, high = columns.score_range
    if (low, high) == (0.0, 1.0):
        return (
            "a score is the predicted chance of a good outcome, between 0 and 1; for another "
            "scale type --score-range with its lowest and highest value, for example 300:850."
        )
    return f"--score-range says that scores lie between {low:g} and {high:g}: type its real ends."


def groups(columns: Columns, table: dict[str, Values]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the groups' names in sorted order, and each row's index among them."""
    names: list[Any] = []
    codes = np.zeros(len(table[columns.decision]), dtype=np.intp)
    for place, name in enumerate(columns.group):
        own, own_codes = grouping(table[name], name, "group")
        if place == 0:
            names, codes = own, own_codes
            continue
        codes = codes * len(own) + own_codes
        names = [(*_tuple(first, place), second) for first in names for second in own]
        present, codes = np.unique(codes, return_inverse=True)
        names = [names[i] for i in present]
    return names, codes


def _tuple(name: Any, place: int) -> tuple[Any, ...]:
    return name if place > 1 else (name,)


def numbers(values: Values, name: str, option: str) -> Floats:
    """Return a column of numbers, none of them missing."""
    if values.dtype.kind in "biuf":
        result = values.astype(np.float64)
    else:
        result = np.array([_number(item) for item in values], dtype=np.float64)
    bad = ~np.isfinite(result)
    if bad.any():
        _refuse(
            option, name, values, bad, f"every row needs a number{_instead(name, values, bad)}."
        )
    return result


def _number(item: Any) -> float:
    try:
        return float(item)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _instead(name: str, values: Values, bad: NDArray[np.bool_]) -> str:
    """Return what to type where a column of numbers holds something else."""
    known = [str(item) for item in values[bad][:MOST_LOOKED_AT]]
    if all(DECIMAL_COMMA.fullmatch(item.strip()) for item in known):
        return "; if the decimal point is a comma, type --decimal ','"
    if bad.all():
        return ", and none has one: name a column of numbers"
    words = [f"--missing-value {short(item)} " for item in known[:1] if item.lower() != "nan"]
    return f'; to leave out rows without one, type {"".join(words)}--where "{name} is not missing"'


def _refuse(option: str, name: str, values: Values, bad: NDArray[np.bool_], expected: str) -> None:
    row = int(np.flatnonzero(bad)[0])
    more = int(bad.sum()) - 1
    others = f" ({more:,} more like it)" if more else ""
    value = str(values[row])[:MOST_LETTERS]
    raise InputError(f"{option} {name!r} is {value} at row {row}{others}: {expected}")
