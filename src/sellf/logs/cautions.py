"""What a log makes one doubt before any figure is computed: sentences for an audit's warnings."""

import re
import shlex
import unicodedata
from collections.abc import Iterable
from typing import Any

from sellf.logs.columns import Columns
from sellf.logs.names import say
from sellf.logs.person import Floats

FEW_REJECTED = 0.02
"""A smaller share of rejected people is warned of."""
ENOUGH_PEOPLE = 50
"""In smaller groups a share says little."""


def nearly_all_accepted(names: list[Any], people: Floats, accepted: Floats) -> list[str]:
    """Say where hardly anybody is rejected, as in logs that lack most of the rejected.

    Args:
        names: the groups.
        people: how many people each group has.
        accepted: how many of them were accepted.
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
"""Words in the name of a column that names people."""
KEYS = frozenset({"code", "hash", "key", "name", "no", "nr", "number", "ref", "uuid"})
"""Words that may follow them: customer_number names people, customer_age does not."""
FEWEST_APPLICATIONS = 1 / 100
"""With fewer different values than this share of the rows a column hardly names people."""


def may_name_people(columns: Columns, present: Iterable[Any]) -> list[str]:
    """Return the columns that are not used and whose names say that they name people."""
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
    """Say so if a column that may name people names some of them more than once."""
    if not max(2, FEWEST_APPLICATIONS * rows) < distinct < rows:
        return []
    return [
        f"column {name!r} has {distinct:,} different values in {rows:,} rows: if it names people, "
        f"type --person {shlex.quote(name)}, since the interval counts every row as a new person."
    ]


def look_alikes(columns: Columns, names: list[Any]) -> list[str]:
    """Say which names of groups differ in case or in blanks only."""
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
