"""Estimation of a law to plan in, from revealed outcomes and observed transitions.

Only the observations of a decision-maker are used. Outcomes are observed if the decision reveals
them; transitions are observed for everyone. People are described by a *base*, which never changes,
and a *state*, which decisions may change; decisions depend on their *cell*. In a small world there
is one base, and state, cell and profile are the same.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sellf.planning.law import Floats, Law

Ints = NDArray[np.int64]

UNSEEN = 2
"""Value of an outcome that was not revealed."""
RIDGE = 1.0
"""Ridge penalty on each weight of the additive model."""
STEPS = 25
EXTREME = 1e-3
"""Smallest distance of estimated probabilities from 0 and 1."""
AS_OTHERS = 5.0
"""Weight of similar cells in a cell's transition estimate, as a number of people."""


class Layout(NamedTuple):
    """Group, state and parent of each cell."""

    group: Ints
    state: Ints
    parent: Ints
    """Cells that differ only in their score have the same parent."""


class Records(NamedTuple):
    """Observed decisions, one entry each."""

    cell: Ints
    action: Ints
    outcome: Ints
    """1 or 0, or UNSEEN."""
    following: Ints
    """State of the person after the decision."""


class Newcomers(NamedTuple):
    """People to plan for: every base in every state, ordered by base."""

    cell: Ints
    score: Floats
    """Prediction of the additive model."""
    share: Floats
    """Share of the first population."""
    states: int
    number: float = float("inf")
    """Size of the sample that the shares are estimated from; infinite where it does not matter."""


def logistic(x: Floats, positive: Floats, number: Floats, start: Floats | None = None) -> Floats:
    """Return the weights and the bias of an additive model, by Newton's method.

    Args:
        x: inputs, (rows, inputs); people with equal inputs share a row.
        positive: the number of people with a good outcome, by row.
        number: the number of people, by row.
        start: initial weights.
    """
    inputs = np.hstack([x, np.ones((len(x), 1))])
    penalty = np.full(inputs.shape[1], RIDGE)
    penalty[-1] = 1e-3
    weights = np.zeros(inputs.shape[1]) if start is None else start.astype(np.float64)
    for _ in range(STEPS):
        chance = sigmoid(inputs @ weights)
        slope = inputs.T @ (positive - number * chance) - penalty * weights
        bend = (inputs * (number * chance * (1 - chance))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        weights = weights + step * min(1.0, 5.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    return weights


def sigmoid(logit: Floats) -> Floats:
    """Return 1 / (1 + exp(-logit))."""
    return 1 / (1 + np.exp(-np.clip(logit, -30, 30)))


class Labels(NamedTuple):
    """The label law by cell: corrections of the additive model, and numbers of outcomes."""

    correction: Floats
    number: Floats
    chance: Floats
    """Mean in the cell, which combines revealed outcomes and the model's predictions."""
    counts_as: float

    def of(self, cell: Ints, score: Floats) -> Floats:
        """Return people's probability of a good outcome."""
        return np.clip(score + self.correction[cell], EXTREME, 1 - EXTREME)

    @property
    def variance(self) -> Floats:
        """Variance of the mean of each cell."""
        chance = np.clip(self.chance, EXTREME, 1 - EXTREME)
        return chance * (1 - chance) / (self.number + self.counts_as)


def labels(
    cells: int, records: Records, score: Floats, everyone: Floats, shrinkage: float
) -> Labels:
    """Correct the additive model in every cell by the outcomes observed there.

    An additive model is biased where effects are not additive. The correction removes this bias in
    cells with many outcomes, and is shrunk towards 0 in cells with few.

    Args:
        cells: the number of cells.
        records: the decisions.
        score: the model's prediction for each decision.
        everyone: the model's prediction for each cell.
        shrinkage: the weight of the model in each cell, as a number of outcomes.
    """
    seen = records.outcome != UNSEEN
    own, missed = records.cell[seen], records.outcome[seen] - score[seen]
    number = np.bincount(own, minlength=cells).astype(np.float64)
    correction = np.bincount(own, missed, cells) / (number + shrinkage)
    mean = np.clip(everyone + correction, EXTREME, 1 - EXTREME)
    return Labels(correction, number, mean, shrinkage)


def moves(layout: Layout, records: Records, action: int, outcome: int, states: int) -> csr_array:
    """Return the probability of each next state (column), by cell; without records people stay."""
    cells, parents = len(layout.group), int(layout.parent.max()) + 1
    own = (records.action == action) & (records.outcome == outcome)
    cell, following = records.cell[own], records.following[own]
    stay = csr_array(
        (np.ones(cells), (layout.parent, layout.state)), shape=(parents, states), dtype=float
    )
    stay.data[:] = 1.0
    others = _normalised(stay + _counted(layout.parent[cell], following, (parents, states)))
    seen = _counted(cell, following, (cells, states))
    return _normalised(csr_array(seen + AS_OTHERS * others[layout.parent]))


def _counted(row: Ints, column: Ints, shape: tuple[int, int]) -> csr_array:
    return csr_array((np.ones(len(row)), (row, column)), shape=shape)


def _normalised(counts: csr_array) -> csr_array:
    counts = csr_array(counts)
    total = np.asarray(counts.sum(axis=1)).reshape(-1)
    counts.data = counts.data / np.repeat(total, np.diff(counts.indptr))
    return counts


def law(
    like: Law,
    layout: Layout,
    records: Records,
    found: Labels,
    people: Newcomers,
    reveals: tuple[bool, ...],
) -> Law:
    """Return the estimated law; its profiles are the newcomers in all states.

    Args:
        like: a law with the parts that are not estimated: names, and gains by outcome, (actions,
            2).
        layout: the layout of the cells.
        records: the decisions.
        found: the label law.
        people: the people to plan for.
        reveals: by action, whether the outcome is observed.
    """
    alpha = found.of(people.cell, people.score)
    base = np.arange(len(alpha)) // people.states * people.states
    steps = []
    for action in range(len(like.actions)):
        if reveals[action]:
            bad, good = (moves(layout, records, action, y, people.states) for y in (0, 1))
            step = _rows(bad, people.cell, 1 - alpha) + _rows(good, people.cell, alpha)
        else:
            every = moves(layout, records, action, UNSEEN, people.states)
            step = _rows(every, people.cell, np.ones(len(alpha)))
        steps.append(_placed(csr_array(step), base))
    return Law(
        name=like.name,
        groups=like.groups,
        actions=like.actions,
        favourable=like.favourable,
        group=layout.group[people.cell],
        people=people.share / people.share.sum(),
        alpha=alpha,
        transition=tuple(steps),
        gain=like.gain[:, :1] + (like.gain[:, 1:] - like.gain[:, :1]) * alpha[None],
        population=like.population,
        horizon=like.horizon,
        start=like.start,
    )


def _rows(chance: csr_array, cell: Ints, weight: Floats) -> csr_array:
    rows = csr_array(chance[cell])
    rows.data = rows.data * np.repeat(weight, np.diff(rows.indptr))
    return rows


def _placed(step: csr_array, base: Ints) -> csr_array:
    """Convert a transition from profiles to states into one to profiles; the base is unchanged."""
    columns = step.indices + np.repeat(base, np.diff(step.indptr))
    return csr_array((step.data, columns, step.indptr), shape=(len(base), len(base)))
