"""Normal intervals from sums: narrow, but true for large samples only (*asymptotic*)."""

from statistics import NormalDist

from sellf.audit.bernstein import Moments, accuracy_moments, moments
from sellf.audit.sums import Sums
from sellf.fairness.notions import Notion


def interval(
    notion: Notion,
    sums: Sums,
    *,
    alpha: float,
    trusted: bool = False,
    constant: float | None = None,
) -> tuple[float, float]:
    """Return both ends of one group's utility; they miss it with a chance of about alpha.

    Args:
        notion: what is measured.
        sums: of the group, over all its strata.
        alpha: the chance that the interval misses.
        trusted: whether the outcomes of the rejected are known.
        constant: predict this for everyone, instead of what the log predicts.
    """
    n = float(sums.people)
    if n < 2:
        return 0.0, 1.0
    quantile = NormalDist().inv_cdf(1 - alpha / 2)
    lower, upper = moments(sums, constant, trusted)
    if notion == "demographic":
        a = float(sums.accepted)
        low, high = _end((a, a, n), -quantile), _end((a, a, n), quantile)
    elif notion == "qualification":
        low = _end((lower.total, lower.square, n), -quantile)
        high = _end((upper.total, upper.square, n), quantile)
    elif notion == "accuracy":
        low, high = (
            _end(accuracy_moments(upper), -quantile),
            _end(accuracy_moments(lower), quantile),
        )
    else:
        low, high = _ratio(upper, -quantile), _ratio(lower, quantile)
    return max(0.0, min(low, 1.0)), min(1.0, max(high, 0.0))


def _end(x: tuple[float, float, float], quantile: float) -> float:
    total, square, n = x
    variance = max(square - total * total / n, 0.0) / (n - 1)
    return total / n + quantile * (variance / n) ** 0.5


def _ratio(x: Moments, quantile: float) -> float:
    """Return an end for E[A Y] / E[x] by the delta method."""
    if x.total <= 0:
        return 1.0 if quantile > 0 else 0.0
    ratio = x.positive / x.total
    square = x.positive - 2 * ratio * x.with_positive + ratio * ratio * x.square
    error = (max(square, 0.0) / (x.n * (x.n - 1))) ** 0.5 / (x.total / x.n)
    return ratio + quantile * error
