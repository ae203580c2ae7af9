"""Algorithm 2, corrected: the best reward among the configurations with the least violation."""

from collections.abc import Sequence

import numpy as np

from sellf.fairness import View
from sellf.studies.records import Record


def choose(disparities: Sequence[float], rewards: Sequence[float], omega: float) -> int:
    """Return the index of the configuration to select.

    The paper prints the clipped disparity as min{Delta - omega, 0}; it means the excess,
    max{Delta - omega, 0}. Configurations with a larger excess than the smallest one are excluded,
    rather than assigned a reward of 0, which would beat a negative reward. Configurations with an
    undefined disparity (NaN) are excluded too, since accepting nobody does not show fairness. If no
    disparity is defined, the reward alone decides.
    """
    excess = np.maximum(np.asarray(disparities, float) - omega, 0.0)
    if np.isnan(excess).all():
        excess = np.zeros_like(excess)
    rewarded = np.where(excess == np.nanmin(excess), np.asarray(rewards, float), -np.inf)
    return int(np.argmax(rewarded))


def select(grid: Sequence[Sequence[Record]], view: View, omega: float) -> int | None:
    """Return the selected configuration of an algorithm that observes the disparity in a view.

    Args:
        grid: the runs on the selection seeds, by configuration; empty if it cannot be trained.
        view: the view in which the algorithm may observe the disparity.
        omega: the tolerated disparity.
    """
    able = [i for i, runs in enumerate(grid) if runs]
    if not able:
        return None
    seen = [_seen(grid[i], view) for i in able]
    rewards = [np.mean([run.evaluation.reward for run in grid[i]], dtype=float) for i in able]
    return able[choose(seen, rewards, omega)]


def remark(grid: Sequence[Sequence[Record]], view: View) -> str:
    """Return a remark about undefined disparities in the selection; empty if there are none.

    Args:
        grid: as for `select`.
        view: as for `select`.
    """
    seen = np.array([_seen(runs, view) for runs in grid if runs])
    undefined = int(np.isnan(seen).sum())
    if not undefined:
        return ""
    where = {"accepted": "among the accepted", "imputed": "with imputed labels"}.get(view, "at all")
    if undefined == len(seen):
        return f"no configuration has a defined disparity {where}: the largest reward is selected."
    return (
        f"{undefined} of {len(seen)} configurations have no defined disparity {where} and are not "
        "selected."
    )


def _seen(runs: Sequence[Record], view: View) -> float:
    """Return the mean disparity of a configuration's runs; NaN if one is undefined."""
    from sellf.training.evaluation import defined_mean

    means = [defined_mean(run.evaluation.disparities[view]) for run in runs]
    return float(np.mean(means, dtype=float))
