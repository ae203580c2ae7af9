"""A Chow-Liu tree: every feature depends on one other feature and on a person's stratum."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sellf.envs.school.enem import one_hot

Array = NDArray[np.float64]


def joint_counts(
    codes: NDArray[np.uint8], stratum: NDArray[np.uint8], sizes: Sequence[int], strata: int
) -> Array:
    """Count pairs of categories in each stratum, (strata, categories, categories)."""
    columns = one_hot(codes, sizes)
    return np.stack([columns[stratum == s].T @ columns[stratum == s] for s in range(strata)])


def conditional_information(counts: Array, sizes: Sequence[int]) -> Array:
    """Return I(X_i; X_j | stratum) in nats for every pair of features, (features, features)."""
    slices = _slices(sizes)
    information = np.zeros((len(sizes), len(sizes)))
    people = np.trace(counts[:, slices[0], slices[0]], axis1=1, axis2=2).sum()
    for i, here in enumerate(slices):
        for j, there in enumerate(slices[:i]):
            joint = counts[:, here, there]
            total = joint.sum(axis=(1, 2), keepdims=True)
            apart = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
            seen = joint > 0
            ratio = np.divide(joint * total, apart, out=np.ones_like(joint), where=seen)
            information[i, j] = information[j, i] = (joint * np.log(ratio)).sum() / people
    return information


def spanning_tree(information: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the parents (-1 for the root) and an order of the maximum spanning tree (Prim).

    The root is feature 0. Ties are broken by the lower index, so the result is deterministic.
    """
    features = len(information)
    parents, order = [-1] * features, [0]
    best, via = information[0].copy(), [0] * features
    best[0] = -np.inf
    while len(order) < features:
        new = int(best.argmax())
        parents[new] = via[new]
        order.append(new)
        best[new] = -np.inf
        for other in range(features):
            if other not in order and information[new, other] > best[other]:
                best[other], via[other] = information[new, other], new
    return tuple(parents), tuple(order)


def conditional_tables(
    counts: Array, sizes: Sequence[int], parents: Sequence[int], pseudo_people: float
) -> tuple[Array, ...]:
    """Return P(child | stratum, parent) per feature, (strata, parent's, child's categories).

    The tables are smoothed: each pair of stratum and parent category gets `pseudo_people`
    additional people distributed as the child in that stratum, and each stratum gets as many
    distributed as the child overall. No observed category has probability 0 anywhere, and the
    marginals hardly change. The root has one parent category.
    """
    slices = _slices(sizes)
    tables = []
    for child, parent in enumerate(parents):
        marginal = np.diagonal(counts[:, slices[child], slices[child]], axis1=1, axis2=2)
        overall = marginal.sum(axis=0) / marginal.sum()
        given = _normalised(marginal + pseudo_people * overall)[:, None, :]
        if parent >= 0:
            joint = counts[:, slices[parent], slices[child]]
            given = _normalised(joint + pseudo_people * given)
        tables.append(given)
    return tuple(tables)


def sample_codes(
    rng: np.random.Generator,
    stratum: NDArray[np.uint8],
    parents: Sequence[int],
    order: Sequence[int],
    tables: Sequence[Array],
) -> NDArray[np.uint8]:
    """Draw the features of all people, parents before children, (n, features)."""
    codes = np.zeros((len(stratum), len(parents)), np.uint8)
    for child in order:
        parent = parents[child]
        given = codes[:, parent] if parent >= 0 else np.zeros_like(stratum)
        # The last category gets the remaining probability, so it needs no threshold.
        thresholds = tables[child].cumsum(axis=2)[stratum, given, :-1]
        codes[:, child] = (rng.random(len(stratum))[:, None] >= thresholds).sum(axis=1)
    return codes


def _slices(sizes: Sequence[int]) -> list[slice]:
    """Return the slice of each feature's categories among the one-hot columns."""
    return [slice(a, b) for a, b in pairwise([0, *np.cumsum(sizes).tolist()])]


def _normalised(counts: Array) -> Array:
    return counts / counts.sum(axis=-1, keepdims=True)
