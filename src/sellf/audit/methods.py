"""Interval methods, as a table: what each promises, whom it judges, and what it says.

A method bounds a rate of one group from below and from above, and the difference and the ratio of
two groups' from below, each with a chance to miss that it is given. Which one judges a group
depends on how many people there are, on what the log holds and on the pilot, never on what is then
estimated: the first of the table that takes it does. To add one, add an entry to `METHODS`, or
call `add`.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from scipy.special import ndtri

from sellf.audit import betting, moments, ratios, shares, weighted
from sellf.audit.games import Game
from sellf.audit.group import PILOTED, Group
from sellf.fairness.notions import Rate

Kind: TypeAlias = str
"""The name of an entry of `METHODS`."""

FEW = PILOTED
"""Groups with fewer people are bet on row by row,"""
FEW_DECISIONS = 5_000
"""and with fewer than these where the decision itself is part of what is measured."""
BEARABLE = 0.12
"""The largest reach of scores for fixed stakes, as a multiple of the root of a group's size."""
WORTHWHILE, WORTHWHILE_RATIO = 1.45, 1.3
"""The widest that fixed stakes may promise to be, as a multiple of the normal width; betting is no
wider than 1.5 to 1.8. A ratio turns out wider than promised."""
ALWAYS = 200_000
"""Groups with more people are never bet on row by row."""
TOGETHER = 50_000
"""Up to so many people are bet on together with a group that is bet on row by row."""


class Takes(Protocol):
    """Whether a method judges a group, if none before it does."""

    def __call__(self, rate: Rate, group: Group) -> bool:
        """Say so."""
        ...


class Bound(Protocol):
    """A number that a group's rate is beyond with probability alpha at most."""

    def __call__(self, rate: Rate, group: Group, alpha: float) -> float:
        """Return it."""
        ...


class Difference(Protocol):
    """A number that first minus second is below with probability alpha at most."""

    def __call__(self, rate: Rate, first: Group, second: Group, alpha: float) -> float:
        """Return it."""
        ...


@dataclass(frozen=True)
class Method:
    """An interval method."""

    words: str
    finite_sample: bool
    """Whether what it promises holds at every sample size."""
    takes: Takes
    lower: Bound
    upper: Bound
    lower_difference: Difference
    lower_ratio: Difference | None = None
    """The same for first over second; None: the groups' own ends are divided."""
    least: int = 2
    """With fewer people nothing is said."""


def add(name: Kind, method: Method) -> None:
    """Add a method to the table, before all others."""
    others = dict(METHODS)
    METHODS.clear()
    METHODS.update({name: method} | others)


def kind(rate: Rate, group: Group) -> Kind:
    """Return the name of the method that judges a group."""
    key = ("kind", rate)
    if key not in group.made:
        group.made[key] = next(name for name, one in METHODS.items() if one.takes(rate, group))
    return group.made[key]


def interval(rate: Rate, group: Group, alpha: float) -> tuple[float, float]:
    """Return both ends of a group's rate; together they miss with probability alpha at most."""
    method = METHODS[kind(rate, group)]
    low = max(_lower(method, rate, group, alpha / 2), 0.0)
    high = min(_upper(method, rate, group, alpha / 2), 1.0)
    # Ends that crossed, or lie beyond what is possible, have probability alpha at most; then
    # nothing is claimed.
    return (low, high) if low <= high else (0.0, 1.0)


def lower_difference(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    """Return a number that first minus second is below with probability alpha at most."""
    both = (first, second)
    kinds = {kind(rate, group) for group in both}
    if any(group.people < METHODS[kind(rate, group)].least for group in both):
        return -1.0
    if kinds == {"betting", "moments"} and max(first.people, second.people) <= TOGETHER:
        kinds = {"betting"}
    if len(kinds) > 1:
        # The larger group's end is near its estimate anyway, and gets the smaller part.
        share = min(max(second.people / (first.people + second.people), 0.05), 0.95)
        one, two = (METHODS[kind(rate, group)] for group in both)
        low = _lower(one, rate, first, share * alpha)
        return low - _upper(two, rate, second, (1 - share) * alpha)
    return METHODS[next(iter(kinds))].lower_difference(rate, first, second, alpha)


def lower_ratio(
    rate: Rate, first: Group, second: Group, alpha: float, *, apart: bool = False
) -> float:
    """Return a number that first over second is below with probability alpha at most.

    Args:
        rate: what is measured.
        first: the group above the line.
        second: the one below it.
        alpha: the chance to miss.
        apart: whether the two are not independent, so that only their own ends are used.
    """
    both = (first, second)
    kinds = {kind(rate, group) for group in both}
    if any(group.people < METHODS[kind(rate, group)].least for group in both):
        return 0.0
    if kinds == {"betting", "moments"} and max(first.people, second.people) <= TOGETHER:
        kinds = {"betting"}
    joint = METHODS[next(iter(kinds))].lower_ratio
    if len(kinds) > 1 or joint is None or apart:
        one, two = (METHODS[kind(rate, group)] for group in both)
        low = _lower(one, rate, first, alpha / 2)
        return ratios.divided(low, min(_upper(two, rate, second, alpha / 2), 1.0))
    return joint(rate, first, second, alpha)


def _lower(method: Method, rate: Rate, group: Group, alpha: float) -> float:
    return method.lower(rate, group, alpha) if group.people >= method.least else 0.0


def _upper(method: Method, rate: Rate, group: Group, alpha: float) -> float:
    return method.upper(rate, group, alpha) if group.people >= method.least else 1.0


def _counted(rate: Rate, group: Group) -> bool:
    """Whether every value is 0 or 1, for better or worse."""
    one_row = group.person is None or group.person.unit is None
    return one_row and (not rate.hides or group.trusted or not (group.known or group.estimated))


def _few(rate: Rate, group: Group) -> bool:
    """Whether betting row by row is narrower than fixed stakes."""
    if group.people < (FEW_DECISIONS if rate.moves else FEW):
        return True
    if group.people > ALWAYS:
        return False
    fitted = group.fitted(rate)
    if not fitted.predictable:
        return fitted.reach > BEARABLE * group.people**0.5
    most = WORTHWHILE if rate.is_mean else WORTHWHILE_RATIO
    return fitted.width(rate) > most * group.prepared.normal_width(rate)


def _bet(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    ranges = _ranges(rate, first, second, alpha)
    if any(low > high for low, high in ranges):
        return -1.0
    one, two = _joint_games(rate, first, second)
    return betting.lower_difference(one, two, *ranges, (1 - betting.BOX_SHARE) * alpha)


def _bet_ratio(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    ranges = _ranges(rate, first, second, alpha)
    if any(low > high for low, high in ranges):
        return 0.0
    one, two = _joint_games(rate, first, second)
    return ratios.from_games(one, two, ranges, (1 - betting.BOX_SHARE) * alpha)


def _ranges(
    rate: Rate, first: Group, second: Group, alpha: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where the two groups lie, for a part of alpha; one order is enough for that."""
    each = betting.BOX_SHARE * alpha / 4
    found = []
    for group in (first, second):
        low, high = (betting.lower(game, each, orders=1) for game in group.games(rate))
        found.append((low, 1 - high))
    return found[0], found[1]


def _joint_games(rate: Rate, first: Group, second: Group) -> list[Game]:
    """Return the first group's game from below and the second's from above, in as many orders."""
    one, two = (group.games(rate) for group in (first, second))
    count = min(len(one.low.part), len(two.high.part))
    return [Game(*(part[:count] for part in game)) for game in (one.low, two.high)]


def _normal(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    one, two = first.samples(rate)[0], second.samples(rate)[1]
    error = float(np.hypot(_error(one), _error(two)))
    return one.value - two.value - _quantile(alpha) * error - _shift(one) - _shift(two)


def _normal_ratio(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    one, two = first.samples(rate)[0], second.samples(rate)[1]
    first_end, second_end = ((side.value, _error(side)) for side in (one, two))
    return ratios.from_normal(first_end, second_end, _quantile(alpha))


def _normal_end(rate: Rate, group: Group, alpha: float, sign: int) -> float:
    side = group.samples(rate)[0 if sign < 0 else 1]
    return side.value + sign * (_quantile(alpha) * _error(side) + _shift(side))


def _shift(side: moments.Sample) -> float:
    """Return how far outcomes that are not known yet can move an estimate from sums."""
    level = float(side.raw[0, 1])
    return side.shift / level if level > 0 else 1.0


def _quantile(alpha: float) -> float:
    return float(-ndtri(alpha))


def _error(side: moments.Sample) -> float:
    """Return the standard error of the estimate."""
    level = float(side.raw[0, 1])
    if level <= 0:
        return 1.0
    variance = moments.central(side.raw, 0.0 if side.mean else side.value)[0]
    return float((variance / (side.n - 1)) ** 0.5 / level)


def _from_moments(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    return moments.lower_difference(first.samples(rate)[0], second.samples(rate)[1], alpha)


def _moments(words: str, takes: Takes) -> Method:
    return Method(
        words,
        finite_sample=True,
        takes=takes,
        lower=lambda rate, group, alpha: moments.lower(group.samples(rate)[0], alpha),
        upper=lambda rate, group, alpha: moments.upper(group.samples(rate)[1], alpha),
        lower_difference=_from_moments,
        lower_ratio=lambda rate, first, second, alpha: ratios.from_moments(
            first.samples(rate)[0], second.samples(rate)[1], alpha
        ),
    )


def _weighted_end(rate: Rate, group: Group, alpha: float, sign: int) -> float:
    low, low_error, high, high_error = weighted.ends(rate, group)
    value, error = (low, low_error) if sign < 0 else (high, high_error)
    return value + sign * _quantile(alpha) * error


def _weighted_difference(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    one, two = weighted.ends(rate, first), weighted.ends(rate, second)
    error = float(np.hypot(one.low_error, two.high_error))
    return one.low - two.high - _quantile(alpha) * error


def _weighted_ratio(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    one, two = weighted.ends(rate, first), weighted.ends(rate, second)
    ends = (one.low, one.low_error), (two.high, two.high_error)
    return ratios.from_normal(*ends, _quantile(alpha))


METHODS: dict[Kind, Method] = {
    "weighted": Method(
        "weighted means, normal (asymptotic)",
        finite_sample=False,
        takes=lambda rate, group: group.person is not None and group.person.weight is not None,
        lower=lambda rate, group, alpha: _weighted_end(rate, group, alpha, -1),
        upper=lambda rate, group, alpha: _weighted_end(rate, group, alpha, 1),
        lower_difference=_weighted_difference,
        lower_ratio=_weighted_ratio,
    ),
    "exact": Method(
        "exact binomial (finite-sample)",
        finite_sample=True,
        takes=_counted,
        lower=lambda rate, group, alpha: shares.lower(group.shares(rate)[0], alpha),
        upper=lambda rate, group, alpha: shares.upper(group.shares(rate)[1], alpha),
        lower_difference=lambda rate, first, second, alpha: shares.lower_difference(
            first.shares(rate)[0], second.shares(rate)[1], alpha
        ),
        lower_ratio=lambda rate, first, second, alpha: ratios.from_shares(
            first.shares(rate)[0], second.shares(rate)[1], alpha
        ),
        least=0,
    ),
    "normal": Method(
        "cross-fitted AIPW, normal (asymptotic)",
        finite_sample=False,
        takes=lambda rate, group: group.estimated and rate.hides,
        lower=lambda rate, group, alpha: _normal_end(rate, group, alpha, -1),
        upper=lambda rate, group, alpha: _normal_end(rate, group, alpha, 1),
        lower_difference=_normal,
        lower_ratio=_normal_ratio,
    ),
    "sums": _moments("sums alone (finite-sample)", takes=lambda rate, group: group.person is None),
    "betting": Method(
        "betting (finite-sample)",
        finite_sample=True,
        takes=_few,
        lower=lambda rate, group, alpha: betting.lower(group.games(rate).low, alpha),
        upper=lambda rate, group, alpha: 1 - betting.lower(group.games(rate).high, alpha),
        lower_difference=_bet,
        lower_ratio=_bet_ratio,
    ),
    "moments": _moments("fixed stakes (finite-sample)", takes=lambda rate, group: True),
}
"""The methods by name, in the order in which they are asked."""
