"""Bounds on a utility for groups of which only sums are known."""

from typing import NamedTuple

import numpy as np

from sellf.audit.capital import mean_bound
from sellf.audit.moments import Sample
from sellf.audit.scores import extremes
from sellf.fairness.notions import Counts, Rate
from sellf.logs.person import Floats
from sellf.logs.sums import Sums

CONSTANT = np.array([1.0, 0.0, 0.0, 0.0])
SURE = 1e-6
"""The error probability of the auxiliary bounds below, which very many rows determine well."""


def sample(rate: Rate, total: Sums, overlap: float, predicted: bool) -> tuple[Sample, Sample]:
    """Return the moments that bound a utility from both sides, from sums alone.

    Without a score, the prediction for everyone is the share of good outcomes among the group's
    accepted. It comes from the same rows, which moves the score's mean by at most the error of that
    share times the mean of 1 - A / p; both are bounded.

    Args:
        rate: the rate to bound.
        total: the sums of the group over all strata.
        overlap: the smallest propensity used for weighting.
        predicted: whether the log has predictions.
    """
    n, log = float(total.people), float(np.log(1 / SURE))
    most = 1 / overlap
    scored, missed = (
        mean_bound(float(x) / n, 1 + most**3, n, log) ** 0.25
        for x in (total.fourth, total.miss_fourth)
    )
    known = float(total.accepted - total.pending)
    constant = None if predicted else float(total.positive) / max(known, 1.0)
    shift = 0.0
    if constant is not None:
        off = (log / (2 * max(known, 1.0))) ** 0.5 * 1.5
        strong = float(total.people - total.weak)
        shift = min(off, 1.0) * abs(strong - float(total.weight)) / n
    weight, square = float(total.pending_weight) / n, float(total.pending_weight_square) / n
    waiting = weight + (2 * square * log / n) ** 0.5 + most * log / n if weight else 0.0
    share = float(total.pending) / n
    waiting_share = share + (log / (2 * n)) ** 0.5 if share else 0.0
    ends = score_moments(total, constant)
    ends = ends if rate.rises else ends[::-1]
    moves = _moves(rate, waiting, waiting_share)
    made = [
        Sample(
            n,
            _raw(rate, x),
            extremes(rate, most),
            rate.is_mean,
            norms=_norms(rate, x, scored, missed),
            shift=shift + move,
        )
        for x, move in zip(ends, moves, strict=True)
    ]
    return made[0], made[1]


def _raw(rate: Rate, x: "Scored") -> Floats:
    """Return the means of part^i whole^j for i + j <= 2; those of higher powers are not known."""
    # The sums of products of 1, A, A Y and the score.
    products = np.array(
        [
            [x.n, x.accepted, x.positive, x.total],
            [x.accepted, x.accepted, x.positive, x.with_accepted],
            [x.positive, x.positive, x.positive, x.with_positive],
            [x.total, x.with_accepted, x.with_positive, x.square],
        ]
    )
    part, whole = (np.array(_weights(sums)) for sums in rate.sums)
    raw = np.ones((5, 5))
    for i, j, one, two in (
        (1, 0, part, CONSTANT), (2, 0, part, part), (1, 1, part, whole),
        (0, 1, whole, CONSTANT), (0, 2, whole, whole),
    ):  # fmt: skip
        raw[i, j] = one @ products @ two / x.n
    return raw


def _weights(sums: Counts) -> tuple[float, float, float, float]:
    """Return the coefficients of 1, A, A Y and Y."""
    both = sums.accepted_positive - sums.rejected_positive
    return sums.people, sums.accepted, both, sums.rejected_positive


def _norms(rate: Rate, x: "Scored", scored: float, missed: float) -> tuple[float, float]:
    """Return the bounds of `Sample.norms`.

    Args:
        rate: the rate to bound.
        x: the sums of the score.
        scored: a bound on (E s^4)^(1/4).
        missed: a bound on (E (A Y - s)^4)^(1/4).
    """
    # E(mean of n - its mean)^4 <= 3 E x^4 / n^2, and Markov's inequality.
    off = (3 / SURE) ** 0.25 * (max(scored, missed) + 1) / x.n**0.5

    def norm(sums: Counts, *, centred: bool) -> float:
        level, accepted, both, score = _weights(sums)
        # The score enters as s or as A Y - s; the remainder takes only a few values.
        total, bound = (x.total, scored) if score >= 0 else (x.positive - x.total, missed)
        both = both if score >= 0 else both + score
        rest = np.array([level, level + accepted, level + accepted + both])
        if not centred:
            return abs(score) * bound + float(np.abs(rest).max())
        # A variable with two values, minus its mean: at most 0.54 times their distance.
        around = bound + min(abs(total) / x.n + off, 1.0)
        return abs(score) * around + 0.54 * float(np.ptp(rest))

    if rate.is_mean:
        around = norm(rate.of, centred=True)
        return around, around
    less = Counts(*(a - b for a, b in zip(*rate.sums, strict=True)))
    return norm(rate.of, centred=False), norm(less, centred=False)


def _moves(rate: Rate, weight: float, share: float) -> tuple[float, float]:
    """Return how far pending outcomes can move each side if they are good instead of bad.

    A person accepted with probability p contributes d + c / p, which over all candidates is largest
    at 0 or at 1.

    Args:
        rate: the rate to bound.
        weight: the sum of 1 / p over people without an outcome, divided by the number of people.
        share: the share of people without an outcome.
    """
    (_, _, d0, c0), (_, _, d1, c1) = map(_weights, rate.sums)
    ends = [(d0, c0)] if rate.is_mean else [(d0, c0), (d0 - d1, c0 - c1)]
    # 1 / p is at least 1: if c and d have opposite signs, part of d cancels.
    up = [max(c, 0) * weight + max(d + min(c, 0), 0) * share for d, c in ends]
    down = [max(-c, 0) * weight + max(-d - max(c, 0), 0) * share for d, c in ends]
    return max(down), max(up)


class Scored(NamedTuple):
    """Sums of one of the scores of E[Y] and of its products with other variables."""

    n: float
    accepted: float
    positive: float
    total: float
    """The sum of the score x."""
    square: float
    """The sum of x^2."""
    with_positive: float
    """The sum of A Y x."""
    with_accepted: float
    """The sum of A x."""


def score_moments(sums: Sums, constant: float | None) -> tuple[Scored, Scored]:
    """Return the sums of the lower and of the upper score of E[Y].

    Args:
        sums: the sums of one group.
        constant: the prediction for everyone, in place of the log's; None: use the log's.
    """
    n, a, ay = float(sums.people), float(sums.accepted), float(sums.positive)
    if constant is None:
        strong = (sums.score, sums.score_square, sums.score_positive, sums.score_accepted)
    else:
        c, w, ww = constant, sums.weight, sums.weight_square
        wy, wwy = sums.weight_positive, sums.weight_square_positive
        people, accepted = sums.people - sums.weak, sums.accepted - sums.weak_accepted
        positive = sums.positive - sums.weak_positive
        # s = A Y / p + c (1 - A / p), and (A Y)^2 = A Y.
        strong = (
            wy + c * (people - w),
            wwy + 2 * c * (wy - wwy) + c * c * (people - 2 * w + ww),
            wy + c * (positive - wy),
            wy + c * (accepted - w),
        )
    score, square, with_positive, with_accepted = map(float, strong)
    seen, hidden = float(sums.weak_positive), float(sums.weak - sums.weak_accepted)
    lower = Scored(
        n, a, ay, score + seen, square + seen, with_positive + seen, with_accepted + seen
    )
    # The label of a rejected person may be 1, which adds to the score where A = 0.
    return lower, lower._replace(total=lower.total + hidden, square=lower.square + hidden)
