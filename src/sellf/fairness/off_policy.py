"""The disparity of a policy that did not decide, bounded from the decisions of others.

Somebody met at time t belongs to a cell c, is predicted to be good with chance f, and is looked at
(the outcome is revealed) with chance b, all known before the decision. With A for "revealed" and Y
for the outcome,

    e = A (Y - f) / b        has the mean  p - f,

whoever chose b, and whatever b was chosen by. So Q_c = sum(f + e) over a cell estimates the number
of good outcomes among the people met in it, q_c, of which a policy's utilities are made. For any
direction L over cells that was fixed before these people were met, and a fixed stake s,

    exp(s sum L (e - E e) - sum psi(s |L| m) e^2 / m^2),    m = max(f, 1 - f) / b,
    psi(u) = -log(1 - u) - u

is a supermartingale that starts at 1 (Fan, Grama and Liu 2015, lemma 4.1; Howard, Ramdas, McAuliffe
and Sekhon 2021), so that by Ville's inequality L (Q - q) never exceeds (log(1 / alpha) + sum psi
...) / s with a chance above alpha, at any time, although chances and predictions were chosen by
what came before.

The policy that is asked about may have been chosen by all of these outcomes. Its disparity moves
with q along a direction of its own. That is a direction fixed in advance, for a policy that was
expected, and a remainder; the remainder is bounded cell by cell, for all policies at once, and
costs little if the two policies are alike.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sellf.fairness.notions import Rate

Floats: TypeAlias = NDArray[np.float64]

PAIRS, GROUPS = 0.85, 0.05
"""The parts of delta for differences of two groups and for single groups; cells have the rest."""
LEANS = 0.9
"""The part of a pair's for the side on which the difference is expected to be large."""
TINY = 1e-12
"""A chance of 0, to divide by."""
LARGEST_STAKE = 0.8
"""The largest s |L| m that is planned for: at 1 it is lost."""


class Directions(NamedTuple):
    """What is fixed before the first of the people: directions over cells, and a stake for each."""

    utility: Floats
    """(rates, cells), how a group's utility moves with the good outcomes of a cell."""
    among: Floats
    """(rates, cells), how the sum below the line does, as a share of it."""
    pair: Floats
    """(rates, pairs), the stake on the difference of two groups ..."""
    single: Floats
    """(2, rates, groups), ... on a group's utility and on its sum below the line ..."""
    alone: Floats
    """(cells,), ... and on each cell."""
    leans: Floats
    """(rates, pairs), 1 where the first group of a pair is expected to be above, else -1."""


class Sums(NamedTuple):
    """What the people met come to."""

    people: Floats
    """(cells,)"""
    positive: Floats
    """(cells,), the estimated number of good outcomes, Q."""
    square: Floats
    """(cells,), the sum of e^2."""
    pair: Floats
    single: Floats
    alone: Floats
    """The sums of psi that belong to the stakes of `Directions`."""


class Groups(NamedTuple):
    """Whom a notion compares, by cells."""

    rates: tuple[Rate, ...]
    group: NDArray[np.int64]
    """(cells,), the group of each cell."""
    number: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every two groups."""
        return list(combinations(range(self.number), 2))


@dataclass(frozen=True)
class Bound:
    """Between what the disparity of a policy lies."""

    estimate: float
    low: float
    high: float
    delta: float
    """The chance with which any of this may fail."""
    people: int
    """How many were met."""


class Expected(NamedTuple):
    """What is expected, by cell, when directions are fixed."""

    chance: Floats
    """Of a favourable decision, under the policy to be asked about."""
    label: Floats
    """The chance of a good outcome."""
    people: Floats
    """How many will be met."""
    reveal: Floats
    """With which chance their outcome will be revealed ..."""
    least: Floats
    """... and at least."""
    weight: Floats
    """For how many each of them will count."""
    tempting: Floats
    """The chance of a favourable decision under a policy that does not care: whose disparity tells
    on which side there is more to lose."""


def directions(who: Groups, expected: Expected, delta: float) -> Directions:
    """Return what to bet on, for a policy that is expected to be asked about.

    Args:
        who: the groups, and what is compared.
        expected: of that policy, and of the people to be met.
        delta: the chance with which the bound may fail.
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
    """How delta is divided."""

    who: Groups
    delta: float

    @property
    def pair(self) -> float:
        """For both sides of a difference."""
        return PAIRS * self.delta / (len(self.who.rates) * max(1, len(self.who.pairs)))

    @property
    def single(self) -> float:
        """For one side of a group's utility, or of its sum below the line."""
        return GROUPS * self.delta / (4 * len(self.who.rates) * self.who.number)

    @property
    def alone(self) -> float:
        """For one side of a cell."""
        return (1 - PAIRS - GROUPS) * self.delta / (2 * len(self.who.group))


class Moves(NamedTuple):
    """A rate's value by group, and how it moves with the good outcomes of cells."""

    value: Floats
    utility: Floats
    among: Floats


def moves(who: Groups, rate: Rate, chance: Floats, positive: Floats, people: Floats) -> Moves:
    """Return a rate of a policy; NaN for a group in which it speaks of nobody.

    Args:
        who: the groups.
        rate: which.
        chance: of a favourable decision, by cell.
        positive: good outcomes by cell.
        people: by cell.
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
    """Who will be met, as stakes see them."""

    expected: Expected
    label: Floats

    def stake(self, weights: Floats, alpha: float) -> float:
        """Return the stake with which the bound will be narrowest, if all is as expected."""
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
    """Return -log(1 - u) - u; infinite from 1 on."""
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
        cell: of each person.
        predicted: f, from what was known before they were decided about.
        reveal: b, the chance with which their outcome was to be revealed.
        label: 1 or 0 where it was, -1 where not.
    """
    cells = len(who.group)
    reach = np.maximum(predicted, 1 - predicted) / reveal
    error = np.where(label >= 0, (label - predicted) / reveal, 0.0)
    square, group = error**2, who.group[cell]

    def penalty(stakes: Floats, own: NDArray[np.bool_]) -> float:
        found = psi(stakes[cell[own]] * reach[own])
        # Whoever could have been revealed counts: a stake that may be lost is lost.
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
    """How far estimates along fixed directions may be off."""

    pair: Floats
    """(2, rates, pairs), first where the first group may be higher, then where lower."""
    single: Floats
    alone: Floats


def _halves(who: Groups, fixed: Directions, sums: Sums, delta: float) -> _Half:
    shares = Shares(who, delta)
    up = np.where(fixed.leans > 0, LEANS, 1 - LEANS) * shares.pair
    logs = -np.log(np.stack([up, shares.pair - up]))
    return _Half(
        (logs + sums.pair) / fixed.pair,
        (-np.log(shares.single) + sums.single) / fixed.single,
        # Where nobody was met there is nothing to be wrong about.
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
    """Return between what the disparity of a policy on the people met lies.

    Args:
        who: the groups.
        fixed: the directions.
        sums: what the people met came to.
        chance: of a favourable decision, by cell; it may have been chosen by the same outcomes.
        delta: the chance to fail, as the directions were fixed for.
        weight: for how many each of the people in a cell counts; 1 if not given.
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
            # Where the estimate may be too low the difference may be higher, and the reverse; a
            # direction opposite to the fixed one has its sides exchanged.
            up, down = half.pair[:, r, p] if scale >= 0 else half.pair[::-1, r, p]
            above = apart + _part(scale, up) + rest
            below = apart - _part(scale, down) - rest
            if np.isnan(above + rest) or np.isnan(below):
                above, below = np.inf, -np.inf
            estimate = max(estimate, abs(apart))
            low, high = max(low, below, -above), max(high, above, -below)
    return Bound(estimate, low, min(1.0, high), delta, int(sums.people.sum()))


class _Along(NamedTuple):
    """A group's direction: so much of the one that was fixed, and what all else may hide."""

    scale: float
    rest: float


def _along(
    who: Groups, fixed: Directions, sums: Sums, half: _Half, row: Moves, r: int, g: int
) -> _Along:
    """Compare a group's direction with the fixed one.

    mu(q) - mu(Q) is exactly L (q - Q) D(Q) / D(q), with L at Q. How far D(q), the sum below the
    line, may be from D(Q) is bounded in the same way, and counts for all that L may be off.
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
    """Return what a share of a direction may be off; 0 if either is, however large the other."""
    return abs(float(weight)) * float(half) if weight and half else 0.0


def _split(wanted: Floats, known: Floats, noise: Floats, half: Floats) -> tuple[Floats, float]:
    """Return how much of known directions (columns) there is in another, and what is left.

    What is left is bounded cell by cell.
    """
    if not wanted.any():
        return np.zeros(known.shape[1]), 0.0
    scaled = known * noise[:, None]
    parts = np.asarray(np.linalg.lstsq(scaled, wanted * noise, rcond=1e-9)[0], np.float64)
    left = np.abs(wanted - known @ parts)
    left[left < 1e-9 * np.abs(wanted).max()] = 0.0
    return parts, float((left[left > 0] * half[left > 0]).sum())
