"""Algorithm 2, corrected: the best reward among the configurations with the least violation."""

from collections.abc import Sequence

import numpy as np

from sellf.fairness import View
from sellf.studies.records import Record


def choose(disparities: Sequence[float], rewards: Sequence[float], omega: float) -> int:
    """Return which configuration to take.

    The paper prints the clipped disparity as min{Delta - omega, 0}; it means the excess,
    max{Delta - omega, 0}. Configurations with a larger excess than the least are out, rather than
    counted as a reward of 0, which a negative reward would lose against.
    """
    excess = np.maximum(np.asarray(disparities, float) - omega, 0.0)
    rewarded = np.where(excess == excess.min(), np.asarray(rewards, float), -np.inf)
    return int(np.argmax(rewarded))


def select(grid: Sequence[Sequence[Record]], view: View, omega: float) -> int | None:
    """Return which configuration an algorithm takes that sees the disparity in a view.

    Args:
        grid: by configuration, its runs on the selection seeds; none, if it cannot be trained.
        view: in which view the algorithm may see the disparity.
        omega: the disparity that is tolerated.
    """
    able = [i for i, runs in enumerate(grid) if runs]
    if not able:
        return None
    seen = [
        np.mean([run.evaluation.disparities[view].mean() for run in grid[i]], dtype=float)
        for i in able
    ]
    rewards = [np.mean([run.evaluation.reward for run in grid[i]], dtype=float) for i in able]
    return able[choose(seen, rewards, omega)]
