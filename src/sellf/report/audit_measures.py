"""The sections of a report on measures in addition to the disparity."""

from collections.abc import Callable, Sequence
from typing import Any

from sellf.audit.ladder import Ladder
from sellf.audit.panel import FOUR_FIFTHS, Panel
from sellf.audit.proxy import Proxy
from sellf.audit.result import Audit
from sellf.audit.strata import Within
from sellf.numbers import confidence
from sellf.report.charts import Marks, Reference, Rows, distinct, numbers, shown
from sellf.report.page import Block, Grid, Items, Section


def sections(audit: Audit) -> list[Section]:
    """Return a section for each measure."""
    found = []
    for name, measured in audit.measures.items():
        blocks = BLOCKS[name](measured)
        if len(notes := measured.notes()) > 0:
            # The terminal marks entries of a list with a dash, the page with a bullet.
            blocks.append(Items([note.removeprefix("- ") for note in notes]))
        found.append(Section(f"{measured.heading}: {audit.notion}", blocks))
    return found


def _panel(panel: Panel) -> list[Block]:
    comparisons = panel.comparisons
    blocks: list[Block] = [
        Rows(
            title=f"{panel.rate.capitalize()} of each group over that of {_against(panel)}",
            text=f"{panel._title()}. A bar left of the line is below four fifths, right of it is "
            "not, across it is open.",
            x_label="ratio",
            names=distinct([shown(one.group) for one in comparisons]),
            marks=[Marks("estimate", numbers(one.ratio.value for one in comparisons), 0, "circle")],
            low=numbers(one.ratio.low for one in comparisons),
            high=numbers(one.ratio.high for one in comparisons),
            interval=f"{confidence(panel.delta)} interval",
            reference=Reference(FOUR_FIFTHS, "four fifths", "x"),
            x_range=(0.0, None),
        ),
        Grid(
            verdict_early(panel._table(), "four fifths"),
            f"{panel.rate.capitalize()}: each group beside {_against(panel)}",
        ),
    ]
    tables: list[tuple[Sequence[Any], str]] = [
        (panel.selection, "Selection rates and impact ratios, as New York's Local Law 144 asks"),
        (panel.scores, "Scores: standardised mean differences"),
        (panel.calibration, f"Calibration within groups ({panel.rate})"),
    ]
    return blocks + [Grid(flat(rows), caption) for rows, caption in tables if rows]


def _ladder(ladder: Ladder) -> list[Block]:
    rungs = ladder.rungs
    value = numbers(rung.interval.value for rung in rungs)
    return [
        Rows(
            title=f"The disparity in {ladder.rate}, from the weakest belief to the strongest",
            text=f"{ladder._title()}. A bar left of the line is fair, right of it unfair, across "
            "it open.",
            x_label="disparity",
            names=distinct([f"{rung.belief}: {rung.verdict}" for rung in rungs]),
            marks=[Marks("middle", value, 0, "circle")],
            low=numbers(rung.interval.low for rung in rungs),
            high=numbers(rung.interval.high for rung in rungs),
            interval=f"{confidence(ladder.delta)} interval",
            reference=Reference(ladder.omega, f"tolerated: {ladder.omega:g}", "x"),
            x_range=(0.0, None),
        ),
        Grid(verdict_early(ladder._table()), f"The disparity in {ladder.rate} by belief"),
    ]


def _within(found: Within) -> list[Block]:
    blocks: list[Block] = []
    for overall in found.overall:
        pair = (overall.group, overall.against)
        rows = [row for row in found.strata if (row.group, row.against) == pair]
        names = [row.stratum for row in rows] + ["all strata, standardised"]
        spans = [row.difference for row in rows] + [overall.standardised]
        crude = [float("nan")] * len(rows) + [overall.crude]
        blocks.append(
            Rows(
                title=f"{shown(pair[0])} minus {shown(pair[1])}: where the difference comes from",
                text=f"The difference in {found.rate} in each stratum, and over all strata as if "
                "both groups had the same mix of strata. Left of 0 the first group fares worse.",
                x_label=f"difference in {found.rate}",
                names=distinct([shown(name) for name in names]),
                marks=[
                    Marks("difference", numbers(span.value for span in spans), 0, "circle"),
                    Marks("without regard to strata", numbers(crude), 1, "cross"),
                ],
                low=numbers(span.low for span in spans),
                high=numbers(span.high for span in spans),
                interval=f"{confidence(found.delta)} interval",
                band=(-found.omega, found.omega, f"tolerated: {found.omega:g}"),
                x_range=(None, None),
            )
        )
    table = verdict_early(found._table())
    return [*blocks, Grid(table, f"{found.rate.capitalize()} given {' and '.join(found.columns)}")]


def _proxy(found: Proxy) -> list[Block]:
    spans = (found.any_dependence, found.if_explained)
    names = ["nothing assumed", f"given {shown(found.column)}, the group tells nothing more"]
    return [
        Rows(
            title=f"{shown(found.column)} minus others in {found.rate}",
            text=f"{found._title()}. The second bar is what is usually reported.",
            x_label=f"difference in {found.rate}",
            names=names,
            marks=[Marks("middle", numbers(span.value for span in spans), 0, "circle")],
            low=numbers(span.low for span in spans),
            high=numbers(span.high for span in spans),
            interval=f"{confidence(found.delta)} interval",
            band=(-found.omega, found.omega, f"tolerated: {found.omega:g}"),
        ),
        Grid(found._table(), "The difference with and without the usual assumption"),
    ]


def _against(panel: Panel) -> str:
    return shown(panel.comparisons[0].against) if panel.comparisons else "the reference"


def verdict_early(table: dict[str, list[Any]], name: str = "verdict") -> dict[str, list[Any]]:
    """Return a table with the verdict next to the name; the last column may be out of view."""
    (first, names), *_ = table.items()
    rest = {key: values for key, values in table.items() if key not in (first, name)}
    return {first: names, **({name: table[name]} if name in table else {}), **rest}


def flat(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the columns of a table of dataclasses; an interval has three columns."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in vars(row).items():
            label = name.replace("_", " ")
            if hasattr(value, "_asdict"):
                for end, number in value._asdict().items():
                    columns.setdefault(label if end == "value" else f"{label} {end}", []).append(
                        number
                    )
            elif isinstance(value, bool):
                columns.setdefault(label, []).append("yes" if value else "no")
            else:
                columns.setdefault(label, []).append(value)
    return columns


BLOCKS: dict[str, Callable[[Any], list[Block]]] = {
    Proxy.key: _proxy,
    Ladder.key: _ladder,
    Panel.key: _panel,
    Within.key: _within,
}
"""The blocks of a section, by kind of measure."""
