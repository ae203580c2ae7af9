"""alpha(x, z) of school admission: the paper's logistic regression on features and group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar
from scipy.special import expit

from sellf.envs.school.enem import GROUPS, EnemRows, People, one_hot
from sellf.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LabelLaw:
    """P(Y=1) = sigmoid(intercept + shift + weights . one-hot(x, z) + grade_weights . grades)."""

    intercept: float
    """Intercept as fitted on the rows."""
    shift: float
    """Shift of the intercept that gives a stated base rate; 0 as fitted."""
    weights: Array
    """Weights of the one-hot columns: the features in order, then the groups."""
    grade_weights: Array
    """Weights of the three standardised grades; empty for the law without grades."""
    grade_mean: Array
    grade_std: Array

    def logit(self, people: People, sizes: Sequence[int]) -> Array:
        """Return the log-odds of the positive label, (n,)."""
        logit = self.intercept + self.shift + look_up(people, sizes, self.weights[:, None])[:, 0]
        if self.grade_weights.size:
            logit += ((people.grades - self.grade_mean) / self.grade_std) @ self.grade_weights
        return logit

    def probability(self, people: People, sizes: Sequence[int]) -> Array:
        """Return alpha(x, z), (n,)."""
        return expit(self.logit(people, sizes))


def fit_law(rows: EnemRows, *, with_grades: bool) -> LabelLaw:
    """Fit alpha on real rows, with or without the three standardised grades."""
    people, empty = rows.people, np.empty(0)
    mean = people.grades.mean(axis=0) if with_grades else empty
    std = people.grades.std(axis=0) if with_grades else empty
    if with_grades and not std.all():
        raise InputError("a grade is the same for everyone, so it cannot be standardised")
    design = design_matrix(people, rows.sizes)
    if with_grades:
        design = np.hstack([design, (people.grades - mean) / std])
    intercept, weights = fit_logistic(design, rows.label)
    columns = sum(rows.sizes) + len(GROUPS)
    return LabelLaw(intercept, 0.0, weights[:columns], weights[columns:], mean, std)


def shifted_to(law: LabelLaw, people: People, sizes: Sequence[int], rate: float) -> LabelLaw:
    """Return the law with its intercept shifted to a mean probability of `rate` among `people`."""
    logit = replace(law, shift=0.0).logit(people, sizes)

    def excess(shift: float) -> float:
        return float(expit(logit + shift).mean()) - rate

    found = root_scalar(excess, bracket=(-20.0, 20.0), method="brentq", xtol=1e-12)
    return replace(law, shift=float(found.root))


def design_matrix(people: People, sizes: Sequence[int]) -> Array:
    """Return one-hot features, then the one-hot group, (n, sum(sizes) + 2)."""
    return np.hstack([one_hot(people.codes, sizes), np.eye(len(GROUPS))[people.group]])


def look_up(people: People, sizes: Sequence[int], weights: Array) -> Array:
    """Return `design_matrix(...) @ weights` without the matrix, (n, weights.shape[1])."""
    total = weights[sum(sizes) + people.group.astype(np.intp)]
    start = 0
    for feature, size in enumerate(sizes):
        total += weights[start + people.codes[:, feature].astype(np.intp)]
        start += size
    return total


def fit_logistic(
    design: Array, label: NDArray[np.integer] | NDArray[np.bool_], *, penalty: float = 1.0
) -> tuple[float, Array]:
    """Return the intercept and weights that minimise summed log-loss + penalty/2 * |weights|^2.

    The intercept is not penalised, so this is scikit-learn's default LogisticRegression with
    C = 1/penalty. The damped Newton method is deterministic.
    """
    if penalty <= 0:
        raise InputError(f"penalty is {penalty}, expected a number above 0 (1.0 is the paper's)")
    y = np.asarray(label, np.float64)
    if np.unique(y).tolist() != [0.0, 1.0]:
        raise InputError(
            f"the labels are {np.unique(y).tolist()[:5]}, expected both 0 and 1 among them"
        )
    x = np.hstack([np.ones((len(y), 1)), design])
    ridge = np.full(x.shape[1], penalty)
    ridge[0] = 0.0

    def loss(beta: Array) -> float:
        score = x @ beta
        return float(np.logaddexp(0.0, score).sum() - y @ score + 0.5 * ridge @ beta**2)

    beta = np.zeros(x.shape[1])
    current = loss(beta)
    for _ in range(100):
        p = expit(x @ beta)
        gradient = x.T @ (p - y) + ridge * beta
        hessian = (x.T * (p * (1.0 - p))) @ x + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        # The tolerance accepts the last steps, whose gain is within the rounding error of the loss.
        while (proposed := loss(beta - size * step)) > current + 1e-10 * abs(current):
            size /= 2.0
        beta, current = beta - size * step, proposed
        if np.abs(size * step).max() < 1e-12:
            break
    return float(beta[0]), beta[1:]
