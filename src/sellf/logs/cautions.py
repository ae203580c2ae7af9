"""Warnings about a log, raised before any estimate is computed."""

import re
import shlex
import unicodedata
from collections.abc import Iterable
from typing import Any

from sellf.logs.columns import Columns
from sellf.logs.names import say
from sellf.logs.person import Floats

FEW_REJECTED = 0.02
"""A smaller share of rejected people causes a warning."""
ENOUGH_PEOPLE = 50
"""Smaller groups are not checked, because their shares are too noisy."""


def nearly_all_accepted(names: list[Any], people: Floats, accepted: Floats) -> list[str]:
    """Return warnings where hardly anybody is rejected, as in logs that lack most rejections.

    Args:
        names: the groups.
        people: number of people in each group.
        accepted: number of accepted people in each group.
    """
    rejected = people - accepted
    if rejected.sum() < FEW_REJECTED * people.sum():
        return [_nearly_all("the log", rejected.sum(), people.sum())]
    few = (people >= ENOUGH_PEOPLE) & (rejected < FEW_REJECTED * people)
    return [
        _nearly_all(f"group {say(name)}", rejected[i], people[i])
        for i, name in enumerate(names)
        if few[i]
    ]


PEOPLE = frozenset({
    "account", "applicant", "borrower", "candidate", "client", "customer", "debtor", "defendant",
    "employee", "id", "member", "passport", "patient", "person", "pupil", "ssn", "student", "user",
})  # fmt: skip
"""Words in the names of columns that identify people."""
KEYS = frozenset({"code", "hash", "key", "name", "no", "nr", "number", "ref", "uuid"})
"""Words that may follow them: customer_number identifies people, customer_age does not."""
FEWEST_APPLICATIONS = 1 / 100
"""A column with fewer distinct values than this share of the rows hardly identifies people."""


def may_name_people(columns: Columns, present: Iterable[Any]) -> list[str]:
    """Return the unused columns whose names suggest that they identify people."""
    if columns.person is not None:
        return []
    used = columns.named()
    return [name for name in present if isinstance(name, str) and name not in used and _key(name)]


def _key(name: str) -> bool:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    words = [word.lower() for word in re.split(r"[_.\-\s]+", apart) if word]
    while len(words) > 1 and words[-1] in KEYS:
        words.pop()
    return bool(words) and (words[-1] in PEOPLE or "id" in words)


def repeated_people(name: str, distinct: int, rows: int) -> list[str]:
    """Return a warning if a column that may identify people has repeated values."""
    if not max(2, FEWEST_APPLICATIONS * rows) < distinct < rows:
        return []
    return [
        f"column {name!r} has {distinct:,} different values in {rows:,} rows: if it names people, "
        f"type --person {shlex.quote(name)}, since the interval counts every row as a new person."
    ]


def look_alikes(columns: Columns, names: list[Any]) -> list[str]:
    """Return warnings about group names that differ only in case or blanks."""
    lines = []
    for place, column in enumerate(columns.group):
        alike: dict[str, dict[str, None]] = {}
        for name in names:
            word = str(name[place] if len(columns.group) > 1 else name)
            plain = "".join(unicodedata.normalize("NFKC", word).split()).casefold()
            alike.setdefault(plain, {})[word] = None
        lines += [
            f"group {column!r} has {' and '.join(map(repr, words))}, which differ in case or "
            "blanks only: if they are one group, give them one name before the audit."
            for words in alike.values()
            if len(words) > 1
        ]
    return lines


def _nearly_all(where: str, rejected: float, people: float) -> str:
    return (
        f"only {int(rejected):,} of {int(people):,} people of {where} are rejected "
        f"({rejected / people:.1%}): if rejected applications are missing from the log, no figure "
        "here is right. Audit a log of all applications."
    )
