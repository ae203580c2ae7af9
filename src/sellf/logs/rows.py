"""Rows in memory: values checked one column at a time, as NumPy arrays."""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.logs.columns import Columns
from sellf.logs.dates import dates, period_of
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.names import Values, grouping
from sellf.logs.person import NO_FACTS, Facts, LeftOut, Person
from sellf.logs.sums import Sums, add_up
from sellf.logs.values import (
    MOST_GROUPS,
    accepted_only,
    binary,
    groups,
    many_groups,
    missing_message,
    nothing_mature,
    one_group,
    outcomes,
    propensity,
    score,
)


@dataclass(frozen=True)
class Rows:
    """A checked log in memory."""

    columns: Columns
    names: list[Any]
    """The groups, in sorted order."""
    codes: NDArray[np.intp]
    """Each row's group, as an index into `names`."""
    person: Person
    time: Values | None = None
    features: dict[str, Values] | None = None
    pending: int = 0
    """Number of accepted rows without an outcome."""
    people_in_several_groups: bool = False
    """Whether a person has rows in more than one group, if a column identifies people."""
    decided_on: Values | None = None
    mature: NDArray[np.bool_] | None = None
    """Decisions whose outcome had time to appear; None: all."""
    cutoff: date | None = None
    """Last day of these decisions."""
    warnings: tuple[str, ...] = ()
    """Warnings about the log's columns."""
    estimated: bool = False
    """Whether its propensities were estimated from these rows."""
    left_out: tuple[LeftOut, ...] = ()
    """Rows that were left out."""
    facts: Facts = NO_FACTS
    """Descriptive facts about all its columns."""
    others: dict[str, Values] = field(default_factory=dict)
    """Columns that are kept as they are."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def rows(self) -> "Rows":
        """The log itself."""
        return self

    def fingerprint(self) -> tuple[str | None, str]:
        """Return a SHA-256 of the rows, and what it covers."""
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
        """Return the rows of one group, in an order that depends only on these rows."""
        return self.person.take(np.flatnonzero(self.codes == place)).sorted()

    def people_by_group(self) -> dict[Any, int]:
        """Return the number of rows of each group."""
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
        """Return the index of each row's period, and the names of the periods."""
        return period_of(dates(self.time, str(self.columns.time)), by)

    def people(
        self, names: list[Any], sums: Sums, limits: Limits = DEFAULT
    ) -> tuple[Person | None, ...]:
        """Return the rows of each group that is small enough to be analysed row by row."""
        # For very many rows, sums are as informative and need less memory, unless people have
        # several rows each.
        needed = self.estimated or self.person.unit is not None
        size = sums.people.sum(axis=-1)
        return tuple(
            self.of_group(i) if needed or size[i] <= limits.row_by_row else None
            for i in range(len(names))
        )

    def take(self, kept: NDArray[np.intp] | slice) -> "Rows":
        """Return a subset of the rows, with the same groups."""

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
        """Return the rows in order of time."""
        times = dates(self.time, str(self.columns.time))
        return replace(self, time=times).take(np.argsort(times, kind="stable"))

    def latest(self) -> date:
        """Return the day of the last decision."""
        return self._days().max().item()

    def up_to(self, cutoff: date) -> "Rows":
        """Return the log with the decisions up to a day marked."""
        mature = self._days() < np.datetime64(cutoff + timedelta(1))
        return replace(self, mature=mature, cutoff=cutoff)

    def _days(self) -> NDArray[np.datetime64]:
        found = dates(self.decided_on, str(self.columns.decided_on), "decided_on")
        return found.astype("datetime64[D]")

    def matured(self) -> "Rows":
        """Return the decisions that `up_to` marked, and their groups; refuse too few of them."""
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
    """Convert columns of any values to checked rows; refuse values that cannot be used.

    Args:
        columns: what the columns mean.
        table: the named columns as arrays.
        several: whether at least two groups are required.
    """
    if not len(table[columns.decision]):
        raise InputError("the log has no rows: there is nobody to audit.")
    decision = binary(table[columns.decision], columns.decision, "decision", columns.decided)
    accepted = decision.astype(np.float64)
    if several and accepted.all():
        raise InputError(accepted_only(columns, len(accepted)))
    positive, hidden, pending = outcomes(columns, table, accepted)
    p = propensity(columns, table, accepted)
    f = score(columns, table)
    names, codes = groups(columns, table)
    if not columns.group:  # everyone is in one group
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
