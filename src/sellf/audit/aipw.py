"""Cross-fitted estimates of propensities and outcomes, for logs without recorded propensities."""

import importlib.util
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from sellf.audit.trees import Trees, as_tables
from sellf.errors import InputError
from sellf.logs.names import Values, is_missing
from sellf.logs.person import Floats, Person
from sellf.logs.rows import Rows

Model: TypeAlias = Literal["boosting", "logistic"]
MODELS: tuple[Model, ...] = get_args(Model)
FOLDS = 5
MANY = 100_000
"""The number of rows to predict from which converting trees to tables pays off."""
TRIED = 1000
"""The number of rows on which tables are compared with the trees."""
LEVELS = 100
"""Categories rarer than the hundredth most frequent one of a column are merged."""


def cross_fit(rows: Rows, model: Model, seed: int = 0) -> Person:
    """Return the rows with estimated propensities and predictions.

    Each fold is predicted by models fitted on the other folds: the probability of acceptance is
    fitted on everyone, the outcome on the accepted with a known outcome, both from the features,
    the group and, if there is one, the score.

    Args:
        rows: a log in memory with features, a score, or both.
        model: gradient boosting or logistic regression.
        seed: seed of the assignment to folds.
    """
    check_sklearn()
    person = rows.person
    matrix, words = design(rows, model)
    people = len(person.accepted)
    fold = np.random.default_rng(seed).permutation(people) % FOLDS
    seen = person.accepted == 1
    if person.pending is not None:
        seen &= person.pending == 0
    label = person.positive
    p, f = np.empty(people), np.empty(people)
    for k in range(FOLDS):
        inside, outside = fold == k, fold != k
        if not inside.any():  # fewer rows than folds
            continue
        for found, train, target in ((p, outside, person.accepted), (f, outside & seen, label)):
            known = (matrix[train], target[train], None)
            predict = estimator_of(*known, words, model, predicts=people // FOLDS)
            found[inside] = predict(matrix[inside])
    # Accepted people had a positive probability of acceptance, whatever a model predicts.
    return person._replace(propensity=np.clip(p, 1e-6, 1.0), prediction=np.clip(f, 0.0, 1.0))


def check_sklearn() -> None:
    """Raise InputError if scikit-learn is not installed."""
    if importlib.util.find_spec("sklearn") is None:
        raise InputError(
            "estimating propensities needs scikit-learn: type `pip install 'sellf[audit]'`, or "
            "name the column that holds them with --propensity."
        )


@dataclass(frozen=True)
class Predictor:
    """Predicts the probability that a binary target is 1."""

    estimator: Any
    """A fitted scikit-learn classifier; None: the constant `chance` is predicted."""
    chance: float = 0.0
    tables: Trees | None = None
    """The estimator as lookup tables, which give the same predictions faster."""

    def __call__(self, matrix: Floats) -> Floats:
        """Return the probability for each row."""
        from threadpoolctl import threadpool_limits

        if self.tables is not None:
            return self.tables(matrix)
        if self.estimator is None:
            return np.full(len(matrix), self.chance)
        with threadpool_limits(1):
            return np.clip(self.estimator.predict_proba(matrix)[:, 1], 0.0, 1.0)


def estimator_of(
    matrix: Floats,
    seen: Floats,
    weight: Floats | None,
    words: list[int],
    model: Model,
    *,
    predicts: int,
) -> Predictor:
    """Fit a model of the probability that a binary target is 1.

    Args:
        matrix: the features.
        seen: the target.
        weight: how often each row counts; None: once.
        words: which columns of the features are categorical.
        model: gradient boosting or logistic regression.
        predicts: the number of rows that will be predicted.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    count = np.ones(len(seen)) if weight is None else weight
    if len(seen) == 0 or seen.min() == seen.max():
        # With a single class, the rule of succession avoids probabilities of 0 and 1.
        return Predictor(None, float(((seen * count).sum() + 1) / (count.sum() + 2)))
    # scikit-learn cannot bin a column without any value; no split will depend on it.
    unknown = np.isnan(matrix).all(axis=0)
    matrix = np.where(unknown, 0.0, matrix) if unknown.any() else matrix
    # scikit-learn takes three times as long with weights, even if all of them are 1.
    how = {} if weight is None or (weight == 1).all() else {"sample_weight": weight}
    estimator: Any
    if model == "boosting":
        settings: dict[str, Any] = {"categorical_features": words or None, "early_stopping": False}
        estimator = HistGradientBoostingClassifier(max_leaf_nodes=15, random_state=0, **settings)
    else:
        estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        how = {f"logisticregression__{name}": value for name, value in how.items()}
    # More threads spend more time waiting than working, especially on a busy machine.
    with threadpool_limits(1):
        estimator.fit(matrix, seen, **how)
        quick = model == "boosting" and predicts >= MANY
        return Predictor(estimator, tables=as_tables(estimator, matrix[:TRIED]) if quick else None)


def design(rows: Rows, model: Model) -> tuple[Floats, list[int]]:
    """Return the features as numbers, and which of these columns are categorical."""
    columns: list[Floats] = []
    words: list[int] = []

    def add_words(codes: Floats) -> None:
        if model == "boosting":
            words.append(len(columns))
            columns.append(codes)
        else:
            columns.extend((codes == code).astype(float) for code in np.unique(codes)[1:])

    add_words(_frequent(rows.codes.astype(float)))
    if rows.person.prediction is not None:
        columns.append(rows.person.prediction)
    for values in (rows.features or {}).values():
        numbers = _numbers(values)
        if numbers is None:
            add_words(_codes(values))
        elif model == "boosting":
            columns.append(numbers)
        else:
            gone = np.isnan(numbers)
            centre = float(np.mean(numbers[~gone])) if (~gone).any() else 0.0
            columns.append(np.where(gone, centre, numbers))
            if gone.any():
                columns.append(gone.astype(float))
    return np.column_stack(columns), words


def _numbers(values: Values) -> Floats | None:
    if values.dtype.kind in "biuf":
        result = values.astype(np.float64)
    elif values.dtype.kind in "mM":
        result = values.astype("datetime64[s]").astype(np.float64)
    else:
        missing = is_missing(values)
        try:
            known = np.array([float(item) for item in values[~missing]])
        except (TypeError, ValueError, OverflowError):
            return None
        result = np.full(len(values), np.nan)
        result[~missing] = known
    return np.where(np.isfinite(result), result, np.nan)


def _codes(values: Values) -> Floats:
    _, codes = np.unique(np.array([str(item) for item in values]), return_inverse=True)
    return _frequent(codes.astype(float))


def _frequent(codes: Floats) -> Floats:
    kinds, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rank = np.empty(len(kinds))
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(kinds))
    return np.minimum(rank, LEVELS)[inverse]
