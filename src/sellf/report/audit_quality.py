"""The section on the data in the report of an audit."""

from math import ceil, floor

from sellf.audit.quality import Calibration, Quality
from sellf.report.charts import Plot, Series, numbers, shown
from sellf.report.page import Block, Facts, Grid, Items, Pair, Section


def data(quality: Quality | None) -> list[Section]:
    """Return the section on the data."""
    if quality is None:
        return []
    blocks: list[Block] = [Facts(_facts(quality))]
    groups = quality.groups
    blocks.append(
        Grid(
            {
                "group": [one.group for one in groups],
                "rows": [one.rows for one in groups],
                "accepted": [one.accepted for one in groups],
                "share accepted": [one.accepted / max(one.rows, 1) for one in groups],
                "without outcome": [one.pending for one in groups],
            },
            "Rows of the log by group",
        )
    )
    doubtful = [*quality.look_alikes, *_columns(quality)]
    if doubtful:
        blocks.append(Items(doubtful))
    curves = [_curve(one) for one in quality.calibration]
    blocks += [Pair(curves)] if len(curves) > 1 else curves
    return [Section("The data", blocks)]


def _facts(quality: Quality) -> list[tuple[str, str]]:
    facts = [("Rows", f"{quality.used:,} used of {quality.rows:,} read")]
    facts += [(f"Left out: {shown(why)}", f"{rows:,} rows") for why, rows in quality.left_out]
    if quality.first is not None:
        facts.append(("Decisions", f"from {quality.first} to {quality.last}"))
    if quality.duplicates is not None:
        facts.append(("Rows that repeat another in every column", f"{quality.duplicates:,}"))
    for one in quality.calibration:
        how = "estimated" if one.estimated else "as recorded"
        of = "decisions" if one.of == "propensity" else "outcomes of the accepted"
        auc = "undefined" if one.auc != one.auc else f"{one.auc:.3f}"
        facts.append((f"{one.of.capitalize()} ({how})", f"AUC {auc} for {of}"))
    return facts


def _columns(quality: Quality) -> list[str]:
    lines = [
        f"Column {shown(name)!r} has a different value in every row: it identifies rows or people, "
        "and is of no use as a feature."
        for name in quality.identifiers
    ]
    return lines + [
        f"Column {shown(name)!r} is filled for the accepted and empty for the rejected, as if it "
        "were recorded after the decision: it must not be a feature."
        for name in quality.after_decision
    ]


def _curve(found: Calibration) -> Plot:
    """Return the reliability curve of a propensity or a score."""
    of = "are accepted" if found.of == "propensity" else "of the accepted have a good outcome"
    points = numbers(one.predicted for one in found.bins)
    seen = numbers(one.observed for one in found.bins)
    ends = [x for x in (*points, *seen) if x is not None] or [0.0, 1.0]
    steps = 10 if max(ends) - min(ends) > 0.2 else 50
    low, high = floor(min(ends) * steps) / steps, ceil(max(ends) * steps) / steps
    return Plot(
        title=f"How well the {found.of} is calibrated",
        text=f"In each tenth of the {found.of}: the predicted share, and how many {of}. On the "
        "diagonal the two agree.",
        x_label=found.of,
        y_label="observed share",
        series=[
            Series("tenths", points, seen, labels=[f"{one.people:,} people" for one in found.bins]),
            Series("agreement", [low, high], [low, high], colour=1, style=1),
        ],
        x_range=(low, high),
        y_range=(low, high),
    )
