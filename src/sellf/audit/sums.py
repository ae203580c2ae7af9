"""The sums of a log by group and stratum that every estimate is made of.

A stratum is a tenth of the propensity's range together with a tenth of the prediction's: people the
decision maker held to be alike. Sums add up, so an engine can take them where the data lives.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit.scores import BINS, Floats, Person

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
    """A Y / p^2."""
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

    def by_group(self) -> "Sums":
        """Return the sums over all strata."""
        return Sums(*(field.sum(axis=-1) for field in self))

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


def add_up(codes: NDArray[np.intp], groups: int, person: Person, overlap: float) -> Sums:
    """Return the sums of rows in memory.

    Args:
        codes: the number of each row's group.
        groups: how many groups there are.
        person: the rows.
        overlap: the smallest propensity at which weighting is trusted.
    """
    a, ay, p, f, hidden, pending, _ = person
    rows = len(a)
    cell = codes * STRATA + stratum(p, f, rows)

    def total(values: Floats) -> Floats:
        return np.bincount(cell, values, groups * STRATA).reshape(groups, STRATA).astype(float)

    terms: dict[str, Any] = {"accepted": a, "positive": ay}
    if hidden is not None:
        terms["rejected_positive"] = hidden
    if pending is not None:
        terms["pending"] = pending
    if f is not None:
        terms["predicted_rejected"] = (1 - a) * f
    if p is None:
        terms |= {"weak": np.ones(rows), "weak_accepted": a, "weak_positive": ay}
    else:
        strong = p >= overlap
        weak = 1.0 - strong
        inverse = np.where(strong, 1 / np.where(strong, p, 1.0), 0.0)
        terms |= {
            "propensity": p,
            "chance_variance": p * (1 - p),
            "weak": weak,
            "weak_accepted": weak * a,
            "weak_positive": weak * ay,
            "weight": a * inverse,
            "weight_square": a * inverse * inverse,
            "weight_positive": ay * inverse,
            "weight_square_positive": ay * inverse * inverse,
        }
        if f is not None:
            score = np.where(strong, f + (ay - a * f) * inverse, 0.0)
            terms |= {
                "predicted_weighted": a * f * np.where(strong, inverse - 1, 0.0),
                "score": score,
                "score_square": score * score,
                "score_positive": score * ay,
                "score_accepted": score * a,
            }
    people = np.bincount(cell, None, groups * STRATA).reshape(groups, STRATA).astype(float)
    nothing = np.zeros((groups, STRATA))
    sums = {name: total(terms[name]) if name in terms else nothing for name in Sums._fields[1:]}
    return Sums(people=people, **sums)
