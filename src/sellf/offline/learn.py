"""Learning of candidate policies from one part of a log, ordered from the safest to the boldest."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from sellf.fairness.notions import Rate
from sellf.logs.names import Values
from sellf.logs.person import Floats, Person
from sellf.offline.advantage import Outlook, plan
from sellf.offline.bins import binned
from sellf.offline.encoding import Encoding, learn_encoding
from sellf.offline.models import RIDGE, Linear, Model, fit_linear, fit_trees, margins, predict
from sellf.offline.policy import POINTS, Kind, LearnedPolicy

MOST_FITTED = 300_000
"""Maximum number of rows that a model is fitted on; more rows improve it little."""
FOLDS = 3
PRICES = (0.0, 0.35, 0.6, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5)
"""Policies are learned for these multiples of the multipliers that make the disparity 0."""
THRESHOLDS = 41
FOLLOWED = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05)
"""Probabilities with which a rule is followed; otherwise all are treated alike, which is safer and
earns less."""
MARGINS = tuple(5.0 * 0.92**k for k in range(38))
"""For each of these margins, the candidate with the largest reward is tested: see `Candidate`."""
BY_LOT = tuple(k / 20 for k in range(20))
"""Probabilities with which people just below a threshold are accepted."""
LIKELY = 0.05
"""Prior standard deviation of the error of a model's log odds in a group."""
STEPS = 20
"""Maximum number of steps of Newton's method."""
MOST_PLANNED = 100_000
"""Maximum number of rows that candidates are compared on."""


@dataclass(frozen=True)
class Candidate:
    """A policy, with estimates from the part of the log that it was learned from."""

    policy: LearnedPolicy
    disparity: float
    reward: float
    bound: float
    """Expected bound on the disparity."""
    margin: float = 0.0
    """The distance from the disparity to the tolerance, over the distance from the disparity to its
    expected bound. At 1 the candidate passes its test about every other time, at 2 nearly always,
    whatever its rule."""


@dataclass(frozen=True)
class Wish:
    """Requirements on a policy."""

    rate: Rate
    """The rate that is to be about equal between groups."""
    cost: float
    omega: float
    delta: float
    kind: Kind
    use_group: bool
    """Whether the policy may use the group, which is then among the columns."""
    explore: float
    people: int
    """Number of people that candidates will be certified on."""
    progress: Callable[[int, int], None]


@dataclass(frozen=True)
class Lesson:
    """The part of a log that policies are learned from."""

    person: Person
    codes: NDArray[np.intp]
    groups: int
    columns: Mapping[str, Values]
    overlap: float
    seed: int


def fit_label(lesson: Lesson, encoding: Encoding, kind: Kind) -> tuple[Model, Floats]:
    """Return a model of the outcome, and cross-fitted predictions for the people it is fitted on.

    All outcomes have equal weight, which is most efficient; `calibrated` then corrects each group
    with outcomes that are weighted to represent everybody.
    """
    matrix = encoding.encode(lesson.columns)
    seen, label, _ = _shown(lesson)
    rng = np.random.default_rng([lesson.seed, 1])
    fold = rng.integers(FOLDS, size=len(seen))
    guess = np.zeros(len(seen))
    for k in range(FOLDS):
        rows = _some(np.flatnonzero(seen & (fold != k)), rng)
        model = _fit(kind, matrix[rows], label[rows])
        guess[fold == k] = predict(model, matrix[fold == k])
    rows = _some(np.flatnonzero(seen), rng)
    return _fit(kind, matrix[rows], label[rows]), guess


def _fit(kind: Kind, matrix: Floats, label: Floats) -> Model:
    if kind == "boosting":
        return fit_trees(matrix, label)
    # The ridge decreases with the number of outcomes, since it would bias a correct model.
    return fit_linear(matrix, label, ridge=min(RIDGE, 1 / len(label)))


def _shown(lesson: Lesson) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return a mask of known outcomes, the outcomes, and weights that make them representative."""
    person = lesson.person
    seen, label = person.accepted == 1, person.positive
    if person.pending is not None:
        seen = seen & (person.pending == 0)
    if person.rejected_positive is not None:
        return np.ones(len(seen), dtype=bool), label + person.rejected_positive, np.ones(len(seen))
    p = np.ones(len(seen)) if person.propensity is None else person.propensity
    return seen, label, np.where(seen, 1 / np.maximum(p, max(lesson.overlap, 0.02)), 0.0)


def fit_groups(lesson: Lesson, encoding: Encoding, kind: Kind) -> Floats:
    """Return the probability of each group given the features, for policies that do not use it."""
    matrix = encoding.encode(lesson.columns)
    rng = np.random.default_rng([lesson.seed, 2])
    rows = _some(np.arange(len(matrix)), rng)
    fit = _fitting(kind)
    found = []
    for group in range(lesson.groups):
        own = (lesson.codes == group).astype(np.float64)
        found.append(predict(fit(matrix[rows], own[rows], None), matrix))
    total = np.stack(found, axis=1)
    return total / np.maximum(total.sum(axis=1, keepdims=True), 1e-12)


def _fitting(kind: Kind) -> Callable[..., Model]:
    return fit_trees if kind == "boosting" else fit_linear


def _some(rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    return rows if len(rows) <= MOST_FITTED else rng.choice(rows, MOST_FITTED, replace=False)


def weighted_moments(lesson: Lesson, guess: Floats, label: Floats) -> tuple[Floats, Floats]:
    """Return the expected square of s = f + A (Y - f) / p, and its largest deviation from its mean.

    Args:
        lesson: the people.
        guess: the prediction f.
        label: the estimated probability of a good outcome.
    """
    person = lesson.person
    p = person.propensity
    if person.rejected_positive is not None or p is None:
        return label, np.zeros(len(label))
    strong = p >= lesson.overlap
    safe = np.where(strong, p, 1.0)
    off = label * (1 - guess) ** 2 + (1 - label) * guess**2
    square = guess**2 + 2 * guess * (label - guess) + off / safe
    return square, np.maximum(guess, 1 - guess) * (1 - safe) / safe


def _weak(lesson: Lesson) -> Floats:
    """Return an indicator of the people about whom the log has no information."""
    person = lesson.person
    if person.rejected_positive is not None:
        return np.zeros(len(lesson.codes))
    if person.propensity is None:
        return 1.0 - person.accepted
    return (person.propensity < lesson.overlap).astype(np.float64)


def calibrated(lesson: Lesson, guess: Floats) -> Floats:
    """Return predictions that are calibrated, in level and slope, within every group.

    Policies are compared by these predictions rather than by weighted outcomes: among many
    candidates, the best by a noisy estimate would be selected for its noise.
    """
    person = lesson.person
    if person.rejected_positive is not None:
        return person.positive + person.rejected_positive
    seen, label, weights = _shown(lesson)
    margin = logit(np.clip(guess, 1e-4, 1 - 1e-4))
    result = guess.copy()
    for group in range(lesson.groups):
        own = lesson.codes == group
        rows = np.flatnonzero(own & seen)
        if len(rows) < 30:
            continue
        middle = float(np.median(margin[own]))
        change = _correction(
            _tilted(margin[rows], middle), margin[rows], label[rows], weights[rows]
        )
        result[own] = expit(margin[own] + _tilted(margin[own], middle) @ change)
    return result


def _correction(basis: Floats, margin: Floats, label: Floats, weights: Floats) -> Floats:
    """Return the correction of the log odds, shrunk towards 0 where there are few outcomes.

    The effective sample size of weighted outcomes is the squared sum of weights over the sum of
    their squares.
    """
    share = weights * weights.sum() / (weights @ weights)
    found = np.zeros(basis.shape[1])
    for _ in range(STEPS):
        chance = expit(margin + basis @ found)
        slope = basis.T @ (share * (label - chance)) - found / LIKELY**2
        bend = (basis * (share * chance * (1 - chance))[:, None]).T @ basis
        step = np.linalg.solve(bend + np.eye(len(found)) / LIKELY**2, slope)
        found = found + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return found


def _tilted(margin: Floats, middle: float) -> Floats:
    return np.column_stack([np.ones(len(margin)), margin - middle])


def candidates(lesson: Lesson, wish: Wish) -> tuple[list[Candidate], Model, Encoding, Floats]:
    """Return candidate policies, safest first, with a model of the outcome and its predictions."""
    encoding = learn_encoding(lesson.columns, bins=wish.kind == "scorecard")
    # Predictions are piecewise linear, even where the policy itself is not.
    bent = learn_encoding(lesson.columns, bends=wish.kind != "boosting")
    model, guess = fit_label(lesson, bent, wish.kind)
    steps = len(PRICES) + 2
    wish.progress(1, steps)
    rows = np.arange(len(guess))
    if len(rows) > MOST_PLANNED:
        rows = np.random.default_rng([lesson.seed, 4]).choice(rows, MOST_PLANNED, replace=False)
    outlook = _outlook(lesson, bent, guess, rows, wish)
    matrix = encoding.encode({name: values[rows] for name, values in lesson.columns.items()})
    full, rule = plan(outlook, 0.0)
    wish.progress(2, steps)
    found: list[Candidate] = []
    for step, share in enumerate(PRICES):
        decision = _decision(matrix, outlook.advantage(share * full, rule), encoding, wish)
        found += _rules(LearnedPolicy(wish.kind, encoding, decision, 0.0), matrix, outlook, wish)
        wish.progress(step + 3, steps)
    margin = np.array([one.margin for one in found])
    reward = np.array([one.reward for one in found])
    return [found[k] for k in _best(margin, reward)], model, bent, guess


def _outlook(
    lesson: Lesson, encoding: Encoding, guess: Floats, rows: NDArray[np.intp], wish: Wish
) -> Outlook:
    """Return the predictions for some of the people."""
    if wish.use_group:
        group = np.eye(lesson.groups)[lesson.codes]
    else:
        group = fit_groups(lesson, encoding, wish.kind)
    measured = calibrated(lesson, guess)
    square, furthest = weighted_moments(lesson, guess, measured)
    return Outlook(
        label=guess[rows],
        score=measured[rows],
        group=group[rows],
        square=square[rows],
        furthest=furthest[rows],
        weak=_weak(lesson)[rows],
        codes=lesson.codes[rows],
        cost=wish.cost,
        rate=wish.rate,
    )


def _rules(policy: LearnedPolicy, matrix: Floats, outlook: Outlook, wish: Wish) -> list[Candidate]:
    """Return rules on one margin: thresholds, with and without randomization."""
    margin = policy.model.margin(matrix)
    thresholds = _thresholds(margin, policy.model, wish.kind)
    sums = binned(outlook, margin, thresholds)
    everyone = float(sums.everyone > 0)
    bins = np.arange(len(thresholds) + 1)
    policies, chances = [], []
    for place, threshold in enumerate(thresholds):
        for within in BY_LOT if place else BY_LOT[:1]:
            above = np.where(bins > place, 1.0, np.where(bins == place, within, 0.0))
            band = float(threshold - thresholds[place - 1]) if within else 0.0
            rule = replace(policy, threshold=float(threshold), band=band, within=within)
            for follow in FOLLOWED:
                mixed = replace(rule, follow=follow, otherwise=everyone, explore=wish.explore)
                policies.append(mixed)
                chances.append(mixed.chance(above))
    disparity, reward, bound = sums.forecast(np.array(chances), wish.people, wish.delta)
    spare = (wish.omega - disparity) / np.maximum(bound - disparity, 1e-9)
    return [
        Candidate(policies[k], *(float(x[k]) for x in (disparity, reward, bound, spare)))
        for k in _best(spare, reward)
    ]


def _best(margin: Floats, reward: Floats) -> list[int]:
    """Return the index with the largest reward at each margin, the largest margin first.

    The tests of different candidates use the same people, so they mostly fail or pass together:
    those with a larger margin pass whenever those with a smaller one do.
    """
    found: list[int] = []
    for least in MARGINS:
        within = np.flatnonzero(margin >= least)
        if len(within):
            best = int(within[np.argmax(reward[within])])
            if not found or reward[best] > reward[found[-1]]:
                found.append(best)
    return found or [int(np.argmax(margin))]


def _decision(matrix: Floats, advantage: Floats, encoding: Encoding, wish: Wish) -> Model:
    """Return a classifier of positive advantages, weighted by their absolute values."""
    target, weight = (advantage > 0).astype(np.float64), np.abs(advantage)
    if wish.kind != "scorecard":
        return _fitting(wish.kind)(matrix, target, weight)
    # A first fit without sign constraints gives the direction of each feature; the second fit is
    # monotone in that direction.
    free = fit_linear(matrix, target, weight).coefficients
    signs, place = np.zeros(matrix.shape[1]), 0
    for feature in encoding.features:
        own = slice(place, place + feature.width)
        if not feature.levels:
            direction = np.sign(free[own][:-1].sum())
            signs[own.start : own.stop - 1] = direction
        place += feature.width
    fitted = fit_linear(matrix, target, weight, signs=signs).coefficients
    factor = POINTS / np.log(2)
    # The policy decides with the integer points that are printed.
    return Linear(np.append(np.round(fitted[:-1] * factor) / factor, fitted[-1]))


def _thresholds(margin: Floats, decision: Model, kind: Kind) -> Floats:
    values, counts = np.unique(np.round(margin, 9), return_counts=True)
    if kind == "scorecard" and isinstance(decision, Linear):
        factor, base = POINTS / np.log(2), decision.coefficients[-1]
        # Half a point below an integer, so rounding errors change no decision.
        values = np.unique(np.round((values - base) * factor))
        return (_some_of(values, THRESHOLDS) - 0.5) / factor + base
    # Between two observed values, so rounding errors change no decision.
    below = np.cumsum(counts) / len(margin)
    places = np.searchsorted(below, np.linspace(0.005, 0.995, THRESHOLDS))
    places = np.unique(np.minimum(places, max(len(values) - 2, 0)))
    after = values[np.minimum(places + 1, len(values) - 1)]
    return np.append(values[:1] - 1.0, (values[places] + after) / 2)


def _some_of(values: Floats, number: int) -> Floats:
    return values[np.unique(np.linspace(0, len(values) - 1, number).round().astype(int))]


def as_chance(model: Model, encoding: Encoding, columns: Mapping[str, Values]) -> Floats:
    """Return a model's predicted probabilities for other people."""
    return expit(margins(model, encoding, columns))


def describe(policy: LearnedPolicy, facts: dict[str, Any], card: str) -> LearnedPolicy:
    """Return the policy with its facts and its card."""
    return replace(policy, facts=facts, card=card)
