"""Columns to numbers, in a way that is learned once, saved as JSON and read back exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sellf.errors import InputError
from sellf.logs.names import Values, is_missing
from sellf.logs.person import Floats

LEVELS = 30
"""Words that are rarer than the thirtieth most frequent of a column count as other words."""
BINS = 6
"""Into how many parts a scorecard cuts a number's range."""


@dataclass(frozen=True)
class Feature:
    """One column and how it becomes numbers."""

    name: str
    levels: tuple[str, ...] = ()
    """Of words: those that have a number of their own."""
    centre: float = 0.0
    """Of numbers: what stands in for a missing one,"""
    scale: float = 1.0
    """and what a step of one is, in units of the column."""
    edges: tuple[float, ...] = ()
    """Of numbers that are cut into bins: where each but the first begins."""
    knots: tuple[float, ...] = ()
    """Of numbers that may bend: where, in steps from the centre."""

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        if self.levels:
            return len(self.levels) + 1
        return max(len(self.edges), 1) + len(self.knots) + 1

    def encode(self, values: Values) -> Floats:
        """Return one line a person; the last number says that the value is missing or unknown."""
        if self.levels:
            words = np.array([str(item).strip() for item in values])
            known = np.stack([words == level for level in self.levels], axis=1)
            return np.column_stack([known, ~known.any(axis=1)]).astype(np.float64)
        found = as_numbers(values)
        if found is None:
            raise InputError(f"column {self.name!r} holds words where the policy knows numbers.")
        gone = np.isnan(found)
        if self.edges:
            # Each bin adds to the one before it, so that signs make a scorecard monotone.
            at_least = found[:, None] >= np.array(self.edges)[None, :]
            return np.column_stack([at_least & ~gone[:, None], gone]).astype(np.float64)
        filled = (np.where(gone, self.centre, found) - self.centre) / self.scale
        bends = [np.maximum(filled - knot, 0.0) for knot in self.knots]
        return np.column_stack([filled, *bends, gone])

    def labels(self) -> list[str]:
        """Return a name for each number."""
        if self.levels:
            return [*(f"{self.name} = {level}" for level in self.levels), f"{self.name}: other"]
        if self.edges:
            return [*(f"{self.name} >= {edge:g}" for edge in self.edges), f"{self.name}: missing"]
        bends = [f"{self.name} beyond {self.centre + k * self.scale:g}" for k in self.knots]
        return [self.name, *bends, f"{self.name}: missing"]


@dataclass(frozen=True)
class Encoding:
    """All columns of a policy."""

    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(feature.name for feature in self.features)

    def encode(self, columns: Mapping[str, Values]) -> Floats:
        """Return one line a person."""
        if not hasattr(columns, "__getitem__") or not hasattr(columns, "__contains__"):
            raise InputError(
                f"the people are a {type(columns).__name__}: give their features by name, as a "
                "mapping or a data frame."
            )
        for name in self.names:
            if name not in columns:
                raise InputError(f"the policy needs a column {name!r}: give it, or rename yours.")
        values = {name: np.atleast_1d(np.asarray(columns[name])) for name in self.names}
        if len({len(own) for own in values.values()}) > 1:
            lengths = ", ".join(f"{name!r} {len(own):,}" for name, own in values.items())
            raise InputError(f"columns differ in length ({lengths}): give one value for a person.")
        return np.column_stack([f.encode(values[f.name]) for f in self.features])

    def labels(self) -> list[str]:
        """Return a name for each number."""
        return [label for feature in self.features for label in feature.labels()]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return it as plain values."""
        return [asdict(feature) for feature in self.features]


def from_dict(content: Sequence[Mapping[str, Any]]) -> Encoding:
    """Return the encoding that `to_dict` wrote."""
    try:
        features = tuple(
            Feature(
                str(one["name"]),
                tuple(map(str, one["levels"])),
                float(one["centre"]),
                float(one["scale"]),
                tuple(map(float, one["edges"])),
                tuple(map(float, one.get("knots", ()))),
            )
            for one in content
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        features = ()
    numbers = [x for one in features for x in (one.centre, one.scale, *one.edges, *one.knots)]
    if not features or not np.isfinite(numbers).all() or any(one.scale <= 0 for one in features):
        raise InputError("the policy's features cannot be read: its file is damaged.")
    return Encoding(features)


def learn_encoding(
    columns: Mapping[str, Values], *, bins: bool = False, bends: bool = False
) -> Encoding:
    """Return how columns become numbers.

    Args:
        columns: of the people to learn from.
        bins: whether numbers are cut into bins, as in a scorecard.
        bends: whether what is linear in a number may bend at some of its quantiles.
    """
    features = []
    for name, values in columns.items():
        found = as_numbers(values)
        if found is None:
            words, counts = np.unique([str(item).strip() for item in values], return_counts=True)
            order = np.argsort(-counts, kind="stable")[:LEVELS]
            features.append(Feature(name, tuple(str(word) for word in words[order])))
            continue
        known = found[~np.isnan(found)]
        if not len(known):
            raise InputError(f"feature {name!r} is missing for everyone: leave it out.")
        edges: tuple[float, ...] = ()
        if bins:
            quantiles = np.quantile(known, np.arange(1, BINS) / BINS, method="higher")
            edges = tuple(float(edge) for edge in np.unique(quantiles) if edge > known.min())
            if not edges and known.max() > known.min():
                # Nearly everybody has the smallest value: what is above it is the other bin.
                edges = (float(known[known > known.min()].min()),)
        centre, scale = float(known.mean()), float(known.std()) or 1.0
        knots: tuple[float, ...] = ()
        if bends:
            inner = np.unique(np.quantile(known, np.arange(1, BINS) / BINS))
            knots = tuple(float((x - centre) / scale) for x in inner if x > known.min())
        features.append(Feature(name, (), centre, scale, edges, knots))
    return Encoding(tuple(features))


def as_numbers(values: Values) -> Floats | None:
    """Return a column of numbers, NaN where one is missing; None if it holds words."""
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        found = values.astype(np.float64)
        return np.where(np.isfinite(found), found, np.nan)
    missing = is_missing(values)
    found = np.full(len(values), np.nan)
    try:
        found[~missing] = [float(item) for item in values[~missing]]
    except (TypeError, ValueError, OverflowError):
        return None
    return np.where(np.isfinite(found), found, np.nan)
