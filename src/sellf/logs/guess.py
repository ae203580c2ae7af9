"""Guesses of what the columns of a log mean, from their names and their first rows.

Guesses are only written to a configuration that the user reviews, or offered in a question.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from sellf.errors import InputError
from sellf.logs.arrays import array
from sellf.logs.binary import MISSING_WORDS, meaning
from sellf.logs.config import Reading
from sellf.logs.engine import collect
from sellf.logs.files import named_files, open_files
from sellf.logs.names import is_missing, missing

LOOKED_AT = 20_000
"""Rows that are read."""
MOST_NAMED = 30
"""Most values of a column of groups."""
NAMES: dict[str, tuple[str, ...]] = {
    "decision": ("decision", "decided", "accepted", "approved", "approval", "granted", "hired",
                 "admitted", "released", "searched", "frisked", "cardhldr", "selected", "offer"),
    "outcome": ("outcome", "repaid", "repay", "default", "defaulted", "paid", "recid", "label",
                "found", "success", "hit", "good", "bad", "contrabn", "target"),
    "group": ("group", "race", "ethnicity", "ethnic", "sex", "gender", "religion", "nationality",
              "disability"),
    "propensity": ("propensity", "p_approve", "p_accept", "prob_accept"),
    "score": ("score", "p_repay", "prediction", "predicted", "probability"),
    "decided_on": ("date", "decided_on", "decision_date", "day", "datestop"),
}  # fmt: skip
"""Words in the names of columns, by the role that they suggest."""
YES = ("y", "yes", "true", "1", "approved", "accepted", "granted", "good", "paid", "repaid")
BAD = ("default", "defaulted", "recid", "bad", "delinquent", "arrest")
"""Words in the names of outcomes for which 1 is bad."""


@dataclass(frozen=True)
class Looked:
    """Summary of a column from its first rows."""

    name: str
    values: tuple[Any, ...]
    """Distinct values without the missing ones, at most 1,000."""
    filled: Any
    """Which rows hold a value."""
    share: bool
    """Whether it holds more than two distinct numbers, all of them from 0 to 1."""

    @property
    def two(self) -> bool:
        """Whether it has one or two values, codes for missing values excluded."""
        kept = [v for v in self.values if str(v).strip().lower() not in MISSING_WORDS - {"-"}]
        return 1 <= len({str(meaning(v)) for v in kept}) <= 2


def look(log: str, reading: Reading) -> list[Looked]:
    """Return a summary of each column from the first rows of a file."""
    found, names = open_files(named_files(log), reading)
    frame = nw.from_native(found).lazy().head(LOOKED_AT)
    rows = collect(frame)
    if not len(rows):
        raise InputError("the log has no rows: there is nobody to audit.")
    return [
        _looked(name, array(name, rows[own]))
        for name, own in zip(names, rows.columns, strict=False)
    ]


def _looked(name: str, values: Any) -> Looked:
    gone = is_missing(values)
    known = values[~gone]
    different = list(dict.fromkeys(map(_plain, known[:LOOKED_AT].tolist())))
    numbers = [v for v in different if isinstance(v, int | float) and not isinstance(v, bool)]
    share = len(numbers) == len(different) > 2 and all(0 <= v <= 1 for v in numbers)
    return Looked(name, tuple(different[:1000]), ~gone, share)


def _plain(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _fits(name: str, option: str) -> int:
    """Return how well a column's name matches an option; 0 if it does not."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    for rank, word in enumerate(NAMES[option]):
        if word in words or word == name.lower():
            return 100 - rank
        if len(word) > 3 and any(one.startswith(word) for one in words):
            return 50 - rank
    return 0


def guess(
    columns: Sequence[Looked], given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return options for a log, both given and guessed, and notes on some of them.

    Args:
        columns: from `look`.
        given: the options given by the user.
    """
    by_name = {column.name: column for column in columns}
    options, notes = dict(given), {}
    taken = {given.get(name) for name in ("decision", "outcome", "propensity", "score")}

    def best(option: str, allowed: list[Looked]) -> str | None:
        ranked = sorted(
            (c for c in allowed if _fits(c.name, option) and c.name not in taken),
            key=lambda c: -_fits(c.name, option),
        )
        return ranked[0].name if ranked else None

    tests = {
        "decision": lambda c: c.two and c.filled.all(),
        "outcome": lambda c: c.two,
        "group": lambda c: 2 <= len(c.values) <= MOST_NAMED,
        "propensity": lambda c: c.share,
        "score": lambda c: c.share,
    }
    for option, test in tests.items():
        if options.get(option):
            continue
        found = best(option, [column for column in columns if test(column)])
        if found is not None:
            options[option] = [found] if option == "group" else found
            taken.add(found)
            notes[option] = "guessed from its name: check that it is right"
    _values(options, notes, by_name)
    return {name: value for name, value in options.items() if value not in (None, (), [])}, notes


def _values(options: dict[str, Any], notes: dict[str, str], by_name: dict[str, Looked]) -> None:
    """Add options for the values of decisions and outcomes, and for hidden outcomes."""
    for option, flag in (("decision", "accepted_value"), ("outcome", "positive_value")):
        column = by_name.get(str(options.get(option)))
        if column is None:
            continue
        gone = [
            v for v in column.values if str(v).lower() in MISSING_WORDS and len(column.values) > 2
        ]
        if gone and not options.get("missing_value"):
            options["missing_value"] = [str(value) for value in gone]
        kinds = [value for value in column.values if value not in gone]
        if option == "outcome" and _fits_bad(column.name) and not options.get(flag):
            options.setdefault("negative_value", next((v for v in kinds if _is(v, YES)), 1))
            notes["negative_value"] = "the name suggests that the outcome is bad"
        elif any(meaning(value) not in (0, 1) for value in kinds) and not options.get(flag):
            yes = next((value for value in kinds if _is(value, YES)), None)
            if yes is not None:
                options[flag] = yes
    decision, outcome = (by_name.get(str(options.get(name))) for name in ("decision", "outcome"))
    if decision is None or outcome is None or "hide_rejected_outcomes" in options:
        return
    if outcome.filled.all():
        options["hide_rejected_outcomes"] = True
        notes["hide_rejected_outcomes"] = (
            "the rejected have outcomes too; if they are real, use trust_rejected_outcomes"
        )


def _fits_bad(name: str) -> bool:
    return any(word in name.lower() for word in BAD)


def _is(value: Any, words: tuple[str, ...]) -> bool:
    return not missing(value) and str(value).strip().lower() in words
