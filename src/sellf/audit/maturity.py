"""Maturity of outcomes: which decisions are old enough, and which outcomes are pending."""

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sellf.audit.evidence import Evidence
from sellf.audit.result import Waiting
from sellf.errors import InputError
from sellf.logs.log import Log
from sellf.logs.names import say

LENGTH = re.compile(r"(\d{1,5})\s*(d|w|mo|y)")
MOST_NAMED = 5
"""The largest number of groups whose figures are listed in a sentence."""


@dataclass(frozen=True)
class Maturity:
    """The time that an outcome takes to be known."""

    number: int
    unit: str
    """d, w, mo or y."""
    as_of: date | None
    """The day on which outcomes were looked up; None: the day of the last decision."""

    def cutoff(self, latest: date) -> date:
        """Return the last day of decisions that are old enough.

        Args:
            latest: the day of the last decision in the log.
        """
        end = latest if self.as_of is None else self.as_of
        if self.unit in ("d", "w"):
            days = self.number * (7 if self.unit == "w" else 1)
            return date.fromordinal(max(end.toordinal() - days, 1))
        months = end.year * 12 + end.month - 1 - self.number * (12 if self.unit == "y" else 1)
        year, month = divmod(months, 12)
        if year < 1:
            return date.min
        day = min(end.day, calendar.monthrange(year, month + 1)[1])
        return date(year, month + 1, day)

    def __str__(self) -> str:
        return f"{self.number}{self.unit}"


def read_maturity(decided_on: Any, matures_after: Any, as_of: Any) -> Maturity | None:
    """Parse the options on maturity; None if none was given."""
    if decided_on is None and matures_after is None and as_of is None:
        return None
    if matures_after is None:
        raise InputError(
            "matures_after is missing: say how long an outcome takes to be known, for example "
            "--matures-after 365d."
        )
    if decided_on is None:
        raise InputError(
            "decided_on is missing: name the column that holds the date of each decision with "
            "--decided-on."
        )
    found = LENGTH.fullmatch(matures_after.strip()) if isinstance(matures_after, str) else None
    if found is None or int(found[1]) == 0:
        raise InputError(
            f"matures_after is {matures_after!r}: give a whole number of days, weeks, months or "
            "years, for example 365d, 52w, 12mo or 1y."
        )
    return Maturity(int(found[1]), found[2], None if as_of is None else _day(as_of))


def _day(as_of: Any) -> date:
    if isinstance(as_of, date):
        return as_of.date() if isinstance(as_of, datetime) else as_of
    try:
        return date.fromisoformat(as_of.strip())
    except (AttributeError, ValueError):
        raise InputError(
            f"as_of is {as_of!r}: give the day on which outcomes were looked up, for example "
            "2026-06-30."
        ) from None


def set_aside(log: Log, maturity: Maturity | None) -> tuple[Log, str | None]:
    """Return the log with the mature decisions marked, and the last day of those."""
    if maturity is None:
        return log, None
    cutoff = maturity.cutoff(log.latest())
    return log.up_to(cutoff), str(cutoff)


def waiting(people: dict[Any, int], evidence: Evidence, cutoff: str | None) -> Waiting | None:
    """Return the numbers of rows set aside and of people without an outcome, by group.

    Args:
        people: the number of rows of each group in the whole log.
        evidence: the evidence from the rows that count.
        cutoff: the last day of decisions that count; None: all count.
    """
    total = evidence.sums.by_group()
    counted = dict(zip(evidence.names, total.people, strict=True))
    pending = dict(zip(evidence.names, map(int, total.pending), strict=True))
    if cutoff is None and not any(pending.values()):
        return None
    immature = {name: n - int(counted.get(name, 0)) for name, n in people.items()}
    return Waiting(cutoff, immature, pending)


def in_words(
    found: Waiting, maturity: Maturity | None, evidence: Evidence
) -> tuple[list[str], list[str]]:
    """Return sentences for an audit's assumptions, and for its warnings."""
    assumed, warned = [], []
    aside = sum(found.immature.values())
    if found.cutoff is not None:
        assumed.append(
            f"the outcome of a decision is known {maturity} later: the {aside:,} rows decided "
            f"after {found.cutoff} are set aside" + (_listed(found.immature) if aside else "")
        )
        gone = [say(name) for name in found.immature if name not in found.pending]
        if gone:
            listed = ", ".join(gone[:MOST_NAMED]) + (", ..." if len(gone) > MOST_NAMED else "")
            warned.append(
                f"no decision on {listed} was made up to {found.cutoff}: they are not audited."
            )
    pending = sum(found.pending.values())
    if pending:
        accepted = int(evidence.sums.accepted.sum())
        advice = (
            " If outcomes take time, type --decided-on COLUMN --matures-after 365d to count only "
            "decisions that are old enough."
        )
        warned.append(
            f"{pending:,} of {accepted:,} accepted people have no outcome{_listed(found.pending)}: "
            "each of them may be good or bad, which widens the interval."
            + (advice if found.cutoff is None else "")
        )
    return assumed, warned


def _listed(counts: dict[Any, int]) -> str:
    shown = [f"{say(name)}: {n:,}" for name, n in list(counts.items())[:MOST_NAMED]]
    return f" ({', '.join(shown)}{', ...' if len(counts) > MOST_NAMED else ''})"
