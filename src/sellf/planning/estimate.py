"""A law to plan in, estimated from decisions: from outcomes that were revealed, and what followed.

Nothing here is known but what a decision-maker sees. Outcomes are seen of those whose decision
reveals them; what people become is seen of everyone. People are described by a *base*, which never
changes, and a *state*, which decisions may change; they are decided about by *cell*. In a small
world there is one base, and state, cell and profile are the same.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sellf.planning.law import Floats, Law

Ints = NDArray[np.int64]

UNSEEN = 2
"""In place of an outcome that was not revealed."""
RIDGE = 1.0
"""How much each weight of the additive model is held near 0."""
STEPS = 25
EXTREME = 1e-3
"""Estimated chances are this far from 0 and 1 at least."""
AS_OTHERS = 5.0
"""Of how many people in a cell those of like cells count for, in what follows a decision."""


class Layout(NamedTuple):
    """What belongs to each cell."""

    group: Ints
    state: Ints
    parent: Ints
    """Cells that are alike but for their score have the same one."""


class Records(NamedTuple):
    """Decisions as they were seen; one entry for each."""

    cell: Ints
    action: Ints
    outcome: Ints
    """1 or 0, or UNSEEN."""
    following: Ints
    """The state that the person came to."""


class Newcomers(NamedTuple):
    """Whom to plan for: bases in every state, base after base."""

    cell: Ints
    score: Floats
    """What the additive model predicts of each."""
    share: Floats
    """Of the first population."""
    states: int


def logistic(x: Floats, positive: Floats, number: Floats, start: Floats | None = None) -> Floats:
    """Return the weights and the bias of an additive model, by Newton's method.

    Args:
        x: (rows, inputs), people who are alike in one row.
        positive: how many of each had a good outcome ...
        number: ... of how many.
        start: weights to begin with.
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
    """The label law by cell: what to add to the additive model, and from how many outcomes."""

    correction: Floats
    number: Floats
    chance: Floats
    """The mean in the cell, of those who were revealed and as the model predicts them."""
    counts_as: float

    def of(self, cell: Ints, score: Floats) -> Floats:
        """Return the chance of a good outcome of people."""
        return np.clip(score + self.correction[cell], EXTREME, 1 - EXTREME)

    @property
    def variance(self) -> Floats:
        """How uncertain the mean of each cell is."""
        chance = np.clip(self.chance, EXTREME, 1 - EXTREME)
        return chance * (1 - chance) / (self.number + self.counts_as)


def labels(
    cells: int, records: Records, score: Floats, everyone: Floats, shrinkage: float
) -> Labels:
    """Correct the additive model in every cell by what was seen there.

    A model of few weights is biased where people are not additive. The correction takes that away
    where outcomes are many, and is drawn towards 0 where they are few.

    Args:
        cells: how many there are.
        records: decisions.
        score: the model's prediction for each.
        everyone: the model's prediction for each cell.
        shrinkage: for how many outcomes the model counts in each cell.
    """
    seen = records.outcome != UNSEEN
    own, missed = records.cell[seen], records.outcome[seen] - score[seen]
    number = np.bincount(own, minlength=cells).astype(np.float64)
    correction = np.bincount(own, missed, cells) / (number + shrinkage)
    mean = np.clip(everyone + correction, EXTREME, 1 - EXTREME)
    return Labels(correction, number, mean, shrinkage)


def moves(layout: Layout, records: Records, action: int, outcome: int, states: int) -> csr_array:
    """Return the chance of each state (column) to follow, by cell; without records people stay."""
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
        like: a law with everything in it that need not be estimated: names and gains, which are
            (actions, 2), by outcome.
        layout: of cells.
        records: decisions.
        found: the label law.
        people: whom to plan for.
        reveals: by action, whether the outcome is seen.
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
    """Return a step from profiles to states as one to profiles: the base stays the same."""
    columns = step.indices + np.repeat(base, np.diff(step.indptr))
    return csr_array((step.data, columns, step.indptr), shape=(len(base), len(base)))
