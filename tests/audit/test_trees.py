"""Trees as tables: scikit-learn's own predictions, to the last bit."""

import pickle

import numpy as np
import pytest

from sellf.audit.trees import as_tables

pytest.importorskip("sklearn")

from sklearn.ensemble import HistGradientBoostingClassifier


def drawn(rows, seed, columns):
    """Return features of which the first are words, with values that are missing, and labels."""
    rng = np.random.default_rng(seed)
    made = [rng.integers(0, 9, rows), rng.integers(0, 40, rows)]
    made += [rng.normal(size=rows) for _ in range(columns)]
    matrix = np.column_stack(made).astype(float)
    matrix[rng.random(rows) < 0.2, -1] = np.nan
    chance = 0.2 + 0.5 * (matrix[:, 2] > 0) * (matrix[:, 0] % 2)
    return matrix, (rng.random(rows) < chance).astype(float)


@pytest.mark.parametrize(("words", "columns"), [(None, 1), ([0, 1], 1), ([1], 3), ([0], 12)])
def test_tables_say_what_the_trees_say(words, columns):
    matrix, label = drawn(3000, 0, columns)
    settings = {"max_leaf_nodes": 15, "max_iter": 15, "early_stopping": False}
    trees = HistGradientBoostingClassifier(categorical_features=words, **settings)
    trees.fit(matrix, label)
    tables = as_tables(trees, matrix[:50])
    assert tables is not None
    other, _ = drawn(40_000, 1, columns)
    other[:9, 0] = 77.0  # a word that was never seen
    other[9:20, 1] = np.nan
    other[20:30, 2] = np.inf
    assert np.array_equal(tables(other), trees.predict_proba(other)[:, 1])
    sent = pickle.loads(pickle.dumps(tables))  # as Spark sends them to where the rows are
    assert np.array_equal(sent(other[:100]), tables(other[:100]))


def test_a_model_that_cannot_be_a_table_stays_one():
    matrix, label = drawn(3000, 0, 2)
    trees = HistGradientBoostingClassifier(max_leaf_nodes=31, max_iter=3).fit(matrix, label)
    assert as_tables(trees, matrix[:50]) is None
    assert as_tables(object(), matrix[:50]) is None


class Turned(HistGradientBoostingClassifier):
    """A model whose predictions are not the sum of its trees."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_tables_that_say_something_else_are_not_used():
    matrix, label = drawn(3000, 0, 2)
    trees = Turned(max_leaf_nodes=15, max_iter=3).fit(matrix, label)
    assert as_tables(trees, matrix[:50]) is None
