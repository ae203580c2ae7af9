"""Fast comparison of threshold rules on one margin, from sums over bins between thresholds.

A rule that accepts above a threshold treats everybody between two neighbouring thresholds alike.
Sums are therefore computed once per group and bin, and every rule on the same margin, whether it
is followed always or only with some probability, is evaluated from those sums.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sellf.fairness.notions import Rate
from sellf.logs.person import Floats
from sellf.offline.advantage import Outlook

SLACK, PER_REACH, STEEP, STEEP_FROM = 1.04, 2.0, 6.0, 0.2
"""Coefficients of the factor by which a finite-sample bound is wider than a normal one, as a
function of the largest deviation of a single row in units of the standard error."""
NOBODY = 1e-6
"""Shares up to this value are treated as zero."""


class Forecast(NamedTuple):
    """Expected figures of policies, one entry per policy."""

    disparity: Floats
    reward: Floats
    bound: Floats
    """Expected bound on the disparity when the policy is certified on other people."""


@dataclass(frozen=True)
class Bins:
    """Sums over people, of shape (groups, bins); a bin lies between two thresholds."""

    number: Floats
    label: Floats
    """Sum of the probabilities of a good outcome."""
    square: Floats
    """Sum of the expected squares of the weighted outcome."""
    furthest: Floats
    """Largest possible deviation of a weighted outcome from its mean (a maximum, not a sum)."""
    unknown: Floats
    """Number of people about whom the log holds no information."""
    unknown_label: Floats
    """Sum of the probabilities of a good outcome of these people."""
    cost: float
    rate: Rate

    def forecast(self, chance: Floats, people: int, delta: float) -> Forecast:
        """Return the expected disparity, reward and bound of policies.

        Args:
            chance: probabilities of acceptance, of shape (policies, bins).
            people: number of people that a policy will be certified on.
            delta: probability with which the bound may fail.
        """
        slope, base = self._parts(self.rate.of.by_label(chance[:, None]), len(chance))
        below, whole = self._parts(self.rate.among.by_label(chance[:, None]), len(chance))
        size = self.number.sum(axis=1)
        level = np.maximum((below * self.label + whole * self.number).sum(axis=2) / size, NOBODY)
        utility = (slope * self.label + base * self.number).sum(axis=2) / size / level
        # Each row adds tilt s + rest, which has mean 0, to the numerator of the utility's error.
        tilt = slope - utility[..., None] * below
        rest = base - utility[..., None] * whole
        square = tilt**2 * self.square + 2 * tilt * rest * self.label + rest**2 * self.number
        expected = size / size.sum() * people
        each = square.sum(axis=2) / size / expected / level**2
        reach = (np.abs(tilt) * self.furthest).max(axis=2) / expected / level
        error = np.maximum(np.sort(each, axis=1)[:, -2:].sum(axis=1) ** 0.5, 1e-12)
        ratio = reach.max(axis=1) / error
        wider = SLACK + PER_REACH * ratio + STEEP * np.maximum(ratio - STEEP_FROM, 0.0)
        radius = float(-ndtri(delta)) * wider * error
        if not self.rate.is_mean:
            # The error of the level grows with the candidate utility, not only with the true one.
            radius /= 1 - np.minimum(radius / np.maximum(utility.max(axis=1), 1e-9), 0.9)
        gap = np.ptp(utility, axis=1)
        radius = radius + self._open(tilt, size * level)
        earned = (chance @ (self.label - self.cost * self.number).sum(axis=0)) / size.sum()
        # Measures among the accepted cannot be certified for a policy that accepts nobody of
        # some group.
        undefined = (level <= NOBODY).any(axis=1)
        return Forecast(gap, earned, np.where(undefined, 1.0, gap + radius))

    def _open(self, tilt: Floats, whole: Floats) -> Floats:
        """Return the additional disparity that unknown outcomes, good or bad, allow for."""
        rises, falls = np.maximum(tilt, 0.0), np.maximum(-tilt, 0.0)
        bad = self.unknown - self.unknown_label
        up = (rises * bad + falls * self.unknown_label).sum(axis=2) / whole
        down = (rises * self.unknown_label + falls * bad).sum(axis=2) / whole
        apart = up[:, :, None] + down[:, None, :]
        groups = np.arange(apart.shape[1])
        apart[:, groups, groups] = 0.0
        return apart.max(axis=(1, 2))

    @property
    def everyone(self) -> float:
        """Total reward of accepting everybody."""
        return float((self.label - self.cost * self.number).sum())

    def _parts(self, pair: tuple[Floats, Floats], policies: int) -> tuple[Floats, Floats]:
        shape = (policies, *self.number.shape)
        return np.broadcast_to(pair[0], shape), np.broadcast_to(pair[1], shape)


def binned(outlook: Outlook, margin: Floats, thresholds: Floats) -> Bins:
    """Return the sums over people in each group and bin.

    Args:
        outlook: predictions about people.
        margin: the margin of each person.
        thresholds: in ascending order; people above exactly the first k thresholds are in bin k.
    """
    place = np.searchsorted(thresholds, margin, side="left")
    shape = (outlook.groups, len(thresholds) + 1)
    cell = outlook.codes * shape[1] + place

    def total(values: Floats | None) -> Floats:
        return np.bincount(cell, values, shape[0] * shape[1]).reshape(shape).astype(np.float64)

    furthest = np.zeros(shape[0] * shape[1])
    np.maximum.at(furthest, cell, outlook.furthest)
    return Bins(
        number=total(None),
        label=total(outlook.score),
        square=total(outlook.square),
        furthest=furthest.reshape(shape),
        unknown=total(outlook.weak),
        unknown_label=total(outlook.weak * outlook.score),
        cost=outlook.cost,
        rate=outlook.rate,
    )
