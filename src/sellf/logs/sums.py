"""The sums of a log by group and stratum that every estimate is made of.

A stratum is a tenth of the propensity's range together with a tenth of the prediction's. Sums add
up, so an engine can take them where the data lives.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.logs.person import BINS, Floats, Person

DIGITS = 12
STRATA = (BINS + 1) * (BINS + 1)
"""Bins of the propensity and of the prediction, the last of each for logs that have none."""


class Sums(NamedTuple):
    """One array per sum; axes are the group and the stratum."""

    people: Floats
    accepted: Floats
    positive: Floats
    """Accepted and with a good outcome."""
    rejected_positive: Floats
    """Rejected and with one, where that is known and trusted."""
    pending: Floats
    """Accepted and without an outcome, which may be 0 or 1; not among `positive`."""
    propensity: Floats
    """p."""
    chance_variance: Floats
    """p (1 - p)."""
    weak: Floats
    """People whose propensity is too small to weight by; all of them if there is none."""
    weak_accepted: Floats
    weak_positive: Floats
    weight: Floats
    """A / p; this and what follows is over people who are not weak."""
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
    """What bounds E[s^4] given p and f; 1 for people who are weak."""
    miss_fourth: Floats
    """What bounds E[(A Y - s)^4] given p and f; likewise."""
    pending_weight: Floats
    """1 / p of those without an outcome; 1 if they are weak."""
    pending_weight_square: Floats
    chance: Floats
    """p, over people who are not weak, like what follows."""
    predicted_chance: Floats
    """p f."""
    predicted_accepted: Floats
    """A f."""

    def by_group(self) -> "Sums":
        """Return the sums over all strata."""
        return Sums(*(field.sum(axis=-1) for field in self))

    def rounded(self) -> "Sums":
        """Return the sums to twelve digits: later ones depend on the order of adding up."""
        return Sums(*(_rounded(field) for field in self))

    def group(self, place: int) -> "Sums":
        """Return one group's."""
        return Sums(*(field[place] for field in self))

    def __add__(self, other: "Sums") -> "Sums":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Sums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def stratum(propensity: Floats | None, prediction: Floats | None, rows: int) -> NDArray[np.intp]:
    """Return the number of each row's stratum."""

    def bins(values: Floats | None) -> NDArray[np.intp]:
        if values is None:
            return np.full(rows, BINS, dtype=np.intp)
        return np.minimum((values * BINS).astype(np.intp), BINS - 1)

    return bins(propensity) * (BINS + 1) + bins(prediction)


def fourth_moment(p: Any, f: Any) -> Any:
    """Return what bounds E[s^4] given p and f, whatever the chance of a good outcome.

    Args:
        p: the propensity, as numbers or as an engine's expression.
        f: the prediction; None: whatever it is.
    """
    if f is None:
        return 1 + 1 / (p * p * p)
    # s is f if rejected, f + (1 - f) / p or f - f / p if accepted; x^4 + y^4 bounds the larger.
    good, bad, kept = f + (1 - f) / p, f * (1 - p) / p, f * f
    return (1 - p) * kept * kept + p * (good * good * good * good + bad * bad * bad * bad)


def miss_fourth_moment(p: Any, f: Any) -> Any:
    """Return what bounds E[(A Y - s)^4] given p and f, whatever the chance of a good outcome.

    Args:
        p: the propensity, as numbers or as an engine's expression.
        f: the prediction; None: whatever it is.
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
    """Return what each row adds to the sums, but to those of every log; those left out are 0.

    Args:
        a: A; this and the next are arrays of numbers, or an engine's expressions.
        ay: A Y.
        p: the propensity, above 0 where it is `overlap` or more; None if the log has none.
        f: the prediction; None if it has none.
        pending: 1 for accepted people without an outcome; None if there are none.
        overlap: the smallest propensity at which weighting is trusted.
        one: 1 for every row.
        where: takes the second or the third argument, as the first says.
    """
    found: dict[str, Any] = {} if f is None else {"predicted_rejected": (1 - a) * f}
    if p is None:
        found |= {"weak": one, "weak_accepted": a, "weak_positive": ay}
        return found | {"fourth": one, "miss_fourth": one}
    strong = p >= overlap
    # What is weighted by; people who are weak are not.
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
    """Return the sums of rows in memory.

    Args:
        codes: the number of each row's group.
        groups: how many groups there are.
        person: the rows.
        overlap: the smallest propensity at which weighting is trusted.
    """
    return added(codes, groups, person, overlap).rounded()


def added(codes: NDArray[np.intp], groups: int, person: Person, overlap: float) -> Sums:
    """Return the sums of rows in memory, to all digits.

    Args:
        codes: the number of each row's group.
        groups: how many groups there are.
        person: the rows.
        overlap: the smallest propensity at which weighting is trusted.
    """
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
    # Below 1e-290 the scale would not be a number any more.
    size = np.floor(np.log10(np.maximum(np.where(values == 0, 1.0, np.abs(values)), 1e-290)))
    scale = 10.0 ** (DIGITS - 1 - size)
    return np.round(values * scale) / scale
