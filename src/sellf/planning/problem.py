"""The best policy as an optimisation problem: variables, objective and constraints.

Variables are the probabilities of all actions but the first, for each segment of time and each
cell. In a small world a cell is a profile; in a large one, similar profiles share a cell.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sellf.errors import InputError
from sellf.fairness.notions import EVERYONE, Definition, Notion, Rate, define, spread
from sellf.planning import mean_field
from sellf.planning.law import Floats, Law
from sellf.planning.mean_field import Course, Schedule

LEAST = 1e-3
"""Smallest share of a group that a rate must refer to, where that share depends on decisions (the
accepted, for predictive parity). Otherwise never accepting a group would count as fair."""


@dataclass(frozen=True)
class Problem:
    """A planning problem: the law, the notion, the evaluation times and the cells."""

    law: Law
    definition: Definition
    schedule: Schedule
    cell: NDArray[np.int64]
    """Cell of each profile."""

    @cached_property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.cell.max()) + 1

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of segments, of actions but the first, and of cells."""
        return len(self.schedule.segments), len(self.law.actions) - 1, self.cells

    @cached_property
    def rates(self) -> tuple[Rate, ...]:
        """The notion's rates, then the shares that must not fall below LEAST."""
        return self.definition.rates + tuple(
            Rate(f"{rate.whom} of {rate.name}", rate.among, EVERYONE, "people", rate.says)
            for rate in self.definition.rates
            if rate.among.moves
        )

    @cached_property
    def pairs(self) -> Floats:
        """Differences of all ordered pairs of groups, (pairs, groups)."""
        groups = range(len(self.law.groups))
        unit = np.eye(len(groups))
        return np.stack([unit[one] - unit[other] for one, other in permutations(groups, 2)])

    @cached_property
    def _summed(self) -> csr_array:
        """Matrix that sums over the profiles of each cell, (cells, profiles)."""
        profiles = np.arange(self.law.profiles)
        return csr_array(
            (np.ones(self.law.profiles), (self.cell, profiles)),
            shape=(self.cells, self.law.profiles),
        )

    @cached_property
    def simplex(self) -> csr_array | None:
        """Sums that must not exceed 1, (segments x cells, variables); None where bounds suffice."""
        segments, others, cells = self.shape
        if others == 1:
            return None
        return csr_array(np.kron(np.eye(segments), np.kron(np.ones((1, others)), np.eye(cells))))

    def policy(self, variables: Floats) -> Floats:
        """Return the probabilities of all actions, (segments, actions, profiles)."""
        chances = variables.reshape(self.shape)[:, :, self.cell]
        first = np.clip(1 - chances.sum(axis=1, keepdims=True), 0.0, 1.0)
        return np.concatenate([first, chances], axis=1)

    def course(self, variables: Floats) -> Course:
        """Follow the expected population."""
        policy = self.policy(variables)
        return mean_field.course(self.law, self.rates, self.schedule, policy)

    def slopes(self, variables: Floats, found: Course) -> tuple[Floats, Floats]:
        """Return derivatives of the reward (variables,) and of rates (times x ..., variables)."""
        policy = self.policy(variables)
        slopes = mean_field.slopes(self.law, self.rates, self.schedule, policy, found)
        columns = np.concatenate([slopes.reward[..., None], slopes.rates], axis=-1)
        by_cell = [
            [self._summed @ (columns[s, a] - columns[s, 0]) for a in range(1, columns.shape[1])]
            for s in range(columns.shape[0])
        ]
        flat = np.stack([np.stack(each) for each in by_cell]).reshape(-1, columns.shape[-1])
        return flat[:, 0], flat[:, 1:].T

    def differences(self, rates: Floats) -> Floats:
        """Return the differences that must stay below omega, (times x rates x pairs, ...).

        Args:
            rates: values of all `rates`, (times, rates, groups, ...).
        """
        own = rates[:, : len(self.definition.rates)]
        found = np.einsum("pg,trg...->trp...", self.pairs, own)
        return found.reshape(-1, *found.shape[3:])

    def shares(self, rates: Floats) -> Floats:
        """Return the shares that must stay above LEAST."""
        own = rates[:, len(self.definition.rates) :]
        return own.reshape(-1, *own.shape[3:])

    def gaps(self, rates: Floats) -> Floats:
        """Return the disparity at each time."""
        return spread(rates[:, : len(self.definition.rates)]).max(axis=-1)


def make(law: Law, notion: Notion, schedule: Schedule, cell: NDArray[np.int64]) -> Problem:
    """Return the planning problem; refuse groups for which the notion is not defined."""
    problem = Problem(law, define(notion), schedule, cell)
    half = problem.course(np.full(problem.shape, 1 / len(law.actions)).ravel())
    bad = np.isnan(half.rates).any(axis=0)
    if bad.any():
        rate, group = np.argwhere(bad)[0]
        raise InputError(
            f"{law.groups[group]} has no {problem.rates[rate].whom}, so {notion} is not defined "
            "for it: leave the group out, or choose another notion."
        )
    return problem
