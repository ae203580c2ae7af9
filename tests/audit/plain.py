"""People of a plain world, for tests of the parts of an audit."""

import numpy as np

from coverage_study.cells import STUDIED as NOTIONS
from sellf.fairness.notions import Counts, utility
from sellf.logs.person import Person


def policy(group, x):
    """Return the chances of a good outcome and of acceptance of people with feature x in [0, 1]."""
    tilt = 0.06 * group
    return 0.15 + tilt + (0.65 - tilt) * x, 0.1 + (0.85 - tilt) * x


def truths(groups):
    """Return each group's true utility, by notion."""
    x = (np.arange(200_000) + 0.5) / 200_000
    rows = []
    for group in range(groups):
        good, accept = policy(group, x)
        rows.append((1.0, accept.mean(), (accept * good).mean(), ((1 - accept) * good).mean()))
    counts = Counts(*np.array(rows).T)
    return {notion: utility(notion, counts) for notion in NOTIONS}


def draw(rng, group, size, score):
    """Return the rows of one group, with a score that knows half of what there is, or with none."""
    x = rng.random(size)
    good, accept = policy(group, x)
    accepted = (rng.random(size) < accept).astype(float)
    label = rng.random(size) < good
    guess = 0.5 * good + 0.5 * good.mean() if score else None
    return Person(accepted, accepted * label, accept, guess)
