"""Model-based disparity and reward of a policy over several decisions about the same people.

A person's state is what the policy observes. Transitions between states, after acceptance and after
rejection, are estimated from consecutive rows of the same person, and the probability of a good
outcome is estimated for each state and group. In the resulting Markov model everybody is decided
about once in every step and then moves to the next state. The results hold if the state is all that
matters for what happens next; they are not certified.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.fairness.notions import Rate
from sellf.fairness.tables import Table
from sellf.logs.dates import dates
from sellf.logs.names import Values
from sellf.logs.person import Floats
from sellf.offline.encoding import as_numbers
from sellf.offline.history import History

MOST_STATES = 60
"""Largest number of distinct states; with more, states are classes of the predicted outcome."""
CLASSES = 20
AS_OTHERS = 2.0
"""Prior weight of the transitions of all groups (as a number of transitions) and of predictions
(as a number of outcomes)."""
DRAWS = 40
"""Number of bootstrap draws of people."""
ROWS_DRAWN = 8_000_000
"""Upper limit on the number of rows in all draws together."""


class Figure(NamedTuple):
    """A figure of the model with its 95% range over bootstrap draws of people."""

    low: float
    value: float
    high: float


class Step(NamedTuple):
    """Figures before decision number `step`, counted from 0."""

    step: int
    disparity_now: Figure
    disparity_new: Figure
    reward_now: Figure
    reward_new: Figure


@dataclass(frozen=True)
class LongTerm(Table):
    """Both policies over time in the fitted model."""

    notion: str
    steps: tuple[Step, ...]
    states: int
    moves: int
    """Number of pairs of consecutive rows that transitions are estimated from."""

    @property
    def sentence(self) -> str:
        """A one-sentence summary of the last step."""
        last = self.steps[-1]
        total = [sum(getattr(s, name).value for s in self.steps) for name in Step._fields[3:]]
        return (
            f"model-based, not certified: after {last.step} decisions about everybody the "
            f"{self.notion} disparity would be {last.disparity_new.value:.3f} "
            f"({last.disparity_new.low:.3f} to {last.disparity_new.high:.3f}) instead of "
            f"{last.disparity_now.value:.3f} ({last.disparity_now.low:.3f} to "
            f"{last.disparity_now.high:.3f}) with the current policy, and the reward of all "
            f"{len(self.steps)} decisions {total[1]:.3f} per person instead of {total[0]:.3f}. "
            f"Fitted to {self.moves:,} transitions between {self.states} states; valid if the "
            "state is all that matters for what happens next."
        )

    def _title(self) -> str:
        return self.sentence

    def _table(self) -> dict[str, list[Any]]:
        table: dict[str, list[Any]] = {"step": [str(one.step) for one in self.steps]}
        for name in Step._fields[1:]:
            for end in Figure._fields:
                key = name.replace("_", " ") + ("" if end == "value" else f" {end}")
                table[key] = [getattr(getattr(one, name), end) for one in self.steps]
        return table

    def __str__(self) -> str:
        lines = [("decisions", "disparity now", "proposed", "reward now", "proposed")]
        lines += [
            (str(one.step), *(f"{figure.value:.3f}" for figure in one[1:])) for one in self.steps
        ]
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        rows = ["  ".join(c.rjust(w) for c, w in zip(x, widths, strict=True)) for x in lines]
        return "\n".join([self.sentence, *rows])

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain values."""
        table = self._table()
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        return {"sentence": self.sentence, "states": self.states, "moves": self.moves, "rows": rows}


class _World(NamedTuple):
    """Fitted quantities by cell; cells are groups x states, in that order."""

    first: Floats
    """Share of people who start in each cell."""
    good: Floats
    now: Floats
    new: Floats
    """Probabilities of acceptance."""
    follows: Floats
    """Transition probabilities by decision, of shape (2, cells, states)."""


@dataclass(frozen=True)
class _Rows:
    """Rows sorted by person and time."""

    cell: NDArray[np.intp]
    person: NDArray[np.intp]
    accepted: Floats
    known: Floats
    good: Floats
    weight: Floats
    guess: Floats
    now: Floats
    new: Floats
    cells: int
    states: int

    @property
    def onward(self) -> NDArray[np.intp]:
        """The rows that are followed by another row of the same person."""
        return np.flatnonzero(self.person[1:] == self.person[:-1])

    def world(self, times: Floats) -> _World:
        """Fit the model, with each person counted `times` times."""
        count = times[self.person]

        def mean(values: Floats, weight: Floats, before: Floats, worth: float) -> Floats:
            above = np.bincount(self.cell, weight * values, self.cells) + worth * before
            return above / np.maximum(np.bincount(self.cell, weight, self.cells) + worth, 1e-9)

        zero = np.zeros(self.cells)
        guess = mean(self.guess, count, zero, 1e-9)
        starts = np.flatnonzero(np.diff(self.person, prepend=-1))
        first = np.bincount(self.cell[starts], count[starts], self.cells)
        seen = count * self.known * self.weight
        # Scaled to the effective sample size of the weighted outcomes.
        scale = np.bincount(self.cell, seen * self.weight, self.cells) / np.maximum(
            np.bincount(self.cell, seen, self.cells), 1e-9
        )
        seen = seen / np.maximum(scale[self.cell], 1e-9)
        return _World(
            first=first / first.sum(),
            good=mean(self.good, seen, guess, AS_OTHERS),
            now=mean(self.now, count, zero, 1e-9),
            new=mean(self.new, count, zero, 1e-9),
            follows=self._follows(count),
        )

    def _follows(self, count: Floats) -> Floats:
        here = self.onward
        state = self.cell % self.states
        found = np.zeros((2, self.cells, self.states))
        for decision in (0, 1):
            own = here[self.accepted[here] == decision]
            place = self.cell[own] * self.states + state[own + 1]
            moves = np.bincount(place, count[own], self.cells * self.states)
            moves = moves.reshape(self.cells, self.states)
            others = moves.reshape(-1, self.states, self.states).sum(axis=0)
            others = others + 1e-3 * np.eye(self.states)  # without data, people stay in their state
            others = others / others.sum(axis=1, keepdims=True)
            groups = self.cells // self.states
            moves = moves + AS_OTHERS * np.tile(others, (groups, 1))
            found[decision] = moves / moves.sum(axis=1, keepdims=True)
        return found


def long_term(
    history: History,
    columns: dict[str, Values],
    guess: Floats,
    chance: Floats,
    rate: Rate,
    cost: float,
    horizon: int,
) -> LongTerm:
    """Return the model-based disparity and reward of two policies over several decisions.

    Args:
        history: with person and time of every row.
        columns: the columns that the policy observes; their values define the states.
        guess: the predicted outcome of every row.
        chance: probability of acceptance under the proposed policy, by row.
        rate: the measure of fairness.
        cost: cost of accepting a person.
        horizon: number of decisions about everybody.
    """
    rows = _ordered(history, columns, guess, chance)
    moves = len(rows.onward)
    if moves < 100:
        raise InputError(
            f"only {moves} rows of the log follow another row of the same person, too few to "
            "estimate transitions: leave out --horizon, or give a log with more rows per person."
        )
    people = int(rows.person.max()) + 1
    groups = len(history.rows.names)

    def figures(times: Floats) -> Floats:
        world = rows.world(times)
        both = [_course(world, world.now, groups, rate, cost, horizon)]
        both.append(_course(world, world.new, groups, rate, cost, horizon))
        return np.stack([both[0][0], both[1][0], both[0][1], both[1][1]])

    middle = figures(np.ones(people))
    rng = np.random.default_rng([history.seed, 23])
    draws = max(min(DRAWS, ROWS_DRAWN // len(rows.cell)), 10)
    drawn = np.stack([figures(rng.poisson(1.0, people).astype(float)) for _ in range(draws)])
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    steps = [
        Step(t, *(Figure(*(float(x[k, t]) for x in (low, middle, high))) for k in range(4)))
        for t in range(horizon)
    ]
    return LongTerm(rate.name, tuple(steps), rows.states, moves)


def _course(
    world: _World, chance: Floats, groups: int, rate: Rate, cost: float, horizon: int
) -> tuple[Floats, Floats]:
    """Return the disparity and the reward at each decision."""
    states = world.follows.shape[2]
    slope, base = rate.of.by_label(chance)
    below, whole = rate.among.by_label(chance)
    of, among = slope * world.good + base, below * world.good + whole
    worth = chance * (world.good - cost)
    onward = chance[:, None] * world.follows[1] + (1 - chance)[:, None] * world.follows[0]
    people = world.first
    gaps, rewards = [], []
    for _ in range(horizon):
        sums = [(people * x).reshape(groups, states).sum(axis=1) for x in (of, among)]
        gaps.append(float(np.ptp(sums[0] / np.maximum(sums[1], 1e-12))))
        rewards.append(float(people @ worth))
        moved = people.reshape(groups, states, 1) * onward.reshape(groups, states, states)
        people = moved.sum(axis=1).reshape(-1)
    return np.array(gaps), np.array(rewards)


def _ordered(history: History, columns: dict[str, Values], guess: Floats, chance: Floats) -> _Rows:
    rows, person = history.rows, history.person
    if person.unit is None or rows.time is None:
        raise InputError(
            "horizon needs the person and the time of every decision: name the columns with "
            "--person and --time."
        )
    time = as_numbers(rows.time)
    when = dates(rows.time, str(rows.columns.time)) if time is None else time
    order = np.lexsort([when, person.unit])
    state, states = _states(columns, guess)
    p = person.propensity
    known = person.accepted if person.pending is None else person.accepted * (1 - person.pending)
    weight = np.ones(len(known)) if p is None else 1 / np.maximum(p, 0.01)
    now = person.accepted if history.current is None else history.current
    return _Rows(
        cell=(rows.codes * states + state)[order],
        person=np.unique(person.unit[order], return_inverse=True)[1],
        accepted=person.accepted[order],
        known=known[order],
        good=person.positive[order],
        weight=weight[order],
        guess=guess[order],
        now=now[order],
        new=chance[order],
        cells=len(rows.names) * states,
        states=states,
    )


def _states(columns: dict[str, Values], guess: Floats) -> tuple[NDArray[np.intp], int]:
    """Return the state of each row, and the number of states."""
    state = np.zeros(len(guess), dtype=np.intp)
    for values in columns.values():
        number = as_numbers(values)
        words = np.array([str(x) for x in values]) if number is None else number
        own = np.unique(words, return_inverse=True)[1]
        state = np.unique(np.stack([state, own]), axis=1, return_inverse=True)[1].reshape(-1)
        if state.max() >= MOST_STATES:
            edges = np.unique(np.quantile(guess, np.arange(1, CLASSES) / CLASSES))
            return np.searchsorted(edges, guess, side="right"), len(edges) + 1
    return state, int(state.max()) + 1
