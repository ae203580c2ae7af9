"""Rows of a group, split into a pilot sample and the rows that estimates are computed from.

The pilot provides predictions where the log has none, the truncation of weighted outcomes and their
expected spread. Its rows are excluded afterwards, so these choices are fixed for the other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sellf.audit import capital
from sellf.audit.pilot import by_bin, predictions
from sellf.audit.scores import Side, by_unit
from sellf.logs.person import Floats, Person
from sellf.offline.lines import Line

PILOT = 50
"""Smallest number of people in a pilot, unless that is more than a third of the group."""
PILOT_SHARE = 0.015
"""Share of a large group that is used as its pilot."""
PRIOR = 1_000
"""Weight of the predicted spread, as a number of people in the pilot."""
ROOM = 1.05
"""Largest reach of weighted outcomes, as a multiple of the largest one in the pilot."""
REACHES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.06, 0.03)
"""Candidate reaches, as shares of the largest reach."""
CUBES_ROWS = 30_000
"""Number of rows above which bounding third moments gains nothing."""


class Fit(NamedTuple):
    """Truncation and spread of a form, chosen from the pilot."""

    reach: float
    """How far the value of a row may exceed the range of the form's expectation."""
    spread: float
    """Approximate standard deviation of the form with this truncation."""


@dataclass(frozen=True)
class Moments:
    """The mean of a form's values, and the term of `capital.radius` that belongs to them."""

    mean: float
    term: capital.Term


@dataclass(frozen=True)
class Sample:
    """The rows of one group, or of everybody."""

    person: Person
    overlap: float
    rng: np.random.Generator = field(repr=False)
    estimated: bool = False
    """Whether propensities were estimated: nothing is truncated and intervals are asymptotic."""
    looked: NDArray[np.bool_] | None = field(default=None, repr=False)
    """Mask of the pilot's rows, with all rows of a person or none; None draws a pilot."""

    @cached_property
    def units(self) -> NDArray[np.intp]:
        """The person of each row, numbered from 0 in the order of the rows."""
        unit = self.person.unit
        rows = len(self.person.accepted)
        return np.arange(rows) if unit is None else np.unique(unit, return_inverse=True)[1]

    @cached_property
    def people(self) -> int:
        """Number of people."""
        return int(self.units.max(initial=-1)) + 1

    @cached_property
    def _split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if self.estimated:
            every = np.arange(len(self.units))
            return every, every
        if self.looked is not None:
            return np.flatnonzero(self.looked), np.flatnonzero(~self.looked)
        size = max(min(PILOT, self.people // 3), int(PILOT_SHARE * self.people))
        chosen = np.zeros(self.people, dtype=bool)
        chosen[self.rng.choice(self.people, size, replace=False)] = True
        rows = chosen[self.units]
        return np.flatnonzero(rows), np.flatnonzero(~rows)

    @cached_property
    def rest(self) -> "Part":
        """The rows outside the pilot, which estimates are computed from."""
        return self._part(self._split[1])

    @cached_property
    def pilot(self) -> "Part":
        """The rows of the pilot."""
        return self._part(self._split[0])

    def _part(self, rows: NDArray[np.intp]) -> "Part":
        person = self.person.take(rows)
        if person.propensity is None or person.rejected_positive is not None:
            return Part(rows, person, np.zeros(len(rows)), self.overlap)
        few = self.person.take(self._split[0])
        guess = predictions(person, by_bin(few, self.overlap))
        return Part(rows, person, guess, self.overlap)

    def moments(self, line: Line, fit: "Fit | None" = None, *, taken: bool = False) -> Moments:
        """Return the moments of a form's values, which give a lower bound on its mean.

        Args:
            line: the form, for all rows; parts that are not identified take their smallest value.
            fit: the truncation, if it was already chosen for a similar form.
            taken: whether the form is for the rows outside the pilot only.
        """
        reach, spread = self.fitted(line) if fit is None else fit
        values = self.rest.values(line, reach, taken=taken)
        n, mean = len(values), float(values.mean()) if len(values) else 0.0
        off = values - mean
        square = off * off
        seen = float((np.abs(off) * square).mean()) if 0 < n <= CUBES_ROWS else float("inf")
        whole = max(line.high - line.low + (reach if np.isfinite(reach) else 0.0), 1e-12)
        term = capital.Term(
            scale=1 / max(n, 1),
            n=float(n),
            variance=float(square.mean()) if n else 0.0,
            third=float((square * off).mean()) if n else 0.0,
            fourth=float((square * square).mean()) if n else 0.0,
            reach=whole,
            guess=spread,
            seen_cube=seen,
        )
        return Moments(mean, term)

    def level(self, line: Line) -> float:
        """Return an estimate of a form's mean from the pilot alone."""
        return self.pilot.expected(line, [np.inf])[0][0]

    def fitted(self, line: Line) -> "Fit":
        """Return the truncation of a form's values and their approximate spread."""
        if self.estimated:
            return Fit(np.inf, 1.0)
        few = self.pilot
        furthest = ROOM * few.furthest(line)
        if furthest <= 0:
            return Fit(0.0, few.expected(line, [0.0])[0][1])
        people = max(self.people - len(np.unique(self.units[self._split[0]])), 1)
        reaches = [share * furthest for share in REACHES]
        *found, (plain, _) = few.expected(line, [*reaches, np.inf])
        best = (np.inf, furthest, 1.0)
        for reach, (mean, spread) in zip(reaches, found, strict=True):
            ratio = (line.high - line.low + reach) / max(spread * people**0.5, 1e-9)
            wider = 1 + 2.5 * ratio + 6 * max(ratio - 0.15, 0.0)
            width = 2 * spread / people**0.5 * wider + (plain - mean)
            best = min(best, (width, reach, spread))
        return Fit(best[1], best[2])


class Weights(NamedTuple):
    """Functions of the propensities that every score of a part is computed from."""

    weighted: NDArray[np.bool_]
    """Whether a row's propensity is large enough for weighting."""
    every: bool
    """Whether all of them are."""
    inverse: Floats
    """1 / p, or 1 where it is not used."""
    odds: Floats
    """p / (1 - p), infinite where p is 1 or not used."""


@dataclass(frozen=True)
class Part:
    """Some of a sample's rows."""

    rows: NDArray[np.intp]
    person: Person
    guess: Floats
    """The predicted outcome, f."""
    overlap: float

    def values(self, line: Line, reach: float, *, taken: bool = False) -> Floats:
        """Return a lower bound on each person's contribution to a form.

        Args:
            line: the form, for all rows of the sample.
            reach: how far a row may exceed the range of the form's expectation. Scores are
                truncated accordingly, such that their means still bound the form from below.
            taken: whether the form is for the rows of this part only.
        """
        own = line if taken else line.take(self.rows)
        found = self._values(own, reach, self.person)
        return by_unit(Side(found, None), self.person.unit).part

    def _values(self, own: Line, reach: Any, person: Person) -> Floats:
        """Return the same by row; the rows are the last axis of the reach and of the person."""
        positive, pending = person.positive, person.pending
        good = positive if pending is None else positive + pending
        value = own.level
        if np.any(own.decided):
            value = value + own.decided * person.accepted
        if np.any(own.seen):
            value = value + own.seen * np.where(np.greater_equal(own.seen, 0), positive, good)
        if np.any(own.slope):
            value = value + own.slope * self._scores(own.slope, reach, person, good)
        shape = np.broadcast_shapes(person.accepted.shape, np.shape(reach))
        return np.broadcast_to(value, shape)

    def _scores(self, slope: Any, reach: Any, person: Person, good: Floats) -> Floats:
        """Return a lower score of Y where the slope is positive, an upper one where negative.

        They are those of `audit.scores`, truncated and clipped, but only the side that is needed.
        """
        accepted, positive = person.accepted, person.positive
        rises = np.greater_equal(slope, 0)
        both = not rises.all() and bool(rises.any())
        if person.rejected_positive is not None:
            hidden = person.rejected_positive
            return np.where(rises, positive + hidden, good + hidden)
        if person.propensity is None:
            return np.where(rises, positive, good + (1 - accepted))
        weighted, every, inverse, odds = self.weights
        far = reach / np.maximum(np.abs(slope), 1e-12)
        with np.errstate(invalid="ignore"):  # 0 times infinity, which fmin and fmax ignore
            room = far * odds

        def below() -> Floats:
            f = np.fmin(self.guess, room)
            score = np.minimum(f + (positive - accepted * f) * inverse, 1 + far)
            return score if every else np.where(weighted, score, positive)

        def above() -> Floats:
            f = np.fmax(self.guess, 1 - room)
            score = np.maximum(f + (good - accepted * f) * inverse, -far)
            return score if every else np.where(weighted, score, good + (1 - accepted))

        if both:
            return np.where(rises, below(), above())
        return below() if rises.all() else above()

    @cached_property
    def weights(self) -> Weights:
        """See `Weights`; requires propensities."""
        propensity = np.asarray(self.person.propensity)
        weighted = propensity >= self.overlap
        p = np.where(weighted, propensity, 1.0)
        with np.errstate(divide="ignore"):
            return Weights(weighted, bool(weighted.all()), 1 / p, p / (1 - p))

    def furthest(self, line: Line) -> float:
        """Return the largest possible deviation of a row of a form beyond its expectation."""
        p = self.person.propensity
        if p is None or self.person.rejected_positive is not None:
            return 0.0
        slope = line.take(self.rows).slope
        worst = np.maximum(self.guess, 1 - self.guess) * np.abs(slope) / self.weights.odds
        return float(worst.max(initial=0.0))

    def expected(self, line: Line, reaches: Sequence[float]) -> list[tuple[float, float]]:
        """Return the expected mean and standard deviation of a form, for each reach.

        Both combine the observed and the predicted moments: those observed for few people are noisy
        where propensities are small, those predicted are not.
        """
        own, person, reach = line.take(self.rows), self.person, np.asarray(reaches)[:, None]
        rows = self._values(own, reach, person)
        seen = np.stack([by_unit(Side(row, None), person.unit).part for row in rows])
        mean, variance = seen.mean(axis=1), seen.var(axis=1)
        p, f = person.propensity, self.guess
        if p is not None and person.unit is None and person.rejected_positive is None:
            # Rejected, accepted with a good outcome, accepted with a bad one.
            accepted, positive = (
                np.stack([np.full((1, len(p)), x) for x in each])
                for each in ((0.0, 1.0, 1.0), (0.0, 1.0, 0.0))
            )
            case = person._replace(accepted=accepted, positive=positive, pending=None)
            cases = self._values(own, reach, case)
            weights = np.stack([1 - p, p * f, p * (1 - f)])[:, None]
            first = (cases * weights).mean(axis=2).sum(axis=0)
            second = (cases * cases * weights).mean(axis=2).sum(axis=0)
            trust = len(p) / (len(p) + PRIOR)
            mean = trust * mean + (1 - trust) * first
            variance = trust * variance + (1 - trust) * np.maximum(second - first * first, 0.0)
        variance = variance + 0.1 * (line.high - line.low) ** 2 / seen.shape[1]
        spread = np.maximum(variance, 1e-12) ** 0.5
        return list(zip(mean.tolist(), spread.tolist(), strict=True))
