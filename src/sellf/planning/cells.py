"""Who is decided about alike: everyone by their profile, or, where there are many, by a few traits.

What a planner can want of somebody depends on their group, the chance of a good outcome, and what
each action does to that chance later. In a large world, profiles that are alike in these share a
cell. Any policy over cells is a policy of the world, evaluated on all of its profiles, so that what
is found is within omega and can be had; only a policy over profiles could be better.
"""

import numpy as np
from numpy.typing import NDArray

from sellf.planning.law import Floats, Law

MOST_PROFILES = 400
"""Worlds of more profiles are planned in by cells."""
BY_OUTCOME = 24
"""Classes of the chance of a good outcome, in each group ..."""
BY_CHANGE = 4
"""... and of what an action adds to that chance later."""


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
    """Return how often each profile is about met, if all actions are equally likely."""
    visits = max(1, round(law.horizon / law.population))
    people = total = law.people
    for _ in range(min(visits, 10)):
        people = sum(step.T @ people for step in law.transition) / len(law.transition)
        total = total + people
    return total


def _classes(values: Floats, weight: Floats, number: int) -> NDArray[np.int64]:
    """Return classes of about equal weight; equal values are in the same one."""
    place = np.unique(np.round(values, 12), return_inverse=True)[1]
    share = np.bincount(place, weight)
    middle = np.cumsum(share) - share / 2
    return np.minimum((middle / share.sum() * number).astype(np.int64), number - 1)[place]
