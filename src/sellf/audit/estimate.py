"""Point estimates of each group's utility from sums, with the range that the log identifies."""

from typing import Any, NamedTuple

import numpy as np

from sellf.fairness.arrays import divide
from sellf.fairness.notions import Counts, Rate
from sellf.logs.person import Floats
from sellf.logs.sums import Sums


class Views(NamedTuple):
    """Naive, imputed and identified estimates of each group's utility, one entry per group."""

    naive: Floats
    """Among accepted people only; NaN if the rate applies to none of them."""
    imputed: Floats
    """With predictions filled in for the rejected."""
    low: Floats
    """The smallest utility that the log allows, apart from sampling error."""
    high: Floats
    """The largest utility that the log allows; equal to `low` where overlap holds."""

    @property
    def value(self) -> Floats:
        """The midpoint of the identified range."""
        return (self.low + self.high) / 2


def views(
    rate: Rate, sums: Sums, *, predicted: bool, trusted: bool, averaged: bool = False
) -> Views:
    """Return the estimates for all groups.

    Args:
        rate: the rate to estimate.
        sums: the sums by group and stratum.
        predicted: whether the log has predictions.
        trusted: whether the outcomes of the rejected are known.
        averaged: whether to average over the randomness of decisions; needs known propensities.
    """
    total = sums.by_group()
    seen = Counts(total.people, total.accepted, total.positive, 0 * total.people)
    if not rate.needs_label:  # every decision is seen, so all estimates are equal
        value = divide(*(side.total(seen) for side in rate.sums), empty=0.0)
        return Views(value, value, value, value)
    less = average_less(sums, predicted=predicted) if averaged and rate.hides else (0.0, 0.0)
    few, many = hidden_positives(sums, less, predicted=predicted, trusted=trusted)
    imputed = total.predicted_rejected if predicted else guessed(sums)
    if trusted:  # no outcome is hidden, so there is nothing to impute
        imputed = few
    # Outcomes that are not identified may be all good or all bad: those of the rejected without
    # overlap, and those of the accepted that are not known yet.
    ends = np.array(
        [
            rate.utility(Counts(total.people, total.accepted + less[0], good + less[1], count))
            for count in (few, many)
            for good in (total.positive, total.positive + total.pending)
        ]
    )
    # If the rate applies to nobody, it is undefined and may have any value.
    undefined = np.isnan(ends).any(axis=0)
    low = np.where(undefined, 0.0, np.where(np.isnan(ends), 1.0, ends).min(axis=0))
    high = np.where(undefined, 1.0, np.where(np.isnan(ends), 0.0, ends).max(axis=0))
    return Views(
        rate.utility(seen.accepted_only()),
        rate.utility(seen._replace(rejected_positive=imputed)),
        low,
        high,
    )


def average_less(sums: Sums, *, predicted: bool) -> tuple[Floats, Floats]:
    """Return what averaging over decisions adds to the numbers of accepted and positive people."""
    accepted = sums.accepted - sums.weak_accepted
    less = sums.chance - accepted
    if predicted:
        expected = sums.predicted_chance - sums.predicted_accepted
    else:
        expected = divide(sums.positive - sums.weak_positive, accepted, empty=0.0) * less
    return less.sum(axis=-1), expected.sum(axis=-1)


def hidden_positives(
    sums: Sums, less: tuple[Any, Any], *, predicted: bool, trusted: bool
) -> tuple[Floats, Floats]:
    """Return the smallest and largest estimates of the positives among each group's rejected.

    Args:
        sums: the sums by group and stratum.
        less: what averaging over decisions adds to the numbers of accepted and positive people.
        predicted: whether the log has predictions.
        trusted: whether the outcomes of the rejected are known.
    """
    if trusted:
        known = sums.rejected_positive.sum(axis=-1)
        return known, known
    strong = sums.people - sums.weak
    accepted = sums.accepted - sums.weak_accepted
    positive = sums.positive - sums.weak_positive
    if predicted:
        score = sums.score
    else:
        rate = divide(positive, accepted, empty=0.0)
        score = sums.weight_positive + rate * (strong - sums.weight)
    # An unbiased estimate may leave the possible range; its mean over many strata does not.
    most = np.maximum((strong - accepted).sum(axis=-1) - less[0], 0.0)
    estimate = np.clip((score - positive).sum(axis=-1) - less[1], 0.0, most)
    return estimate, estimate + (sums.weak - sums.weak_accepted).sum(axis=-1)


def guessed(sums: Sums) -> Floats:
    """Return the rejected positives predicted from the accepted of the same stratum."""
    overall = divide(sums.positive.sum(axis=-1), sums.accepted.sum(axis=-1), empty=0.5)
    rate = np.where(
        sums.accepted > 0, divide(sums.positive, sums.accepted, empty=0.0), overall[..., None]
    )
    return (rate * (sums.people - sums.accepted)).sum(axis=-1)
