"""Exploration by design: whom to look at so that the disparity is known best for what it costs.

The variance of the estimated disparity is a sum over cells of (influence x standard deviation)^2 /
(people x b), with b the chance that an outcome is revealed. To look at more people of a cell than
the plan does costs what the plan would rather not do with them. The b that reach a variance at
the least cost are proportional to influence x standard deviation / sqrt(cost).
"""

from typing import NamedTuple

import numpy as np

from sellf.fairness.off_policy import TINY, Groups, moves
from sellf.planning.law import Floats

CHEAP = 0.02
"""Added to what an exploration costs: that of people who cost nothing need not be boundless."""


class Needs(NamedTuple):
    """What exploration is for, by cell."""

    people: Floats
    """The share of people met."""
    influence: Floats
    """(rates, cells), of a person's outcome on the utility of their group."""
    label: Floats
    """The chance of a good outcome."""
    cost: Floats
    """What it costs to reveal an outcome that the plan would leave hidden."""
    planned: Floats
    """The chance with which the plan reveals it."""


def influence(who: Groups, chance: Floats, label: Floats, people: Floats) -> Floats:
    """Return how utilities move with one person's outcome, (rates, cells).

    Args:
        who: the groups.
        chance: of a favourable decision, by cell.
        label: of a good outcome.
        people: shares.
    """
    found = [moves(who, rate, chance, label * people, people).utility for rate in who.rates]
    return np.stack(found)


def variance(who: Groups, influence: Floats, noise: Floats) -> float:
    """Return the variance of the difference between the two groups that are known least.

    Args:
        who: the groups.
        influence: (rates, cells), of the sum over a cell.
        noise: the variance of that sum.
    """
    each = influence**2 * noise[None]
    by_group = np.stack([np.bincount(who.group, row, who.number) for row in each])
    return float(np.sort(by_group, axis=1)[:, -2:].sum(axis=1).max())


def chances(who: Groups, needs: Needs, decisions: float, target: float, least: Floats) -> Floats:
    """Return the chance with which to reveal outcomes, by cell.

    Args:
        who: the groups.
        needs: what it is for.
        decisions: how many are still to come.
        target: the standard error of the disparity to come to, if all of them went so.
        least: the chance by cell that must not be fallen below.
    """
    spread = needs.label * (1 - needs.label)
    size = np.sqrt((needs.influence**2).sum(axis=0) * spread / (needs.cost + CHEAP))
    low, high = 0.0, 1 / max(size[size > 0].min(initial=1.0), 1e-9)

    def at(scale: float) -> Floats:
        return np.clip(np.maximum(scale * size, needs.planned), least, 1.0)

    def error(scale: float) -> float:
        noise = needs.people * spread / (decisions * np.maximum(at(scale), TINY))
        return variance(who, needs.influence, noise) ** 0.5

    if error(low) <= target:
        return at(low)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > target else (low, middle)
    return at(high)
