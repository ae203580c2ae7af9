"""Examiner leniency as an instrument: cases are assigned as if at random (Manski 1990).

Under this assumption the share of good outcomes, q, is the same among the cases of every examiner.
For each examiner, q is at least the share accepted and good, and at most that share plus the share
rejected; the tightest of these bounds over all examiners holds. A lenient examiner's cases are the
most informative, since few of their outcomes are hidden.

A group's rate depends on the shares accepted, accepted and good, and good. It is a quotient of
linear functions of these, so over a box of shares its extremes are at corners.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit import shares
from sellf.audit.shares import Share
from sellf.fairness.notions import Counts, Rate
from sellf.logs.person import Floats, Person

MOST = 12
"""With more examiners than this, they are grouped into classes of similar leniency."""
CLASSES = 6
"""The number of such classes."""
RANKING = 1 / 3
"""The random share of cases that is used to rank examiners by leniency and for nothing else."""


class Cases(NamedTuple):
    """The cases of a group by examiner; arrays with one entry per examiner."""

    people: Floats
    accepted: Floats
    positive: Floats
    pending: Floats


def identified(cases: Cases) -> tuple[float, float]:
    """Return the identified range of q; if the first end exceeds the second, no q fits."""
    low = (cases.positive / cases.people).max()
    most = (cases.positive + cases.pending + cases.people - cases.accepted) / cases.people
    return float(low), float(most.min())


def by_examiner(person: Person, examiner: NDArray[np.intp], count: int) -> Cases:
    """Return the cases of each examiner with at least one case."""

    def total(values: Floats) -> Floats:
        return np.bincount(examiner, values, count).astype(float)

    people = total(np.ones(len(examiner)))
    pending = np.zeros(len(examiner)) if person.pending is None else person.pending
    there = people > 0
    sums = (people, total(person.accepted), total(person.positive), total(pending))
    return Cases(*(values[there] for values in sums))


def classes(
    examiner: NDArray[np.intp], accepted: Floats, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return each row's examiner, or class of examiners, and which rows may be used.

    Leniency is measured on rows that are not used otherwise; else examiners would be selected on
    the noise in their own decisions.
    """
    count = int(examiner.max()) + 1
    everyone = np.ones(len(examiner), dtype=bool)
    if count <= MOST:
        return examiner, everyone
    ranking = np.random.default_rng([seed, 2]).random(len(examiner)) < RANKING
    people = np.bincount(examiner[ranking], None, count)
    taken = np.bincount(examiner[ranking], accepted[ranking], count)
    leniency = (taken + accepted.mean()) / (people + 1)
    order = np.argsort(leniency, kind="stable")
    cases = np.cumsum(np.bincount(examiner, None, count)[order])
    place = np.empty(count, dtype=np.intp)
    place[order] = np.minimum((cases - 1) * CLASSES // max(int(cases[-1]), 1), CLASSES - 1)
    return place[examiner], ~ranking


def interval(rate: Rate, cases: Cases, alpha: float) -> tuple[float, float] | None:
    """Return the interval of a group's rate, which misses with probability at most alpha.

    None if no share of good outcomes fits all examiners, which contradicts the assumption.

    Args:
        rate: the rate to bound.
        cases: the cases of the group, by examiner.
        alpha: the error probability.
    """
    used = [
        any(sums.accepted for sums in rate.sums),
        any(sums.accepted_positive != sums.rejected_positive for sums in rate.sums),
    ]
    each = 0.1 * alpha
    rest = alpha - each * sum(used)
    number = len(cases.people)
    low = max(
        shares.lower(Share(good, n), rest / (2 * number))
        for good, n in zip(cases.positive, cases.people, strict=True)
    )
    most = cases.positive + cases.pending + cases.people - cases.accepted
    high = min(
        shares.upper(Share(k, n), rest / (2 * number))
        for k, n in zip(most, cases.people, strict=True)
    )
    if low > high:
        return None
    total = [float(values.sum()) for values in cases]
    n, accepted, positive, pending = total
    box = [
        _ends(accepted, accepted, n, each) if used[0] else (accepted / n,) * 2,
        _ends(positive, positive + pending, n, each) if used[1] else (positive / n,) * 2,
        (low, high),
    ]
    return corners(rate, box)


def corners(rate: Rate, box: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the extremes of a rate over shares accepted, accepted and good, and good."""
    found = []
    for a, good, q in product(*box):
        counts = Counts(1.0, a, good, max(q - good, 0.0))
        part, whole = (float(side.total(counts)) for side in rate.sums)
        found += [min(max(part / whole, 0.0), 1.0)] if whole > 1e-12 else [0.0, 1.0]
    return min(found), max(found)


def _ends(low: float, high: float, n: float, alpha: float) -> tuple[float, float]:
    return shares.lower(Share(low, n), alpha / 2), shares.upper(Share(high, n), alpha / 2)
