"""Logs with a known truth."""

from typing import Any

import numpy as np

COLUMNS = {"group": "race", "decision": "approved", "outcome": "repaid", "propensity": "p"}


def good_chance(x, group):
    """The chance of a good outcome."""
    return np.clip(0.25 + 0.5 * x + 0.1 * group, 0, 1)


def propensity(x):
    return np.where(x > 0.5, 0.95, 0.15)


def log(people: int, seed: int = 0, **extra: Any) -> dict[str, Any]:
    """Return a log of two groups; `x` is what decides, `score` the true chance."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=people)
    x = rng.random(people)
    good = good_chance(x, group)
    p = propensity(x)
    accepted = (rng.random(people) < p).astype(int)
    label = (rng.random(people) < good).astype(float)
    return {
        "race": np.array(["B", "W"])[group],
        "approved": accepted,
        "repaid": np.where(accepted == 1, label, np.nan),
        "p": p,
        "x": x,
        "score": good,
        **{name: function(x, group) for name, function in extra.items()},
    }
