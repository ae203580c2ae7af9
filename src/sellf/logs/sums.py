"""Sums of a log by group and stratum, from which all estimates are computed.

A stratum is a tenth of the propensity's range combined with a tenth of the prediction's. Sums are
additive, so an engine can compute them where the data are stored.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.logs.person import BINS, Floats, Person

DIGITS = 12
BLOCK = 1 << 16
"""Number of rows that are summed at once, such that intermediate results stay in the cache."""
STRATA = (BINS + 1) * (BINS + 1)
"""Number of pairs of a propensity bin and a prediction bin; the last bin is for logs without it."""


class Sums(NamedTuple):
    """One array per sum; axes are the group and the stratum."""

    people: Floats
    accepted: Floats
    positive: Floats
    """Accepted and with a good outcome."""
    rejected_positive: Floats
    """Rejected and with a good outcome, where that is known and trusted."""
    pending: Floats
    """Accepted and without an outcome, which may be 0 or 1; not included in `positive`."""
    propensity: Floats
    """p."""
    chance_variance: Floats
    """p (1 - p)."""
    weak: Floats
    """People whose propensity is too small for weighting; everyone if there is no propensity."""
    weak_accepted: Floats
    weak_positive: Floats
    weight: Floats
    """A / p; this sum and the following ones are over people who are not weak."""
    weight_square: Floats
    """A / p^2."""
    weight_positive: Floats
    """A Y / p."""
    weight_square_positive: Floats
    """A Y / p^2; only where the log has no prediction."""
    predicted_rejected: Floats
    """(1 - A) f, over everyone."""
    predicted_weighted: Floats
    """A f (1 - p) / p."""
    score: Floats
    """s = f + A (Y - f) / p."""
    score_square: Floats
    score_positive: Floats
    """A Y s."""
    score_accepted: Floats
    """A s."""
    fourth: Floats
    """Upper bound on E[s^4] given p and f; 1 for people who are weak."""
    miss_fourth: Floats
    """Upper bound on E[(A Y - s)^4] given p and f; 1 for people who are weak."""
    pending_weight: Floats
    """1 / p of accepted people without an outcome; 1 if they are weak."""
    pending_weight_square: Floats
    chance: Floats
    """p; this sum and the following ones are over people who are not weak."""
    predicted_chance: Floats
    """p f."""
    predicted_accepted: Floats
    """A f."""

    def by_group(self) -> "Sums":
        """Return the sums over all strata."""
        return Sums(*(field.sum(axis=-1) for field in self))

    def rounded(self) -> "Sums":
        """Return the sums to twelve digits; later digits depend on the order of summation."""
        return Sums(*(_rounded(field) for field in self))

    def group(self, place: int) -> "Sums":
        """Return the sums of one group."""
        return Sums(*(field[place] for field in self))

    def __add__(self, other: "Sums") -> "Sums":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Sums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def stratum(propensity: Floats | None, prediction: Floats | None, rows: int) -> NDArray[np.intp]:
    """Return the index of each row's stratum."""

    def bins(values: Floats | None) -> NDArray[np.intp]:
        if values is None:
            return np.full(rows, BINS, dtype=np.intp)
        return np.minimum((values * BINS).astype(np.intp), BINS - 1)

    return bins(propensity) * (BINS + 1) + bins(prediction)


def fourth_moment(p: Any, f: Any) -> Any:
    """Return an upper bound on E[s^4] given p and f, for any probability of a good outcome.

    Args:
        p: the propensity, as numbers or as an engine's expression.
        f: the prediction; None: any prediction.
    """
    if f is None:
        return 1 + 1 / (p * p * p)
    # s is f if rejected, f + (1 - f) / p or f - f / p if accepted; x^4 + y^4 bounds the larger.
    good, bad, kept = f + (1 - f) / p, f * (1 - p) / p, f * f
    return (1 - p) * kept * kept + p * (good * good * good * good + bad * bad * bad * bad)


def miss_fourth_moment(p: Any, f: Any) -> Any:
    """Return an upper bound on E[(A Y - s)^4] given p and f, for any chance of a good outcome.

    Args:
        p: the propensity, as numbers or as an engine's expression.
        f: the prediction; None: any prediction.
    """
    odds = (1 - p) / p
    power = odds * odds * odds * (1 - p)  # p odds^4
    if f is None:
        return 1 - p + power
    # A Y - s is -f if rejected, and (f - 1) odds or f odds if accepted.
    kept, other = f * f, (1 - f) * (1 - f)
    kept = kept * kept
    return (1 - p) * kept + power * (kept + other * other)


def terms(
    a: Any,
    ay: Any,
    p: Any,
    f: Any,
    pending: Any,
    overlap: float,
    *,
    one: Any,
    where: Callable[[Any, Any, Any], Any],
) -> dict[str, Any]:
    """Return each row's terms of the sums that only some logs have; sums left out are 0.

    Args:
        a: A; this and the following ones are arrays of numbers, or an engine's expressions.
        ay: A Y.
        p: the propensity, above 0 where it is `overlap` or more; None if the log has none.
        f: the prediction; None if it has none.
        pending: 1 for accepted people without an outcome; None if there are none.
        overlap: the smallest propensity at which weighting is trusted.
        one: 1 for every row.
        where: returns the second argument where the first is true, else the third.
    """
    found: dict[str, Any] = {} if f is None else {"predicted_rejected": (1 - a) * f}
    if p is None:
        found |= {"weak": one, "weak_accepted": a, "weak_positive": ay}
        return found | {"fourth": one, "miss_fourth": one}
    strong = p >= overlap
    # The propensity used for weighting; 1 for people who are weak.
    q = where(strong, p, 1.0)

    def where_strong(value: Any) -> Any:
        return where(strong, value, 0.0)

    found |= {
        "propensity": p,
        "chance_variance": p * (1 - p),
        "weak": where(strong, 0.0, 1.0),
        "weak_accepted": where(strong, 0.0, a),
        "weak_positive": where(strong, 0.0, ay),
        "weight": where_strong(a / q),
        "weight_square": where_strong(a / (q * q)),
        "weight_positive": where_strong(ay / q),
        "fourth": where(strong, fourth_moment(q, f), 1.0),
        "miss_fourth": where(strong, miss_fourth_moment(q, f), 1.0),
        "chance": where_strong(p),
    }
    if pending is not None:
        # For people who are weak q is 1.
        found |= {"pending_weight": pending / q, "pending_weight_square": pending / (q * q)}
    if f is None:
        return found | {"weight_square_positive": where_strong(ay / (q * q))}
    s = f + (ay - a * f) / q
    return found | {
        "predicted_weighted": where_strong(a * f * (1 - q) / q),
        "score": where_strong(s),
        "score_square": where_strong(s * s),
        "score_positive": where_strong(ay * s),
        "score_accepted": where_strong(a * s),
        "predicted_chance": where_strong(p * f),
        "predicted_accepted": where_strong(a * f),
    }


def add_up(codes: NDArray[np.intp], groups: int, person: Person, overlap: float) -> Sums:
    """Return the sums of rows in memory, rounded.

    Args:
        codes: the index of each row's group.
        groups: number of groups.
        person: the rows.
        overlap: the smallest propensity at which weighting is trusted.
    """
    return added(codes, groups, person, overlap).rounded()


def added(codes: NDArray[np.intp], groups: int, person: Person, overlap: float) -> Sums:
    """Return the sums of rows in memory, without rounding.

    Args:
        codes: the index of each row's group.
        groups: number of groups.
        person: the rows.
        overlap: the smallest propensity at which weighting is trusted.
    """
    parts = [slice(i, i + BLOCK) for i in range(0, max(len(codes), 1), BLOCK)]
    found = [_added(codes[part], groups, person.take(part), overlap) for part in parts]
    columns: Any = zip(*found, strict=True)
    return Sums(*(reduce(np.add, column) for column in columns))


def _added(codes: NDArray[np.intp], groups: int, person: Person, overlap: float) -> Sums:
    a, ay, p, f, hidden, pending, _, weight = person
    rows = len(a)
    cell = codes * STRATA + stratum(p, f, rows)

    def total(values: Floats) -> Floats:
        values = values if weight is None else values * weight
        return np.bincount(cell, values, groups * STRATA).reshape(groups, STRATA).astype(float)

    found: dict[str, Any] = {"accepted": a, "positive": ay}
    found |= {} if hidden is None else {"rejected_positive": hidden}
    found |= {} if pending is None else {"pending": pending}
    found |= terms(a, ay, p, f, pending, overlap, one=np.ones(rows), where=np.where)
    people = np.bincount(cell, weight, groups * STRATA).reshape(groups, STRATA).astype(float)
    nothing = np.zeros((groups, STRATA))
    sums = {name: total(found[name]) if name in found else nothing for name in Sums._fields[1:]}
    return Sums(people=people, **sums)


def _rounded(values: Floats) -> Floats:
    # Below 1e-290 the scale would overflow.
    size = np.floor(np.log10(np.maximum(np.where(values == 0, 1.0, np.abs(values)), 1e-290)))
    scale = 10.0 ** (DIGITS - 1 - size)
    return np.round(values * scale) / scale
