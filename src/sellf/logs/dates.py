"""Dates of a log, and the periods that they fall into."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.logs.names import USUAL_DATES, Values, is_missing, short

EVERY = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
PERIODS = tuple(EVERY)
MOST_PERIODS = 1000
FIRST, LAST = np.datetime64("0001-01-01", "s"), np.datetime64("9999-12-31T23:59:59", "s")


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
    """Return the index of each row's period, in chronological order, and the periods' names."""
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
    """Return what to type instead: the shortest longer period of which there are few enough."""
    for longer in PERIODS[PERIODS.index(by) + 1 :]:
        if len(np.unique(_starts(starts, longer))) <= MOST_PERIODS:
            return f"type a longer one, --by {longer}"
    return "no longer one makes fewer, so look for dates that are wrong, or audit a part of the log"
