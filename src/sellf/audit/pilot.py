"""A pilot sample, which determines the reach and the spread of scores, and the predictions.

Choices made from the pilot are fixed for all other people, and the pilot itself is then left out.
The scores of the others are therefore independent, and all that `moments` must know before seeing
them is known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit.moments import CANDIDATES, Sample, central, means
from sellf.audit.scores import (
    Side,
    averaged,
    best_share,
    by_unit,
    extremes,
    mixed,
    scores,
    sides,
)
from sellf.fairness.notions import Rate
from sellf.logs.person import BINS, Floats, Person

PILOT = 50
"""The smallest number of people in the pilot."""
PILOT_SHARE = 0.015
"""The smallest share of a group in the pilot."""
CUBES_ROWS = 30_000
"""The number of rows beyond which bounding third moments gains nothing."""
PRIOR = 1_000
"""The weight of predicted moments, as a number of people."""
LEAST = 0.1
"""The smallest reach of scores, whatever the pilot shows."""
ROOM = 1.05
"""The largest reach of scores, as a multiple of the largest reach in the pilot."""
REACHES = (1.0, 0.93, 0.87, 0.81, 0.76, 0.71, 0.66, 0.61, 0.55, 0.5, 0.4, 0.3, 0.2)
"""Candidate reaches, as shares of the largest."""


class Prepared(NamedTuple):
    """A group's rows, ready for intervals from moments."""

    pilot: Person
    rest: Person
    by_bin: Floats
    """The prediction in each tenth of the propensity's range, if the log has no score."""
    reach: float
    overlap: float
    share: float = 0.0
    """The weight of values averaged over the decision: see `scores.averaged`."""

    def samples(self, rate: Rate) -> tuple[Sample, Sample]:
        """Return the moments that bound a rate from below and from above."""
        rest = self._sides(rate, self.rest)
        units = float(self.rest.units)
        found = [
            Sample(
                units,
                means(side),
                extremes(rate, self.reach, smooth=self.share > 0),
                rate.is_mean,
                guess,
                cubes,
                seen_cubes(side) if units <= CUBES_ROWS else None,
                pending=self.rest.pending is not None,
            )
            for side, guess, cubes in zip(rest, self._guess(rate), self._cubes(rate), strict=True)
        ]
        return found[0], found[1]

    def _cases(self, rate: Rate, person: Person) -> list[tuple[Side, Side]]:
        """Return the values that rows have if rejected, accepted and good, or accepted and bad."""
        none, one = np.zeros(len(person.accepted)), np.ones(len(person.accepted))
        return [
            self._sides(rate, person._replace(accepted=a, positive=y, pending=None))
            for a, y in ((none, none), (one, one), (one, none))
        ]

    def _guess(self, rate: Rate) -> list[NDArray[np.float64]]:
        """Return the moments that stakes are fitted to: a mean of observed and predicted ones.

        Moments observed on few people are noisy where propensities are small; predicted ones are
        not.
        """
        few = self.pilot
        seen = [means(side) for side in self._sides(rate, few)]
        if few.unit is not None or few.propensity is None or not self.reach:
            return seen
        trust = len(few.propensity) / (len(few.propensity) + PRIOR)
        both = zip(seen, self._predicted(rate), strict=True)
        return [trust * one + (1 - trust) * two for one, two in both]

    def _predicted(self, rate: Rate) -> list[NDArray[np.float64]]:
        """Return the moments that the pilot would have if the predictions were right."""
        few = self.pilot
        if few.propensity is None:
            raise ValueError("what scores will be is predicted from propensities")
        p, f = few.propensity, predictions(few, self.by_bin)
        cases = self._cases(rate, few)
        weights = np.concatenate([1 - p, p * f, p * (1 - f)])
        found = []
        for k in (0, 1):
            known = [whole for _, whole in (case[k] for case in cases) if whole is not None]
            joined = Side(
                np.concatenate([case[k].part for case in cases]),
                np.concatenate(known) if known else None,
            )
            found.append(means(joined, weights))
        return found

    @property
    def predictable(self) -> bool:
        """Whether the moments of scores can be predicted."""
        few = self.pilot
        alone = few.unit is None and few.pending is None
        return bool(self.reach) and few.propensity is not None and alone

    def fitted(self, rate: Rate) -> "Prepared":
        """Return a copy with the reach that has the smallest predicted width for a rate."""
        if not rate.hides:
            return self
        best = self._replace(share=self._best_share(rate))
        if not self.predictable:
            return best
        tried = [best._replace(reach=max(LEAST, share * self.reach)) for share in REACHES]
        return min(tried, key=lambda prepared: prepared.width(rate))

    def _best_share(self, rate: Rate) -> float:
        """Return the weight of averaged values that is best in the pilot."""
        few = self.pilot
        if not rate.moves or few.propensity is None or few.rejected_positive is not None:
            return 0.0
        plain, smooth = (self._replace(share=x)._sides(rate, few)[0] for x in (0.0, 1.0))
        return best_share(plain, smooth)

    def width(self, rate: Rate) -> float:
        """Return the approximate width of the interval of a difference of two such groups.

        It is the width of a normal interval, plus the cost of a large reach and of truncation.
        """
        low, high, level = self._outlook(rate)
        people, far = self.rest.units, max(_far(rate, self.reach, self.share > 0), 1.0)
        spread = max(central(raw, _value(raw))[0] for raw in (low, high)) ** 0.5 / level
        far = far / level * (_value(low) if low[0, 1] != 1 else 1.0)
        normal = 5.5 * spread / people**0.5
        ratio = far / max(spread * (2 * people) ** 0.5, 1e-9)
        wider = 1 + 2.5 * ratio + 6 * max(ratio - 0.15, 0.0)
        return normal * wider + 2 * (_value(high) - _value(low))

    def normal_width(self, rate: Rate) -> float:
        """Return the approximate width of a normal interval of that difference."""
        low, high, level = self._outlook(rate)
        spread = max(central(raw, _value(raw))[0] for raw in (low, high)) ** 0.5 / level
        return 5.5 * spread / self.rest.units**0.5

    def _outlook(self, rate: Rate) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        low, high = self._predicted(rate)
        return low, high, max(float(low[0, 1]), 0.01)

    def _cubes(self, rate: Rate) -> list[Floats | None]:
        """Return the mean bound on E|part - u whole|^3 given the features, for all candidates u."""
        rest = self.rest
        if rest.unit is not None or rest.propensity is None or rest.pending is not None:
            return [None, None]
        if not self.reach or len(rest.accepted) > CUBES_ROWS:
            return [None, None]
        cases = self._cases(rate, rest)
        p, strong = rest.propensity, rest.propensity >= self.overlap
        found = []
        for k in (0, 1):
            rows = []
            for u in CANDIDATES:
                sizes = [
                    _cube(side.part - u * (1.0 if side.whole is None else side.whole))
                    for side in (case[k] for case in cases)
                ]
                bound = (1 - p) * sizes[0] + p * np.maximum(sizes[1], sizes[2])
                rows.append(float(np.where(strong, bound, 1.0).mean()))
            found.append(np.array(rows))
        return found

    def _sides(self, rate: Rate, person: Person) -> tuple[Side, Side]:
        k = self.reach
        guess = predictions(person, self.by_bin)
        score = scores(person, self.overlap, guess, k, k, clip=True)
        found = sides(rate, person, score)
        if self.share > 0:
            smooth = averaged(person, self.overlap, guess, k, k)
            found = mixed(found, sides(rate, smooth, score), (self.share, self.share))
        return by_unit(found.low, person.unit), by_unit(found.high, person.unit)


def _cube(values: Floats) -> Floats:
    return np.abs(values) * (values * values)


def seen_cubes(side: Side) -> Floats:
    """Return the mean of |part - u whole|^3 for all candidates u."""
    whole = 1.0 if side.whole is None else side.whole
    return np.array([_cube(side.part - u * whole).mean() for u in CANDIDATES])


def prepare(person: Person, overlap: float, rng: np.random.Generator) -> Prepared:
    """Split a group's rows into a random pilot and the rest.

    Args:
        person: the rows of one group; those of one person are consecutive.
        overlap: the smallest propensity used for weighting.
        rng: the generator that draws the pilot.
    """
    people = person.units
    size = max(PILOT, int(PILOT_SHARE * people))
    chosen = np.zeros(people, dtype=bool)
    chosen[rng.choice(people, size, replace=False)] = True
    if person.unit is not None:
        chosen = chosen[np.unique(person.unit, return_inverse=True)[1]]
    few, rest = person.take(np.flatnonzero(chosen)), person.take(np.flatnonzero(~chosen))
    if person.propensity is None or person.rejected_positive is not None:
        return Prepared(few, rest, np.zeros(BINS), 0.0, overlap)
    by_tenth = by_bin(few, overlap)
    guess = predictions(few, by_tenth)
    p = np.where(few.propensity >= overlap, few.propensity, 1.0)  # pyright: ignore
    largest = ROOM * float((np.maximum(guess, 1 - guess) * (1 - p) / p).max(initial=0.0))
    return Prepared(few, rest, by_tenth, max(LEAST, largest), overlap)


def _far(rate: Rate, reach: float, smooth: bool) -> float:
    """Return the largest contribution of a person to a mean, or to a ratio that is 1."""
    ends = extremes(rate, reach, smooth=smooth)
    return max(part if rate.is_mean else abs(part - whole) for part, whole in ends)


def _value(raw: NDArray[np.float64]) -> float:
    return float(raw[1, 0] / max(float(raw[0, 1]), 0.01))


def predictions(person: Person, by_bin: Floats) -> Floats:
    """Return the prediction for each row."""
    if person.prediction is not None:
        return person.prediction
    if person.propensity is None:
        return np.zeros(len(person.accepted))
    return by_bin[np.minimum((person.propensity * BINS).astype(np.intp), BINS - 1)]


def by_bin(few: Person, overlap: float) -> Floats:
    """Return the share of good outcomes by tenth of the propensity, shrunk to the overall share."""
    p = few.propensity
    if p is None:
        return np.full(BINS, 0.5)
    known = few.accepted if few.pending is None else few.accepted - few.pending
    known = np.where(p >= overlap, known, 0.0)
    bins = np.minimum((p * BINS).astype(np.intp), BINS - 1)
    seen = np.bincount(bins, known, BINS)
    good = np.bincount(bins, known * few.positive, BINS)
    overall = (good.sum() + 0.5) / (seen.sum() + 1)
    return (good + 4 * overall) / (seen + 4)
