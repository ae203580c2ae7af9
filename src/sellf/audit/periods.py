"""The audit over time: each period by itself, and everything so far, however often one looks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.audit.columns import Columns
from sellf.audit.estimate import views
from sellf.audit.evidence import BETTING_ROWS, Evidence
from sellf.audit.exact import shuffled
from sellf.audit.judge import intervals, signed_difference
from sellf.audit.result import Period
from sellf.audit.rows import Rows, Values, is_missing
from sellf.audit.scores import Person
from sellf.audit.sums import add_up
from sellf.audit.verdict import absolute, decide, difference
from sellf.errors import InputError
from sellf.fairness.notions import Notion

EVERY = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
PERIODS = tuple(EVERY)
MOST_PERIODS = 1000


def in_order(source: Any, columns: Columns) -> Any:
    """Return the rows sorted by time; a log that stays in its engine is left as it is."""
    if not isinstance(source, Rows):
        return source
    times = dates(source.time, str(columns.time))
    order = np.argsort(times, kind="stable")
    features = source.features and {name: values[order] for name, values in source.features.items()}
    return replace(
        source,
        codes=source.codes[order],
        person=source.person.take(order),
        time=times[order],
        features=features,
    )


def dates(values: Values | None, name: str, option: str = "time") -> NDArray[np.datetime64]:
    """Return a column of dates."""
    if values is None:
        raise InputError(f"{option} is missing: name the column of dates.")
    missing = is_missing(values)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"{option} {name!r} is missing in {int(missing.sum()):,} rows (the first is row {row}):"
            " leave those rows out."
        )
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    result = np.empty(len(values), dtype="datetime64[s]")
    for row, item in enumerate(values):
        try:
            if isinstance(item, str) or hasattr(item, "isoformat"):
                text = item if isinstance(item, str) else item.isoformat()
                result[row] = np.datetime64(text[:19].replace(" ", "T"), "s")
                continue
        except ValueError:
            pass
        raise InputError(
            f"{option} {name!r} is {item!r} at row {row}: give dates, for example 2026-03-31."
        )
    return result


def period_of(times: NDArray[np.datetime64], by: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the number of each row's period, in order of time, and the periods' names."""
    days = times.astype("datetime64[D]")
    if by == "week":
        # Day 0 of the calendar was a Thursday: weeks begin on Mondays.
        monday = ((days.astype(np.int64) + 3) // 7) * 7 - 3
        days = monday.astype("datetime64[D]")
    elif by in ("month", "quarter"):
        months = times.astype("datetime64[M]")
        if by == "quarter":
            months = (months.astype(np.int64) // 3 * 3).astype("datetime64[M]")
        days = months
    elif by == "year":
        days = times.astype("datetime64[Y]")
    found, codes = np.unique(days, return_inverse=True)
    if len(found) > MOST_PERIODS:
        raise InputError(
            f"by is {by!r}, which makes {len(found):,} periods: type a longer one, --by year."
        )
    names = [str(item) for item in found]
    if by == "quarter":
        names = [f"{name[:4]}-Q{(int(name[5:7]) + 2) // 3}" for name in names]
    return codes.astype(np.intp), names


def by_period(
    notion: Notion, evidence: Evidence, source: Any, by: str, *, omega: float, delta: float
) -> tuple[Period, ...]:
    """Return the audit of every period, and of all until its end.

    The periods' own intervals hold all at once (the k-th has delta / (k (k + 1))). So do those of
    everything so far: they are bets on rows in the order of time or, for logs too long for that,
    have the same shares of delta.
    """
    result = []
    for k, (name, own, past) in enumerate(_parts(evidence, source, by)):
        chance = delta / ((k + 1) * (k + 2))
        value, low, high = _span(notion, own, chance, anytime=False)
        bets = all(person is not None for person in past.people)
        bets = bets and (not evidence.estimated or notion == "demographic")
        _, so_low, so_high = _span(notion, past, delta if bets else chance, anytime=bets)
        result.append(
            Period(
                name,
                int(own.sums.people.sum()),
                value,
                low,
                high,
                _verdict(low, high, omega),
                so_low,
                so_high,
                _verdict(so_low, so_high, omega),
            )
        )
    return tuple(result)


def _parts(evidence: Evidence, source: Any, by: str) -> Iterator[tuple[str, Evidence, Evidence]]:
    """Return each period's name, its own part of the evidence, and all until its end."""
    if evidence.rows is None:
        _, sums, starts = source.sums_by(evidence.overlap, EVERY[by])
        names = period_of(np.array(starts, dtype="datetime64[s]"), by)[1]
        nobody = (None,) * len(evidence.names)
        so_far = sums[0]
        for k, (name, own) in enumerate(zip(names, sums, strict=True)):
            so_far = so_far + own if k else own
            yield (
                name,
                replace(evidence, sums=own, people=nobody),
                replace(evidence, sums=so_far, people=nobody),
            )
        return
    rows = evidence.rows
    if rows.time is None:
        raise InputError("time is missing: name the column of dates.")
    codes, names = period_of(rows.time, by)
    ends = np.searchsorted(codes, np.arange(len(names)), side="right")
    start = 0
    for name, end in zip(names, ends, strict=True):
        own = _part(evidence, rows, slice(start, end), ordered=False)
        yield name, own, _part(evidence, rows, slice(0, end), ordered=True)
        start = end


def _part(evidence: Evidence, rows: Rows, part: slice, *, ordered: bool) -> Evidence:
    codes, person = rows.codes[part], rows.person.take(part)
    sums = add_up(codes, len(rows.names), person, evidence.overlap)
    people: list[Person | None] = []
    for i in range(len(rows.names)):
        mine = person.take(np.flatnonzero(codes == i))
        fits = len(mine.accepted) <= BETTING_ROWS
        people.append((mine if ordered else shuffled(mine)) if fits else None)
    return replace(evidence, sums=sums, people=tuple(people))


def _span(
    notion: Notion, evidence: Evidence, delta: float, *, anytime: bool
) -> tuple[float, float, float]:
    ends, _ = intervals(notion, evidence, delta=delta, anytime=anytime)
    seen = views(notion, evidence.sums, predicted=evidence.predicted, trusted=evidence.trusted)
    # A group nobody of whom applied in the period may be anywhere.
    middle = np.where(np.isnan(seen.value), 0.5, seen.value)
    value = np.clip(middle, ends.low, ends.high)
    signed = None if anytime else signed_difference(notion, evidence, delta)
    span = difference(ends, value) if signed is None else absolute(*signed, value)
    return span.value, span.low, span.high


def _verdict(low: float, high: float, omega: float) -> Any:
    from sellf.audit.exact import Interval

    return decide(Interval(low, low, high), omega)
