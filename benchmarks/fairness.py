"""Ten million rows against one `np.bincount` with weights over the same rows."""

from typing import Any

import numpy as np

import sellf
from benchmarks.report import Row
from benchmarks.timing import best_seconds

ROWS = 10_000_000


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    group, action, label = (rng.integers(0, 2, ROWS) for _ in range(3))
    prediction, weights = rng.random(ROWS), rng.random(ROWS)
    log: dict[str, Any] = {"group": group, "action": action, "label": label}
    hidden = np.where(action == 1, label, np.nan)
    sides = {
        "np.bincount": lambda: np.bincount(group, weights),
        "disparity, true view": lambda: sellf.disparity("opportunity", **log),
        "disparity, accepted view": lambda: sellf.disparity(
            "accuracy", group=group, action=action, label=hidden, view="accepted"
        ),
        "disparity, imputed view": lambda: sellf.disparity(
            "accuracy",
            group=group,
            action=action,
            label=hidden,
            prediction=prediction,
            view="imputed",
        ),
        "decompose": lambda: sellf.decompose("opportunity", **log, prediction=prediction),
        "decompose, weighted": lambda: sellf.decompose(
            "opportunity", **log, prediction=prediction, weights=weights
        ),
    }
    seconds = best_seconds(sides)
    base = seconds.pop("np.bincount")
    return [
        Row(name, time / base, "times np.bincount", 10 if "disparity" in name else 20)
        for name, time in seconds.items()
    ]
