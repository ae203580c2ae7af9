"""The audit over time: each period by itself, and everything so far, however often one looks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from sellf.audit.columns import Columns
from sellf.audit.estimate import views
from sellf.audit.evidence import Evidence
from sellf.audit.interval import Interval
from sellf.audit.judge import intervals
from sellf.audit.names import USUAL_DATES, short
from sellf.audit.result import Period
from sellf.audit.rows import Rows, Values, is_missing
from sellf.audit.sums import Sums
from sellf.audit.verdict import decide, largest, say
from sellf.errors import InputError
from sellf.fairness.notions import Definition, Notion, define

EVERY = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
PERIODS = tuple(EVERY)
MOST_PERIODS = 1000
FIRST, LAST = np.datetime64("0001-01-01", "s"), np.datetime64("9999-12-31T23:59:59", "s")
DRIFT_LEVEL = 0.01
"""The chance of an alarm if nothing changes over the periods."""


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
        result = values.astype("datetime64[s]")
    else:
        result = np.empty(len(values), dtype="datetime64[s]")
        for row, item in enumerate(values):
            result[row] = _date(item, f"{option} {name!r} is {short(item)} at row {row}")
    strange = (result < FIRST) | (result > LAST)
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        raise InputError(f"{option} {name!r} is {result[row]} at row {row}: {USUAL_DATES}")
    return result


def _date(item: Any, what: str) -> np.datetime64:
    try:
        if isinstance(item, str) or hasattr(item, "isoformat"):
            text = item.strip() if isinstance(item, str) else item.isoformat()
            return np.datetime64(text[:19].replace(" ", "T"), "s")
    except ValueError:
        pass
    raise InputError(f"{what}: give dates, for example 2026-03-31.")


def period_of(times: NDArray[np.datetime64], by: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the number of each row's period, in order of time, and the periods' names."""
    found, codes = np.unique(_starts(times, by), return_inverse=True)
    if len(found) > MOST_PERIODS:
        raise InputError(
            f"by is {by!r}, which makes {len(found):,} periods, and at most {MOST_PERIODS:,} are "
            f"audited: {_instead(found, by)}."
        )
    names = [str(item) for item in found]
    if by == "quarter":
        names = [f"{name[:4]}-Q{(int(name[5:7]) + 2) // 3}" for name in names]
    return codes.astype(np.intp), names


def _starts(times: NDArray[np.datetime64], by: str) -> NDArray[np.datetime64]:
    """Return the start of each row's period."""
    if by == "week":
        # Day 0 of the calendar was a Thursday: weeks begin on Mondays.
        days = times.astype("datetime64[D]").astype(np.int64)
        return (((days + 3) // 7) * 7 - 3).astype("datetime64[D]")
    if by == "quarter":
        months = times.astype("datetime64[M]").astype(np.int64)
        return (months // 3 * 3).astype("datetime64[M]")
    unit = {"day": "D", "month": "M", "year": "Y"}[by]
    return times.astype(f"datetime64[{unit}]")


def _instead(starts: NDArray[np.datetime64], by: str) -> str:
    """Return what to type instead: the shortest of the longer periods that are few enough."""
    for longer in PERIODS[PERIODS.index(by) + 1 :]:
        if len(np.unique(_starts(starts, longer))) <= MOST_PERIODS:
            return f"type a longer one, --by {longer}"
    return "no longer one makes fewer, so look for dates that are wrong, or audit a part of the log"


def by_period(
    notion: Notion, evidence: Evidence, source: Any, by: str, *, omega: float, delta: float
) -> tuple[tuple[Period, ...], str | None]:
    """Return the audit of every period and of all until its end, and what changed between them.

    The periods' own intervals hold all at once (the k-th has delta / (k (k + 1))), and so do those
    of everything so far. The latter are about the people of all periods together; where periods
    differ, that is no population anybody asked about, and nothing is said of it.
    """
    definition = define(notion)
    parts = list(_parts(evidence, source, by))
    sums, periods = [own.sums for _, own, _ in parts], [name for name, _, _ in parts]
    change = drift(definition, evidence.names, sums, periods)
    result = []
    for k, (name, own, past) in enumerate(parts):
        chance = delta / ((k + 1) * (k + 2))
        span = _span(definition, own, chance)
        so_far = None if change is not None else _span(definition, past, chance)
        result.append(
            Period(
                name,
                int(own.sums.people.sum()),
                span.value,
                span.low,
                span.high,
                decide(span, omega) if _usable(definition, own) is own else "undetermined",
                float("nan") if so_far is None else so_far.low,
                float("nan") if so_far is None else so_far.high,
                None if so_far is None else decide(so_far, omega),
            )
        )
    return tuple(result), change


def drift(
    definition: Definition, names: list[Any], sums: list[Sums], periods: list[str]
) -> str | None:
    """Return what changed over the periods, None if nothing did as far as one can tell.

    Pearson's test of equal shares, of acceptance and of good outcomes among the accepted, in every
    group; the level is for all tests together.
    """
    totals = [one.by_group() for one in sums]
    tests = []
    for i, name in enumerate(names):
        people = np.array([float(total.people[i]) for total in totals])
        accepted = np.array([float(total.accepted[i]) for total in totals])
        good = np.array([float(total.positive[i]) for total in totals])
        known = accepted - np.array([float(total.pending[i]) for total in totals])
        tests.append((_same_share(accepted, people), name, "acceptance", accepted, people))
        if definition.needs_label:
            tests.append(
                (_same_share(good, known), name, "good outcomes of the accepted", good, known)
            )
    chance, name, what, part, whole = min(tests, key=lambda test: test[0])
    if chance * len(tests) > DRIFT_LEVEL:
        return None
    share = part / np.maximum(whole, 1)
    usable = np.where(whole >= 5, share, np.nan)
    low, high = int(np.nanargmin(usable)), int(np.nanargmax(usable))
    return (
        f"the log drifts: the share of {what} of {say(name)} is {share[low]:.1%} in {periods[low]} "
        f"and {share[high]:.1%} in {periods[high]}. So only the periods by themselves are judged, "
        "and nothing is said of all periods so far."
    )


def _same_share(part: Values, whole: Values) -> float:
    """Return the chance of shares that differ as much if all were the same (Pearson's test)."""
    some = whole >= 5
    if some.sum() < 2:
        return 1.0
    k, n = part[some], whole[some]
    share = k.sum() / n.sum()
    if share in (0, 1):
        return 1.0
    # Few expected cases make the test too lively; they count as one more.
    expected = n * share, n * (1 - share)
    statistic = ((k - expected[0]) ** 2 / np.maximum(expected[0], 1)).sum()
    statistic += ((n - k - expected[1]) ** 2 / np.maximum(expected[1], 1)).sum()
    return float(chdtrc(len(k) - 1, statistic))


def _parts(evidence: Evidence, source: Any, by: str) -> Iterator[tuple[str, Evidence, Evidence]]:
    """Return each period's name, its own part of the evidence, and all until its end."""
    if evidence.rows is None:
        _, sums, starts = source.sums_by(evidence.overlap, EVERY[by])
        names = period_of(np.array(starts, dtype="datetime64[s]"), by)[1]
        so_far = sums[0]
        for k, (name, own) in enumerate(zip(names, sums, strict=True)):
            so_far = so_far + own if k else own
            yield name, evidence.from_sums(own), evidence.from_sums(so_far)
        return
    rows = evidence.rows
    if rows.time is None:
        raise InputError("time is missing: name the column of dates.")
    codes, names = period_of(rows.time, by)
    ends = np.searchsorted(codes, np.arange(len(names)), side="right")
    start = 0
    for name, end in zip(names, ends, strict=True):
        yield name, evidence.part(slice(start, end)), evidence.part(slice(0, end))
        start = end


def _span(definition: Definition, evidence: Evidence, delta: float) -> Interval:
    usable = _usable(definition, evidence)
    found = []
    for rate in definition.rates:
        seen = views(rate, usable.sums, predicted=usable.predicted, trusted=usable.trusted)
        found.append(intervals(rate, usable, seen.value, delta=delta / len(definition.rates)).span)
    return largest(found)


def _usable(definition: Definition, evidence: Evidence) -> Evidence:
    """Return the evidence, without propensities that it contradicts."""
    # What is seen of everybody is seen, whatever the propensities are.
    void = definition.hides and evidence.contradiction is not None
    return evidence.without_propensities() if void else evidence
