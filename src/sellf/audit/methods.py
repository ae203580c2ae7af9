"""The table of interval methods: their guarantees, the groups they judge and their bounds.

A method bounds the rate of one group from below and from above, and the difference and the ratio
of two groups' rates from below, each with a given error probability. Which method judges a group
depends on the number of people, on what the log holds and on the pilot, never on the resulting
estimates: it is the first method in the table that accepts the group. To add a method, add an
entry to `METHODS`, or call `add`.
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
"""Groups with fewer people are judged by betting row by row."""
FEW_DECISIONS = 5_000
"""The same limit where the decision itself is part of the rate."""
BEARABLE = 0.12
"""The largest reach of scores for fixed stakes, as a multiple of the root of a group's size."""
WORTHWHILE, WORTHWHILE_RATIO = 1.45, 1.3
"""The largest predicted width of fixed-stake intervals, as a multiple of the normal width; betting
is no wider than 1.5 to 1.8. A ratio turns out wider than predicted."""
ALWAYS = 200_000
"""Groups with more people are never judged by betting row by row."""
TOGETHER = 50_000
"""The largest group that is bet on jointly with a group that is judged by betting."""


class Takes(Protocol):
    """Whether a method judges a group that no earlier method accepted."""

    def __call__(self, rate: Rate, group: Group) -> bool:
        """Return whether the method accepts the group."""
        ...


class Bound(Protocol):
    """A bound on a group's rate that fails with probability at most alpha."""

    def __call__(self, rate: Rate, group: Group, alpha: float) -> float:
        """Return the bound."""
        ...


class Difference(Protocol):
    """A lower bound on first minus second that fails with probability at most alpha."""

    def __call__(self, rate: Rate, first: Group, second: Group, alpha: float) -> float:
        """Return the bound."""
        ...


@dataclass(frozen=True)
class Method:
    """An interval method."""

    words: str
    finite_sample: bool
    """Whether the guarantee holds at every sample size."""
    takes: Takes
    lower: Bound
    upper: Bound
    lower_difference: Difference
    lower_ratio: Difference | None = None
    """The same for first over second; None: the groups' own bounds are divided."""
    least: int = 2
    """The smallest number of people; with fewer, the bounds are trivial."""


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
    """Return the interval of a group's rate, which misses with probability at most alpha."""
    method = METHODS[kind(rate, group)]
    low = max(_lower(method, rate, group, alpha / 2), 0.0)
    high = min(_upper(method, rate, group, alpha / 2), 1.0)
    # Ends cross, or lie beyond what is possible, with probability at most alpha; then the
    # interval is trivial.
    return (low, high) if low <= high else (0.0, 1.0)


def lower_difference(rate: Rate, first: Group, second: Group, alpha: float) -> float:
    """Return a lower bound on first minus second that fails with probability at most alpha."""
    both = (first, second)
    kinds = {kind(rate, group) for group in both}
    if any(group.people < METHODS[kind(rate, group)].least for group in both):
        return -1.0
    if kinds == {"betting", "moments"} and max(first.people, second.people) <= TOGETHER:
        kinds = {"betting"}
    if len(kinds) > 1:
        # The larger group's bound is near its estimate anyway, and gets the smaller share of alpha.
        share = min(max(second.people / (first.people + second.people), 0.05), 0.95)
        one, two = (METHODS[kind(rate, group)] for group in both)
        low = _lower(one, rate, first, share * alpha)
        return low - _upper(two, rate, second, (1 - share) * alpha)
    return METHODS[next(iter(kinds))].lower_difference(rate, first, second, alpha)


def lower_ratio(
    rate: Rate, first: Group, second: Group, alpha: float, *, apart: bool = False
) -> float:
    """Return a lower bound on first over second that fails with probability at most alpha.

    Args:
        rate: the rate to bound.
        first: the group in the numerator.
        second: the group in the denominator.
        alpha: the error probability.
        apart: whether the two groups are dependent, in which case only their own bounds are used.
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
    """Return whether every value is 0 or 1, with unknown outcomes at their best or worst."""
    one_row = group.person is None or group.person.unit is None
    return one_row and (not rate.hides or group.trusted or not (group.known or group.estimated))


def _few(rate: Rate, group: Group) -> bool:
    """Return whether betting row by row gives narrower intervals than fixed stakes."""
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
    """Return ranges of the two groups' rates, for a share of alpha; one order is enough."""
    each = betting.BOX_SHARE * alpha / 4
    found = []
    for group in (first, second):
        low, high = (betting.lower(game, each, orders=1) for game in group.games(rate))
        found.append((low, 1 - high))
    return found[0], found[1]


def _joint_games(rate: Rate, first: Group, second: Group) -> list[Game]:
    """Return the first group's lower game and the second's upper game, in equally many orders."""
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
"""The methods by name, in the order in which they are tried."""
