"""Recidivism: bail by age and number of priors; reoffending on bail raises the class of priors."""

import numpy as np
from numpy.typing import NDArray

from sellf.envs.build import Features, Rules, build
from sellf.envs.tables import compas
from sellf.envs.world import World
from sellf.fairness.checks import one_of

PSEUDO_PEOPLE = 5.0
"""Number of pseudo-people with which each cell is smoothed."""


def recidivism(rules: Rules, groups: str = "race") -> World:
    """Build the recidivism world on COMPAS (Sec. 5); Y = 1 is not reoffending within two years.

    Reoffending on bail (A = 1, Y = 0) raises the class of priors by one; otherwise nothing changes.
    Groups have their shares in the data.

    Args:
        rules: population, horizon and the other rules.
        groups: "race" (African-American, Caucasian) or "race-sex" (four groups).
    """
    one_of("groups", groups, ("race", "race-sex"))
    figures = compas()
    if groups == "race":
        names = list(figures.races)
        n, good = figures.n.sum(axis=1), (figures.n - figures.n_reoffended).sum(axis=1)
    else:
        names = [f"{race}, {sex}" for race in figures.races for sex in figures.sexes]
        shape = (len(names), *figures.n.shape[2:])
        n = figures.n.reshape(shape)
        good = (figures.n - figures.n_reoffended).reshape(shape)
    ages, classes = len(figures.ages), len(figures.priors)

    # Profile = group x age x priors, in that order.
    profiles = np.arange(n.size)
    priors = profiles % classes
    moves = np.repeat(profiles, 4).reshape(-1, 2, 2).astype(np.int32)
    moves[:, 1, 0] += priors < classes - 1
    age = profiles // classes % ages
    return build(
        "recidivism",
        rules,
        groups=names,
        group=profiles // (ages * classes),
        alpha=smoothed(n, good).ravel(),
        moves=moves,
        share=n.ravel() / n.sum(),
        features=Features(
            fixed=age,
            codes=np.arange(ages, dtype=np.uint8)[:, None],
            categories={"age": list(figures.ages)},
            changing=priors,
            changes=np.eye(classes),
            changing_names=[f"priors {name}" for name in figures.priors],
            changing_raw=[("priors", str(name)) for name in figures.priors],
        ),
    )


def smoothed(n: NDArray[np.int64], good: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rate of good outcomes per cell, shrunk towards that of similar cells.

    Each cell gets five pseudo-people with the rate of its group and number of priors over all ages.
    That rate in turn gets five pseudo-people with the rate of the group, because a few of these
    margins are empty.

    Args:
        n: the number of people per group, age and priors.
        good: the number of people with Y = 1.
    """
    rate = good.sum(axis=(1, 2), keepdims=True) / n.sum(axis=(1, 2), keepdims=True)
    for axis in (1, None):
        people, positive = (x if axis is None else x.sum(axis=1, keepdims=True) for x in (n, good))
        rate = (positive + PSEUDO_PEOPLE * rate) / (people + PSEUDO_PEOPLE)
    return rate
