"""Sequential quadratic programming (SciPy's SLSQP) on the expected population."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from sellf import interrupts
from sellf.planning.law import Floats
from sellf.planning.mean_field import Course
from sellf.planning.problem import LEAST, Problem

PRECISION = 1e-12
"""Of the reward, as a share of what there is to gain."""
TOLERATED = 1e-6
"""How far a disparity may be above omega and count as within: rounding of the optimiser."""
MOST_STEPS = 1000


class Found(NamedTuple):
    """A policy and what it comes to, at the times that the problem looks at."""

    variables: Floats
    reward: float
    gap: float
    """The largest disparity."""


class _Evaluation:
    """The last point asked for: SLSQP asks for value, constraints and gradients one by one."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.at: Floats | None = None
        self.found: Course
        self.derived: tuple[Floats, Floats] | None = None

    def course(self, variables: Floats) -> Course:
        if self.at is None or not np.array_equal(self.at, variables):
            interrupts.check()
            self.at, self.derived = variables.copy(), None
            self.found = self.problem.course(variables)
        return self.found

    def slopes(self, variables: Floats) -> tuple[Floats, Floats]:
        found = self.course(variables)
        if self.derived is None:
            self.derived = self.problem.slopes(variables, found)
        return self.derived

    def rates(self, variables: Floats) -> Floats:
        return self.course(variables).rates

    def rate_slopes(self, variables: Floats) -> Floats:
        """Return (times, rates, groups, variables)."""
        return self.slopes(variables)[1].reshape(*self.found.rates.shape, -1)


def unconstrained(problem: Problem, starts: Iterable[Floats]) -> Found:
    """Return the policy that earns most, however unfair."""
    return _best([_maximise(problem, None, start) for start in starts], np.inf)


def best(problem: Problem, omega: float, starts: Iterable[Floats]) -> Found:
    """Return the policy that earns most within omega; if none is within, the fairest found."""
    return _best([_maximise(problem, omega, start) for start in starts], omega)


def _best(tries: list[Found], omega: float) -> Found:
    within = [found for found in tries if found.gap <= omega + TOLERATED]
    if within:
        return max(within, key=lambda found: found.reward)
    return min(tries, key=lambda found: found.gap)


def _maximise(problem: Problem, omega: float | None, start: Floats) -> Found:
    at = _Evaluation(problem)
    base = problem.law.start
    # SLSQP's tolerances are absolute: what there is to gain is made a number near 1.
    scale = max(1.0, problem.law.horizon * float(np.abs(problem.law.gain).max()) / 10)
    constraints = _simplex(problem)
    if omega is not None:
        constraints.append(
            _above(
                lambda z: omega - problem.differences(at.rates(z)),
                lambda z: -problem.differences(at.rate_slopes(z)),
            )
        )
    constraints += _shares(problem, at)
    result = minimize(
        lambda z: (base - at.course(z).reward) / scale,
        start,
        jac=lambda z: -at.slopes(z)[0] / scale,
        bounds=[(0.0, 1.0)] * start.size,
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": MOST_STEPS, "ftol": PRECISION},
    )
    return measured(problem, result.x)


def fairest(problem: Problem, starts: Iterable[Floats]) -> Found:
    """Return the policy whose largest disparity is smallest, whatever it earns."""
    return min((_minimise(problem, start) for start in starts), key=lambda found: found.gap)


def _minimise(problem: Problem, start: Floats) -> Found:
    """Minimise a bound on the disparity, which is a variable more."""
    at = _Evaluation(problem)
    last = np.append(np.zeros(start.size), 1.0)

    def wider(slopes: Floats) -> Floats:
        return np.concatenate([slopes, np.zeros((len(slopes), 1))], axis=1)

    bounded = _above(
        lambda z: z[-1] - problem.differences(at.rates(z[:-1])),
        lambda z: last - wider(problem.differences(at.rate_slopes(z[:-1]))),
    )
    others = [
        _above(lambda z, c=c: c["fun"](z[:-1]), lambda z, c=c: wider(c["jac"](z[:-1])))
        for c in [*_simplex(problem), *_shares(problem, at)]
    ]
    result = minimize(
        lambda z: z[-1],
        np.append(start, problem.gaps(at.rates(start)).max()),
        jac=lambda z: last,
        bounds=[*[(0.0, 1.0)] * start.size, (0.0, None)],
        constraints=[bounded, *others],
        method="SLSQP",
        options={"maxiter": MOST_STEPS, "ftol": PRECISION},
    )
    return measured(problem, result.x[:-1])


def measured(problem: Problem, variables: Floats) -> Found:
    """Return a policy with its figures, its chances within [0, 1] and summing to 1 at most."""
    chances = np.clip(variables, 0.0, 1.0).reshape(problem.shape)
    chances = chances / np.maximum(chances.sum(axis=1, keepdims=True), 1.0)
    found = problem.course(chances.ravel())
    return Found(chances.ravel(), found.reward, float(problem.gaps(found.rates).max()))


def _above(value: Callable[[Floats], Floats], slope: Callable[[Floats], Floats]) -> dict[str, Any]:
    return {"type": "ineq", "fun": value, "jac": slope}


def _shares(problem: Problem, at: _Evaluation) -> list[dict[str, Any]]:
    if len(problem.rates) == len(problem.definition.rates):
        return []
    return [
        _above(
            lambda z: problem.shares(at.rates(z)) - LEAST,
            lambda z: problem.shares(at.rate_slopes(z)),
        )
    ]


def _simplex(problem: Problem) -> list[dict[str, Any]]:
    """Return that chances sum to 1 at most; with two actions the bounds say so."""
    segments, others, cells = problem.shape
    if others == 1:
        return []
    each = np.kron(np.eye(segments), np.kron(np.ones((1, others)), np.eye(cells)))
    return [_above(lambda z: 1 - each @ z, lambda z: -each)]
