"""Which method judges a group, and what it says of one group or of two.

Every method bounds a utility from below and from above, alone or as a difference of two groups,
with a chance to miss that it is given. `METHODS` says what each promises. Which one is used depends
on how many people there are, on what the log holds and on the pilot, never on what is then
estimated.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri

from sellf.audit import betting, moments, pilot, shares
from sellf.audit.scores import Side, by_unit, extremes, scores, sides
from sellf.audit.shares import Share
from sellf.audit.sums import sample
from sellf.fairness.notions import Rate
from sellf.logs.person import Person
from sellf.logs.sums import Sums

Kind: TypeAlias = Literal["exact", "moments", "betting", "sums", "normal"]


class Method(NamedTuple):
    """An interval method."""

    words: str
    finite_sample: bool
    """Whether what it promises holds at every sample size."""


METHODS: dict[Kind, Method] = {
    "exact": Method("exact binomial (finite-sample)", True),
    "moments": Method("fixed stakes (finite-sample)", True),
    "betting": Method("betting (finite-sample)", True),
    "sums": Method("sums alone (finite-sample)", True),
    "normal": Method("cross-fitted AIPW, normal (asymptotic)", False),
}
FEW = 3_000
"""Groups with fewer people are bet on row by row,"""
FEW_DECISIONS = 4_500
"""and with fewer than these where the decision itself is part of what is measured."""
BEARABLE = 0.12
"""The largest reach of scores for fixed stakes, as a multiple of the root of a group's size."""
WORTHWHILE, WORTHWHILE_RATIO = 1.45, 1.25
"""The widest that fixed stakes may promise to be, as a multiple of the normal width; betting is no
wider than 1.5 to 1.8. A ratio turns out wider than promised."""
ALWAYS = 200_000
"""Groups with more people are never bet on row by row."""
TOGETHER = 50_000
"""Up to so many people are bet on together with a group that is bet on row by row."""
REACH_ALPHA = 0.01
"""For how far scores may reach in betting; any number would do."""
ORDERS = ((3_000, 8), (20_000, 4))
"""How many orders are averaged, for groups up to a size; 2 for larger ones."""


@dataclass
class Group:
    """One group's part of the evidence, with what the methods make of it."""

    total: Sums
    """Over all strata."""
    person: Person | None
    """Its rows, those of one person one after the other; None if only sums are known."""
    seed: tuple[int, ...]
    """Of the pilot and of the orders."""
    overlap: float
    known: bool
    """Whether the log says the chance of acceptance."""
    trusted: bool
    """Whether outcomes of the rejected are known."""
    estimated: bool
    """Whether the chance of acceptance was estimated."""
    predicted: bool
    _made: dict[Any, Any] = field(default_factory=dict)

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.total.people) if self.person is None else self.person.units

    def kind(self, rate: Rate) -> Kind:
        """Return the method that judges this group."""
        key = ("kind", rate)
        if key not in self._made:
            self._made[key] = self._kind(rate)
        return self._made[key]

    def _kind(self, rate: Rate) -> Kind:
        one_row = self.person is None or self.person.unit is None
        if one_row and (not rate.hides or self.trusted or not (self.known or self.estimated)):
            return "exact"
        if self.estimated and rate.hides:
            return "normal"
        if self.person is None:
            return "sums"
        if self.people < (FEW_DECISIONS if rate.moves else FEW):
            return "betting"
        if self.people > ALWAYS:
            return "moments"
        fitted = self.fitted(rate)
        if not fitted.predictable:
            return "moments" if fitted.reach <= BEARABLE * self.people**0.5 else "betting"
        most = WORTHWHILE if rate.is_mean else WORTHWHILE_RATIO
        most = most * self.prepared.normal_width(rate)
        return "moments" if fitted.width(rate) <= most else "betting"

    def estimate(self, rate: Rate) -> tuple[float, float] | None:
        """Return estimates of the least and the largest utility that the log allows, over people.

        None where every row is another person's: then sums over rows say it.
        """
        person = self.person
        if person is None or person.unit is None:
            return None
        guess = person.prediction
        if guess is None and person.propensity is not None:
            guess = pilot.predictions(person, pilot.by_bin(person, self.overlap))
        far = 1 / self.overlap
        found = sides(
            rate, person, scores(person, self.overlap, 0.0 if guess is None else guess, far, far)
        )
        ends = []
        for side in (by_unit(side, person.unit) for side in found):
            whole = 1.0 if side.whole is None else float(side.whole.mean())
            ends.append(min(max(float(side.part.mean()) / whole, 0.0), 1.0) if whole > 0 else 0.5)
        return min(ends), max(ends)

    @property
    def accepted(self) -> float:
        """How many people were accepted; of those with several rows, the share of these counts."""
        person = self.person
        if person is None or person.unit is None:
            return float(self.total.accepted)
        return float(by_unit(Side(person.accepted, None), person.unit).part.sum())

    @property
    def prepared(self) -> pilot.Prepared:
        """The rows with what the pilot says."""
        if "pilot" not in self._made:
            if self.person is None:
                raise ValueError("a pilot needs rows")
            rng = np.random.default_rng([*self.seed, 0])
            self._made["pilot"] = pilot.prepare(self.person, self.overlap, rng)
        return self._made["pilot"]

    def fitted(self, rate: Rate) -> pilot.Prepared:
        """The same, with the reach of scores that suits a rate."""
        key = ("fitted", rate)
        if key not in self._made:
            self._made[key] = self.prepared.fitted(rate)
        return self._made[key]

    def shares(self, rate: Rate) -> tuple[Share, Share]:
        """Return the shares that bound the utility from below and from above."""
        if rate not in self._made:
            self._made[rate] = count_shares(rate, self.total, self.trusted)
        return self._made[rate]

    def samples(self, rate: Rate) -> tuple[moments.Sample, moments.Sample]:
        """Return the moments that bound the utility from below and from above."""
        key = ("samples", rate)
        if key not in self._made:
            if self.estimated:
                self._made[key] = self._plain(rate)
            elif self.person is None:
                self._made[key] = sample(rate, self.total, self.overlap, self.predicted)
            else:
                self._made[key] = self.fitted(rate).samples(rate)
        return self._made[key]

    def _plain(self, rate: Rate) -> tuple[moments.Sample, moments.Sample]:
        """Return the moments of all rows, nothing cut: for the normal interval."""
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

    def games(self, rate: Rate) -> betting.Games:
        """Return the games of all orders."""
        key = ("games", rate)
        if key not in self._made:
            # Those whom a pilot may have looked at are not bet on again.
            person = self.prepared.rest if self.people >= FEW else self.person
            if person is None:
                raise ValueError("betting needs rows")
            order = self._orders(person.units)
            how = {"alpha": REACH_ALPHA, "overlap": self.overlap}
            self._made[key] = betting.games(rate, person, order, **how)
        return self._made[key]

    def _orders(self, people: int) -> Any:
        key = ("orders", people)
        if key not in self._made:
            count = next((count for most, count in ORDERS if people <= most), 2)
            rng = np.random.default_rng([*self.seed, 1])
            self._made[key] = betting.orders(people, count, rng)
        return self._made[key]


def interval(rate: Rate, group: Group, alpha: float) -> tuple[float, float]:
    """Return both ends of a group's utility; together they miss with probability alpha at most."""
    low = max(lower(rate, group, alpha / 2), 0.0)
    high = min(upper(rate, group, alpha / 2), 1.0)
    # Ends that crossed, or lie beyond what is possible, have probability alpha at most; then
    # nothing is claimed.
    return (low, high) if low <= high else (0.0, 1.0)


def lower(rate: Rate, group: Group, alpha: float, kind: Kind | None = None) -> float:
    """Return a number that the utility is below with probability alpha at most."""
    kind = kind or group.kind(rate)
    if kind == "exact":
        return shares.lower(group.shares(rate)[0], alpha)
    if group.people < 2:
        return 0.0
    if kind == "betting":
        return betting.lower(group.games(rate).low, alpha)
    side = group.samples(rate)[0]
    if kind == "normal":
        return side.value - _quantile(alpha) * _error(side)
    return moments.lower(side, alpha)


def upper(rate: Rate, group: Group, alpha: float, kind: Kind | None = None) -> float:
    """Return a number that the utility is above with probability alpha at most."""
    kind = kind or group.kind(rate)
    if kind == "exact":
        return shares.upper(group.shares(rate)[1], alpha)
    if group.people < 2:
        return 1.0
    if kind == "betting":
        return 1 - betting.lower(group.games(rate).high, alpha)
    side = group.samples(rate)[1]
    if kind == "normal":
        return side.value + _quantile(alpha) * _error(side)
    return moments.upper(side, alpha)


def lower_difference(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    """Return a number that first minus second is below with probability alpha at most."""
    kinds = {first.kind(rate), second.kind(rate)}
    if min(first.people, second.people) < 2 and kinds != {"exact"}:
        return -1.0
    if kinds == {"betting", "moments"} and max(first.people, second.people) <= TOGETHER:
        kinds = {"betting"}
    if len(kinds) > 1:
        # The larger group's end is near its estimate anyway, and gets the smaller part.
        share = min(max(second.people / (first.people + second.people), 0.05), 0.95)
        return lower(rate, first, share * alpha) - upper(rate, second, (1 - share) * alpha)
    kind = next(iter(kinds))
    if kind == "exact":
        return shares.lower_difference(first.shares(rate)[0], second.shares(rate)[1], alpha)
    if kind == "betting":
        return _bet(rate, first, second, alpha)
    one, two = first.samples(rate)[0], second.samples(rate)[1]
    if kind == "normal":
        return one.value - two.value - _quantile(alpha) * float(np.hypot(_error(one), _error(two)))
    return moments.lower_difference(one, two, alpha)


def _bet(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    each = betting.BOX_SHARE * alpha / 4
    # One order is enough for where the two groups lie.
    ranges = []
    for group in (first, second):
        low, high = (betting.lower(game, each, orders=1) for game in group.games(rate))
        ranges.append((low, 1 - high))
    if any(low > high for low, high in ranges):
        return -1.0
    rest = (1 - betting.BOX_SHARE) * alpha
    one, two = (group.games(rate) for group in (first, second))
    # Both need as many orders.
    count = min(len(one.low.part), len(two.high.part))
    games = [betting.Game(*(part[:count] for part in game)) for game in (one.low, two.high)]
    return betting.lower_difference(games[0], games[1], ranges[0], ranges[1], rest)


def _quantile(alpha: float) -> float:
    return float(-ndtri(alpha))


def _error(side: moments.Sample) -> float:
    """Return the standard error of the estimate."""
    level = float(side.raw[0, 1])
    if level <= 0:
        return 1.0
    variance = moments.central(side.raw, 0.0 if side.mean else side.value)[0]
    return float((variance / (side.n - 1)) ** 0.5 / level)


def count_shares(rate: Rate, total: Sums, trusted: bool) -> tuple[Share, Share]:
    """Return the shares that bound a utility, where every value is 0 or 1.

    A rejected person's outcome is known if it is trusted and may be either else; an accepted
    person's that is not known yet may be either. Who may or may not be counted is, if that makes
    the share worse.
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
