"""Exploration by design: which outcomes to reveal for the most precise disparity at a given cost.

The variance of the estimated disparity is a sum over cells of (influence x standard deviation)^2 /
(people x b), with b the probability that an outcome is revealed. Revealing more outcomes of a cell
than the plan does has a cost, as the plan prefers another action there. The b that reach a variance
at the lowest cost are proportional to influence x standard deviation / sqrt(cost).
"""

from typing import NamedTuple

import numpy as np

from sellf.fairness.off_policy import TINY, Groups, moves
from sellf.planning.law import Floats

CHEAP = 0.02
"""Added to the cost of exploration, so that it stays bounded where exploration is free."""


class Needs(NamedTuple):
    """Inputs of the exploration design, by cell."""

    people: Floats
    """Share of the people met."""
    influence: Floats
    """Influence of a person's outcome on the utility of their group, (rates, cells)."""
    label: Floats
    """Probability of a good outcome."""
    cost: Floats
    """Cost of revealing an outcome that the plan would leave hidden."""
    planned: Floats
    """Probability with which the plan reveals the outcome."""


def influence(who: Groups, chance: Floats, label: Floats, people: Floats) -> Floats:
    """Return the influence of one person's outcome on the utilities, (rates, cells).

    Args:
        who: the groups.
        chance: the probability of a favourable decision, by cell.
        label: the probability of a good outcome.
        people: the share of people.
    """
    found = [moves(who, rate, chance, label * people, people).utility for rate in who.rates]
    return np.stack(found)


def variance(who: Groups, influence: Floats, noise: Floats) -> float:
    """Return the variance of the difference between the two groups with the largest variances.

    Args:
        who: the groups.
        influence: the influence of the sum over a cell, (rates, cells).
        noise: the variance of that sum.
    """
    return _of_two(who, influence**2 * noise[None])


def sampling_variance(
    who: Groups, chance: Floats, label: Floats, people: Floats, number: float
) -> float:
    """Return the variance of the disparity that is due to estimating the population from a sample.

    Args:
        who: the groups.
        chance: the probability of a favourable decision, by cell.
        label: the probability of a good outcome, by cell.
        people: the share of people in each cell, estimated from a random sample.
        number: the size of that sample.
    """
    found = []
    for rate in who.rates:
        (above, level), (below, floor) = (sums.by_label(chance) for sums in rate.sums)
        over, under = above * label + level, below * label + floor
        total = np.bincount(who.group, under * people, who.number)[who.group]
        total = np.where(total > 0, total, np.nan)  # a group that the rate says nothing about
        value = np.bincount(who.group, over * people, who.number)[who.group] / total
        found.append(people * ((over - value * under) / total) ** 2 / number)
    return _of_two(who, np.nan_to_num(np.stack(found)))


def _of_two(who: Groups, by_cell: Floats) -> float:
    """Return the largest variance of a difference of two groups, from variances by cell."""
    by_group = np.stack([np.bincount(who.group, row, who.number) for row in by_cell])
    return float(np.sort(by_group, axis=1)[:, -2:].sum(axis=1).max())


def chances(who: Groups, needs: Needs, decisions: float, target: float, least: Floats) -> Floats:
    """Return the probabilities with which to reveal outcomes, by cell.

    Args:
        who: the groups.
        needs: the inputs of the design.
        decisions: the number of decisions still to come.
        target: the standard error of the disparity to reach if all of them use the design.
        least: the lower limit of the probability, by cell.
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
