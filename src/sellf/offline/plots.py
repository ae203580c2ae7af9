"""Pictures of what other policies would do."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.logs.names import say

if TYPE_CHECKING:
    from sellf.audit.interval import Interval
    from sellf.offline.cutoffs import Cutoffs
    from sellf.offline.result import WhatIf

NOW, NEW, APART = "#000000", "#0072B2", "#009E73"


def figure(width: float, height: float, panels: int = 1) -> tuple[Any, Any]:
    """Return an empty figure and its axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot needs matplotlib: type `pip install 'sellf[report]'`.") from None
    made = Figure(figsize=(width, height), layout="constrained")
    axes = made.subplots(1, panels, squeeze=False)[0]
    for axis in axes:
        axis.grid(color="#dddddd", lw=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return made, axes


def draw_changes(result: "WhatIf") -> Any:
    """Return a figure of every measure of everybody under both policies, and of its change."""
    rows = [change for change in result.changes if change.group is None]
    made, (left, right) = figure(9.5, 0.9 + 0.5 * len(rows), 2)
    height = np.arange(len(rows))[::-1]
    names = [
        row.measure + ("" if row.measure in ("reward", "acceptance") else " disparity")
        for row in rows
    ]
    for shift, kind, colour in ((0.12, "now", NOW), (-0.12, "proposed", NEW)):
        for y, row in zip(height, rows, strict=True):
            _whisker(left, getattr(row, kind), y + shift, colour, kind if y == height[0] else None)
    for y, row in zip(height, rows, strict=True):
        _whisker(right, row.change, y, NEW, None)
    right.axvline(0, color="#888888", lw=1)
    left.set_yticks(height, names)
    right.set_yticks(height, [""] * len(rows))
    left.legend(frameon=False, fontsize=8)
    left.set_title("now and proposed")
    right.set_title("change, paired on the same people")
    return made


def _whisker(axis: Any, interval: "Interval", y: float, colour: str, label: str | None) -> None:
    axis.plot([interval.low, interval.high], [y, y], color=colour, lw=2, label=label)
    axis.plot([interval.value], [y], "o", color=colour, ms=4)


def draw_cutoffs(result: "Cutoffs") -> Any:
    """Return a figure of reward against disparity: where we are, and where we could be."""
    made, (axis,) = figure(6.4, 4.2)
    for rules, colour, name in (
        (result.rules, NEW, "one cut-off"),
        (result.by_group, APART, "a cut-off for each group"),
    ):
        if not rules:
            continue
        x = [rule.disparity.value for rule in rules]
        y = [rule.reward.value for rule in rules]
        for rule in rules:
            axis.plot(
                [rule.disparity.low, rule.disparity.high],
                [rule.reward.value] * 2,
                color=colour,
                lw=1,
                alpha=0.35,
            )
            axis.plot(
                [rule.disparity.value] * 2,
                [rule.reward.low, rule.reward.high],
                color=colour,
                lw=1,
                alpha=0.35,
            )
        axis.plot(
            x, y, "o-" if name == "one cut-off" else "s", color=colour, ms=4, lw=1, label=name
        )
    now = result.now
    axis.errorbar(
        [now.disparity.value],
        [now.reward.value],
        xerr=[
            [now.disparity.value - now.disparity.low],
            [now.disparity.high - now.disparity.value],
        ],
        yerr=[[now.reward.value - now.reward.low], [now.reward.high - now.reward.value]],
        fmt="D",
        color=NOW,
        ms=6,
        capsize=3,
        label="now",
    )
    best = result.best()
    if best is not None:
        axis.plot(
            [best.disparity.value],
            [best.reward.value],
            "*",
            color="#D55E00",
            ms=14,
            label=f"within {result.omega:g}, earns most",
        )
    axis.axvline(result.omega, color="#D55E00", ls="--", lw=1, label="omega")
    axis.set(
        xlabel=f"{result.notion} disparity",
        ylabel="reward a person",
        title=f"Cut-offs of {say(result.score)}",
    )
    axis.set_xlim(left=0)
    axis.legend(frameon=False, fontsize=8)
    return made
