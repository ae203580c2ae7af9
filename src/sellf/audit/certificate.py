"""The paper's certificate (Theorems 1 to 4) on the same log, for comparison with the intervals."""

import numpy as np

from sellf.audit.estimate import guessed, views
from sellf.fairness.arrays import divide
from sellf.fairness.bounds import Certificate, certify, cortes_two_sided
from sellf.fairness.notions import Rate
from sellf.logs.person import Floats
from sellf.logs.sums import Sums


def error_bound(sums: Sums, *, predicted: bool, pdim: float, delta: float) -> Floats:
    """Return a two-sided bound on |eps| of each group, |eps^| + B, which holds for all groups.

    Args:
        sums: the sums by group and stratum.
        predicted: whether the log has predictions; otherwise the share of good outcomes among the
            accepted of each stratum is predicted.
        pdim: the pseudo-dimension of the predictors.
        delta: the probability that the bound fails for any group.
    """
    total = sums.by_group()
    accepted = total.accepted - total.weak_accepted
    rejected = total.people - total.accepted
    # Weights w = (a / r) (1 - p) / p over the accepted.
    odds = total.weight - accepted
    odds_square = total.weight_square - 2 * total.weight + accepted
    scale = divide(total.accepted, rejected, empty=0.0)
    mean_weight = scale * divide(odds, accepted, empty=0.0)
    d2 = scale**2 * divide(odds_square, accepted, empty=0.0)
    if predicted:
        surplus = total.predicted_weighted - (total.weight_positive - _strong_positive(total))
    else:
        rate = divide(sums.positive, sums.accepted, empty=0.5)
        weights = sums.weight - (sums.accepted - sums.weak_accepted)
        positive = sums.weight_positive - (sums.positive - sums.weak_positive)
        surplus = (rate * weights - positive).sum(axis=-1)
    error = np.abs(scale * divide(surplus, accepted, empty=0.0))
    bound = cortes_two_sided(
        np.maximum(accepted, 1e-9),
        np.maximum(d2, 1.0),
        pdim,
        delta,
        groups=len(accepted),
        mean_weight=np.maximum(mean_weight, 1.0),
    )
    # Without overlap the divergence is infinite, and so is the bound.
    return np.where((total.weak > 0) | (accepted == 0), np.inf, error + bound)


def certificate(
    rate: Rate, omega: float, sums: Sums, *, predicted: bool, pdim: float, delta: float
) -> Certificate | None:
    """Evaluate the observable conditions; None if every label that the rate needs is seen."""
    if not rate.hides:
        return None
    total = sums.by_group()
    imputed = views(rate, sums, predicted=predicted, trusted=False).imputed
    filled = total.predicted_rejected if predicted else guessed(sums)
    span = imputed[~np.isnan(imputed)]
    return certify(
        rate.name,
        omega,
        imputed=min(float(np.ptp(span)), 1.0) if len(span) > 1 else 0.0,
        rejection_rate=1 - total.accepted / total.people,
        error_bound=error_bound(sums, predicted=predicted, pdim=pdim, delta=delta),
        imputed_positive_rate=np.clip((total.positive + filled) / total.people, 0, 1),
    )


def _strong_positive(total: Sums) -> Floats:
    return total.positive - total.weak_positive
