"""Logs that stay in an engine (DuckDB, Spark, lazy Polars), which checks and sums the rows.

In one pass, each row is turned into a few numbers, and only their sums by group and stratum are
returned. What needs single rows (small groups, and the first row that cannot be used) is queried
separately.
"""

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import narwhals as nw
import numpy as np

from sellf.errors import InputError
from sellf.fairness.checks import sorted_names
from sellf.logs.arrays import fetch
from sellf.logs.columns import Columns
from sellf.logs.dates import EVERY, period_of
from sellf.logs.engine import (
    TwoValues,
    collect,
    count,
    different,
    where,
    with_number,
    words,
)
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.names import USUAL_DATES, missing_names, no_names, read_as
from sellf.logs.person import BINS, NO_FACTS, Facts, LeftOut, Person
from sellf.logs.refusals import BAD, refuse
from sellf.logs.rows import check_rows
from sellf.logs.sums import STRATA, Sums, terms
from sellf.logs.values import (
    MOST_GROUPS,
    many_groups,
    nothing_mature,
    one_group,
)

MOST_FETCHED = 100
"""Most groups whose rows are fetched."""
SPELLINGS = 10
"""Most spellings per group on average, for example with blanks around the name."""


@dataclass(frozen=True)
class LazyLog:
    """A log that stays in its engine."""

    frame: Any
    columns: Columns
    count: int
    warnings: tuple[str, ...] = ()
    """Warnings about the log's columns."""
    cutoff: date | None = None
    """Last day of decisions whose outcome had time to appear; None: all outcomes had."""
    left_out: tuple[LeftOut, ...] = ()
    """Rows that were left out."""
    facts: Facts = NO_FACTS
    """Descriptive facts about all its columns."""

    def sums(self, overlap: float) -> tuple[list[Any], Sums]:
        """Return the groups and their sums."""
        names, (sums,), _ = self._add_up(overlap, None)
        return names, sums

    def sums_by(self, overlap: float, by: str) -> tuple[list[str], list[Sums]]:
        """Return the names and the sums of every period."""
        _, sums, starts = self._add_up(overlap, EVERY[by])
        return period_of(np.array(starts, dtype="datetime64[s]"), by)[1], sums

    @property
    def rows(self) -> None:
        """None, since the rows are not in memory."""
        return None

    def fingerprint(self) -> tuple[str | None, str]:
        """Return None and the reason."""
        return None, "no rows, since the log stayed in its engine"

    def people_by_group(self) -> dict[Any, int]:
        """Return the number of rows of each group."""
        names, sums = self.sums(1.0)
        return dict(zip(names, map(int, sums.people.sum(axis=-1)), strict=True))

    def people(
        self, names: list[Any], sums: Sums, limits: Limits = DEFAULT
    ) -> tuple[Person | None, ...]:
        """Return the rows of the smallest groups, as many groups as fit into memory together."""
        size = sums.people.sum(axis=-1)
        chosen: list[int] = []
        for i in np.argsort(size, kind="stable"):
            if size[[*chosen, i]].sum() > limits.fetched or len(chosen) >= MOST_FETCHED:
                break
            chosen.append(int(i))
        people: list[Person | None] = [None] * len(names)
        if chosen:
            wanted = [names[i] for i in chosen]
            table = fetch(self.of_groups(wanted), self.columns)
            rows = check_rows(self.columns, table, several=False)
            for place, name in enumerate(rows.names):
                people[names.index(name)] = rows.of_group(place)
        return tuple(people)

    def in_order(self) -> "LazyLog":
        """Return the log as it is: sums do not depend on the order."""
        return self

    def up_to(self, cutoff: date) -> "LazyLog":
        """Return the log with the last day of decisions that are used."""
        return replace(self, cutoff=cutoff)

    def latest(self) -> date:
        """Return the day of the last decision."""
        column = str(self.columns.decided_on)
        there = self.frame.select(_v=self._day(column, column, "decided_on"))
        gone = int(collect(there.select(count(nw.col("_v").is_null()).sum())).item() or 0)
        if gone:
            raise InputError(missing_names("decided_on", column, gone))
        try:
            return collect(there.select(nw.col("_v").max())).item()
        except (OverflowError, ValueError):
            raise InputError(
                f"decided_on {column!r} has a date that is out of range: {USUAL_DATES}"
            ) from None

    def matured(self) -> "LazyLog":
        """Return the part of the log whose outcomes had time to appear."""
        if self.cutoff is None:
            return self
        name = str(self.columns.decided_on)
        part = self.frame.filter(self._day(name, name, "decided_on") <= nw.lit(self.cutoff))
        rows = int(collect(part.select(nw.len())).item())
        if rows == 0:
            raise InputError(nothing_mature(name, str(self.cutoff)))
        return replace(self, frame=part, count=rows, cutoff=None)

    def of_groups(self, names: list[Any]) -> Any:
        """Return the rows of some groups only, whatever the spelling of their names."""
        wanted = set(names)
        spelled = self.spellings()
        schema = self.frame.collect_schema()
        tests = []
        for raw, name in spelled.items():
            if name in wanted:
                pairs = zip(self.columns.group, raw, strict=True)
                same = (words(nw.col(column), schema[column]) == value for column, value in pairs)
                tests.append(nw.all_horizontal(*same, ignore_nulls=True))
        return self.frame.filter(nw.any_horizontal(*tests, ignore_nulls=True))

    def spellings(self) -> dict[tuple[Any, ...], Any]:
        """Return every combination of values of the group columns, with the group it reads as."""
        schema = self.frame.collect_schema()
        own = [self._own(name) for name in self.columns.group]
        # Unchanged at first: stripping a few distinct words is faster than stripping all rows.
        named = zip(self.columns.group, own, strict=True)
        few = self.frame.select(*(nw.col(name).alias(other) for name, other in named))
        few = few.group_by(*own).agg(nw.len().alias("_rows"))
        columns = [
            words(nw.col(other), schema[name])
            for name, other in zip(self.columns.group, own, strict=True)
        ]
        raw = different(few.select(*columns), SPELLINGS * MOST_GROUPS + 1)
        return dict(zip(raw, self._names(raw), strict=True))

    def cells(self, every: str | None) -> Any:
        """Return the distinct combinations of the values that are used, and the rows of each (n).

        Args:
            every: the length of a period (t); None: all rows are in one period.
        """
        c = self.columns
        groups = {f"g{i}": nw.col(self._own(name)) for i, name in enumerate(c.group)}
        features = {f"x{i}": nw.col(self._own(name)) for i, name in enumerate(c.features)}
        score = {} if c.score is None else {"f": nw.col("f")}
        plain = {name: nw.col(name) for name in ("accepted", "positive", "pending")}
        t = self._period(every).cast(nw.String)
        keys = {**groups, **plain, **score, **features, "t": t}
        rows = self._prepared().select(**keys)
        return rows.group_by(*keys).agg(nw.len().alias("n"))

    def _names(self, raw: list[tuple[Any, ...]]) -> list[Any]:
        """Return the group that each combination of values reads as; None if one is missing."""
        read = []
        for column, values in zip(self.columns.group, zip(*raw, strict=True), strict=True):
            try:
                kinds = list(dict.fromkeys(values))
            except TypeError:  # lists and other values that are not hashable
                raise InputError(no_names("group", column)) from None
            read.append(dict(zip(kinds, read_as(kinds, column, "group"), strict=True)))
        names = [tuple(own[v] for own, v in zip(read, row, strict=True)) for row in raw]
        several = len(self.columns.group) > 1
        return [None if None in name else name if several else name[0] for name in names]

    def _own(self, name: str) -> str:
        """Return the internal name of a column of the log.

        Internal names do not clash with derived columns, and contain no dots or blanks that engines
        would interpret.
        """
        return f"__{list(self.columns.named()).index(name)}"

    def _add_up(self, overlap: float, every: str | None) -> tuple[list[Any], list[Sums], list[Any]]:
        spelled = self.spellings()
        if len(spelled) > SPELLINGS * MOST_GROUPS or len(set(spelled.values())) > MOST_GROUPS:
            raise InputError(many_groups(self.columns, MOST_GROUPS + 1))
        keys = [*map(self._own, self.columns.group), "_p", "_f", "_t"]
        scaled, problems = self._scaled(overlap), self._problems()
        summed = ["accepted", "positive", "pending", "problems", *scaled]
        if self.columns.trust_rejected_outcomes:
            summed.append("hidden")
        table = (
            self._prepared()
            .with_columns(**self._strata(), _t=self._period(every))
            .with_columns(**scaled, problems=sum((nw.col(name) for name in problems), nw.lit(0)))
            .group_by(*keys)
            .agg(nw.len().alias("people"), *(nw.col(name).sum() for name in summed))
        )
        table = collect(table)
        columns = {name: table[name].to_list() for name in table.columns}
        raw = list(zip(*(columns[self._own(name)] for name in self.columns.group), strict=True))
        labels = self._names(raw)
        refuse(self.frame, self.columns, self._prepared, columns, labels)
        return self._assemble(columns, labels)

    def _scaled(self, overlap: float) -> dict[str, Any]:
        """Return the sums that depend on propensities and predictions, as expressions."""
        c = self.columns
        a, ay, p, f, pending = (
            nw.col(name) for name in ("accepted", "positive", "p", "f", "pending")
        )
        known, predicted = None if c.propensity is None else p, None if c.score is None else f
        one = nw.lit(1.0)
        return terms(a, ay, known, predicted, pending, overlap, one=one, where=where)

    def _strata(self) -> dict[str, Any]:
        """Return expressions for the strata of the propensity and of the prediction."""

        def bins(name: str, column: str | None) -> Any:
            if column is None:
                return nw.lit(BINS)
            number = (nw.col(name) * BINS) // 1
            return nw.when(number >= BINS).then(nw.lit(float(BINS - 1))).otherwise(number)

        return {"_p": bins("p", self.columns.propensity), "_f": bins("f", self.columns.score)}

    def _day(self, name: str, column: str, option: str) -> Any:
        kind = self.frame.collect_schema()[name]
        if kind not in (nw.Date, nw.Datetime):
            raise InputError(f"{option} {name!r} holds {kind} values: give a column of dates.")
        return nw.col(column).cast(nw.Date)

    def _period(self, every: str | None) -> Any:
        if every is None:
            return nw.lit(0)
        name = str(self.columns.time)
        self._day(name, name, "time")
        return nw.col(self._own(name)).dt.truncate(every).cast(nw.Date)

    def _prepared(self) -> Any:
        c, own = self.columns, self._own
        schema = self.frame.collect_schema()
        frame = self.frame.select(
            *(words(nw.col(name), schema[name]).alias(own(name)) for name in c.named())
        )
        decision = TwoValues(self.frame, c.decision, own(c.decision), "decision", c.decided)
        accepted = nw.when(decision.yes).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        frame = frame.with_columns(
            accepted=accepted,
            odd_decision=count(decision.odd),
            no_decision=count(decision.missing),
        )
        frame = self._with_outcome(frame)
        chance = "" if c.propensity is None else own(c.propensity)
        frame = with_number(frame, schema, c.propensity, chance, "p", "no_chance", "propensity")
        accepted, fine = nw.col("accepted") == 1, nw.col("no_chance") == 0
        known = c.propensity is not None
        frame = frame.with_columns(
            impossible=count(fine & (nw.col("p") <= 0) & accepted) if known else nw.lit(0),
            certain=count(fine & (nw.col("p") >= 1) & ~accepted) if known else nw.lit(0),
        )
        predicted = "" if c.score is None else own(c.score)
        scale = c.score_range
        frame = with_number(frame, schema, c.score, predicted, "f", "no_score", "score", scale)
        if c.score is not None and c.score_is_risk:
            frame = frame.with_columns(f=1 - nw.col("f"))
        return frame

    def _with_outcome(self, frame: Any) -> Any:
        c = self.columns
        if c.outcome is None:
            kinds = ("hidden_outcome", "hidden_unknown", "odd_outcome")
            numbers = dict.fromkeys(("positive", "hidden", "pending"), nw.lit(0.0))
            return frame.with_columns(**numbers, **dict.fromkeys(kinds, nw.lit(0)))
        accepted = nw.col("accepted") == 1
        there = self.frame
        if c.hide_rejected_outcomes:
            there = there.filter(
                TwoValues(there, c.decision, c.decision, "decision", c.decided).yes
            )
        read = TwoValues(there, c.outcome, self._own(c.outcome), "outcome", c.turned_out)
        gone = read.missing | ~accepted if c.hide_rejected_outcomes else read.missing
        one, zero = nw.lit(1.0), nw.lit(0.0)
        label = nw.when(gone).then(zero).otherwise(nw.when(read.yes).then(one).otherwise(zero))
        trusted = (1 - nw.col("accepted")) * label if c.trust_rejected_outcomes else zero
        return frame.with_columns(
            positive=nw.col("accepted") * label,
            hidden=trusted,
            pending=nw.when(gone & accepted).then(one).otherwise(zero),
            odd_outcome=count(read.odd & accepted if c.hide_rejected_outcomes else read.odd),
            hidden_outcome=count(~gone & ~accepted),
            hidden_unknown=count(gone & ~accepted),
        )

    def _problems(self) -> list[str]:
        """Return the columns that count rows that cannot be used, given this log's options."""
        trusted = self.columns.trust_rejected_outcomes
        return [name for name in BAD if name != ("hidden_outcome" if trusted else "hidden_unknown")]

    def _assemble(
        self, columns: dict[str, list[Any]], labels: list[Any]
    ) -> tuple[list[Any], list[Sums], list[Any]]:
        c = self.columns
        names = sorted_names(dict.fromkeys(labels))
        if len(names) < 2:
            raise InputError(one_group(c, names))
        if any(period is None for period in columns["_t"]):
            gone = sum(period is None for period in columns["_t"])
            raise InputError(missing_names("time", str(c.time), gone))
        periods = sorted(set(columns["_t"]))
        place = {name: i for i, name in enumerate(names)}
        when = {period: i for i, period in enumerate(periods)}
        shape = (len(periods), len(names), STRATA)
        cell = np.array([when[period] for period in columns["_t"]]) * len(names)
        cell = (cell + np.array([place[label] for label in labels])) * STRATA
        cell += (np.array(columns["_p"]) * (BINS + 1) + np.array(columns["_f"])).astype(int)

        def total(name: str) -> Any:
            if name not in columns:
                return np.zeros(shape)
            values = np.array(columns[name], dtype=np.float64)
            return np.bincount(cell, values, int(np.prod(shape))).reshape(shape)

        fields = ["people", "accepted", "positive", "hidden", "pending", *Sums._fields[5:]]
        sums = [total(name) for name in fields]
        by_period = [Sums(*(field[i] for field in sums)).rounded() for i in range(len(periods))]
        return names, by_period, periods
