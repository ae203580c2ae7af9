"""Encoding of columns as numbers, which is learned once and saved as JSON without loss."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sellf.errors import InputError
from sellf.logs.names import Values, is_missing
from sellf.logs.person import Floats

LEVELS = 30
"""Maximum number of levels of a column of words; rarer words are encoded as other."""
BINS = 6
"""Number of bins that a scorecard cuts a numeric feature into."""
SINGLE = 1e-7
"""Relative rounding error of 32-bit floats, which columns may be stored as."""
BLOCK = 1 << 16
"""Number of rows that are encoded at once where the encoded columns are not kept."""


@dataclass(frozen=True)
class Feature:
    """One column and its encoding as numbers."""

    name: str
    levels: tuple[str, ...] = ()
    """For words: the levels that have an indicator of their own."""
    centre: float = 0.0
    """For numbers: the value subtracted before scaling, and substituted for missing values."""
    scale: float = 1.0
    """For numbers: the unit of scaled values, in units of the column."""
    edges: tuple[float, ...] = ()
    """For binned numbers: the lower edge of each bin but the first."""
    knots: tuple[float, ...] = ()
    """For piecewise linear numbers: the knots, as scaled values."""

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        if self.levels:
            return len(self.levels) + 1
        return max(len(self.edges), 1) + len(self.knots) + 1

    def encode(self, values: Values) -> Floats:
        """Return one row per person; the last column indicates a missing or unknown value."""
        if self.levels:
            words = np.array([str(item).strip() for item in values])
            known = np.stack([words == level for level in self.levels], axis=1)
            return np.column_stack([known, ~known.any(axis=1)]).astype(np.float64)
        found = as_numbers(values)
        if found is None:
            raise InputError(
                f"column {self.name!r} holds words, but the policy was learned from numbers: give "
                "numbers."
            )
        gone = np.isnan(found)
        if self.edges:
            # Bins are cumulative, so sign constraints make a scorecard monotone.
            at_least = found[:, None] >= self._least[None, :]
            return np.column_stack([at_least & ~gone[:, None], gone]).astype(np.float64)
        filled = (np.where(gone, self.centre, found) - self.centre) / self.scale
        bends = [np.maximum(filled - knot, 0.0) for knot in self.knots]
        return np.column_stack([filled, *bends, gone])

    @property
    def _least(self) -> Floats:
        """The smallest values in each bin but the first: edges, less the error of 32-bit floats."""
        edges = np.array(self.edges)
        return edges - SINGLE * np.abs(edges)

    def labels(self) -> list[str]:
        """Return a name for each encoded column."""
        if self.levels:
            return [*(f"{self.name} = {level}" for level in self.levels), f"{self.name}: other"]
        if self.edges:
            return [*(f"{self.name} >= {edge:g}" for edge in self.edges), f"{self.name}: missing"]
        bends = [f"{self.name} beyond {self.centre + k * self.scale:g}" for k in self.knots]
        return [self.name, *bends, f"{self.name}: missing"]


@dataclass(frozen=True)
class Encoding:
    """The encoding of all columns of a policy."""

    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(feature.name for feature in self.features)

    def encode(self, columns: Mapping[str, Values]) -> Floats:
        """Return the encoded columns, one row per person."""
        return self._encode(self._values(columns), slice(None))

    def blocks(self, columns: Mapping[str, Values]) -> Iterator[Floats]:
        """Yield the encoded columns of some people at a time, in order."""
        values = self._values(columns)
        count = max((len(own) for own in values.values()), default=0)
        for start in range(0, max(count, 1), BLOCK):
            yield self._encode(values, slice(start, start + BLOCK))

    def _encode(self, values: Mapping[str, Values], rows: slice) -> Floats:
        return np.column_stack([f.encode(values[f.name][rows]) for f in self.features])

    def _values(self, columns: Mapping[str, Values]) -> dict[str, Values]:
        """Return the columns that are needed, which are checked."""
        # A lazy frame has no length.
        if not all(hasattr(columns, f"__{name}__") for name in ("getitem", "contains", "len")):
            raise InputError(
                f"columns is a {type(columns).__name__}: give the features by name, as a mapping "
                "or a data frame in memory."
            )
        for name in self.names:
            if name not in columns:
                raise InputError(f"the policy needs a column {name!r}: give it, or rename yours.")
        values = {name: _column(columns, name) for name in self.names}
        if len({len(own) for own in values.values()}) > 1:
            lengths = ", ".join(f"{name!r} {len(own):,}" for name, own in values.items())
            raise InputError(f"columns differ in length ({lengths}): give one value per person.")
        return values

    def labels(self) -> list[str]:
        """Return a name for each encoded column."""
        return [label for feature in self.features for label in feature.labels()]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the encoding as plain values."""
        return [asdict(feature) for feature in self.features]


def _column(columns: Mapping[str, Values], name: str) -> Values:
    """Return one column, with one value per person."""
    found = np.atleast_1d(np.asarray(columns[name]))
    if found.ndim != 1:
        raise InputError(f"column {name!r} has shape {found.shape}: give one value per person.")
    if found.dtype.kind == "S" or any(isinstance(x, bytes) for x in _objects(found)):
        raise InputError(f"column {name!r} holds bytes: decode them to text.")
    return found


def _objects(values: Values) -> Sequence[Any]:
    return values.tolist() if values.dtype.kind == "O" else []


def from_dict(content: Sequence[Mapping[str, Any]]) -> Encoding:
    """Return the encoding from the result of `to_dict`, which is checked."""
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
    """Learn how to encode columns as numbers.

    Args:
        columns: columns of the people to learn from.
        bins: whether numbers are cut into bins, as in a scorecard.
        bends: whether numbers are encoded piecewise linearly, with knots at some quantiles.
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
                # Nearly everybody has the smallest value: larger values form the other bin.
                edges = (float(known[known > known.min()].min()),)
        centre, scale = float(known.mean()), float(known.std()) or 1.0
        knots: tuple[float, ...] = ()
        if bends:
            inner = np.unique(np.quantile(known, np.arange(1, BINS) / BINS))
            knots = tuple(float((x - centre) / scale) for x in inner if x > known.min())
        features.append(Feature(name, (), centre, scale, edges, knots))
    return Encoding(tuple(features))


def as_numbers(values: Values) -> Floats | None:
    """Return a column as numbers, with NaN for missing values; None if it contains words."""
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
