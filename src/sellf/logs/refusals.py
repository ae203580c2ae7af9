"""Errors for rows of a log in an engine that cannot be used, in the same order as in memory."""

from collections.abc import Callable
from typing import Any

import narwhals as nw

from sellf.errors import InputError
from sellf.logs.columns import Columns
from sellf.logs.engine import collect, refuse_values
from sellf.logs.names import missing_names
from sellf.logs.values import (
    accepted_only,
    expected_score,
    missing_message,
    rejected_message,
    untrusted_message,
)

BAD = ("no_decision", "hidden_outcome", "hidden_unknown", "no_chance", "impossible", "certain",
       "no_score", "odd_decision", "odd_outcome")  # fmt: skip
"""Columns that count rows that cannot be used."""


def refuse(
    frame: Any,
    columns: Columns,
    prepared: Callable[[], Any],
    sums: dict[str, list[Any]],
    labels: list[Any],
) -> None:
    """Raise an error for rows that cannot be used.

    Args:
        frame: the log.
        columns: what its columns mean.
        prepared: returns the log with the columns that count such rows.
        sums: the sums by group and stratum.
        labels: the group of each sum; None where it is missing.
    """
    c = columns
    bad: dict[str, int] = dict.fromkeys(BAD, 0)
    if sum(sums["problems"]):
        # Their kinds are queried only if there are any, which saves columns in the usual case.
        found = collect(prepared().select(*(nw.col(name).sum() for name in BAD)))
        bad = {name: int(found[name].to_list()[0]) for name in BAD}
    accepted, pending = int(sum(sums["accepted"])), int(sum(sums["pending"]))
    if bad["no_decision"]:
        raise InputError(missing_names("decision", c.decision, bad["no_decision"]))
    if bad["odd_decision"]:
        refuse_values(frame, c.decision, "decision")
    if accepted == sum(sums["people"]):
        raise InputError(accepted_only(c, accepted))
    if pending and pending == accepted:
        raise InputError(missing_message(str(c.outcome), pending))
    if bad["hidden_outcome"] and not c.trust_rejected_outcomes:
        raise InputError(rejected_message(str(c.outcome), bad["hidden_outcome"], None))
    if bad["hidden_unknown"] and c.trust_rejected_outcomes:
        raise InputError(untrusted_message(str(c.outcome), bad["hidden_unknown"]))
    if bad["odd_outcome"]:
        refuse_values(frame, str(c.outcome), "outcome")
    _refuse_chances(frame, c, bad)
    gone = sum(n for n, name in zip(sums["people"], labels, strict=True) if name is None)
    if gone:
        raise InputError(missing_names("group", " or ".join(c.group), gone))


def _refuse_chances(frame: Any, c: Columns, bad: dict[str, int]) -> None:
    if bad["no_chance"]:
        advice = "every row needs a chance between 0 and 1."
        said = _no_chance(frame, "propensity", str(c.propensity), bad["no_chance"], (0, 1), advice)
        raise InputError(said)
    if bad["impossible"]:
        raise InputError(
            f"propensity {c.propensity!r} is 0 for {bad['impossible']:,} accepted rows: "
            "somebody who was accepted had a chance above 0."
        )
    if bad["certain"]:
        raise InputError(
            f"propensity {c.propensity!r} is 1 for {bad['certain']:,} rejected rows: somebody "
            "who was rejected had a chance of acceptance below 1."
        )
    if bad["no_score"]:
        ends, advice = c.score_range, expected_score(c)
        raise InputError(_no_chance(frame, "score", str(c.score), bad["no_score"], ends, advice))


def _no_chance(
    frame: Any, what: str, column: str, rows: int, ends: tuple[float, float], advice: str
) -> str:
    value, (low, high) = nw.col(column), ends
    inside = (value >= low) & (value <= high) & value.is_finite()
    wrong = frame.filter(value.is_null() | ~inside)
    found = collect(wrong.select(column).head(1))
    example = f" (for example {found[column].to_list()[0]})" if len(found) else ""
    return (
        f"{what} {column!r} is missing or outside [{low:g}, {high:g}] in {rows:,} rows{example}: "
        f"{advice}"
    )
