"""Ten million rows: seconds, and times one `np.bincount`; one million beside Fairlearn."""

from typing import Any

import numpy as np

import sellf
from benchmarks.report import Row
from benchmarks.timing import best_seconds

ROWS = 10_000_000
FEWER = 1_000_000


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
    ratios = [
        Row(name, time / base, "times np.bincount", 10 if "disparity" in name else 20)
        for name, time in seconds.items()
    ]
    return [
        *ratios,
        *(Row(name, seconds[name], "seconds") for name in ("disparity, true view", "decompose")),
        beside_fairlearn(group[:FEWER], action[:FEWER], label[:FEWER]),
    ]


def beside_fairlearn(group: np.ndarray, action: np.ndarray, label: np.ndarray) -> Row:
    """Return how many times as long Fairlearn takes for the same disparity."""
    from fairlearn.metrics import MetricFrame, true_positive_rate

    def theirs() -> float:
        frame: Any = MetricFrame(
            metrics=true_positive_rate, y_true=label, y_pred=action, sensitive_features=group
        )
        return float(frame.difference())

    def ours() -> float:
        return sellf.disparity("opportunity", group=group, action=action, label=label).value

    assert abs(theirs() - ours()) < 1e-9
    seconds = best_seconds({"theirs": theirs, "ours": ours}, rounds=2)
    return Row("Fairlearn, one million rows", seconds["theirs"] / seconds["ours"], "times ours")
