"""Plots of plans and frontiers."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sellf.planning.frontier import Frontier
    from sellf.planning.result import Plan

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
STYLES = ("-", "--", "-.", ":")


def _figure(panels: int, width: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot needs matplotlib: type `pip install 'sellf[report]'`.") from None
    figure = Figure(figsize=(width, 3.4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for axis in axes:
        axis.grid(color="#dddddd", lw=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_plan(plan: "Plan") -> Any:
    """Return a figure of a plan's disparity over time and of the groups' rates."""
    figure, axes = _figure(1 + len(plan.rates), 4.2 * (1 + len(plan.rates)))
    axes[0].plot(plan.times, plan.disparity, color="#000000", label="expected population")
    if plan.omega is not None:
        axes[0].axhline(plan.omega, color="#D55E00", ls="--", label="omega")
    axes[0].set(title=f"{plan.notion} disparity", xlabel="decisions")
    axes[0].set_ylim(bottom=0)
    for axis, (name, values) in zip(axes[1:], plan.rates.items(), strict=True):
        for g, group in enumerate(plan.groups):
            style = STYLES[g % len(STYLES)]
            axis.plot(plan.times, values[:, g], style, color=COLOURS[g % 8], label=group)
        axis.set(title=f"{name}, by group", xlabel="decisions")
    for axis in axes:
        axis.legend(frameon=False, fontsize=8)
    return figure


def draw_frontier(frontier: "Frontier") -> Any:
    """Return a figure of the expected reward against the disparity."""
    figure, (axis,) = _figure(1, 5.2)
    kept = sorted((p for p in frontier.plans if p.within), key=lambda plan: plan.largest)
    at = np.array([plan.largest for plan in kept])
    reward = np.array([plan.reward for plan in kept])
    axis.plot(at, reward, "o-", color="#000000", ms=4)
    axis.fill_between(at, reward, reward.max(), color="#999999", alpha=0.2, lw=0)
    axis.set(
        title=f"{frontier.world}: the best reward within each disparity ({_policies(frontier)})",
        xlabel=f"{frontier.notion} disparity, at most",
        ylabel="expected reward",
    )
    axis.set_xlim(left=0)
    return figure


def _policies(frontier: "Frontier") -> str:
    return "stationary" if frontier.segments == 1 else f"{frontier.segments} segments of time"
