"""Plots of audits."""

import importlib.util
from typing import TYPE_CHECKING, Any

from sellf.numbers import confidence

if TYPE_CHECKING:
    from sellf.audit.ladder import Ladder
    from sellf.audit.result import Audit, Audits
    from sellf.audit.strata import Within

MOST_DRAWN = 60
"""The largest number of groups in a plot; of more groups, those at both ends are drawn."""


def draw(audit: "Audit") -> Any:
    """Plot each group's interval with the naive and the imputed estimates."""
    from sellf.logs.names import say

    names = list(audit.by_group)
    if len(names) > MOST_DRAWN:
        names.sort(key=lambda name: audit.by_group[name].value)
        names = [*names[: MOST_DRAWN // 2], *names[-(MOST_DRAWN // 2) :]]
    groups = [audit.by_group[name] for name in names]
    axes = _axes(
        [say(name) for name in names],
        [(g.low, g.high) for g in groups],
        {
            "ours": [g.value for g in groups],
            "imputed": [g.imputed for g in groups],
            "accepted only": [g.naive for g in groups],
        },
        f"{confidence(audit.delta)} interval",
    )
    if audit.truth is not None:
        true = [audit.truth[name] for name in names]
        axes.plot(true, range(len(names)), "k|", ms=16, label="true")
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(audit.notion)
    left_out = len(audit.by_group) - len(names)
    some = f" ({left_out} groups in between left out)" if left_out else ""
    axes.set_title(f"{audit.verdict} at tolerance {audit.omega:g}{some}", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return axes.figure


def draw_notions(audits: "Audits") -> Any:
    """Plot each notion's disparity with the tolerance."""
    found = list(audits.by_notion.values())
    axes = _axes(
        [f"{audit.notion}: {audit.verdict}" for audit in found],
        [(audit.difference.low, audit.difference.high) for audit in found],
        {
            "ours": [audit.difference.value for audit in found],
            "imputed": [audit.imputed for audit in found],
            "accepted only": [audit.naive for audit in found],
        },
        f"{confidence(found[0].delta)} interval",
    )
    axes.axvline(found[0].omega, color="k", ls="--", lw=1, label=f"tolerance {found[0].omega:g}")
    axes.set_xlim(left=-0.01)
    axes.set_xlabel("disparity")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return axes.figure


def draw_ladder(ladder: "Ladder") -> Any:
    """Plot the interval of the disparity under each belief."""
    rungs = ladder.rungs
    axes = _axes(
        [f"{rung.belief}: {rung.verdict}" for rung in rungs],
        [(rung.interval.low, rung.interval.high) for rung in rungs],
        {"ours": [rung.interval.value for rung in rungs]},
        f"{confidence(ladder.delta)} interval",
    )
    axes.axvline(ladder.omega, color="k", ls="--", lw=1, label=f"tolerance {ladder.omega:g}")
    axes.set_xlim(left=-0.01)
    axes.set_xlabel(f"disparity in {ladder.rate}, weakest belief on top")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return axes.figure


def draw_strata(within: "Within") -> Any:
    """Plot the difference in each stratum, the standardised difference and the crude one."""
    names, spans, crude = [], [], []
    for overall in within.overall:
        pair = f"{overall.group} less {overall.against}"
        start = f"{pair}, " if len(within.overall) > 1 else ""
        for row in within.strata:
            if (row.group, row.against) == (overall.group, overall.against):
                names.append(f"{start}{row.stratum}")
                spans.append(row.difference)
                crude.append(float("nan"))
        names.append(f"{start}all, standardised")
        spans.append(overall.standardised)
        crude.append(overall.crude)
    axes = _axes(
        names,
        [(span.low, span.high) for span in spans],
        {"ours": [span.value for span in spans], "accepted only": crude},
        f"{confidence(within.delta)} interval",
        {"ours": "difference", "accepted only": "without regard to strata"},
    )
    axes.axvspan(-within.omega, within.omega, alpha=0.15, color="g", lw=0, label="tolerated")
    axes.axvline(0, color="k", lw=1)
    axes.set_xlabel(f"difference in {within.rate}")
    if len(within.overall) == 1:
        (one,) = within.overall
        axes.set_title(f"{one.group} less {one.against}", loc="left", parse_math=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return axes.figure


def _axes(
    names: list[str],
    spans: list[tuple[float, float]],
    marks: dict[str, list[float]],
    interval: str,
    called: dict[str, str] | None = None,
) -> Any:
    """Return matplotlib axes with one line per name that shows its interval and marks."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("plot needs matplotlib: type `pip install 'sellf[report]'`.")
    from matplotlib.figure import Figure

    places = range(len(names))
    figure = Figure(figsize=(7, 1.4 + 0.45 * len(names)), layout="constrained")
    axes = figure.subplots()
    lows, highs = zip(*spans, strict=True)
    axes.hlines(places, lows, highs, linewidth=6, alpha=0.4, label=interval)
    styles = {"ours": "o", "imputed": "d", "accepted only": "x"}
    for name, values in marks.items():
        fill = "none" if name == "imputed" else "full"
        axes.plot(
            values, places, styles[name], fillstyle=fill, label=(called or {}).get(name, name)
        )
    # Names are plain text: a dollar sign does not start a formula.
    axes.set_yticks(list(places), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    return axes
