"""Computation of disparities within strata, and standardised over them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sellf.audit import methods, tails
from sellf.audit.comparing import clipped, find_reference, ordered_pairs
from sellf.audit.evidence import Evidence
from sellf.audit.group import Group
from sellf.audit.interval import Interval
from sellf.audit.result import Audit
from sellf.audit.strata import Standardised, StratumGap, Within, of_difference
from sellf.audit.weighted import ends
from sellf.errors import InputError
from sellf.fairness.notions import Rate, define
from sellf.logs.names import Values, is_missing, say

MOST_STRATA = 200
MOST_VALUES = 20
"""Numeric columns with more distinct values than this are cut into bands."""
BANDS = 5
"""The number of bands, each with equally many people."""

FEWEST_ACCEPTED = 100
"""The smallest number of accepted people of a group in a stratum for the normal approximation."""


class Cell(NamedTuple):
    """One group in one stratum."""

    group: Group
    value: float


def within(
    audit: Audit, evidence: Evidence, columns: tuple[str, ...], reference: Any = None
) -> Within:
    """Return the disparity of one rate within strata.

    Args:
        audit: the audit of the rate over all strata.
        evidence: the log.
        columns: the columns whose values define the strata.
        reference: the group that others are compared with; None: the one with the largest rate.
    """
    rows = evidence.rows
    if rows is None or any(person is None for person in evidence.people):
        raise InputError(
            "--within needs the rows in memory: audit a random part of the log, or leave it out."
        )
    if rows.person.unit is not None:
        raise InputError(
            "--within counts every row as another person, so it does not go with --person: leave "
            "one of them out."
        )
    rate = define(audit.notion).alone
    names = [say(name) for name in evidence.names]
    value = np.array([group.value for group in audit.by_group.values()])
    place = find_reference(evidence.names, reference)
    highest = int(np.argmax(value)) if place is None else place
    pairs = ordered_pairs(len(names), place)
    labels, codes = strata({name: rows.others[name] for name in columns})
    parts = {}
    for k, label in enumerate(labels):
        some = evidence.part(np.flatnonzero(codes == k))
        parts[label] = [Cell(group, _value(rate, group)) for group in some.groups]
    # All strata and all pairs that might be shown share delta.
    count = sum(
        cells[i].group.people > 0 and cells[j].group.people > 0
        for cells in parts.values()
        for i, j in pairs
    )
    gaps: list[StratumGap] = []
    overall: list[Standardised] = []
    for i, name in enumerate(names):
        if i == highest:
            continue
        both = {
            label: (cells[i], cells[highest])
            for label, cells in parts.items()
            if cells[i].group.people and cells[highest].group.people
        }
        people = {label: sum(cell.group.people for cell in parts[label]) for label in both}
        share = {label: n / max(sum(people.values()), 1) for label, n in people.items()}
        known = (name, names[highest])
        for label, (one, other) in both.items():
            difference = _difference(rate, one, other, audit.delta / count)
            gaps.append(
                StratumGap(
                    label,
                    *known,
                    one.group.people,
                    other.group.people,
                    share[label],
                    one.value,
                    other.value,
                    difference,
                    of_difference(difference, audit.omega),
                )
            )
        own = [cells[i].group.people + cells[highest].group.people for cells in parts.values()]
        kept = sum(one.group.people + other.group.people for one, other in both.values())
        if both:
            weights = [(share[label], *cells) for label, cells in both.items()]
            found, exact = standardised(rate, weights, audit.delta / max(len(names) - 1, 1))
            crude = float(value[i] - value[highest])
            overall.append(
                Standardised(
                    *known,
                    crude,
                    found,
                    crude - found.value,
                    int(sum(own) - kept),
                    exact,
                    of_difference(found, audit.omega),
                )
            )
    if not overall:
        raise InputError(
            f"within {', '.join(columns)} no two groups are in the same stratum: name columns with "
            "fewer values."
        )
    return Within(rate.name, columns, audit.omega, audit.delta, tuple(gaps), tuple(overall))


def strata(columns: dict[str, Values]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the strata and each row's index among them."""
    words = [_words(name, values) for name, values in columns.items()]
    rows = [", ".join(parts) for parts in zip(*words, strict=True)]
    labels, codes = np.unique(np.array(rows), return_inverse=True)
    if len(labels) > MOST_STRATA:
        raise InputError(
            f"within {', '.join(columns)} there are {len(labels):,} strata, more than "
            f"{MOST_STRATA}: name fewer columns, or ones with fewer values."
        )
    return [str(label) for label in labels], codes.astype(np.intp)


def _words(name: str, values: Values) -> list[str]:
    """Return the label of each row's value: the value itself, or a band of numbers."""
    gone = is_missing(values)
    if values.dtype.kind in "iuf" and len(np.unique(values[~gone])) > MOST_VALUES:
        known = values[~gone].astype(float)
        cuts = np.unique(np.quantile(known, np.linspace(0, 1, BANDS + 1)))
        place = np.clip(np.searchsorted(cuts, values.astype(float), side="right") - 1, 0, None)
        place = np.minimum(place, len(cuts) - 2)
        # The band number comes first, so that bands are sorted in their order.
        bands = [f"{name} band {k + 1}: {cuts[k]:g} to {cuts[k + 1]:g}" for k in place]
    else:
        bands = [f"{name}={say(value)}" for value in values.tolist()]
    return [f"{name} missing" if lost else band for lost, band in zip(gone, bands, strict=True)]


def _difference(rate: Rate, one: Cell, other: Cell, alpha: float) -> Interval:
    low = methods.lower_difference(rate, one.group, other.group, alpha)
    high = -methods.lower_difference(rate, other.group, one.group, alpha)
    if low > high:
        low, high = -1.0, 1.0
    return clipped(max(low, -1.0), one.value - other.value, min(high, 1.0))


def standardised(
    rate: Rate, cells: list[tuple[float, Cell, Cell]], delta: float
) -> tuple[Interval, bool]:
    """Return the mean of the strata's differences, and whether its interval is finite-sample.

    Args:
        rate: the rate to compare.
        cells: the share of each stratum and its two groups.
        delta: the error probability.
    """
    groups = [cell.group for _, one, other in cells for cell in (one, other)]
    exact = all(methods.kind(rate, group) == "exact" for group in groups)
    finite = all(methods.METHODS[methods.kind(rate, group)].finite_sample for group in groups)
    # With few outcomes in a stratum the normal approximation is inaccurate.
    few = any(group.accepted < FEWEST_ACCEPTED for group in groups)
    middle = sum(share * (one.value - other.value) for share, one, other in cells)
    bound = _exact if exact else _together if few and finite else _normal
    low = bound(rate, [(share, one.group, other.group) for share, one, other in cells], delta / 2)
    high = -bound(rate, [(share, two.group, one.group) for share, one, two in cells], delta / 2)
    low, high = (low, high) if low <= high else (-1.0, 1.0)
    return clipped(max(low, -1.0), float(middle), min(high, 1.0)), bound is not _normal


def _exact(rate: Rate, cells: list[tuple[float, Group, Group]], alpha: float) -> float:
    """Return a lower bound for values of 0 or 1, from the tails of weighted sums."""
    total, terms = 0.0, []
    for share, one, other in cells:
        first, second = one.shares(rate)[0], other.shares(rate)[1]
        if min(first.people, second.people) < 2:
            total -= share  # anything is possible
            continue
        total += share * (first.value - second.value)
        for side in (first, second):
            variance = side.value * (1 - side.value)
            fourth = variance * (1 - 3 * variance)
            terms.append(tails.Term(share / side.people, side.people, variance, fourth, 1.0))
    return total - tails.radius(terms, alpha) if terms else -1.0


def _together(rate: Rate, cells: list[tuple[float, Group, Group]], alpha: float) -> float:
    """Return a lower bound from the bounds of the strata, which hold together."""
    each = alpha / len(cells)
    return sum(
        share * max(methods.lower_difference(rate, one, other, each), -1.0)
        for share, one, other in cells
    )


def _normal(rate: Rate, cells: list[tuple[float, Group, Group]], alpha: float) -> float:
    """Return a lower bound by the normal approximation."""
    total = variance = 0.0
    for share, one, other in cells:
        first, second = ends(rate, one), ends(rate, other)
        total += share * (first.low - second.high)
        variance += share**2 * (first.low_error**2 + second.high_error**2)
    return total - float(-ndtri(alpha)) * variance**0.5


def _value(rate: Rate, group: Group) -> float:
    if not group.people:
        return float("nan")
    found = ends(rate, group)
    return (found.low + found.high) / 2
