"""Drift: a world whose label law or newcomers change from period to period, on a schedule.

Within a period the law is constant. A schedule shifts the log-odds of a good outcome, or the
logarithm of a group's share of newcomers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from sellf.envs.table import Arrivals, TableWorld
from sellf.errors import InputError
from sellf.fairness.checks import one_of, short, whole

PARTS = ("label", "arrivals")
MOST_PERIODS = 1_000_000
HOW = "give a number (by which it moves in every period) or a list (where it is in each)"


def drifted(world: TableWorld, drift: Any, period: int) -> TableWorld:
    """Return the world in a given period; the first period is 0.

    Args:
        world: the world without drift.
        drift: the schedules, by part: "label" shifts the log-odds of a good outcome, "arrivals" the
            logarithm of a group's share of newcomers. A part has one schedule, or one for each of
            some groups.
        period: the number of the period.
    """
    period = whole("period", period, low=0, high=MOST_PERIODS)
    if not isinstance(drift, Mapping) or not drift:
        raise InputError(
            f"drift is {short(drift)}: say what changes, for example "
            "drift={'label': {'Black': -0.2}}."
        )
    for part in drift:
        one_of("part of drift", part, PARTS)
    alpha, arrivals = np.asarray(world.alpha, np.float64), world.arrivals
    group = np.asarray(world.group)
    if "label" in drift:
        moved = _by_group("label", drift["label"], world.groups, period)[group]
        # Probabilities of 0 and 1 stay unchanged.
        with np.errstate(divide="ignore"):
            odds = np.log(alpha) - np.log1p(-alpha)
        alpha = 1 / (1 + np.exp(-(odds + moved)))
    if "arrivals" in drift:
        moved = _by_group("arrivals", drift["arrivals"], world.groups, period)
        share = np.diff(np.asarray(arrivals.cumulative, np.float64), prepend=0.0)
        share = share * np.exp(moved)[group[np.asarray(arrivals.profile)]]
        cumulative = np.cumsum(share / share.sum())
        arrivals = Arrivals(arrivals.profile, jnp.asarray(cumulative, jnp.float32))
    return replace(world, alpha=jnp.asarray(alpha, jnp.float32), arrivals=arrivals)


def _by_group(part: str, given: Any, groups: tuple[str, ...], period: int) -> np.ndarray:
    """Return the shift of each group in a period."""
    if not isinstance(given, Mapping):
        return np.full(len(groups), _at(part, given, period))
    for name in given:
        one_of(f"group of drift {part}", name, groups)
    return np.array([_at(part, given.get(name, 0.0), period) for name in groups])


def _at(part: str, schedule: Any, period: int) -> float:
    numbers: Any = schedule if isinstance(schedule, Sequence) and schedule else [schedule]
    right = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    if isinstance(schedule, str) or not right or not np.isfinite(numbers).all():
        raise InputError(f"drift {part} is {short(schedule)}: {HOW}.")
    if isinstance(schedule, Sequence):
        return float(numbers[min(period, len(numbers) - 1)])
    return float(numbers[0]) * period
