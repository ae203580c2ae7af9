"""Cells of people who are treated alike: single profiles or, in large worlds, similar profiles.

The best action for a person depends on their group, the probability of a good outcome, and the
effect of each action on that probability later. In a large world, profiles that are similar in
these respects share a cell. Any policy over cells is a policy of the world and is evaluated on all
of its profiles, so a solution is feasible and within omega; only a policy over profiles could be
better.
"""

import numpy as np
from numpy.typing import NDArray

from sellf.planning.law import Floats, Law

MOST_PROFILES = 400
"""Number of profiles above which policies are planned over cells."""
BY_OUTCOME = 24
"""Number of classes of the probability of a good outcome, in each group."""
BY_CHANGE = 4
"""Number of classes of the later change of that probability due to an action."""


def cells(law: Law) -> NDArray[np.int64]:
    """Return the cell of each profile, counted from 0."""
    if law.profiles <= MOST_PROFILES:
        return np.arange(law.profiles)
    weight = _met(law)
    first, *others = (step @ law.alpha for step in law.transition)
    traits = [law.group]
    for values, number in [(law.alpha, BY_OUTCOME), *((x - first, BY_CHANGE) for x in others)]:
        classes = np.zeros(law.profiles, np.int64)
        for group in range(len(law.groups)):
            own = law.group == group
            classes[own] = _classes(values[own], weight[own], number)
        traits.append(classes)
    return np.unique(np.stack(traits, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _met(law: Law) -> Floats:
    """Return approximately how often each profile is met if all actions are equally likely."""
    visits = max(1, round(law.horizon / law.population))
    people = total = law.people
    for _ in range(min(visits, 10)):
        people = sum(step.T @ people for step in law.transition) / len(law.transition)
        total = total + people
    return total


def _classes(values: Floats, weight: Floats, number: int) -> NDArray[np.int64]:
    """Return classes of about equal weight; equal values are in the same class."""
    place = np.unique(np.round(values, 12), return_inverse=True)[1]
    share = np.bincount(place, weight)
    middle = np.cumsum(share) - share / 2
    return np.minimum((middle / share.sum() * number).astype(np.int64), number - 1)[place]
