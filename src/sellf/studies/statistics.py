"""Statistics of tables, figures, reports and the command line, in particular the meaning of ±.

± is the half-width of the 95% confidence interval of a mean over training seeds (Student's t). It
is undefined for one seed; the standard deviation over deployments, labelled as such, may be shown
instead.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95
INTERVAL = "95% interval over training seeds"
DEVIATION = "standard deviation over deployments"


class Estimate(NamedTuple):
    """An estimate from several trainings, each deployed several times."""

    mean: float
    half: float | None
    """Half-width of the 95% interval over training seeds; None with one seed."""
    std: float
    """Standard deviation over deployments, averaged over the seeds."""

    @property
    def spread(self) -> float:
        """The half-width of the interval, or with one seed the standard deviation."""
        return self.std if self.half is None else self.half

    def text(self, digits: int) -> str:
        """Return the mean ± half-width with the given number of decimals."""
        if np.isnan(self.mean):
            return "undefined"
        half = "" if self.half is None else f" ± {self.half:,.{digits}f}"
        return f"{self.mean:,.{digits}f}{half}"


def estimate(by_seed: Sequence[np.ndarray]) -> Estimate:
    """Return the mean and the spreads of a figure, given for every seed by deployment.

    Deployments and seeds in which the figure is undefined (NaN) are left out.
    """
    known = [values[~np.isnan(values)] for values in by_seed]
    known = [values for values in known if values.size]
    if not known:
        return Estimate(float("nan"), None, float("nan"))
    means = np.array([values.mean(dtype=float) for values in known])
    half = float(half_widths(means)) if len(means) > 1 else None
    std = float(np.mean([values.std(dtype=float) for values in known]))
    return Estimate(float(means.mean()), half, std)


def half_widths(values: np.ndarray) -> np.ndarray:
    """Return half-widths of 95% t intervals over the first axis; NaN for fewer than two values."""
    from scipy.special import stdtrit

    known = ~np.isnan(values)
    count = known.sum(axis=0)
    several = np.maximum(count, 2)
    off = np.where(known, values - mean_over(values), 0.0)
    error = np.sqrt((off**2).sum(axis=0) / (several - 1) / several)
    return np.where(count > 1, stdtrit(several - 1, (1 + LEVEL) / 2) * error, np.nan)


def mean_over(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis, ignoring NaN."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def curve(by_seed: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the spread of a figure over time, given by seed, deployment and time.

    The spread is the half-width of the interval over seeds; with one seed, the standard deviation
    over deployments.
    """
    if len(by_seed) == 1:
        mean = mean_over(by_seed[0])
        return mean, np.sqrt(mean_over((by_seed[0] - mean) ** 2))
    means = np.stack([mean_over(values) for values in by_seed])
    return mean_over(means), half_widths(means)


def spread_name(seeds: Iterable[int]) -> str:
    """Return the description of bands and bars, given the number of seeds of each."""
    single = {number == 1 for number in seeds}
    if single == {True}:
        return DEVIATION
    return f"{INTERVAL}; with one seed, {DEVIATION}" if True in single else INTERVAL


def pareto(gaps: Sequence[float], rewards: Sequence[float]) -> list[int]:
    """Return the indices of the Pareto front of small disparities and large rewards.

    They are ordered by disparity; of equal points only the first is included.
    """
    front: list[int] = []
    for i in sorted(range(len(gaps)), key=lambda i: (gaps[i], -rewards[i])):
        if not front or rewards[i] > rewards[front[-1]]:
            front.append(i)
    return front


def thinned(x: Any, runs: Any, most: int = 120) -> tuple[Any, Any]:
    """Return at most `most` points, each the mean of neighbouring points."""
    x, values = np.asarray(x, float), np.asarray(runs, float)
    step = -(-len(x) // most)
    if step <= 1:
        return x, values
    starts = np.arange(0, len(x), step)
    width = np.diff(starts, append=len(x))
    return (
        np.add.reduceat(x, starts) / width,
        np.add.reduceat(values, starts, axis=-1) / width,
    )
