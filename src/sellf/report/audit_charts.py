"""The charts of an audit's report."""

from collections.abc import Sequence

from sellf.audit.assumptions import nothing_hidden
from sellf.audit.result import Audit, GroupFigures
from sellf.fairness.notions import define
from sellf.logs.names import say
from sellf.numbers import confidence
from sellf.palette import VIEWS
from sellf.report.charts import (
    Marks,
    Plot,
    Reference,
    Rows,
    Series,
    Shares,
    distinct,
    numbers,
    shown,
    zoomed,
)
from sellf.report.page import Block, Paragraph, Section


def _meaning(audit: Audit) -> str:
    whom, what = audit.rate.says
    return f"how many of its {whom} {what}, as a share"


def disparity(audits: Sequence[Audit]) -> Rows:
    """Return the chart of the disparity by notion, with the tolerance."""
    first = audits[0]
    level = f"{confidence(first.delta)} interval"
    marks = [
        Marks("ours", numbers(a.difference.value for a in audits), VIEWS["true"], "circle"),
        Marks("accepted only", numbers(a.naive for a in audits), VIEWS["accepted"], "cross"),
        Marks("imputed", numbers(a.imputed for a in audits), VIEWS["imputed"], "diamond"),
    ]
    if all(a.truth for a in audits):
        true = [max(a.truth.values()) - min(a.truth.values()) for a in audits if a.truth]
        marks.append(Marks("truth", numbers(true), VIEWS["exact"], "ring"))
    answers = "; ".join(
        f"{a.notion}: between {a.difference.low:.3f} and {a.difference.high:.3f}, {a.verdict}"
        for a in audits
    )
    return Rows(
        title="The disparity and the tolerance",
        text=f"Largest minus smallest group, by notion. {answers}. A bar left of the line is fair, "
        "right of it unfair, across it open.",
        x_label="disparity",
        names=[a.notion for a in audits],
        marks=marks,
        low=numbers(a.difference.low for a in audits),
        high=numbers(a.difference.high for a in audits),
        interval=level,
        reference=Reference(first.omega, f"tolerated: {first.omega:g}", "x"),
        x_range=(0.0, None),
    )


def _estimate(group: GroupFigures) -> float:
    """Return a group's estimate; NaN if the log does not identify any part of it."""
    return group.value if group.unidentified < 1 else float("nan")


def groups(audit: Audit) -> Rows:
    """Return the chart of the utility of every group."""
    items = sorted(audit.by_group.items(), key=lambda item: -item[1].value)
    groups = [group for _, group in items]
    marks = [
        Marks("ours", numbers(map(_estimate, groups)), VIEWS["true"], "circle"),
        Marks("accepted only", numbers(g.naive for g in groups), VIEWS["accepted"], "cross"),
        Marks("imputed", numbers(g.imputed for g in groups), VIEWS["imputed"], "diamond"),
    ]
    if audit.truth is not None:
        true = [audit.truth[name] for name, _ in items]
        marks.append(Marks("truth", numbers(true), VIEWS["exact"], "ring"))
    highest = max((g.value for g in groups if g.unidentified < 1), default=groups[0].value)
    return Rows(
        title=f"{audit.notion.capitalize()} by group",
        text=f"For each group {_meaning(audit)}. All bars hold jointly with "
        f"{confidence(audit.delta)} confidence; estimates outside the shaded band are more than "
        f"{audit.omega:g} below the highest.",
        x_label=audit.notion,
        names=distinct([shown(say(name)) for name, _ in items]),
        marks=marks,
        low=numbers(g.low for g in groups),
        high=numbers(g.high for g in groups),
        interval=f"{confidence(audit.delta)} interval",
        band=(max(highest - audit.omega, 0.0), highest, f"within {audit.omega:g} of the highest"),
        x_range=zoomed(x for g in groups for x in (g.low, g.high, g.naive, g.imputed)),
        tabled="the table of numbers",
    )


def doubts(audit: Audit) -> list[Block]:
    """Return the chart of how sensitive the verdict is to information that the log lacks."""
    doubts = audit.sensitivity
    middle = [(d.low + d.high) / 2 for d in doubts]
    if audit.overturned_at is None:
        verdict = "The verdict is undetermined from the start."
    elif audit.overturned_at == float("inf"):
        verdict = "No such factor overturns the verdict."
    else:
        verdict = f"The smallest factor that overturns the verdict is {audit.overturned_at:.2f}."
    return [
        Plot(
            title=f"Sensitivity of the verdict on {audit.notion} to hidden knowledge",
            text="The range of the disparity if the odds of acceptance of people who look alike "
            f"in the log differed by a factor of up to L. {verdict}",
            x_label="factor L",
            y_label="disparity",
            series=[
                Series(
                    "range of the disparity, and its middle",
                    numbers(d.level for d in doubts),
                    numbers(middle),
                    numbers(d.low for d in doubts),
                    numbers(d.high for d in doubts),
                )
            ],
            references=[Reference(audit.omega, f"tolerated: {audit.omega:g}")],
            y_range=(0.0, None),
        )
    ]


def periods(audit: Audit) -> Plot:
    """Return the chart of the disparity over time."""
    periods = audit.periods
    positions = numbers(range(len(periods)))
    series = [
        Series(
            "each period separately",
            positions,
            numbers(p.value for p in periods),
            numbers(p.low for p in periods),
            numbers(p.high for p in periods),
            colour=0,
        )
    ]
    text = "Each period separately"
    if audit.drift is None:
        text += ", and all periods up to its end. Either holds"
        series.append(
            Series(
                "everything so far (middle)",
                positions,
                numbers((p.so_far_low + p.so_far_high) / 2 for p in periods),
                numbers(p.so_far_low for p in periods),
                numbers(p.so_far_high for p in periods),
                colour=1,
                style=1,
            )
        )
    else:
        text += "; the log drifts, so periods are not pooled. The intervals hold"
    return Plot(
        title=f"The disparity in {audit.notion} over time",
        text=f"{text} for all periods jointly with {confidence(audit.delta)} confidence.",
        x_label="period",
        y_label="disparity",
        x_names=[p.name for p in periods],
        series=series,
        references=[Reference(audit.omega, f"tolerated: {audit.omega:g}")],
        y_range=(0.0, None),
        spread="intervals",
    )


def overlap(audits: Sequence[Audit]) -> list[Section]:
    """Return the section on propensities, which are the same for all notions."""
    title = "What the accepted can tell about the rejected"
    found = next((audit.overlap for audit in audits if audit.overlap is not None), None)
    if found is None:
        if not any(define(audit.notion).hides for audit in audits):
            return []
        if nothing_hidden(audits[0].assumptions):
            return []
        text = (
            "The log does not say how likely each person was to be accepted (no propensities), and "
            "has nothing to estimate it from. So nothing is concluded about the rejected: each of "
            "their outcomes may be good or bad, and the intervals allow for both. Record the "
            "propensity of every decision, or name features with --feature."
        )
        return [Section(title, [Paragraph(text)])]
    groups = audits[0].by_group
    names = list(found.by_group)
    names.sort(key=lambda name: -groups[name].value)
    level = f"{found.level:g}"
    edges = [("up to 0.1", 0, 1), ("0.1 to 0.3", 1, 3), ("0.3 to 0.7", 3, 7), ("above 0.7", 7, 10)]
    total = {name: max(sum(found.by_group[name]) + found.below[name], 1) for name in names}
    parts = {f"below {level}: nothing can be concluded": [found.below[n] / total[n] for n in names]}
    for label, start, end in edges:
        parts[label] = [sum(found.by_group[n][start:end]) / total[n] for n in names]
    none = sum(found.below.values())
    everyone = sum(total.values())
    text = (
        "How likely people of each group were to be accepted. Where the probability is small, few "
        "people like the rejected were accepted, so intervals are wide; below "
        f"{level} nothing is concluded, which concerns {none:,} of {everyone:,} people."
    )
    chart = Shares(
        title="Chance of acceptance, by group",
        text=text,
        x_label="share of the group",
        names=distinct([shown(say(name)) for name in names]),
        parts={name: numbers(values) for name, values in parts.items()},
    )
    return [Section(title, [chart])]
