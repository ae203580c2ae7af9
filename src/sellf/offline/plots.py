"""Figures that compare policies with the current one."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.logs.names import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sellf.audit.interval import Interval
    from sellf.offline.cutoffs import Cutoff, Cutoffs
    from sellf.offline.result import WhatIf

NOW, NEW, APART, BEST = "#000000", "#0072B2", "#009E73", "#D55E00"


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
    """Return a figure of every overall measure under both policies, and of its change."""
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
    """Return a figure of reward against disparity, of all cut-offs and the current policy."""
    made, (axis,) = figure(6.4, 4.2)
    _rules(axis, result.rules, NEW, "o-", "one cut-off")
    _rules(axis, result.by_group, APART, "s", "a cut-off for each group")
    gap, earned = result.now.disparity, result.now.reward
    axis.errorbar(
        [gap.value],
        [earned.value],
        xerr=[[gap.value - gap.low], [gap.high - gap.value]],
        yerr=[[earned.value - earned.low], [earned.high - earned.value]],
        fmt="D",
        color=NOW,
        ms=6,
        capsize=3,
        label="now",
    )
    best = result.best()
    if best is not None:
        label = f"within {result.omega:g}, earns most"
        if best.reward.high < result.now.reward.low:
            label += ", less than now"
        axis.plot([best.disparity.value], [best.reward.value], "*", color=BEST, ms=14, label=label)
    axis.axvline(result.omega, color=BEST, ls="--", lw=1, label="omega")
    axis.set(
        xlabel=f"{result.notion} disparity",
        ylabel="reward per person",
        title=f"Cut-offs of {say(result.score)}",
    )
    axis.set_xlim(left=0)
    axis.legend(frameon=False, fontsize=8)
    return made


def _rules(axis: Any, rules: "Sequence[Cutoff]", colour: str, style: str, name: str) -> None:
    """Draw rules as points, with their intervals in both directions."""
    if not rules:
        return
    faint = {"color": colour, "lw": 1, "alpha": 0.35}
    for rule in rules:
        gap, earned = rule.disparity, rule.reward
        axis.plot([gap.low, gap.high], [earned.value] * 2, **faint)
        axis.plot([gap.value] * 2, [earned.low, earned.high], **faint)
    x = [rule.disparity.value for rule in rules]
    y = [rule.reward.value for rule in rules]
    axis.plot(x, y, style, color=colour, ms=4, lw=1, label=name)
