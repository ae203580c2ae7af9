"""Who is accepted now and who would be: by group and by what the policy decides from."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.encoding import as_numbers

FEATURES = 8
"""Features that are looked at, in the order in which they were named."""
VALUES = 10
"""Values of a feature that are told apart; numbers with more are cut into quarters."""
FEWEST = 20
"""People of a group in a segment; of fewer nothing is said."""


class Segment(NamedTuple):
    """People of a group who are alike in one feature."""

    feature: str
    value: str
    group: Any
    people: int
    now: float
    """The share that is accepted,"""
    proposed: float
    """and that would be."""

    @property
    def change(self) -> float:
        """How much that is more."""
        return self.proposed - self.now

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self._asdict() | {"group": str(self.group), "change": self.change}


def segments(
    columns: Mapping[str, Values],
    codes: NDArray[np.intp],
    groups: list[Any],
    now: Floats,
    proposed: Floats,
) -> tuple[Segment, ...]:
    """Return acceptance by group and by each feature.

    Args:
        columns: what the policy decides from, but the group.
        codes: the group of each person.
        groups: their names.
        now: chances of acceptance, or decisions.
        proposed: chances under the new policy.
    """
    found = []
    for feature in list(columns)[:FEATURES]:
        place, names = _parts(columns[feature])
        for k, value in enumerate(names):
            for code, group in enumerate(groups):
                own = (place == k) & (codes == code)
                number = int(own.sum())
                if number >= FEWEST:
                    figures = float(now[own].mean()), float(proposed[own].mean())
                    found.append(Segment(feature, value, group, number, *figures))
    return tuple(found)


def _parts(values: Values) -> tuple[NDArray[np.intp], list[str]]:
    """Return which part of a feature's range each person is in, and what the parts are called."""
    number = as_numbers(values)
    if number is None:
        words, place, counts = np.unique(
            [str(x).strip() for x in values], return_inverse=True, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")[:VALUES]
        rank = np.full(len(words), len(order))
        rank[order] = np.arange(len(order))
        return rank[place], [str(words[k]) for k in order]
    known = number[~np.isnan(number)]
    distinct = np.unique(known)
    if len(distinct) <= VALUES:
        return np.searchsorted(distinct, number), [f"{x:g}" for x in distinct]
    edges = np.unique(np.quantile(known, (0.25, 0.5, 0.75)))
    ends = [f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}" for x in edges]
    inner = [f"{a} to below {b}" for a, b in pairwise(ends)]
    place = np.searchsorted(edges, number, side="right")
    place[np.isnan(number)] = len(edges) + 1  # in no part
    return place, [f"below {ends[0]}", *inner, f"{ends[-1]} or more"]
