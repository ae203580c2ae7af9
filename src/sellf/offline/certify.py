"""Tests of candidate policies on held-out people, in an order that is fixed beforehand.

The disparity is tested from the safest to the boldest candidate and the reward from the boldest to
the safest, each up to the first failure. With probability 1 - delta no candidate that passes
exceeds the tolerance, and with probability 1 - delta none earns too little (fixed-sequence
testing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sellf.fairness.notions import Rate
from sellf.logs.person import Floats
from sellf.offline import bounds
from sellf.offline.bounds import Part
from sellf.offline.history import History
from sellf.offline.learn import Candidate
from sellf.offline.lines import Chance, Target, chance_of, reward, utility
from sellf.offline.whatif import NOW, PROPOSED, negative


@dataclass(frozen=True)
class Tested:
    """A candidate with its bounds from held-out people."""

    candidate: Candidate
    disparity: float | None
    """Upper bound on the disparity with confidence 1 - delta; None: a safer candidate failed."""
    reward: float | None
    """Lower bound on the reward minus the required reward, with confidence 1 - delta; None: a
    bolder candidate failed."""
    fair: bool
    """Whether this candidate and all safer ones are within the tolerance."""
    earns: bool
    """Whether this candidate and all bolder ones earn the required reward."""


def test(
    path: Sequence[Candidate],
    rest: History,
    columns: dict[str, Any],
    rate: Rate,
    cost: float,
    omega: float,
    delta: float,
    share: float,
) -> list[Tested]:
    """Return every candidate with its bounds, in the order of `path`."""

    # The probabilities of one candidate at a time: of a large log, those of all need much memory.
    def high(one: Candidate) -> float:
        return _disparity(rest, rate, one.policy.probability(columns), delta)

    def low(one: Candidate) -> float:
        return _gain(rest, one.policy.probability(columns), cost, delta, share)

    highs = _until(high, lambda value: value <= omega, path)
    lows = _until(low, lambda value: value >= 0, path[::-1])[::-1]
    return [
        Tested(one, high, low, high is not None and high <= omega, low is not None and low >= 0)
        for one, high, low in zip(path, highs, lows, strict=True)
    ]


def _until(
    bound: Callable[[Candidate], float],
    passes: Callable[[float], bool],
    path: Sequence[Candidate],
) -> list[float | None]:
    """Return the bounds up to the first that does not pass, and None after it."""
    found: list[float | None] = []
    for one in path:
        value = bound(one)
        found.append(value)
        if not passes(value):
            break
    return [*found, *[None] * (len(path) - len(found))]


def _disparity(rest: History, rate: Rate, chance: Floats, delta: float) -> float:
    """Return an upper bound on the disparity with confidence 1 - delta.

    Each difference of two groups is bounded with error probability delta. The disparity is one of
    these differences, and which one does not depend on the log. The largest bound therefore falls
    below the disparity with probability delta at most.
    """
    target = utility(rate, Chance(chance))
    parts = [Part(1.0, sample, target, PROPOSED) for _, sample in rest.groups]
    ends = []
    for first, second in combinations(parts, 2):
        low, high = bounds.both([first, negative(second)], delta)
        ends += [-low, high]
    return float(min(max(ends), 1.0))


def _gain(rest: History, chance: Floats, cost: float, delta: float, share: float) -> float:
    """Return a lower bound on the reward minus the required reward, with confidence 1 - delta."""
    sample = rest.everyone
    now = reward(chance_of(rest.current), cost)
    asked = Target(now.of * share, None, shared=True)
    parts = [
        Part(1.0, sample, reward(Chance(chance), cost), PROPOSED),
        Part(-1.0, sample, asked, NOW),
    ]
    return float(max(bounds.lower(parts, delta), -2.0))
