"""Figures of training metrics: the ablation of beta_2, the terms of the bound, the weights."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.studies.plots import style
from sellf.studies.plots.choose import by_setting, learning_curve, seeds_of
from sellf.studies.records import Cell, Record, Results
from sellf.studies.statistics import estimate
from sellf.studies.summary import task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SETTING = "beta_renyi"
TITLE = "beta_2, the weight of the Renyi term"


def ablation(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw the disparity gap and the Renyi term during learning, and the final disparity."""
    algorithm, groups = _groups(cells, "renyi")
    if not groups:
        return None
    figure = style.new(11, 3.9)
    gap, term, final = figure.subplots(1, 3)
    _curves(gap, groups, _gap)
    gap.set(title="disparity gap |imputed - true|", xlabel="decisions")
    style.settle(gap)
    _curves(term, groups, lambda run: run.metrics["renyi"])
    term.set(title="Renyi term", xlabel="decisions")
    style.spread_out(term)
    bars(final, groups, _true, "true disparity when deployed")
    final.set(xlabel="beta_2", ylim=(0, None))
    style.legend(figure, gap, TITLE)
    return style.finish(figure, results, cells, _note(algorithm, cells, groups))


def bound(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw the two terms of the bound on the predictor's error, by group."""
    return _by_group(
        results,
        cells,
        [
            ("error", "error term (weighted bias)", np.asarray),
            ("divergence", "divergence term sqrt(d2)", np.sqrt),
        ],
    )


def weights(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw the largest weight and the smallest earlier acceptance probability, by group."""
    return _by_group(
        results,
        cells,
        [
            ("largest_weight", "largest weight", np.asarray),
            ("smallest_acceptance", "smallest acceptance before", np.asarray),
        ],
    )


def _by_group(
    results: Results,
    cells: list[Cell],
    terms: list[tuple[str, str, Callable[[np.ndarray], np.ndarray]]],
) -> "Figure | None":
    algorithm, groups = _groups(cells, terms[0][0])
    if not groups:
        return None
    names = next(iter(groups.values()))[0].evaluation.groups
    figure = style.new(max(8.0, 3.6 * len(names)), 6.4)
    panels = figure.subplots(2, len(names), sharex=True, squeeze=False)
    for row, (metric, title, change) in zip(panels, terms, strict=True):
        for i, (axes, group) in enumerate(zip(row, names, strict=True)):
            _curves(axes, groups, lambda run, i=i, m=metric, f=change: f(run.metrics[m][:, i]))
            axes.set_title(f"{title}, {group}")
            if metric == "smallest_acceptance":
                axes.set_ylim(0, 1.04)
            elif metric == "error":
                style.settle(axes)
            else:
                style.spread_out(axes)
    for axes in panels[-1]:
        axes.set_xlabel("decisions")
    style.legend(figure, panels[0, 0], TITLE)
    return style.finish(figure, results, cells, _note(algorithm, cells, groups))


def bars(
    axes: "Axes", groups: dict[Any, list[Record]], values: Callable[[Record], np.ndarray],
    title: str, how: style.Look | None = None, name: str | None = None, shift: float = 0.0,
) -> None:  # fmt: skip
    """Draw the mean and the spread of a figure for each value of a setting."""
    for i, records in enumerate(groups.values()):
        figure = estimate([values(record) for record in records])
        one = how or style.shades(len(groups))[i]
        axes.errorbar(
            i + shift, figure.mean, yerr=figure.spread, color=one.color, marker=one.marker,
            markersize=7, capsize=4, linestyle="none", label=name if i == 0 else None,
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), [f"{setting:g}" for setting in groups])
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_title(title)


def _groups(cells: list[Cell], metric: str) -> tuple[str, dict[Any, list[Record]]]:
    algorithm, groups = by_setting(cells, SETTING)
    known = all(metric in run.metrics for runs in groups.values() for run in runs)
    return (algorithm, groups) if known else ("", {})


def _true(run: Record) -> np.ndarray:
    return run.evaluation.disparities["true"]


def _gap(run: Record) -> np.ndarray:
    return np.abs(run.metrics["disparity_imputed"] - run.metrics["disparity_true"])


def _curves(
    axes: "Axes", groups: dict[Any, list[Record]], values: Callable[[Record], np.ndarray]
) -> None:
    looks = style.shades(len(groups))
    for how, (setting, records) in zip(looks, groups.items(), strict=True):
        x, mean, half = learning_curve(records, [values(run) for run in records])
        style.line(axes, x, mean, half, how, f"{setting:g}")
    style.plain_ticks(axes)


def _note(algorithm: str, cells: list[Cell], groups: dict[Any, list[Record]]) -> str:
    return f"{algorithm}, {task_name(cells[0])}; {seeds_of(groups)} (cut off at the frame)"
