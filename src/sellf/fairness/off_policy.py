"""Bounds on the disparity of a policy from decisions that other policies made.

A person met at time t belongs to a cell c, is predicted to have a good outcome with probability f,
and has the outcome revealed with probability b, all known before the decision. With A for
"revealed" and Y for the outcome,

    e = A (Y - f) / b        has the mean  p - f,

however b was chosen. Hence Q_c = sum(f + e) over a cell estimates q_c, the number of good outcomes
among the people met in it, from which a policy's utilities are computed. For any direction L over
cells that was fixed before these people were met, and a fixed stake s,

    exp(s sum L (e - E e) - sum psi(s |L| m) e^2 / m^2),    m = max(f, 1 - f) / b,
    psi(u) = -log(1 - u) - u

is a supermartingale that starts at 1 (Fan, Grama and Liu 2015, lemma 4.1; Howard, Ramdas, McAuliffe
and Sekhon 2021). By Ville's inequality, the probability that L (Q - q) ever exceeds
(log(1 / alpha) + sum psi ...) / s is therefore at most alpha, although probabilities and
predictions depend on the past.

The evaluated policy may have been chosen using all of these outcomes. Its disparity changes with q
along a direction of its own. This direction is the sum of a direction that was fixed in advance,
for the policy that was expected, and a remainder. The remainder is bounded cell by cell, for all
policies at once, and contributes little if the two policies are similar.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sellf.fairness.notions import Rate

Floats: TypeAlias = NDArray[np.float64]

PAIRS, GROUPS = 0.85, 0.05
"""Shares of delta for differences between two groups and for single groups; cells have the rest."""
LEANS = 0.9
"""Share of a pair's delta for the side on which the difference is expected to be large."""
TINY = 1e-12
"""Replaces a probability of 0 in a denominator."""
LARGEST_STAKE = 0.8
"""Largest planned value of s |L| m; at 1 the bound is infinite."""


class Directions(NamedTuple):
    """Directions over cells and a stake for each, fixed before the first person is met."""

    utility: Floats
    """(rates, cells), derivative of a group's utility in the good outcomes of a cell."""
    among: Floats
    """(rates, cells), derivative of its denominator, relative to the denominator."""
    pair: Floats
    """(rates, pairs), stakes on differences between two groups."""
    single: Floats
    """(2, rates, groups), stakes on a group's utility and on its denominator."""
    alone: Floats
    """(cells,), stakes on single cells."""
    leans: Floats
    """(rates, pairs), 1 where the first group of a pair is expected to be higher, else -1."""


class Sums(NamedTuple):
    """Sums over the people met."""

    people: Floats
    """(cells,), the number of people met."""
    positive: Floats
    """(cells,), the estimated number of good outcomes, Q."""
    square: Floats
    """(cells,), the sum of e^2."""
    pair: Floats
    single: Floats
    alone: Floats
    """`pair`, `single` and `alone`: sums of psi for the stakes of `Directions`."""


class Groups(NamedTuple):
    """The groups that a notion compares, and their cells."""

    rates: tuple[Rate, ...]
    group: NDArray[np.int64]
    """(cells,), the group of each cell."""
    number: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of groups."""
        return list(combinations(range(self.number), 2))


@dataclass(frozen=True)
class Bound:
    """Estimate of the disparity of a policy, with lower and upper bounds."""

    estimate: float
    low: float
    high: float
    delta: float
    """Failure probability of the bounds."""
    people: int
    """Number of people met."""


class Expected(NamedTuple):
    """Expectations by cell at the time when directions are fixed."""

    chance: Floats
    """Probability of a favourable decision under the policy to be evaluated."""
    label: Floats
    """Probability of a good outcome."""
    people: Floats
    """Number of people who will be met."""
    reveal: Floats
    """Probability that their outcome will be revealed."""
    least: Floats
    """Lower limit of that probability."""
    weight: Floats
    """Weight of each of these people."""
    tempting: Floats
    """Probability of a favourable decision under an unconstrained policy, whose disparity shows on
    which side the difference is expected to be large."""


def directions(who: Groups, expected: Expected, delta: float) -> Directions:
    """Return directions and stakes for the policy that is expected to be evaluated.

    Args:
        who: the groups and the rates that are compared.
        expected: expectations about that policy and the people to be met.
        delta: failure probability of the bound.
    """
    label = np.clip(expected.label, 1e-3, 1 - 1e-3)
    counted, bets = expected.people * expected.weight, _Bets(expected, label)
    rows = [moves(who, rate, expected.chance, label * counted, counted) for rate in who.rates]
    free = [
        moves(who, rate, expected.tempting, label * counted, counted).value for rate in who.rates
    ]
    utility = np.stack([row.utility * expected.weight for row in rows])
    among = np.stack([row.among * expected.weight for row in rows])
    shares = Shares(who, delta)
    pair, leans = np.ones((2, len(who.rates), max(1, len(who.pairs))))
    single = np.ones((2, len(who.rates), who.number))
    for r in range(len(rows)):
        for p, (one, other) in enumerate(who.pairs):
            leans[r, p] = 1.0 if free[r][one] >= free[r][other] else -1.0
            own = (who.group == one) | (who.group == other)
            pair[r, p] = bets.stake(utility[r] * own, shares.pair * LEANS)
        for g in range(who.number):
            own = who.group == g
            single[0, r, g] = bets.stake(utility[r] * own, shares.single)
            single[1, r, g] = bets.stake(among[r] * own, shares.single)
    alone = [bets.stake(unit, shares.alone) for unit in np.eye(len(label))]
    return Directions(utility, among, pair, single, np.array(alone), leans)


class Shares(NamedTuple):
    """Division of delta among the parts of the bound."""

    who: Groups
    delta: float

    @property
    def pair(self) -> float:
        """The share of both sides of a difference between two groups."""
        return PAIRS * self.delta / (len(self.who.rates) * max(1, len(self.who.pairs)))

    @property
    def single(self) -> float:
        """The share of one side of a group's utility, or of its denominator."""
        return GROUPS * self.delta / (4 * len(self.who.rates) * self.who.number)

    @property
    def alone(self) -> float:
        """The share of one side of a cell."""
        return (1 - PAIRS - GROUPS) * self.delta / (2 * len(self.who.group))


class Moves(NamedTuple):
    """A rate's value by group, and its derivatives in the good outcomes of cells."""

    value: Floats
    utility: Floats
    among: Floats


def moves(who: Groups, rate: Rate, chance: Floats, positive: Floats, people: Floats) -> Moves:
    """Return a rate of a policy and its derivatives; NaN for a group with an empty denominator.

    Args:
        who: the groups.
        rate: the rate.
        chance: probability of a favourable decision, by cell.
        positive: number of good outcomes, by cell.
        people: number of people, by cell.
    """
    (above, level), (below, floor) = (sums.by_label(chance) for sums in rate.sums)
    over = np.bincount(who.group, above * positive + level * people, who.number)
    under = np.bincount(who.group, below * positive + floor * people, who.number)
    under = np.where(under > 0, under, np.nan)
    value = over / under
    share = 1 / under[who.group]
    utility = (above - value[who.group] * below) * share
    return Moves(value, np.nan_to_num(utility), np.nan_to_num(below * share + 0 * utility))


class _Bets(NamedTuple):
    """Expectations from which stakes are chosen."""

    expected: Expected
    label: Floats

    def stake(self, weights: Floats, alpha: float) -> float:
        """Return the stake that gives the narrowest bound under the expectations."""
        some, weights = weights != 0, np.abs(weights[weights != 0])
        if not some.any():
            return 1.0
        label, reveal = self.label[some], np.maximum(self.expected.reveal[some], TINY)
        far = np.maximum(label, 1 - label)
        square = self.expected.people[some] * label * (1 - label) / reveal
        largest = LARGEST_STAKE / (weights * far / self.expected.least[some]).max()
        tries = largest * np.geomspace(1e-3, 1, 61)
        reach = far / reveal
        lost = psi(tries[:, None] * (weights * reach)[None]) @ (square / reach**2)
        return float(tries[((np.log(1 / alpha) + lost) / tries).argmin()])


def psi(stake: Floats) -> Floats:
    """Return -log(1 - u) - u; infinite for u of 1 or more."""
    inside = np.minimum(stake, 1 - 1e-9)
    return np.where(stake < 1, -np.log1p(-inside) - inside, np.inf)


def gather(
    who: Groups,
    fixed: Directions,
    cell: NDArray[np.int64],
    predicted: Floats,
    reveal: Floats,
    label: NDArray[np.int64],
) -> Sums:
    """Return the sums over people met since the directions were fixed.

    Args:
        who: the groups.
        fixed: the directions.
        cell: the cell of each person.
        predicted: f, based on what was known before the decision.
        reveal: b, the probability that the outcome would be revealed.
        label: 1 or 0 where it was revealed, -1 where it was not.
    """
    cells = len(who.group)
    reach = np.maximum(predicted, 1 - predicted) / reveal
    error = np.where(label >= 0, (label - predicted) / reveal, 0.0)
    square, group = error**2, who.group[cell]

    def penalty(stakes: Floats, own: NDArray[np.bool_]) -> float:
        found = psi(stakes[cell[own]] * reach[own])
        # Everyone counts, revealed or not: if a stake could have been lost, the bound is infinite.
        return (
            float(found @ (square[own] / reach[own] ** 2)) if np.isfinite(found).all() else np.inf
        )

    pair, single = np.zeros(fixed.pair.shape), np.zeros(fixed.single.shape)
    for r in range(len(who.rates)):
        for p, (one, other) in enumerate(who.pairs):
            own = (group == one) | (group == other)
            pair[r, p] = penalty(fixed.pair[r, p] * np.abs(fixed.utility[r]), own)
        for g in range(who.number):
            for k, weights in enumerate((fixed.utility[r], fixed.among[r])):
                single[k, r, g] = penalty(fixed.single[k, r, g] * np.abs(weights), group == g)
    each = psi(fixed.alone[cell] * reach)
    lost = np.bincount(cell, ~np.isfinite(each), cells) > 0
    alone = np.bincount(cell, np.where(np.isfinite(each), each, 0) * square / reach**2, cells)
    return Sums(
        np.bincount(cell, minlength=cells).astype(np.float64),
        np.asarray(np.bincount(cell, predicted + error, cells), np.float64),
        np.asarray(np.bincount(cell, square, cells), np.float64),
        pair,
        single,
        np.where(lost, np.inf, alone),
    )


class _Half(NamedTuple):
    """Half-widths of the bounds along fixed directions."""

    pair: Floats
    """(2, rates, pairs): the side on which the first group may be higher, then the other side."""
    single: Floats
    alone: Floats


def _halves(who: Groups, fixed: Directions, sums: Sums, delta: float) -> _Half:
    shares = Shares(who, delta)
    up = np.where(fixed.leans > 0, LEANS, 1 - LEANS) * shares.pair
    logs = -np.log(np.stack([up, shares.pair - up]))
    return _Half(
        (logs + sums.pair) / fixed.pair,
        (-np.log(shares.single) + sums.single) / fixed.single,
        # A cell in which nobody was met has no error.
        np.where(sums.people > 0, (-np.log(shares.alone) + sums.alone) / fixed.alone, 0.0),
    )


def bound(
    who: Groups,
    fixed: Directions,
    sums: Sums,
    chance: Floats,
    delta: float,
    weight: Floats | None = None,
) -> Bound:
    """Return bounds on the disparity of a policy on the people met.

    Args:
        who: the groups.
        fixed: the directions.
        sums: the sums over the people met, from `gather`.
        chance: probability of a favourable decision, by cell; it may depend on the same outcomes.
        delta: failure probability, the one for which the directions were fixed.
        weight: weight of each person in a cell; 1 by default.
    """
    weight = np.ones(len(who.group)) if weight is None else weight
    half = _halves(who, fixed, sums, delta)
    estimate = low = high = 0.0
    for r, rate in enumerate(who.rates):
        row = moves(who, rate, chance, weight * sums.positive, weight * sums.people)
        row = row._replace(utility=row.utility * weight, among=row.among * weight)
        if np.isnan(row.value).any():
            return Bound(float("nan"), 0.0, 1.0, delta, int(sums.people.sum()))
        groups = [_along(who, fixed, sums, half, row, r, g) for g in range(who.number)]
        for p, (one, other) in enumerate(who.pairs):
            apart = float(row.value[one] - row.value[other])
            scale = (groups[one].scale + groups[other].scale) / 2
            rest = sum(
                _part(groups[g].scale - scale, half.single[0, r, g]) + groups[g].rest
                for g in (one, other)
            )
            # If the estimate is too low, the difference is higher, and vice versa; for a direction
            # opposite to the fixed one, the two sides are exchanged.
            up, down = half.pair[:, r, p] if scale >= 0 else half.pair[::-1, r, p]
            above = apart + _part(scale, up) + rest
            below = apart - _part(scale, down) - rest
            if np.isnan(above + rest) or np.isnan(below):
                above, below = np.inf, -np.inf
            estimate = max(estimate, abs(apart))
            low, high = max(low, below, -above), max(high, above, -below)
    return Bound(estimate, low, min(1.0, high), delta, int(sums.people.sum()))


class _Along(NamedTuple):
    """A group's direction: the coefficient of the fixed one, and a bound on the remainder."""

    scale: float
    rest: float


def _along(
    who: Groups, fixed: Directions, sums: Sums, half: _Half, row: Moves, r: int, g: int
) -> _Along:
    """Compare a group's direction with the fixed one.

    mu(q) - mu(Q) is exactly L (q - Q) D(Q) / D(q), with L evaluated at Q. The difference between
    the denominators D(q) and D(Q) is bounded in the same way, and scales the whole error along L.
    """
    own = who.group == g
    known = np.stack([fixed.utility[r, own], fixed.among[r, own]], axis=1)
    noise, cells = np.sqrt(sums.square[own] + 1e-12), half.alone[own]
    (scale, share), rest = _split(row.utility[own], known, noise, cells)
    rest += _part(share, half.single[1, r, g])
    most = _part(scale, half.single[0, r, g]) + rest
    parts, unfit = _split(row.among[own], known, noise, cells)
    off = unfit + sum(_part(part, half.single[k, r, g]) for k, part in enumerate(parts))
    return _Along(scale, rest + _part(most, off / (1 - off) if off < 1 else np.inf))


def _part(weight: float, half: float) -> float:
    """Return |weight| times the half-width; 0 if either is 0, even if the other is infinite."""
    return abs(float(weight)) * float(half) if weight and half else 0.0


def _split(wanted: Floats, known: Floats, noise: Floats, half: Floats) -> tuple[Floats, float]:
    """Return the coefficients of known directions (columns) in another, and a bound on the rest.

    The rest is bounded cell by cell.
    """
    if not wanted.any():
        return np.zeros(known.shape[1]), 0.0
    scaled = known * noise[:, None]
    parts = np.asarray(np.linalg.lstsq(scaled, wanted * noise, rcond=1e-9)[0], np.float64)
    left = np.abs(wanted - known @ parts)
    left[left < 1e-9 * np.abs(wanted).max()] = 0.0
    return parts, float((left[left > 0] * half[left > 0]).sum())
