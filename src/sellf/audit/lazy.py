"""Frames that live in an engine (DuckDB, Spark, lazy Polars): the engine checks and adds up.

One pass: each row becomes a few numbers, and their sums by group and stratum are all that comes
back. What must be looked at row by row, small groups and the first row that cannot be used, is
asked for separately.
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from sellf.audit.columns import Columns
from sellf.audit.rows import (
    MOST_GROUPS,
    accepted_only,
    many_groups,
    missing_message,
    one_group,
    rejected_message,
    two_values,
    untrusted_message,
)
from sellf.audit.scores import BINS
from sellf.audit.sums import STRATA, Sums
from sellf.errors import InputError
from sellf.fairness.checks import sorted_names

BAD = ("no_decision", "no_group", "hidden_outcome", "hidden_unknown", "no_chance", "impossible",
       "certain", "no_score", "odd_decision", "odd_outcome")  # fmt: skip
"""Columns that count rows that cannot be used."""


@dataclass(frozen=True)
class LazyLog:
    """A log that stays where it is."""

    frame: Any
    columns: Columns
    count: int

    def sums(self, overlap: float) -> tuple[list[Any], Sums]:
        """Return the groups and their sums."""
        names, (sums,), _ = self._add_up(overlap, None)
        return names, sums

    def sums_by(self, overlap: float, every: str) -> tuple[list[Any], list[Sums], list[Any]]:
        """Return the groups, and the sums and the first day of every period.

        Args:
            overlap: the smallest propensity that is weighted by.
            every: how long a period is, in narwhals' words: "1mo".
        """
        return self._add_up(overlap, every)

    def _add_up(self, overlap: float, every: str | None) -> tuple[list[Any], list[Sums], list[Any]]:
        groups = self.frame.select(*self.columns.group).unique().head(MOST_GROUPS + 1)
        if len(collect(groups)) > MOST_GROUPS:
            raise InputError(many_groups(self.columns, MOST_GROUPS + 1))
        keys = [*map(own, self.columns.group), "_p", "_f", "_t"]
        table = (
            self._prepared()
            .with_columns(**_strata(self.columns), _t=self._period(every))
            .with_columns(**_weights(self.columns, overlap))
            .group_by(*keys)
            .agg(nw.len().alias("people"), *(nw.col(name).sum() for name in self._sums()))
        )
        table = collect(table)
        columns = {name: table[name].to_list() for name in table.columns}
        self._refuse(columns)
        return self._assemble(columns)

    def _period(self, every: str | None) -> Any:
        if every is None:
            return nw.lit(0)
        name = str(self.columns.time)
        kind = self.frame.collect_schema()[name]
        if kind not in (nw.Date, nw.Datetime):
            raise InputError(f"time {name!r} holds {kind} values: give a column of dates.")
        return nw.col(own(name)).dt.truncate(every).cast(nw.Date)

    def of_groups(self, names: list[Any]) -> Any:
        """Return the frame of some groups only."""
        several = len(self.columns.group) > 1
        tests = []
        for name in names:
            pairs = zip(self.columns.group, name if several else (name,), strict=True)
            same = (nw.col(column) == value for column, value in pairs)
            tests.append(nw.all_horizontal(*same, ignore_nulls=True))
        return self.frame.filter(nw.any_horizontal(*tests, ignore_nulls=True))

    def _sums(self) -> list[str]:
        return ["accepted", "positive", "hidden", "pending", *_SCALED, *BAD]

    def _prepared(self) -> Any:
        c = self.columns
        schema = self.frame.collect_schema()
        # Under names of their own, so that no column of the log is taken for one made here.
        frame = self.frame.select(*(nw.col(name).alias(own(name)) for name in c.named()))
        decision, odd = _is(schema, self.frame, c.decision, "decision", c.accepted_value)
        accepted = nw.when(decision).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        frame = frame.with_columns(
            accepted=accepted,
            odd_decision=_count(odd),
            no_decision=_count(_null(schema, c.decision)),
            no_group=_count(_any(*(_null(schema, name) for name in c.group))),
        )
        frame = _with_outcome(frame, schema, self.frame, c)
        frame = _with_number(frame, schema, c.propensity, "p", "no_chance", "propensity")
        impossible = (nw.col("p") <= 0) & (nw.col("accepted") == 1)
        certain = (nw.col("p") >= 1) & (nw.col("accepted") == 0) & (nw.col("no_chance") == 0)
        known = c.propensity is not None
        frame = frame.with_columns(
            impossible=_count(impossible) if known else nw.lit(0),
            certain=_count(certain) if known else nw.lit(0),
        )
        frame = _with_number(frame, schema, c.score, "f", "no_score", "score")
        if c.score is not None and c.score_is_risk:
            frame = frame.with_columns(f=1 - nw.col("f"))
        return frame

    def _refuse(self, columns: dict[str, list[Any]]) -> None:
        c = self.columns
        bad = {name: int(sum(columns[name])) for name in BAD}
        accepted = int(sum(columns["accepted"]))
        if bad["no_decision"]:
            _refuse_missing("decision", c.decision, bad["no_decision"])
        if bad["no_group"]:
            _refuse_missing("group", " or ".join(c.group), bad["no_group"])
        for option, name in (("decision", c.decision), ("outcome", c.outcome)):
            if bad[f"odd_{option}"]:
                _values(self.frame, self.frame.collect_schema(), str(name), option, None)
        if accepted == sum(columns["people"]):
            raise InputError(accepted_only(c, accepted))
        pending = int(sum(columns["pending"]))
        if pending and pending == accepted:
            raise InputError(missing_message(str(c.outcome), pending))
        if bad["hidden_outcome"] and not c.trust_rejected_outcomes:
            raise InputError(rejected_message(str(c.outcome), bad["hidden_outcome"], None))
        if bad["hidden_unknown"] and c.trust_rejected_outcomes:
            raise InputError(untrusted_message(str(c.outcome), bad["hidden_unknown"]))
        for name, column, what in (
            ("no_chance", c.propensity, "propensity"),
            ("no_score", c.score, "score"),
        ):
            if bad[name]:
                raise InputError(
                    f"{what} {column!r} is missing or outside [0, 1] in {bad[name]:,} rows"
                    f"{self._example(str(column))}: every row needs a chance between 0 and 1."
                )
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

    def _example(self, column: str) -> str:
        value = nw.col(column)
        wrong = self.frame.filter(value.is_null() | ~((value >= 0) & (value <= 1)))
        found = collect(wrong.select(column).head(1))
        return f" (for example {found[column].to_list()[0]})" if len(found) else ""

    def _assemble(self, columns: dict[str, list[Any]]) -> tuple[list[Any], list[Sums], list[Any]]:
        c = self.columns
        rows = list(zip(*(columns[own(name)] for name in c.group), strict=True))
        labels = [row if len(c.group) > 1 else row[0] for row in rows]
        names = sorted_names(dict.fromkeys(labels))
        if len(names) < 2:
            raise InputError(one_group(c, names))
        if any(period is None for period in columns["_t"]):
            _refuse_missing("time", str(c.time), sum(period is None for period in columns["_t"]))
        periods = sorted(set(columns["_t"]))
        place = {name: i for i, name in enumerate(names)}
        when = {period: i for i, period in enumerate(periods)}
        shape = (len(periods), len(names), STRATA)
        cell = np.array([when[period] for period in columns["_t"]]) * len(names)
        cell = (cell + np.array([place[label] for label in labels])) * STRATA
        cell += (np.array(columns["_p"]) * (BINS + 1) + np.array(columns["_f"])).astype(int)

        def total(name: str) -> Any:
            values = np.array(columns[name], dtype=np.float64)
            return np.bincount(cell, values, int(np.prod(shape))).reshape(shape)

        fields = ["people", "accepted", "positive", "hidden", "pending", *_SCALED]
        sums = [total(name) for name in fields]
        return names, [Sums(*(field[i] for field in sums)) for i in range(len(periods))], periods


_SCALED = Sums._fields[5:]


def collect(frame: Any) -> Any:
    """Run a query; what the engine cannot read is said in its own words."""
    try:
        return frame.collect()
    except Exception as error:
        raise InputError(f"the log cannot be read: {plain(error)}") from error


def plain(error: Exception) -> str:
    """Return what an engine says is wrong, without what it says about its own options."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept: list[str] = []
    for line in lines:
        if line.lower().startswith(OF_NO_USE):
            break
        kept.append(line)
    text = " ".join(kept or lines[:1]) or type(error).__name__
    text = text.removeprefix("Invalid Input Error: ").removeprefix("Conversion Error: ")
    return text if len(text) < 500 else text[:500] + " ..."


OF_NO_USE = ("possible", "* ", "this type was", "column ", "file ", "file=", "jvm stacktrace")
"""How lines begin from which on an engine speaks about itself."""


def _strata(c: Columns) -> dict[str, Any]:
    def bins(name: str, known: bool) -> Any:
        if not known:
            return nw.lit(BINS)
        number = (nw.col(name) * BINS) // 1
        return nw.when(number >= BINS).then(nw.lit(float(BINS - 1))).otherwise(number)

    return {
        "_p": bins("p", c.propensity is not None),
        "_f": bins("f", c.score is not None),
    }


def _weights(c: Columns, overlap: float) -> dict[str, Any]:
    """Return the terms of `Sums` from `propensity` on, in its order."""
    a, ay, p, f = (nw.col(name) for name in ("accepted", "positive", "p", "f"))
    zero = nw.lit(0.0)
    known, predicted = c.propensity is not None, c.score is not None
    if not known:
        terms = {"weak": nw.lit(1.0), "weak_accepted": a, "weak_positive": ay}
        if predicted:
            terms["predicted_rejected"] = (1 - a) * f
        return {name: terms.get(name, zero) for name in _SCALED}
    strong = p >= overlap

    def where_strong(value: Any) -> Any:
        return nw.when(strong).then(value).otherwise(zero)

    def where_weak(value: Any) -> Any:
        return nw.when(strong).then(zero).otherwise(value)

    terms = {
        "propensity": p,
        "chance_variance": p * (1 - p),
        "weak": where_weak(nw.lit(1.0)),
        "weak_accepted": where_weak(a),
        "weak_positive": where_weak(ay),
        "weight": where_strong(a / p),
        "weight_square": where_strong(a / (p * p)),
        "weight_positive": where_strong(ay / p),
        "weight_square_positive": where_strong(ay / (p * p)),
    }
    if predicted:
        s = f + (ay - a * f) / p
        terms |= {
            "predicted_rejected": (1 - a) * f,
            "predicted_weighted": where_strong(a * f * (1 - p) / p),
            "score": where_strong(s),
            "score_square": where_strong(s * s),
            "score_positive": where_strong(ay * s),
            "score_accepted": where_strong(a * s),
        }
    return {name: terms.get(name, zero) for name in _SCALED}


def _with_outcome(frame: Any, schema: Any, native: Any, c: Columns) -> Any:
    zero = nw.lit(0)
    if c.outcome is None:
        nothing = dict.fromkeys(("hidden_outcome", "hidden_unknown", "odd_outcome"), zero)
        numbers = dict.fromkeys(("positive", "hidden", "pending"), nw.lit(0.0))
        return frame.with_columns(**numbers, **nothing)
    good, odd = _is(schema, native, c.outcome, "outcome", c.positive_value)
    missing = _null(schema, c.outcome)
    label = (
        nw.when(missing)
        .then(nw.lit(0.0))
        .otherwise(nw.when(good).then(nw.lit(1.0)).otherwise(nw.lit(0.0)))
    )
    accepted = nw.col("accepted") == 1
    trusted = (1 - nw.col("accepted")) * label if c.trust_rejected_outcomes else nw.lit(0.0)
    return frame.with_columns(
        positive=nw.col("accepted") * label,
        hidden=trusted,
        odd_outcome=_count(odd),
        pending=nw.when(missing & accepted).then(nw.lit(1.0)).otherwise(nw.lit(0.0)),
        hidden_outcome=_count(~missing & ~accepted),
        hidden_unknown=_count(missing & ~accepted),
    )


def _with_number(
    frame: Any, schema: Any, column: str | None, name: str, bad: str, option: str
) -> Any:
    if column is None:
        return frame.with_columns(**{name: nw.lit(1.0), bad: nw.lit(0)})
    if not schema[column].is_numeric():
        raise InputError(
            f"{option} {column!r} holds {schema[column]} values: every row needs a number between "
            "0 and 1."
        )
    value = nw.col(own(column)).cast(nw.Float64)
    fine = (value >= 0) & (value <= 1) & ~value.is_null()
    return frame.with_columns(
        **{
            name: nw.when(fine).then(value).otherwise(nw.lit(1.0)),
            bad: nw.when(fine).then(nw.lit(0)).otherwise(nw.lit(1)),
        }
    )


def _is(schema: Any, frame: Any, name: str, option: str, yes: Any) -> tuple[Any, Any]:
    """Return expressions for "this is the value that means yes" and "this is no value at all"."""
    column = _comparable(schema, name, own(name))
    if yes is None and _is_number(schema, name):
        # 0 and 1 need no look at the data before the one pass that counts everything.
        return column == 1, ~_null(schema, name) & (column != 0) & (column != 1)
    return column == _values(frame, schema, name, option, yes), nw.lit(False)


def _values(frame: Any, schema: Any, name: str, option: str, yes: Any) -> Any:
    """Return the value that means yes, or refuse the values that the column has."""
    known = frame.select(_v=_comparable(schema, name, name)).filter(~nw.col("_v").is_null())
    kinds = collect(known.unique().head(13))["_v"].to_list()
    kinds = [kind for kind in kinds if kind == kind and kind != ""]
    return two_values(sorted_names(kinds), name, option, yes)


def _is_number(schema: Any, name: str) -> bool:
    return schema[name].is_numeric() or schema[name] == nw.Boolean


def _comparable(schema: Any, name: str, column: str) -> Any:
    return nw.col(column).cast(nw.Float64) if _is_number(schema, name) else nw.col(column)


def _null(schema: Any, name: str) -> Any:
    column = nw.col(own(name))
    if schema[name].is_float():
        return column.is_null() | column.is_nan()
    if schema[name] == nw.String:
        return column.is_null() | (column == "")
    return column.is_null()


def own(name: str) -> str:
    """Return the name under which a column of the log is kept while it is worked on."""
    return f"__{name}"


def _any(first: Any, *others: Any) -> Any:
    for other in others:
        first = first | other
    return first


def _count(condition: Any) -> Any:
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def _refuse_missing(option: str, name: str, count: int) -> None:
    raise InputError(
        f"{option} {name!r} is missing in {count:,} rows: leave those rows out"
        + (", or name their group, for example 'unknown'." if option == "group" else ".")
    )
