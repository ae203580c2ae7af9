"""Acceptance under the current and the proposed policy, by group and by feature."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.encoding import as_numbers

FEATURES = 8
"""Maximum number of features, in the order in which they are named."""
VALUES = 10
"""Maximum number of distinct values; numbers with more are cut into quartiles."""
FEWEST = 20
"""Minimum number of people in a segment; smaller segments are left out."""


class Segment(NamedTuple):
    """The people of a group with the same value of one feature."""

    feature: str
    value: str
    group: Any
    people: int
    now: float
    """Share accepted under the current policy."""
    proposed: float
    """Share accepted under the proposed policy."""

    @property
    def change(self) -> float:
        """Change of the share accepted."""
        return self.proposed - self.now

    def to_dict(self) -> dict[str, Any]:
        """Return the segment as plain values."""
        return self._asdict() | {"group": str(self.group), "change": self.change}


def segments(
    columns: Mapping[str, Values],
    codes: NDArray[np.intp],
    groups: list[Any],
    now: Floats,
    proposed: Floats,
) -> tuple[Segment, ...]:
    """Return the acceptance by group and by each feature.

    Args:
        columns: the columns that the policy decides from, without the group.
        codes: the group of each person.
        groups: the names of the groups.
        now: probabilities of acceptance, or decisions.
        proposed: probabilities of acceptance under the new policy.
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
    """Return the part of a feature's range that each person is in, and the names of the parts."""
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
