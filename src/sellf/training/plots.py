"""Figure of the metrics of a training."""

from typing import Any

import numpy as np

from sellf import palette
from sellf.numbers import tick
from sellf.training.spec import RunSpec


def draw(spec: RunSpec, history: list[dict[str, Any]]) -> Any:
    """Return a figure of the training's metrics over the number of decisions learned from."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        raise ImportError("plot needs matplotlib: type `pip install 'sellf[report]'`.") from None
    rows = [row for row in history if "acceptance" in row]
    if not rows:
        raise ValueError("this agent was loaded without its metrics: plot it where it is trained.")
    column = {name: np.asarray([row[name] for row in rows], float) for name in rows[-1]}
    decisions = (column["iteration"] + 1) * spec.config.rollout
    # The constrained quantity if there is one, otherwise the disparity of the window.
    imputed = column.get("gap", column["disparity_imputed"])
    panels: dict[str, dict[str, np.ndarray]] = {
        "reward per rollout": {"": column["reward"]},
        "disparity": {
            "true": column["disparity_true"],
            **({"imputed": imputed} if spec.has_predictor else {}),
            "accepted only": column["disparity_accepted"],
            **({"target": column["target"]} if "target" in column else {}),
        },
        "share accepted": dict(zip(spec.world.make().groups, column["acceptance"].T, strict=True)),
    }
    if "multiplier" in column:
        step = {"step of lambda": column["dual_step"]} if "dual_step" in column else {}
        panels["lambda"] = {"lambda": column["multiplier"], **step}
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.6 * len(panels), 3.2), layout="constrained"
    )
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for i, (label, values) in enumerate(lines.items()):
            how = palette.GENERAL[palette.VIEWS.get(label.split(" ")[0], i) % len(palette.GENERAL)]
            axis.plot(decisions, values, **palette.drawn(how), label=label, lw=1)
        axis.set(title=title, xlabel="decisions learned from")
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(tick)
        if len(lines) > 1:
            axis.legend(frameon=False, fontsize=8)
    return figure
