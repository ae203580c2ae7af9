"""Fast evaluation of scikit-learn's boosted trees by lookup tables, with identical results.

Every leaf of a tree is a bit. The value of a feature rules out the leaves on the other side of
every split on that feature, so each tree has one table of possible leaves per feature; the leaves
allowed by all features intersect in a single leaf. Table lookups avoid the branches on which
walking down a tree spends its time.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sellf.logs.person import Floats

LEAVES = 15
"""The largest number of leaves of a tree: one of 16 bits each, the last of which is never set."""
ENTRIES = 8192
"""The largest table of combined features, which must fit into a core's cache."""
ROWS = 16_384
"""The number of rows that are looked up together, limited by the cache as well."""

Masks = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Feature:
    """The binning of a column; the last bin is for missing and unknown values."""

    place: int
    """The index of the column."""
    cuts: Floats
    """The upper ends of the bins, or the categories."""
    words: bool
    """Whether the column is categorical."""

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.cuts) + (1 if self.words else 2)

    def numbers(self, values: Floats) -> NDArray[np.intp]:
        """Return the index of each value's bin."""
        found = np.searchsorted(self.cuts, values)
        if self.words:
            near = self.cuts[np.minimum(found, len(self.cuts) - 1)]
            return np.where(near == values, found, self.bins - 1)
        return np.where(np.isnan(values), self.bins - 1, found)


@dataclass(frozen=True)
class Tree:
    """One tree: the leaves that each bin allows, and the values of the leaves."""

    tables: tuple[tuple[int, Masks], ...]
    """Tables of allowed leaves, each with the index of its combined features."""
    values: Floats


@dataclass(frozen=True)
class Trees:
    """A sum of trees, which predicts the probability that a binary target is 1."""

    together: tuple[tuple[Feature, ...], ...]
    """The features that are combined in one table."""
    trees: tuple[Tree, ...]
    start: float

    def __call__(self, matrix: Floats) -> Floats:
        """Return the probability for each row."""
        total = np.full(len(matrix), self.start)
        starts = range(0, len(matrix), ROWS)
        with ThreadPoolExecutor(_cores()) as pool:
            list(pool.map(lambda i: self._add(matrix[i : i + ROWS], total[i : i + ROWS]), starts))
        return expit(total)

    def _add(self, matrix: Floats, total: Floats) -> None:
        """Add the values of all trees for some rows."""
        bins = [_numbers(features, matrix) for features in self.together]
        left, more = (np.empty(len(matrix), np.uint16) for _ in range(2))
        value, by_leaf = np.empty(len(matrix)), np.zeros(1 << LEAVES)
        for tree in self.trees:
            left.fill(1)  # for a tree with a single leaf
            for number, (place, table) in enumerate(tree.tables):
                # Bin indices are in range; mode="clip" avoids a copy.
                np.take(table, bins[place], out=more if number else left, mode="clip")
                if number:
                    np.bitwise_and(left, more, out=left)
            by_leaf[1 << np.arange(len(tree.values))] = tree.values
            np.take(by_leaf, left, out=value, mode="clip")
            total += value


def _cores() -> int:
    """Return the number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def _numbers(features: tuple[Feature, ...], matrix: Floats) -> NDArray[np.intp]:
    """Return the index of each row's combination of bins."""
    found = np.zeros(len(matrix), dtype=np.intp)
    for feature in features:
        found *= feature.bins
        found += feature.numbers(np.ascontiguousarray(matrix[:, feature.place]))
    return found


def as_tables(estimator: Any, rows: Floats) -> Trees | None:
    """Convert a fitted HistGradientBoostingClassifier to tables; None if that is not possible.

    The internals of a model are not part of scikit-learn's public interface, so the result is
    compared with the model's own predictions.

    Args:
        estimator: a classifier with two classes.
        rows: features on which predictions are compared.
    """
    try:
        made = _converted(estimator)
    except (AttributeError, KeyError, IndexError, ValueError, TypeError):
        return None
    if made is None or not np.array_equal(made(rows), estimator.predict_proba(rows)[:, 1]):
        return None
    return made


def _converted(estimator: Any) -> Trees | None:
    predictors = [one for (one,) in estimator._predictors]
    if any(one.get_n_leaf_nodes() > LEAVES for one in predictors):
        return None
    features = _features(estimator, predictors)
    together = _packed([one for one in features if one is not None])
    trees = tuple(_tree(one, features, together) for one in predictors)
    return Trees(together, trees, float(np.ravel(estimator._baseline_prediction)[0]))


def _features(estimator: Any, predictors: list[Any]) -> list[Feature | None]:
    """Return the columns in the order in which trees number them; None for unused columns."""
    used: dict[int, set[float]] = {}
    for predictor in predictors:
        inner = predictor.nodes[predictor.nodes["is_leaf"] == 0]
        for feature, cut in zip(inner["feature_idx"], inner["num_threshold"], strict=True):
            used.setdefault(int(feature), set()).add(float(cut))
    words = estimator.is_categorical_
    count = estimator.n_features_in_
    words = np.zeros(count, dtype=bool) if words is None else np.asarray(words)
    # Categorical columns come first.
    order = [*np.flatnonzero(words), *np.flatnonzero(~words)]
    categories: list[Any] = []
    if words.any():
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        categories = [values[~np.isnan(values)] for values in encoder.categories_]
    found: list[Feature | None] = []
    for number, place in enumerate(order):
        if number not in used:
            found.append(None)
        elif number < len(categories):
            found.append(Feature(int(place), categories[number], True))
        else:
            found.append(Feature(int(place), np.array(sorted(used[number])), False))
    return found


def _packed(features: list[Feature]) -> tuple[tuple[Feature, ...], ...]:
    """Combine features as long as their bins have few combinations."""
    packs: list[list[Feature]] = []
    size = ENTRIES
    for feature in sorted(features, key=lambda one: one.bins):
        if not packs or size * feature.bins > ENTRIES:
            packs.append([])
            size = 1
        packs[-1].append(feature)
        size *= feature.bins
    return tuple(map(tuple, packs))


def _tree(
    predictor: Any, features: list[Feature | None], together: tuple[tuple[Feature, ...], ...]
) -> Tree:
    """Return one tree as tables."""
    nodes, values = predictor.nodes, []
    allowed: dict[int, Masks] = {}
    every = (1 << LEAVES) - 1

    def leaves(at: int) -> int:
        """Return the bits of the leaves below a node; record which leaves its splits rule out."""
        node = nodes[at]
        if node["is_leaf"]:
            values.append(float(node["value"]))
            return 1 << (len(values) - 1)
        one, other = leaves(int(node["left"])), leaves(int(node["right"]))
        number = int(node["feature_idx"])
        feature = features[number]
        assert feature is not None
        kept = np.where(_left(predictor, node, feature), every & ~other, every & ~one)
        before = allowed.get(number, np.full(feature.bins, every, np.uint16))
        allowed[number] = before & kept.astype(np.uint16)
        return one | other

    all_leaves = leaves(0)
    tables = []
    for place, pack in enumerate(together):
        own = [allowed.get(features.index(feature)) for feature in pack]
        if all(one is None for one in own):
            continue
        table = np.full(1, all_leaves, np.uint16)
        for feature, one in zip(pack, own, strict=True):
            next_one = np.full(feature.bins, every, np.uint16) if one is None else one
            table = (table[:, None] & next_one).ravel()
        tables.append((place, table))
    return Tree(tuple(tables), np.array(values))


def _left(predictor: Any, node: Any, feature: Feature) -> NDArray[np.bool_]:
    """Return which bins go to the left child."""
    if node["is_categorical"]:
        bits = predictor.raw_left_cat_bitsets[node["bitset_idx"]]
        codes = np.arange(len(feature.cuts))
        known = (bits[codes // 32] >> (codes % 32).astype(np.uint32)) & 1 == 1
    else:
        known = np.append(feature.cuts, np.inf) <= node["num_threshold"]
        known[-1] = False  # above all cuts
    return np.append(known, bool(node["missing_go_to_left"]))
