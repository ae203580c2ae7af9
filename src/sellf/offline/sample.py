"""Rows of a group, split into a pilot sample and the rows that estimates are computed from.

The pilot provides predictions where the log has none, the truncation of weighted outcomes and their
expected spread. Its rows are excluded afterwards, so these choices are fixed for the other rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sellf.audit import capital
from sellf.audit.pilot import by_bin, predictions
from sellf.audit.scores import Side, by_unit
from sellf.logs.person import Floats, Person
from sellf.offline.lines import Affine, Chance, Line

PILOT = 50
"""Smallest number of people in a pilot, unless that is more than a third of the group."""
PILOT_SHARE = 0.015
"""Share of a large group that is used as its pilot."""
MOST_PILOT = 20_000
"""Largest number of people in a pilot; more would not improve its choices."""
BLOCK = 1 << 15
"""Number of rows that are processed at once, such that intermediate results stay in the cache."""
REMEMBERED_CHANCES = 8
"""Number of policies whose probabilities at the rows of a part are kept."""
REMEMBERED_VALUES = 5_000_000
"""Number of those probabilities, unless two policies have more."""
NONE = Affine()
"""The slope of forms that need no outcome."""
REMEMBERED = 64
"""Number of results that are kept: intervals of different levels share their moments."""
PRIOR = 1_000
"""Weight of the predicted spread, as a number of people in the pilot."""
ROOM = 1.05
"""Largest reach of weighted outcomes, as a multiple of the largest one in the pilot."""
REACHES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.22, 0.15, 0.1, 0.06, 0.03)
"""Candidate reaches, as shares of the largest reach."""
CUBES_ROWS = 30_000
"""Number of rows above which bounding third moments gains nothing."""

T = TypeVar("T")


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

    def times(self, factor: float) -> "Moments":
        """Return the moments of the form multiplied by a positive number."""
        term = self.term
        return Moments(
            factor * self.mean,
            term._replace(
                variance=factor**2 * term.variance,
                third=factor**3 * term.third,
                fourth=factor**4 * term.fourth,
                reach=factor * term.reach,
                guess=factor * term.guess,
                seen_cube=factor**3 * term.seen_cube,
            ),
        )

    def opposite(self) -> "Moments":
        """Return the moments of the form with its sign changed."""
        return Moments(-self.mean, self.term._replace(third=-self.term.third))


class Spread(NamedTuple):
    """Number, mean and sums of powers of deviations from the mean, of some values."""

    n: int
    mean: float
    second: float
    third: float
    fourth: float
    cubes: float
    """Sum of absolute third powers about the mean of each block: exact if there is one block."""

    @classmethod
    def of(cls, values: Floats) -> "Spread":
        """Return those of an array."""
        n = len(values)
        mean = float(values.mean()) if n else 0.0
        off = values - mean
        square = off * off
        cubes = _dot(np.abs(off), square) if n <= CUBES_ROWS else np.inf
        second = float(square.sum())
        return cls(n, mean, second, _dot(square, off), _dot(square, square), cubes)

    def joined(self, other: "Spread") -> "Spread":
        """Return those of both sets of values (Pebay 2008)."""
        if not self.n or not other.n:
            return self if self.n else other
        n, a, b = self.n + other.n, self.n, other.n
        off = (other.mean - self.mean) / n
        second = self.second + other.second + off**2 * a * b * n
        third = self.third + other.third + off**3 * a * b * (a - b) * n
        third += 3 * off * (a * other.second - b * self.second)
        fourth = self.fourth + other.fourth + off**4 * a * b * (a * a - a * b + b * b) * n
        fourth += 6 * off**2 * (a * a * other.second + b * b * self.second)
        fourth += 4 * off * (a * other.third - b * self.third)
        mean = self.mean + off * b
        return Spread(n, mean, second, third, fourth, np.inf)


def _dot(a: Floats, b: Floats) -> float:
    # On arrays of this size, a library's threads cost more than they save.
    return float(np.einsum("i,i->", a, b))


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of one group, or of everybody."""

    log: Person
    """All rows of the log."""
    where: NDArray[np.intp] | None
    """Indices of this sample's rows; None: all of them."""
    overlap: float
    rng: np.random.Generator = field(repr=False)
    estimated: bool = False
    """Whether propensities were estimated: nothing is truncated and intervals are asymptotic."""
    looked: NDArray[np.bool_] | None = field(default=None, repr=False)
    """Mask of the pilot's rows in this sample, with all rows of a person or none; None draws a
    pilot."""
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def units(self) -> NDArray[np.intp]:
        """The person of each row, numbered from 0 in the order of the rows."""
        unit = self.log.unit
        if unit is None:
            return np.arange(self._count)
        own = unit if self.where is None else unit[self.where]
        return np.unique(own, return_inverse=True)[1]

    @cached_property
    def people(self) -> int:
        """Number of people."""
        if self.log.unit is None:
            return self._count
        return int(self.units.max(initial=-1)) + 1

    @property
    def _count(self) -> int:
        """Number of rows."""
        return len(self.log.accepted if self.where is None else self.where)

    @cached_property
    def _split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if self.estimated:
            every = np.arange(self._count)
            return every, every
        if self.looked is not None:
            return np.flatnonzero(self.looked), np.flatnonzero(~self.looked)
        size = max(min(PILOT, self.people // 3), int(PILOT_SHARE * self.people))
        size = min(size, MOST_PILOT)
        chosen = np.zeros(self.people, dtype=bool)
        chosen[self.rng.choice(self.people, size, replace=False)] = True
        rows = chosen if self.log.unit is None else chosen[self.units]
        return np.flatnonzero(rows), np.flatnonzero(~rows)

    @cached_property
    def _outside(self) -> int:
        """Number of people outside the pilot."""
        few = self._split[0]
        return self.people - len(few if self.log.unit is None else np.unique(self.units[few]))

    @cached_property
    def rest(self) -> "Part":
        """The rows outside the pilot, which estimates are computed from."""
        return self._part(self._split[1])

    @cached_property
    def pilot(self) -> "Part":
        """The rows of the pilot."""
        return self._part(self._split[0])

    def _part(self, rows: NDArray[np.intp]) -> "Part":
        rows = self._placed(rows)
        person = self.log.take(rows)
        if person.propensity is None or person.rejected_positive is not None:
            return Part(rows, person, np.zeros(len(rows)), self.overlap)
        few = self.log.take(self._placed(self._split[0]))
        guess = predictions(person, by_bin(few, self.overlap))
        return Part(rows, person, guess, self.overlap)

    def _placed(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the indices in the log of some rows of this sample."""
        return rows if self.where is None else self.where[rows]

    def moments(self, line: Line, fit: "Fit | None" = None) -> Moments:
        """Return the moments of a form's values, which give a lower bound on its mean.

        Args:
            line: the form; parts that are not identified take their smallest value.
            fit: the truncation, if it was already chosen for a similar form.
        """
        found: Moments | None = self._kept.get((line, fit))
        if found is None and line.slope == NONE and self.log.pending is None:
            # Without a hidden outcome, lower and upper values are the same.
            opposite: Moments | None = self._kept.get((line * -1.0, fit))
            found = None if opposite is None else opposite.opposite()
        if found is None:
            found = self._keep((line, fit), self._moments(line, fit or self.fitted(line)))
        return found

    def mean(self, line: Line) -> float:
        """Return the mean of a form's values without truncation; 0 if there are no rows."""
        found: float | None = self._kept.get(line)
        if found is None:
            exact = self.rest.identified and len(self.rest.rows) > BLOCK
            mean = self.rest.mean(line) if exact else self.rest.spread(line, np.inf).mean
            found = self._keep(line, mean)
        return found

    def _keep(self, key: Any, found: T) -> T:
        if len(self._kept) >= REMEMBERED:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = found
        return found

    def _moments(self, line: Line, fit: "Fit") -> Moments:
        reach, spread = fit
        n, mean, second, third, fourth, cubes = self.rest.spread(line, reach)
        whole = max(line.high - line.low + (reach if np.isfinite(reach) else 0.0), 1e-12)
        size = max(n, 1)
        term = capital.Term(
            scale=1 / size,
            n=float(n),
            variance=second / size,
            third=third / size,
            fourth=fourth / size,
            reach=whole,
            guess=spread,
            seen_cube=cubes / size if n else np.inf,
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
        people = max(self._outside, 1)
        reaches = [share * furthest for share in REACHES]
        *found, (plain, _) = few.expected(line, [*reaches, np.inf])
        best = (np.inf, furthest, 1.0)
        for reach, (mean, spread) in zip(reaches, found, strict=True):
            ratio = (line.high - line.low + reach) / max(spread * people**0.5, 1e-9)
            wider = 1 + 2.5 * ratio + 6 * max(ratio - 0.15, 0.0)
            width = 2 * spread / people**0.5 * wider + (plain - mean)
            best = min(best, (width, reach, spread))
        return Fit(best[1], best[2])


class Own(NamedTuple):
    """The coefficients of a form at some rows."""

    slope: Floats | float
    seen: float
    decided: float
    level: Floats | float
    rises: bool | None
    """Whether the slope is positive in all rows (True), negative in all (False), or unknown."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of a sample's rows."""

    rows: NDArray[np.intp]
    """Their indices in the log."""
    person: Person
    guess: Floats
    """The predicted outcome, f."""
    overlap: float
    _chances: dict[Chance, Chance] = field(default_factory=dict, init=False, repr=False)
    _means: dict[tuple[Chance | None, bool], float] = field(
        default_factory=dict, init=False, repr=False
    )

    def values(self, line: Line, reach: float) -> Floats:
        """Return a lower bound on each person's contribution to a form.

        Args:
            line: the form.
            reach: how far a row may exceed the range of the form's expectation. Scores are
                truncated accordingly, such that their means still bound the form from below.
        """
        return np.concatenate(list(map(self._block(line, reach), self._cuts)))

    def spread(self, line: Line, reach: float) -> Spread:
        """Return the moments of the values of a form."""
        block = self._block(line, reach)
        return reduce(Spread.joined, (Spread.of(block(rows)) for rows in self._cuts))

    @property
    def identified(self) -> bool:
        """Whether the scores have the mean of the outcomes, not only bounds on it."""
        person = self.person
        known = self._all_weighted if self._weighs else person.rejected_positive is not None
        return known and person.pending is None

    def mean(self, line: Line) -> float:
        """Return the mean of a form without truncation, from means that forms share.

        Only if outcomes are identified, since all values are then linear in the coefficients.
        """
        total = line.level.constant + line.slope.constant * self._mean(None, outcome=True)
        total += sum(factor * self._mean(chance) for chance, factor in line.level.terms)
        total += sum(factor * self._mean(chance, outcome=True) for chance, factor in line.slope[1])
        for factor, column in ((line.seen, self.person.positive), (line.decided, self.person[0])):
            total += factor * float(by_unit(Side(column, None), self.person.unit).part.mean())
        return total

    def _mean(self, chance: Chance | None, *, outcome: bool = False) -> float:
        """Return the mean of a policy's probabilities, of the score, or of their product."""
        found = self._means.get((chance, outcome))
        if found is None:
            one = Affine(1.0) if chance is None else Affine(0.0, ((chance, 1.0),))
            line = Line(*(one, 0.0, 0.0, NONE) if outcome else (NONE, 0.0, 0.0, one), 0.0, 1.0)
            block = self._block(line, np.inf)
            values = map(block, self._cuts)
            people, total = np.sum([(len(x), x.sum()) for x in values], axis=0)
            found = self._means[chance, outcome] = float(total / max(people, 1))
        return found

    def _block(self, line: Line, reach: float) -> Callable[[slice], Floats]:
        """Return a function from a block of rows to the values of their people."""
        largest = np.inf if self._reach(line) <= reach else reach
        own, unit = self._own(line), self.person.unit

        def of(rows: slice) -> Floats:
            values = self._values(own(rows), largest, rows)
            return by_unit(Side(values, None), None if unit is None else unit[rows]).part

        return of

    @cached_property
    def _cuts(self) -> list[slice]:
        """Blocks of rows, with all rows of a person in one of them."""
        ends = list(range(BLOCK, len(self.rows), BLOCK))
        if self.person.unit is not None:
            unit = self.person.unit
            ends = sorted({int(np.searchsorted(unit, unit[end])) for end in ends} - {0})
        return [slice(a, b) for a, b in zip([0, *ends], [*ends, len(self.rows)], strict=True)]

    def _reach(self, line: Line) -> float:
        """Return a reach from which on no row of a form is truncated."""
        return max(abs(end) for end in line.slope.ends) * self._farthest

    @cached_property
    def _farthest(self) -> float:
        return float(self._deviation.max(initial=0.0))

    def _own(self, line: Line) -> Callable[[slice], "Own"]:
        """Return a function from rows of this part to the coefficients of a form there."""
        low, high = line.slope.ends
        rises = low >= 0 if low >= 0 or high <= 0 else None
        slope, level = (
            Affine(x.constant, tuple((self._taken(chance), w) for chance, w in x.terms))
            for x in (line.slope, line.level)
        )

        def of(rows: slice) -> Own:
            return Own(slope.at(rows), line.seen, line.decided, level.at(rows), rises)

        return of

    def _taken(self, chance: Chance) -> Chance:
        """Return a policy's probabilities at the rows of this part."""
        found = self._chances.get(chance)
        if found is None:
            found = Chance(chance.values[self.rows])
            most = max(REMEMBERED_VALUES // max(len(self.rows), 1), 2)
            if len(self._chances) >= min(most, REMEMBERED_CHANCES):
                del self._chances[next(iter(self._chances))]
            self._chances[chance] = found
        return found

    def _values(
        self, own: "Own", reach: Any, rows: Any = slice(None), person: Person | None = None
    ) -> Floats:
        """Return the values by row.

        Args:
            own: the coefficients at these rows.
            reach: a number, or an array whose last axis has length 1.
            rows: the rows of this part.
            person: decisions and outcomes in place of theirs; the rows are the last axis.
        """
        of = self.person.take(rows) if person is None else person
        value = own.level
        if own.decided:
            value = value + own.decided * of.accepted
        if own.seen:
            late = of.positive if of.pending is None else of.positive + of.pending
            value = value + own.seen * (of.positive if own.seen >= 0 else late)
        if np.any(own.slope):
            value = value + own.slope * self._scores(own, reach, rows, person)
        return np.broadcast_to(value, np.broadcast_shapes(of.accepted.shape, np.shape(reach)))

    def _scores(self, own: "Own", reach: Any, rows: Any, person: Person | None) -> Floats:
        """Return a lower score of Y where the slope is positive, an upper one where negative.

        They are those of `audit.scores`, truncated and clipped, but only the side that is needed.
        """
        slope: Any = own.slope
        rises = np.greater_equal(slope, 0) if own.rises is None else np.array(own.rises)
        if person is not None:
            return self._chosen(rises, self._truncated(np.abs(slope), reach, rows, person))
        found = self._chosen(rises, self._plain(rows))
        if np.ndim(reach) or np.isfinite(reach):
            # Only rows whose weights are large are truncated.
            far = np.abs(slope) * self._deviation[rows] > reach
            if np.ndim(reach):
                truncated = self._truncated(np.abs(slope), reach, rows, self.person.take(rows))
                return np.where(far, self._chosen(rises, truncated), found)
            which = np.flatnonzero(far)
            if len(which):
                size, rises = (np.broadcast_to(x, far.shape)[which] for x in (np.abs(slope), rises))
                one = self.person.take(rows).take(which)
                place = which + (rows.start or 0)
                found = np.array(found)
                found[which] = self._chosen(rises, self._truncated(size, reach, place, one))
        return found

    @staticmethod
    def _chosen(rises: NDArray[np.bool_], found: tuple[Floats, Floats]) -> Floats:
        """Return lower scores where the slope is positive, upper ones where it is negative."""
        if found[0] is found[1] or rises.all():
            return found[0]
        return np.where(rises, *found)

    @property
    def _weighs(self) -> bool:
        """Whether hidden outcomes are replaced by weighted ones."""
        return self.person.propensity is not None and self.person.rejected_positive is None

    def _plain(self, rows: Any) -> tuple[Floats, Floats]:
        """Return both scores of some rows without truncation."""
        low, high = self._all_plain
        found = low[rows]
        return found, found if low is high else high[rows]

    @cached_property
    def _all_plain(self) -> tuple[Floats, Floats]:
        parts = [self._whole(rows, self.person.take(rows)) for rows in self._cuts]
        low = np.concatenate([one for one, _ in parts])
        same = all(one is other for one, other in parts)
        return low, low if same else np.concatenate([other for _, other in parts])

    @cached_property
    def _deviation(self) -> Floats:
        """The largest possible deviation of each score from its mean."""
        if not self._weighs:
            return np.zeros(len(self.rows))
        return np.concatenate(
            [
                np.maximum(self.guess[rows], 1 - self.guess[rows]) * self._against(rows)
                for rows in self._cuts
            ]
        )

    def _whole(self, rows: Any, person: Person) -> tuple[Floats, Floats]:
        """Return both scores of some rows, with the decisions and outcomes of `person`."""
        accepted, positive, pending = person.accepted, person.positive, person.pending
        good = positive if pending is None else positive + pending
        if person.rejected_positive is not None:
            low = positive + person.rejected_positive
            return low, low if pending is None else good + person.rejected_positive
        if person.propensity is None:
            return positive, good + (1 - accepted)
        guess, inverse = self.guess[rows], 1 + self._against(rows)
        low = guess + (positive - accepted * guess) * inverse
        high = low if pending is None else guess + (good - accepted * guess) * inverse
        return self._where(rows, person, low, high)

    def _truncated(self, size: Any, reach: Any, rows: Any, person: Person) -> tuple[Floats, Floats]:
        """Return both scores; times `size` they are at most `reach` outside of their range."""
        if not self._weighs:
            return self._whole(rows, person)
        accepted, positive, pending = person.accepted, person.positive, person.pending
        good = positive if pending is None else positive + pending
        guess, against = self.guess[rows], self._against(rows)
        inverse = 1 + against
        # Where nothing is to be truncated these are infinite or not numbers, which fmin and fmax
        # ignore.
        with np.errstate(divide="ignore", invalid="ignore"):
            room = reach / (size * against)
            far = room * against
        f = np.fmin(guess, room)
        below = np.fmin(f + (positive - accepted * f) * inverse, 1 + far)
        f = np.fmax(guess, 1 - room)
        above = np.fmax(f + (good - accepted * f) * inverse, -far)
        return self._where(rows, person, below, above)

    def _where(self, rows: Any, person: Person, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return scores, with the extremes of Y where a propensity is too small for weighting."""
        if self._all_weighted:
            return low, high
        pending = 0.0 if person.pending is None else person.pending
        weighted = np.asarray(self.person.propensity)[rows] >= self.overlap
        least, most = person.positive, person.positive + pending + (1 - person.accepted)
        return np.where(weighted, low, least), np.where(weighted, high, most)

    def _against(self, rows: Any) -> Floats:
        """Return the odds of rejection, 1 / p - 1; 0 where p is too small for weighting."""
        p = np.asarray(self.person.propensity)[rows]
        return 1 / (p if self._all_weighted else np.where(p >= self.overlap, p, 1.0)) - 1

    @cached_property
    def _all_weighted(self) -> bool:
        return bool((np.asarray(self.person.propensity) >= self.overlap).all())

    def furthest(self, line: Line) -> float:
        """Return the largest possible deviation of a row of a form beyond its expectation."""
        return float((np.abs(line.slope.at(self.rows)) * self._deviation).max(initial=0.0))

    def expected(self, line: Line, reaches: Sequence[float]) -> list[tuple[float, float]]:
        """Return the expected mean and standard deviation of a form, for each reach.

        Both combine the observed and the predicted moments: those observed for few people are noisy
        where propensities are small, those predicted are not.
        """
        own, reach = self._own(line)(slice(None)), np.asarray(reaches)[:, None]
        person = self.person
        rows = self._values(own, reach)
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
            cases = self._values(own, reach, person=case)
            weights = np.stack([1 - p, p * f, p * (1 - f)])[:, None]
            first = (cases * weights).mean(axis=2).sum(axis=0)
            second = (cases * cases * weights).mean(axis=2).sum(axis=0)
            trust = len(p) / (len(p) + PRIOR)
            mean = trust * mean + (1 - trust) * first
            variance = trust * variance + (1 - trust) * np.maximum(second - first * first, 0.0)
        variance = variance + 0.1 * (line.high - line.low) ** 2 / seen.shape[1]
        spread = np.maximum(variance, 1e-12) ** 0.5
        return list(zip(mean.tolist(), spread.tolist(), strict=True))
