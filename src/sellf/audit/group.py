"""One group of a log, with the cached inputs of interval methods."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sellf.audit import games, moments, pilot
from sellf.audit.scores import (
    Side,
    Sides,
    averaged,
    best_share,
    by_unit,
    extremes,
    mixed,
    scores,
    sides,
)
from sellf.audit.shares import Share
from sellf.audit.sums import sample
from sellf.fairness.notions import Rate
from sellf.logs.person import Person
from sellf.logs.sums import Sums

PILOTED = 3_000
"""The number of people from which a group has a pilot sample."""
REACH_ALPHA = 0.01
"""Determines the reach of scores in betting; any value is valid."""
ORDERS = ((3_000, 8), (20_000, 4))
"""Largest group sizes with the number of orders to average over; larger groups use 2."""


@dataclass
class Group:
    """One group's part of the evidence, with cached inputs of the interval methods."""

    total: Sums
    """The sums over all strata."""
    person: Person | None
    """The rows, those of one person consecutive; None if only sums are known."""
    seed: tuple[int, ...]
    """Seed of the pilot sample and of the row orders."""
    overlap: float
    known: bool
    """Whether the log holds the propensities."""
    trusted: bool
    """Whether outcomes of the rejected are known."""
    estimated: bool
    """Whether the propensities were estimated."""
    predicted: bool
    made: dict[Any, Any] = field(default_factory=dict, repr=False)
    """A cache of computed values, shared by all methods."""

    @property
    def people(self) -> int:
        """The number of people."""
        return int(self.total.people) if self.person is None else self.person.units

    def estimate(self, rate: Rate) -> tuple[float, float] | None:
        """Return estimates of the least and the largest utility that the log allows, over people.

        None if every row is a different person; the estimates then follow from sums over rows.
        """
        person = self.person
        if person is None or person.unit is None or not person.units:
            return None
        ends = []
        for side in self.values(rate):
            whole = 1.0 if side.whole is None else float(side.whole.mean())
            ends.append(min(max(float(side.part.mean()) / whole, 0.0), 1.0) if whole > 0 else 0.5)
        return min(ends), max(ends)

    def averages(self, rate: Rate) -> bool:
        """Return whether values may be averaged over random decisions: see `scores.averaged`."""
        moves = rate.hides and rate.moves
        return self.person is not None and self.known and not self.trusted and moves

    def values(self, rate: Rate) -> Sides:
        """Return values of every person whose means bound the utility, without truncation."""
        person = self.person
        if person is None:
            raise ValueError("values of people need rows")
        guess = person.prediction
        if guess is None and person.propensity is not None:
            guess = pilot.predictions(person, pilot.by_bin(person, self.overlap))
        guess = 0.0 if guess is None else guess
        far = 1 / self.overlap
        score = scores(person, self.overlap, guess, far, far)
        found = _by_person(sides(rate, person, score), person)
        if not self.averages(rate):
            return found
        smooth = averaged(person, self.overlap, guess, far, far)
        other = _by_person(sides(rate, smooth, score), person)
        share = best_share(found.low, other.low)
        return mixed(found, other, (share, share))

    @property
    def accepted(self) -> float:
        """The number of accepted people; people with several rows count by their accepted share."""
        person = self.person
        if person is None or person.unit is None:
            return float(self.total.accepted)
        return float(by_unit(Side(person.accepted, None), person.unit).part.sum())

    @property
    def prepared(self) -> pilot.Prepared:
        """The rows split into pilot and rest, with the choices made from the pilot."""
        if "pilot" not in self.made:
            if self.person is None:
                raise ValueError("a pilot needs rows")
            self.made["pilot"] = pilot.prepare(self.person, self.overlap, self._generator(0))
        return self.made["pilot"]

    def fitted(self, rate: Rate) -> pilot.Prepared:
        """Return `prepared` with the reach of scores that suits a rate."""
        key = ("fitted", rate)
        if key not in self.made:
            self.made[key] = self.prepared.fitted(rate)
        return self.made[key]

    def shares(self, rate: Rate) -> tuple[Share, Share]:
        """Return the shares that bound the utility from below and from above."""
        if rate not in self.made:
            self.made[rate] = count_shares(rate, self.total, self.trusted)
        return self.made[rate]

    def samples(self, rate: Rate) -> tuple[moments.Sample, moments.Sample]:
        """Return the moments that bound the utility from below and from above."""
        key = ("samples", rate)
        if key not in self.made:
            if self.estimated and self.person is not None:
                self.made[key] = self._plain(rate)
            elif self.person is None:
                self.made[key] = sample(rate, self.total, self.overlap, self.predicted)
            else:
                self.made[key] = self.fitted(rate).samples(rate)
        return self.made[key]

    def _plain(self, rate: Rate) -> tuple[moments.Sample, moments.Sample]:
        """Return the moments of all rows without truncation, for the normal interval."""
        person = self.person
        if person is None or person.prediction is None:
            raise ValueError("estimated propensities come with predictions and rows")
        far = 1 / self.overlap
        found = sides(rate, person, scores(person, self.overlap, person.prediction, far, far))
        made = [
            moments.Sample(
                float(person.units), moments.means(side), extremes(rate, 0.0), rate.is_mean
            )
            for side in (by_unit(side, person.unit) for side in found)
        ]
        return made[0], made[1]

    def games(self, rate: Rate) -> games.Games:
        """Return the games of all orders."""
        key = ("games", rate)
        if key not in self.made:
            # People in the pilot sample are not bet on again.
            person = self.prepared.rest if self.people >= PILOTED else self.person
            if person is None:
                raise ValueError("betting needs rows")
            order = self._orders(person.units)
            how = {"alpha": REACH_ALPHA, "overlap": self.overlap}
            self.made[key] = games.games(rate, person, order, **how)
        return self.made[key]

    def _orders(self, people: int) -> Any:
        key = ("orders", people)
        if key not in self.made:
            count = next((count for most, count in ORDERS if people <= most), 2)
            self.made[key] = games.orders(people, count, self._generator(1))
        return self.made[key]

    def _generator(self, purpose: int) -> np.random.Generator:
        """Return a generator that depends on the rows and the seed, not on the order of calls."""
        if "digest" not in self.made:
            self.made["digest"] = 0 if self.person is None else self.person.digest()
        return np.random.default_rng([*self.seed, self.made["digest"], purpose])


def _by_person(found: Sides, person: Person) -> Sides:
    return Sides(*(by_unit(side, person.unit) for side in found))


def count_shares(rate: Rate, total: Sums, trusted: bool) -> tuple[Share, Share]:
    """Return the shares that bound a utility, where every value is 0 or 1.

    The outcome of a rejected person may be either value unless it is trusted; so may an outcome of
    an accepted person that is not known yet. Each unknown outcome takes the worse value for the
    bound.
    """
    n, a, good, pending = (
        float(x) for x in (total.people, total.accepted, total.positive, total.pending)
    )
    rejected_good = float(total.rejected_positive)
    accepted_people = {(1,): good, (0,): a - good - pending, (0, 1): pending}
    rejected = {(0, 1): n - a}
    if trusted:
        rejected = {(1,): rejected_good, (0,): n - a - rejected_good}
    found = []
    for worse in (min, max):
        count = people = 0.0
        for accepted, cases in ((1, accepted_people), (0, rejected)):
            for labels, number in cases.items():
                values = [
                    [sums.value(accepted, accepted * y, y) for sums in rate.sums] for y in labels
                ]
                part, whole = worse(values, key=lambda one: one[0] - 0.5 * one[1])
                count, people = count + number * part, people + number * whole
        found.append(Share(count, people))
    return found[0], found[1]
