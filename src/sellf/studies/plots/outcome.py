"""Figures of trained policies: deployment, ablation of beta_1, trade-off and training times."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.fairness import define
from sellf.studies.plots import style
from sellf.studies.plots.choose import by_setting, seeds_of
from sellf.studies.plots.learning import bars
from sellf.studies.records import Cell, Record, Results
from sellf.studies.statistics import curve, estimate, pareto, spread_name
from sellf.studies.summary import format_settings, task_name, times, varied

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def deployment(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw the reward, the true disparity and the acceptance of every algorithm in deployment."""
    done = [cell for cell in cells if cell.final]
    if not done:
        return None
    figure = style.new(14, 4.6)
    reward, gap, groups = figure.subplots(1, 3)
    looks = _looks(done)
    for cell, (name, how) in zip(done, looks, strict=True):
        time = cell.final[0].evaluation.by_time["time"]
        for axes, key in ((reward, "reward"), (gap, "disparity")):
            mean, spread = curve([run.evaluation.by_time[key] for run in cell.final])
            # Ended episodes are excluded; once all have ended, there is nothing to draw.
            there = ~np.isnan(mean)
            half = np.nan_to_num(spread[there])
            style.line(axes, time[there], mean[there], half, how, name, of=len(done))
    reward.set(title="reward (resource)", xlabel="decisions in deployment")
    gap.set(title=f"true disparity ({done[0].notion})", xlabel="decisions in deployment")
    style.plain_ticks(reward, gap)
    (_qualification if define(done[0].notion).delayed else _acceptance)(groups, done, looks)
    _mark_omega(gap.axhline, done)
    gap.set_ylim(bottom=0)
    style.legend(figure, gap)
    note = f"{task_name(done[0])}; bands: {spread_name(len(cell.final) for cell in done)}"
    return style.finish(figure, results, done, note)


def _acceptance(axes: Any, cells: list[Cell], looks: list[tuple[str, style.Look]]) -> None:
    """Draw each group's share of accepted people, one line per algorithm."""
    names = cells[0].final[0].evaluation.groups
    fills = ("none", "full", "left", "right")
    every: list[float] = []
    for row, (cell, (_, how)) in enumerate(zip(cells, looks, strict=True)):
        shares = np.mean([run.evaluation.acceptances.mean(axis=0) for run in cell.final], axis=0)
        every += shares.tolist()
        axes.plot([shares.min(), shares.max()], [row, row], color=how.color, linewidth=1.5)
        for group, share in enumerate(shares):
            axes.plot(share, row, how.marker, color=how.color, markersize=8,
                      fillstyle=fills[group % 4])  # fmt: skip
    for group, name in enumerate(names):
        axes.plot([], [], "o", color="#444444", fillstyle=fills[group % 4], label=name)
    axes.set_yticks(range(len(cells)), [name for name, _ in looks], fontsize=8)
    axes.invert_yaxis()
    room = max(max(every) - min(every), 0.05) / 20
    ends = (max(min(every) - room, -0.02), min(max(every) + room, 1.02))
    axes.set(title="share accepted, by group", xlim=ends)
    axes.legend(fontsize=8)


def _qualification(axes: Any, cells: list[Cell], looks: list[tuple[str, style.Look]]) -> None:
    """Draw each group's share of qualified people over deployment, labelled at the end."""
    ends: dict[str, list[float]] = {}
    for cell, (_, how) in zip(cells, looks, strict=True):
        time = cell.final[0].evaluation.by_time["time"]
        for group, name in enumerate(cell.final[0].evaluation.groups):
            each = [run.evaluation.by_time["qualification"][..., group] for run in cell.final]
            values, _ = curve(each)
            there = ~np.isnan(values)
            axes.plot(time[there], values[there], color=how.color, linestyle=how.dash)
            ends.setdefault(name, []).append(float(values[there][-1]))
    for name, values in ends.items():
        axes.annotate(name, (1.0, max(values)), xycoords=("axes fraction", "data"), ha="right",
                      va="bottom", fontsize=8)  # fmt: skip
    axes.set(title="share qualified, by group", xlabel="decisions in deployment")
    style.plain_ticks(axes)


def ablation(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw reward and disparity by beta_1."""
    algorithm, groups = by_setting(cells, "beta_disparity")
    if not groups:
        return None
    figure = style.new(8.4, 3.9)
    reward, gap = figure.subplots(1, 2)
    bars(reward, groups, lambda run: run.evaluation.rewards, "reward", style.look(algorithm))
    for view, shift in (("true", -0.08), ("imputed", 0.08)):
        bars(
            gap, groups, lambda run, view=view: run.evaluation.disparities[view],
            "disparity", style.view(view), f"{view} disparity", shift,
        )  # fmt: skip
    _mark_omega(gap.axhline, cells)
    gap.set_ylim(bottom=0)
    for axes in (reward, gap):
        axes.set_xlabel("beta_1, the weight of the disparity penalty")
    gap.legend(fontsize=9)
    note = f"{algorithm}, {task_name(cells[0])}; {seeds_of(groups)}"
    return style.finish(figure, results, cells, note)


def tradeoff(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw reward against disparity, with every configuration faint and the selected ones bold."""
    done = [cell for cell in cells if cell.final]
    if not done:
        return None
    figure = style.new(8.2, 5.6)
    axes = figure.subplots()
    points, everyone = [], []
    for cell, (name, how) in zip(done, _looks(done), strict=True):
        faint = [(run.evaluation.disparity, run.evaluation.reward) for run in cell.grid]
        if len(faint) > 1:
            axes.plot(
                *np.array(faint).T, how.marker, color=how.color, fillstyle="none", alpha=0.75,
                markersize=6, linestyle="none", zorder=2,
            )  # fmt: skip
        gap = estimate([run.evaluation.disparities["true"] for run in cell.final])
        reward = estimate([run.evaluation.rewards for run in cell.final])
        points.append((gap.mean, reward.mean))
        everyone += [*faint, points[-1]]
        axes.errorbar(
            gap.mean, reward.mean, xerr=gap.half, yerr=reward.half, color=how.color, capsize=3,
            marker=how.marker, markersize=10, markeredgecolor="black", linestyle="none",
            elinewidth=1.2, label=name, zorder=4,
        )  # fmt: skip
    best = np.array([points[i] for i in pareto(*zip(*points, strict=True))])
    axes.plot(*best.T, **style.PARETO, linewidth=1.2, drawstyle="steps-post", zorder=1,
              label="Pareto front")  # fmt: skip
    curve = results.frontier(done[0])
    if curve is not None:
        axes.plot(curve.disparity, curve.reward, **style.FRONTIER, linewidth=3, zorder=0,
                  label="frontier: the best plans in the true law")  # fmt: skip
        everyone += list(zip(curve.disparity, curve.reward, strict=True))
    _omega_curve(axes, cells)
    _mark_omega(axes.axvline, done)
    axes.set(xlabel=f"true disparity ({done[0].notion})", ylabel="reward")
    style.plain_ticks(axes)
    # Limits from the points only, since intervals of few seeds can be wider than their range.
    low, high = np.min(everyone, axis=0), np.max(everyone, axis=0)
    room = 0.15 * (high - low) + 0.01 * np.abs(high)
    axes.set_xlim(0, max(high[0] + room[0], 0.06))
    # A resource cannot be negative, so the margin below is smaller near 0.
    below = room[1] if low[1] > room[1] else 0.25 * room[1]
    axes.set_ylim(low[1] - below, high[1] + room[1])
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=9)
    note = (
        f"{task_name(done[0])}; hollow: every configuration, one seed; filled: the selected, with "
        "95% intervals over seeds (cut off at the frame)"
    )
    return style.finish(figure, results, done, note)


def timing(results: Results) -> "Figure | None":
    """Draw the training minutes next to the paper's."""
    found = times(results)
    if not found:
        return None
    worlds = list(dict.fromkeys(time.world for time in found))
    most = max(sum(time.world == world for time in found) for world in worlds)
    figure = style.new(3.6 * len(worlds) + 1.2, 1.9 + 0.42 * most)
    panels = figure.subplots(1, len(worlds), squeeze=False, sharex=True)[0]
    for axes, world in zip(panels, worlds, strict=True):
        rows = [time for time in found if time.world == world]
        for i, time in enumerate(rows):
            first = "here" if i == 0 else None
            axes.barh(i - 0.2, time.minutes, 0.38, color="#0072B2", label=first)
            axes.text(time.minutes, i - 0.2, f" {_short(time.minutes)}", va="center", fontsize=8)
            if time.published is not None:
                axes.barh(i + 0.2, time.published, 0.38, color="#E8C48A", hatch="///",
                          edgecolor="#7a5a20", linewidth=0.6)  # fmt: skip
                axes.text(time.published, i + 0.2, f" {_short(time.published)}", va="center",
                          fontsize=8)  # fmt: skip
        axes.barh(0, 0, color="#E8C48A", hatch="///", edgecolor="#7a5a20", label="the paper")
        axes.set_yticks(range(len(rows)), [time.algorithm for time in rows])
        axes.invert_yaxis()
        axes.set(title=world, xlabel="minutes for 500,000 steps", xscale="log")
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.15)
        axes.xaxis.set_major_formatter("{x:g}")
    style.legend(figure, panels[0])
    note = "median over runs; the paper's on its own machine"
    return style.finish(figure, results, results.cells, note)


def _short(minutes: float) -> str:
    return f"{minutes:,.0f}" if minutes >= 10 else f"{minutes:.2g}"


def _omega_curve(axes: Any, cells: list[Cell]) -> None:
    """Connect the runs of an algorithm that differ only in omega, labelled with omega."""
    algorithm, groups = by_setting(cells, "omega")
    if len(groups) < 2:
        return
    means = {omega: _mean(records) for omega, records in groups.items()}
    how = style.look(algorithm)
    axes.plot(*np.array(list(means.values())).T, color=how.color, linestyle=how.dash, marker=".",
              label=f"{algorithm} by omega", zorder=3)  # fmt: skip
    for omega, where in means.items():
        axes.annotate(f"{omega:g}", where, xytext=(5, -11), textcoords="offset points", fontsize=8)


def _mean(records: list[Record]) -> tuple[float, float]:
    gaps = [run.evaluation.disparity for run in records]
    return float(np.mean(gaps)), float(np.mean([run.evaluation.reward for run in records]))


def _mark_omega(draw: Any, cells: list[Cell]) -> None:
    """Mark the tolerated disparity, if it is the same for all algorithms."""
    runs = [run for cell in cells for run in cell.final or cell.grid]
    known = {run.spec.omega for run in runs if run.spec.omega is not None}
    if len(known) == 1:
        omega = known.pop()
        draw(omega, color="black", linewidth=0.9, linestyle=(0, (2, 2)), label=f"omega {omega:g}")


def _looks(cells: list[Cell]) -> list[tuple[str, style.Look]]:
    """Return the name and look of each cell, with varied settings if an algorithm is repeated."""
    looks = style.looks([cell.algorithm for cell in cells])
    found = []
    for cell, how in zip(cells, looks, strict=True):
        alike = [other for other in cells if other.algorithm == cell.algorithm]
        if len(alike) == 1:
            found.append((cell.algorithm, how))
            continue
        names = varied(alike)
        own = {key: value for key, value in cell.chosen.items() if key in names}
        found.append((f"{cell.algorithm}, {format_settings(own)}", how))
    return found
