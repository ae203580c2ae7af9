"""Models of a probability: logistic regression with sign constraints, and boosted trees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from sellf.errors import InputError
from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.encoding import Encoding

RIDGE = 1e-3
"""Weight of the squared coefficients, per person."""


class Model(Protocol):
    """A model that predicts a probability."""

    def margin(self, matrix: Floats) -> Floats:
        """Return the log odds."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the model's parameters as arrays."""
        ...


def margins(model: Model, encoding: Encoding, columns: Mapping[str, Values]) -> Floats:
    """Return the log odds of people, whose columns are encoded block by block."""
    return np.concatenate([model.margin(matrix) for matrix in encoding.blocks(columns)])


def predict(model: Model, matrix: Floats) -> Floats:
    """Return the predicted probability of each row."""
    return expit(model.margin(matrix))


@dataclass(frozen=True)
class Linear:
    """A logistic regression."""

    coefficients: Floats
    """One coefficient per column, and the intercept last."""

    def margin(self, matrix: Floats) -> Floats:
        """Return the log odds."""
        return matrix @ self.coefficients[:-1] + self.coefficients[-1]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the model's parameters as arrays."""
        return {"coefficients": self.coefficients}


@dataclass(frozen=True)
class Trees:
    """A sum of decision trees; one entry per node, with feature -1 for a leaf."""

    start: float
    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats

    def margin(self, matrix: Floats) -> Floats:
        """Return the log odds."""
        total = np.full(len(matrix), self.start)
        every = np.arange(len(matrix))
        for root in self.roots:
            node = np.full(len(matrix), root)
            while True:
                feature = self.feature[node]
                inner = feature >= 0
                if not inner.any():
                    break
                goes = matrix[every, np.maximum(feature, 0)] <= self.threshold[node]
                after = np.where(goes, self.left[node], self.right[node])
                node = np.where(inner, after, node)
            total += self.value[node]
        return total

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the model's parameters as arrays."""
        names = ("roots", "feature", "threshold", "left", "right", "value")
        return {"start": np.array([self.start])} | {name: getattr(self, name) for name in names}


def from_arrays(arrays: dict[str, NDArray[Any]]) -> Model:
    """Return the model from the result of `arrays`, which is checked."""
    if "coefficients" in arrays:
        return Linear(arrays["coefficients"])
    try:
        trees = Trees(
            float(arrays["start"][0]), *(arrays[n] for n in Trees.__annotations__ if n != "start")
        )
    except (KeyError, IndexError, TypeError):
        raise InputError("the policy's model cannot be read: its file is damaged.") from None
    nodes = trees.feature.size
    whole = (trees.roots, trees.feature, trees.left, trees.right)
    each = (*whole[1:], trees.threshold, trees.value)
    if (
        any(array.dtype.kind != "i" for array in whole)
        or any(array.shape != (nodes,) for array in each)
        or trees.roots.ndim != 1
    ):
        raise InputError("the policy's trees cannot be read: its file is damaged.")
    places = np.concatenate([trees.roots, trees.left, trees.right])
    # Children come after their parent, so every path ends in a leaf.
    inner = trees.feature >= 0
    own = np.arange(nodes)[inner]
    if (len(places) and (places.min() < 0 or places.max() >= nodes)) or (
        np.minimum(trees.left[inner], trees.right[inner]) <= own
    ).any():
        raise InputError("the policy's trees cannot be read: its file is damaged.")
    return trees


def fit_linear(
    matrix: Floats,
    target: Floats,
    weights: Floats | None = None,
    *,
    signs: Floats | None = None,
    ridge: float = RIDGE,
) -> Linear:
    """Fit a weighted logistic regression with a small ridge penalty.

    Args:
        matrix: one row per person.
        target: 0 or 1, or a probability.
        weights: weights of the people; None: equal weights.
        signs: sign constraint of each coefficient: 1 for nonnegative, -1 for nonpositive, 0 for
            none.
        ridge: weight of the squared coefficients.
    """
    share = np.ones(len(target)) if weights is None else weights
    share = share / share.sum()

    def loss(theta: Floats) -> tuple[float, Floats]:
        margin = matrix @ theta[:-1] + theta[-1]
        value = float(share @ (np.logaddexp(0, margin) - target * margin))
        slope = share * (expit(margin) - target)
        gradient = np.append(matrix.T @ slope + 2 * ridge * theta[:-1], slope.sum())
        return value + ridge * float(theta[:-1] @ theta[:-1]), gradient

    limits = None
    if signs is not None:
        ends = {1: (0.0, None), -1: (None, 0.0), 0: (None, None)}
        limits = [*(ends[int(sign)] for sign in signs), (None, None)]
    start = np.zeros(matrix.shape[1] + 1)
    mean = min(max(float(share @ target), 1e-6), 1 - 1e-6)
    start[-1] = np.log(mean / (1 - mean))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits)
    return Linear(found.x)


def fit_trees(matrix: Floats, target: Floats, weights: Floats | None = None) -> Model:
    """Fit gradient-boosted trees; needs scikit-learn."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise InputError(
            "boosting needs scikit-learn: type `pip install 'sellf[audit]'`."
        ) from None
    seen = target if weights is None else target[weights > 0]
    if seen.min(initial=1) == seen.max(initial=0):
        return fit_linear(matrix, target, weights)
    settings: dict[str, Any] = {"max_iter": 80, "min_samples_leaf": 50, "early_stopping": False}
    made = HistGradientBoostingClassifier(
        max_leaf_nodes=15, l2_regularization=1.0, random_state=0, **settings
    ).fit(matrix, target.astype(np.int64), sample_weight=weights)
    return _trees(made)


def _trees(made: Any) -> Trees:
    """Convert scikit-learn's trees to arrays, which can be saved and read."""
    roots, parts, offset = [], [], 0
    for (tree,) in made._predictors:
        nodes = tree.nodes
        leaf = nodes["is_leaf"].astype(bool)
        roots.append(offset)
        parts.append(
            (
                np.where(leaf, -1, nodes["feature_idx"]),
                np.where(leaf, 0.0, nodes["num_threshold"]),
                np.where(leaf, 0, nodes["left"].astype(np.int64) + offset),
                np.where(leaf, 0, nodes["right"].astype(np.int64) + offset),
                nodes["value"].astype(np.float64),
            )
        )
        offset += len(nodes)
    feature, threshold, left, right, value = (np.concatenate(p) for p in zip(*parts, strict=True))
    start = float(np.ravel(made._baseline_prediction)[0])
    return Trees(start, np.array(roots), feature.astype(np.int64), threshold, left, right, value)
