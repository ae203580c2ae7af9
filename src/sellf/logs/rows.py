"""Rows in memory: values checked one column at a time, as NumPy arrays."""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.logs.columns import Columns
from sellf.logs.dates import dates, nothing_mature, period_of
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.names import (
    MOST_LETTERS,
    Values,
    grouping,
    is_missing,
    missing_names,
    numbered,
    which_are_yes,
)
from sellf.logs.person import Floats, Person
from sellf.logs.sums import Sums, add_up

MOST_GROUPS = 1000


@dataclass(frozen=True)
class Rows:
    """A checked log in memory."""

    columns: Columns
    names: list[Any]
    """The groups, in sorted order."""
    codes: NDArray[np.intp]
    """Each row's group, as a place in `names`."""
    person: Person
    time: Values | None = None
    features: dict[str, Values] | None = None
    pending: int = 0
    """How many accepted people have no outcome."""
    people_in_several_groups: bool = False
    """Whether some person, if a column names them, has rows in more than one group."""
    decided_on: Values | None = None
    mature: NDArray[np.bool_] | None = None
    """Which decisions had time to show their outcome; None: all."""
    cutoff: date | None = None
    """The last day of those."""
    warnings: tuple[str, ...] = ()
    """What the log's columns make one doubt."""
    estimated: bool = False
    """Whether its propensities were estimated from these rows."""
    others: dict[str, Values] = field(default_factory=dict)
    """Columns that are kept as they are."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    @property
    def rows(self) -> "Rows":
        """The log itself."""
        return self

    def fingerprint(self) -> tuple[str | None, str]:
        """Return a SHA-256 of what was read, row by row, and what it was taken of."""
        total = hashlib.sha256(repr(list(map(str, self.names))).encode("utf-8", "surrogatepass"))
        parts = {"group": self.codes.astype("<i8"), **self.person._asdict(), "time": self.time}
        for name, values in (parts | (self.features or {}) | self.others).items():
            if values is None:
                continue
            total.update(f"\0{name}\0".encode("utf-8", "surrogatepass"))
            plain = np.asarray(values)
            if plain.dtype.kind in "iufbM":
                total.update(np.ascontiguousarray(plain).tobytes())
            else:
                total.update("\0".join(map(str, plain.tolist())).encode("utf-8", "surrogatepass"))
        return total.hexdigest(), "the columns used, in the order of the rows"

    def of_group(self, place: int) -> Person:
        """Return the rows of one group, in an order that depends on nothing else."""
        return self.person.take(np.flatnonzero(self.codes == place)).sorted()

    def people_by_group(self) -> dict[Any, int]:
        """Return how many rows each group has."""
        counts = np.bincount(self.codes, minlength=len(self.names))
        return dict(zip(self.names, map(int, counts), strict=True))

    def sums(self, overlap: float) -> tuple[list[Any], Sums]:
        """Return the groups and their sums."""
        return self.names, add_up(self.codes, len(self.names), self.person, overlap)

    def sums_by(self, overlap: float, by: str) -> tuple[list[str], list[Sums]]:
        """Return the names and the sums of every period."""
        codes, names = self.periods(by)
        parts = [self.take(np.flatnonzero(codes == k)) for k in range(len(names))]
        return names, [part.sums(overlap)[1] for part in parts]

    def periods(self, by: str) -> tuple[NDArray[np.intp], list[str]]:
        """Return each row's period, as a place among the names that follow."""
        return period_of(dates(self.time, str(self.columns.time)), by)

    def people(
        self, names: list[Any], sums: Sums, limits: Limits = DEFAULT
    ) -> tuple[Person | None, ...]:
        """Return the rows of each group that is small enough to be looked at row by row."""
        # Sums tell as much of very many rows, and need no room; but not of people with several.
        needed = self.estimated or self.person.unit is not None
        size = sums.people.sum(axis=-1)
        return tuple(
            self.of_group(i) if needed or size[i] <= limits.row_by_row else None
            for i in range(len(names))
        )

    def take(self, kept: NDArray[np.intp] | slice) -> "Rows":
        """Return some of the rows, of the same groups."""

        def of(values: Any) -> Any:
            return None if values is None else values[kept]

        return replace(
            self,
            codes=self.codes[kept],
            person=self.person.take(kept),
            time=of(self.time),
            features=self.features and {name: of(values) for name, values in self.features.items()},
            decided_on=of(self.decided_on),
            mature=of(self.mature),
            others={name: of(values) for name, values in self.others.items()},
        )

    def in_order(self) -> "Rows":
        """Return the rows in the order of time."""
        times = dates(self.time, str(self.columns.time))
        return replace(self, time=times).take(np.argsort(times, kind="stable"))

    def latest(self) -> date:
        """Return the day of the last decision."""
        return self._days().max().item()

    def up_to(self, cutoff: date) -> "Rows":
        """Return the log with the decisions marked that were made until a day."""
        mature = self._days() < np.datetime64(cutoff + timedelta(1))
        return replace(self, mature=mature, cutoff=cutoff)

    def _days(self) -> NDArray[np.datetime64]:
        found = dates(self.decided_on, str(self.columns.decided_on), "decided_on")
        return found.astype("datetime64[D]")

    def matured(self) -> "Rows":
        """Return what `up_to` marked and the groups that have some, or say if it is too little."""
        if self.mature is None:
            return self
        part = self.take(np.flatnonzero(self.mature))
        columns = self.columns
        if not part.count:
            raise InputError(nothing_mature(str(columns.decided_on), str(self.cutoff)))
        present, codes = np.unique(part.codes, return_inverse=True)
        pending = 0 if part.person.pending is None else int(part.person.pending.sum())
        names = [self.names[i] for i in present]
        if part.person.accepted.all():
            raise InputError(accepted_only(columns, part.count))
        if pending and pending == part.person.accepted.sum():
            raise InputError(missing_message(str(columns.outcome), pending))
        if len(names) < 2:
            raise InputError(one_group(columns, names))
        return replace(
            part,
            names=names,
            codes=codes.astype(np.intp),
            person=part.person if pending else part.person._replace(pending=None),
            pending=pending,
            people_in_several_groups=_several_groups(part.person.unit, codes),
            mature=None,
            cutoff=None,
        )


def check_rows(columns: Columns, table: dict[str, Values], *, several: bool = True) -> Rows:
    """Turn columns of any values into checked rows, or say which row cannot be used.

    Args:
        columns: what the columns mean.
        table: every column that is named, as an array each.
        several: whether to ask for two groups or more.
    """
    if not len(table[columns.decision]):
        raise InputError("the log has no rows: there is nobody to audit.")
    decision = binary(table[columns.decision], columns.decision, "decision", columns.accepted_value)
    accepted = decision.astype(np.float64)
    if several and accepted.all():
        raise InputError(accepted_only(columns, len(accepted)))
    positive, hidden, pending = outcomes(columns, table, accepted)
    p = propensity(columns, table, accepted)
    f = score(columns, table)
    names, codes = groups(columns, table)
    if not columns.group:  # everybody is judged together
        names, several = ["everyone"], False
    time = None if columns.time is None else table[columns.time]
    features = {name: table[name] for name in columns.features} or None
    if several and len(names) < 2:
        raise InputError(one_group(columns, names))
    if len(names) > MOST_GROUPS:
        raise InputError(many_groups(columns, len(names)))
    unit = None
    if columns.person is not None:
        unit = grouping(table[columns.person], columns.person, "person")[1]
    person = Person(accepted, positive, p, f, hidden, pending, unit)
    waiting = 0 if pending is None else int(pending.sum())
    decided = None if columns.decided_on is None else table[columns.decided_on]
    several_groups = _several_groups(unit, codes)
    found = Rows(columns, names, codes, person, time, features, waiting, several_groups, decided)
    return replace(found, others={name: table[name] for name, _ in columns.others})


def _several_groups(unit: NDArray[np.intp] | None, codes: NDArray[np.intp]) -> bool:
    if unit is None:
        return False
    first = np.empty(int(unit.max()) + 1, dtype=np.intp)
    first[unit] = codes
    return bool((first[unit] != codes).any())


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


def binary(values: Values, name: str, option: str, yes: Any) -> NDArray[np.bool_]:
    """Return which rows hold the value that means yes, of a column of two values."""
    missing = is_missing(values)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise InputError(missing_names(option, name, int(missing.sum()), row))
    raw, codes = numbered(values, name, option)
    return np.array(which_are_yes(raw, name, option, yes), dtype=bool)[codes]


def outcomes(
    columns: Columns, table: dict[str, Values], accepted: Floats
) -> tuple[Floats, Floats | None, Floats | None]:
    """Return accepted positives, trusted rejected positives, and the accepted without outcome."""
    if columns.outcome is None:
        return np.zeros(len(accepted)), None, None
    values, name = table[columns.outcome], columns.outcome
    missing = is_missing(values)
    absent = missing & (accepted == 1)
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
        good[known] = binary(values[known], name, "outcome", columns.positive_value)
    hidden = good * (1 - accepted) if columns.trust_rejected_outcomes else None
    return good * accepted, hidden, absent.astype(np.float64) if absent.any() else None


def missing_message(name: str, count: int) -> str:
    """Say that nobody who was accepted has an outcome."""
    return (
        f"outcome {name!r} is missing for everyone who was accepted ({count:,} rows): name the "
        "column that holds outcomes, or leave --outcome out and type --notion demographic."
    )


def rejected_message(name: str, count: int, row: int | None) -> str:
    """Say that rejected people have an outcome."""
    first = "" if row is None else f" (the first is row {row})"
    return (
        f"outcome {name!r} is given for {count:,} rejected rows{first}: an outcome is seen for the "
        "accepted only. Empty it for the rejected, or type --trust-rejected-outcomes if it is "
        "what really happened to them."
    )


def untrusted_message(name: str, count: int) -> str:
    """Say that outcomes to be trusted are not there."""
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
        _refuse("propensity", name, table[name], bad, "a chance lies between 0 and 1.")
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
    name = columns.score
    values = numbers(table[name], name, "score")
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        expected = "a score is the predicted chance of a good outcome, between 0 and 1."
        _refuse("score", name, table[name], bad, expected)
    return 1 - values if columns.score_is_risk else values


def groups(columns: Columns, table: dict[str, Values]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the groups' names in sorted order, and each row's place among them."""
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
        _refuse(option, name, values, bad, "every row needs a number.")
    return result


def _number(item: Any) -> float:
    try:
        return float(item)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _refuse(option: str, name: str, values: Values, bad: NDArray[np.bool_], expected: str) -> None:
    row = int(np.flatnonzero(bad)[0])
    more = int(bad.sum()) - 1
    others = f" ({more:,} more like it)" if more else ""
    value = str(values[row])[:MOST_LETTERS]
    raise InputError(f"{option} {name!r} is {value} at row {row}{others}: {expected}")
