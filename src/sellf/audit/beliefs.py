"""Beliefs about hidden outcomes, and the range of a rate under each belief.

Within a stratum of people who look alike, let m be the share of good outcomes among the accepted.
A belief bounds the share among the rejected by two functions of m:

- nothing: 0 and 1
- the rejected are no better than the accepted who look alike (monotone selection): 0 and m
- the rejected are no worse: m and 1
- hidden factors change the odds of acceptance by L at most (Tan 2006): max(m / L, 1 - L (1 - m))
  and min(L m, 1 - (1 - m) / L)

With l(m) the lower function, the mean of A Y + (1 - A) l(m) bounds E[Y] from below. m is estimated
from the same rows; to first order that adds A l'(m) r / a (Y - m) to each person's value, where r
and a are the numbers of rejected and accepted people in the stratum. The standard error therefore
includes the sampling error of m. Intervals are normal, so they are asymptotic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sellf.audit.interval import Interval
from sellf.audit.scores import Scores, Side, by_unit, sides
from sellf.audit.verdict import of_pairs
from sellf.fairness.notions import Rate
from sellf.logs.person import Floats, Person

STRATA = 10
"""The largest number of strata of people who look alike."""
FEWEST = 50
"""The smallest number of accepted people with a known outcome in a stratum."""

Share: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""A function from m to a share among the rejected and its derivative with respect to m."""


@dataclass(frozen=True)
class Belief:
    """Bounds on the share of good outcomes among the rejected."""

    key: str
    says: str
    least: Share
    most: Share


def _constant(value: float) -> Share:
    return lambda m: (np.full_like(m, value), np.zeros_like(m))


def _same(m: Floats) -> tuple[Floats, Floats]:
    return m, np.ones_like(m)


NOTHING = Belief("nothing", "nothing is assumed about the rejected", _constant(0.0), _constant(1.0))
NO_BETTER = Belief(
    "no better",
    "the rejected are on average no better than the accepted who look alike",
    _constant(0.0),
    _same,
)
NO_WORSE = Belief(
    "no worse",
    "the rejected are on average no worse than the accepted who look alike",
    _same,
    _constant(1.0),
)


def hidden_factors(level: float) -> Belief:
    """Return the belief that hidden factors change the odds of acceptance by `level` at most."""

    def least(m: Floats) -> tuple[Floats, Floats]:
        flat, steep = m / level, 1 - level * (1 - m)
        return np.maximum(flat, steep), np.where(flat >= steep, 1 / level, level)

    def most(m: Floats) -> tuple[Floats, Floats]:
        steep, flat = level * m, 1 - (1 - m) / level
        return np.minimum(steep, flat), np.where(steep <= flat, level, 1 / level)

    says = f"hidden factors change the odds of acceptance by a factor of {level:g} at most"
    return Belief(f"hidden factors {level:g}", says, least, most)


class Ends(NamedTuple):
    """The smallest and the largest rate of a group under a belief, with standard errors."""

    low: float
    low_error: float
    high: float
    high_error: float


def alike(person: Person) -> NDArray[np.intp]:
    """Return the stratum of each row, by prediction or else by propensity; without both, one only.

    The cut points depend on predictions and decisions alone, never on the values of outcomes.
    """
    by = person.prediction if person.prediction is not None else person.propensity
    rows = len(person.accepted)
    known = _known(person)
    count = int(min(STRATA, known.sum() // FEWEST))
    if by is None or count < 2:
        return np.zeros(rows, dtype=np.intp)
    cuts = np.unique(np.quantile(by[known > 0], np.linspace(0, 1, count + 1)[1:-1]))
    found = np.searchsorted(cuts, by, side="right")
    # Ties can leave a stratum with too few people, which is then merged with the one below.
    enough = np.bincount(found, known, len(cuts) + 1) >= FEWEST
    place = np.maximum(np.cumsum(enough) - 1, 0)
    return place[found]


def _known(person: Person) -> Floats:
    return person.accepted if person.pending is None else person.accepted - person.pending


def scored(person: Person, belief: Belief) -> Scores:
    """Return each person's contribution to the bounds on E[Y]."""
    stratum = alike(person)
    count = int(stratum.max(initial=0)) + 1
    known, rejected = _known(person), 1 - person.accepted
    seen = np.bincount(stratum, known, count)
    m = np.bincount(stratum, person.positive, count) / np.maximum(seen, 1)
    odds = np.bincount(stratum, rejected, count) / np.maximum(seen, 1)
    off = known * (person.positive - m[stratum])

    def filled(share: Share, empty: float) -> Floats:
        value, slope = share(m)
        value = np.where(seen > 0, value, empty)
        own = np.clip(value, 0.0, 1.0)[stratum]
        return rejected * own + (slope * odds)[stratum] * off

    low, high = filled(belief.least, 0.0), filled(belief.most, 1.0)
    bad = person.positive
    good = bad if person.pending is None else bad + person.pending
    return Scores(bad + low, good + low, bad + high, good + high)


def ends(rate: Rate, person: Person, belief: Belief) -> Ends:
    """Return the smallest and the largest rate of a group with their standard errors."""
    found = sides(rate, person, scored(person, belief))
    low, high = (ratio(by_unit(side, person.unit)) for side in found)
    return Ends(*low, *high)


def ratio(side: Side) -> tuple[float, float]:
    """Return a ratio of means and its standard error, by the delta method."""
    whole = np.ones(len(side.part)) if side.whole is None else side.whole
    level = float(whole.mean()) if len(whole) else 0.0
    if level <= 0 or len(whole) < 2:
        return 0.5, 1.0
    value = float(side.part.mean()) / level
    error = float((side.part - value * whole).std(ddof=1)) / len(whole) ** 0.5 / level
    return min(max(value, 0.0), 1.0), error


def span(found: list[Ends], delta: float) -> Interval:
    """Return the normal interval of the largest minus the smallest rate."""
    low, low_error, high, high_error = (np.array(values) for values in zip(*found, strict=True))
    count = len(found)
    quantile = float(-ndtri(delta / (count * (count - 1))))
    error = np.hypot(low_error[:, None], high_error[None, :])
    lower = np.clip(low[:, None] - high[None, :] - quantile * error, -1.0, 1.0)
    return of_pairs(lower, (low + high) / 2)
