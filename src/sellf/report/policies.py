"""The reports of `sellf whatif` and `sellf improve`: what would change and for whom."""

from typing import Any

from sellf.logs.names import say
from sellf.numbers import confidence, defined
from sellf.offline.improve import Improvement
from sellf.offline.longterm import LongTerm
from sellf.offline.result import Change, WhatIf
from sellf.offline.sentences import explored
from sellf.report.charts import Marks, Plot, Reference, Rows, Series, number, numbers
from sellf.report.page import (
    Block,
    Callout,
    Facts,
    Grid,
    Items,
    Page,
    Paragraph,
    Section,
)

MOST_ROWS = 12
"""The largest number of segments that are drawn; the table has all."""
COUNTS = ("reward", "acceptance")
"""Measures that are not disparities."""


def whatif_page(result: WhatIf) -> Page:
    """Return the report that compares a policy with the current one."""
    return Page(
        title=f"What if: {result.policy}",
        kicker="Another policy, evaluated on the log of the current one",
        answer=_capital("; ".join(result.sentences)) + ".",
        sections=[*_beside(result), _assumed(result)],
        tiles=_tiles(result),
        callouts=_warned(result),
    )


def improve_page(found: Improvement) -> Page:
    """Return the report of a search for a better policy."""
    sections = []
    if found.whatif is not None:
        sections += [*_beside(found.whatif), *_segments(found), *_points(found)]
    if found.price is not None:
        sections.append(Section("What exploration costs", [Paragraph(_capital(explored(found)))]))
    if found.long_term is not None:
        sections.append(_over_time(found.long_term))
    sections.append(_tested(found))
    if found.whatif is not None:
        sections.append(_assumed(found.whatif))
    return Page(
        title="A better policy" if found.certified else "No policy is certified",
        kicker="A policy learned from a decision log, and certified on people who were not used "
        "for learning",
        answer=_capital(found.sentence),
        verdict="fair" if found.certified else "undetermined",
        badge="✓ Certified" if found.certified else "? Not certified",
        sections=sections,
        tiles=[] if found.whatif is None else _tiles(found.whatif),
        callouts=[Callout("Look at this first", list(found.warnings))] if found.warnings else [],
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tiles(result: WhatIf) -> list[tuple[str, str, str]]:
    tiles = []
    for change in result.changes:
        if change.group is not None:
            continue
        what = change.measure if change.measure in COUNTS else f"{change.measure} disparity"
        remark = f"now {defined(change.now.value)}; {change.proposed.low:.3f} to "
        tiles.append((what, defined(change.proposed.value), f"{remark}{change.proposed.high:.3f}"))
    return tiles[:4]


def _warned(result: WhatIf) -> list[Callout]:
    lines = [*([result.void] if result.void else []), *result.warnings]
    return [Callout("Look at this first", lines)] if lines else []


def _named(change: Change) -> str:
    if change.group is not None:
        return f"{change.measure}, {say(change.group)}"
    return change.measure if change.measure in COUNTS else f"{change.measure} disparity"


def _rows(title: str, text: str, changes: list[Change], result: WhatIf, label: str) -> Rows:
    return Rows(
        title=title,
        text=text,
        x_label=label,
        names=[_named(one) for one in changes],
        marks=[
            Marks("now", numbers(one.now.value for one in changes), 1, "cross"),
            Marks("proposed", numbers(one.proposed.value for one in changes), 0, "circle"),
        ],
        low=numbers(one.proposed.low for one in changes),
        high=numbers(one.proposed.high for one in changes),
        interval=f"{confidence(result.delta)} interval of the proposed policy",
        tabled="every measure",
    )


def _beside(result: WhatIf) -> list[Section]:
    """Return the sections on what changes overall and for each group."""
    gaps = [one for one in result.changes if one.group is None and one.measure not in COUNTS]
    groups = [one for one in result.changes if one.group is not None]
    charts: list[Block] = []
    if gaps:
        chart = _rows(
            "Disparities, current and proposed",
            f"Largest minus smallest group; up to {result.omega:g} is tolerated.",
            gaps,
            result,
            "disparity",
        )
        line = Reference(result.omega, f"tolerated: {result.omega:g}", "x")
        charts.append(_with(chart, line))
    if groups:
        charts.append(
            _rows(
                "Who gains, who loses, by group",
                "A circle to the right of the cross: the group is better off.",
                groups,
                result,
                "share",
            )
        )
    table = Grid(
        {
            "measure": [_named(one) for one in result.changes],
            "now": [number(one.now.value) for one in result.changes],
            "proposed": [number(one.proposed.value) for one in result.changes],
            "change": [defined(one.change.value, "+.3f") for one in result.changes],
            "from": [f"{one.change.low:+.3f}" for one in result.changes],
            "to": [f"{one.change.high:+.3f}" for one in result.changes],
            "verdict": [one.direction for one in result.changes],
        },
        caption="every measure",
        note=f"Changes are paired: both policies on the same {result.people:,} people. Each "
        f"interval holds with {confidence(result.delta)} confidence, those of groups jointly.",
    )
    return [
        Section("The picture", charts),
        Section("The verdicts", [Items([_capital(x) for x in result.sentences]), table]),
    ]


def _with(chart: Rows, line: Reference) -> Rows:
    from dataclasses import replace

    return replace(chart, reference=line, x_range=(0.0, None))


def _segments(found: Improvement) -> list[Section]:
    kept = sorted(found.segments, key=lambda one: one.change)
    if not kept:
        return []
    half = MOST_ROWS // 2
    most = kept if len(kept) <= MOST_ROWS else [*kept[:half], *kept[-half:]]
    names = [f"{say(one.group)}, {one.feature} {one.value}" for one in most]
    chart = Rows(
        title="Segments with the largest changes",
        text="The share that is accepted now and under the policy, among people who were not used "
        "for learning. Segments that lose come first.",
        x_label="share accepted",
        names=names,
        marks=[
            Marks("now", numbers(one.now for one in most), 1, "cross"),
            Marks("proposed", numbers(one.proposed for one in most), 0, "circle"),
        ],
        x_range=(0.0, 1.0),
    )
    table = Grid(
        {
            "feature": [one.feature for one in found.segments],
            "value": [one.value for one in found.segments],
            "group": [say(one.group) for one in found.segments],
            "people": [one.people for one in found.segments],
            "accepted now": [one.now for one in found.segments],
            "accepted then": [one.proposed for one in found.segments],
            "change": [f"{one.change:+.3f}" for one in found.segments],
        },
        caption="Acceptance by segment",
        note="Shares observed in the log, without intervals.",
    )
    return [Section("Who gains, who loses", [chart, table])]


def _points(found: Improvement) -> list[Section]:
    policy = found.policy
    if policy is None or policy.kind != "scorecard":
        return []
    rows = policy.points()
    table = Grid(
        {
            "characteristic": [a for a, _, _ in rows],
            "attribute": [b for _, b, _ in rows],
            "points": [f"{p:+d}" for _, _, p in rows],
        },
        caption="The scorecard",
        note=". ".join(_capital(text) for text in policy.marks()) + ".",
    )
    return [Section("Points", [table])]


def _over_time(found: LongTerm) -> Section:
    x = numbers(one.step for one in found.steps)

    def series(name: str, field: str, colour: int) -> Series:
        figures = [getattr(one, field) for one in found.steps]
        low, value, high = (numbers(column) for column in zip(*figures, strict=True))
        return Series(name, x, value, low, high, colour=colour)

    chart = Plot(
        title=f"The {found.notion} disparity over time, in the fitted world",
        text="Before each decision about everybody. The bands contain 95% of new draws of people; "
        "they do not say whether the model is right.",
        x_label="decisions about everybody",
        y_label="disparity",
        series=[series("now", "disparity_now", 1), series("proposed", "disparity_new", 0)],
        y_range=(0.0, None),
        spread="95% of draws",
    )
    return Section(
        "Over time: a model, not certified", [Paragraph(_capital(found.sentence)), chart]
    )


def _tested(found: Improvement) -> Section:
    table: dict[str, list[Any]] = found._table()
    columns = {
        name: ["-" if x in (None, "") else x for x in values] for name, values in table.items()
    }
    return Section(
        "The certificate",
        [
            Facts(
                [
                    ("Learned from", f"{found.people[0]:,} people"),
                    ("Certified on", f"{found.people[1]:,} other people"),
                    ("Tolerance", f"{found.notion} disparity of at most {found.omega:g}"),
                    ("Required reward", f"{found.reward_at_least:.0%} of the current one"),
                    ("Confidence", f"{confidence(found.delta)} for each of the two guarantees"),
                    ("Kind", "holds at this sample size" if found.finite_sample else "asymptotic"),
                ]
            ),
            Grid(
                columns,
                caption="Candidates in the order in which they were tested",
                note="From the safest to the boldest for the disparity, from the boldest to the "
                "safest for the reward, each until the first failure.",
            ),
        ],
    )


def _assumed(result: WhatIf) -> Section:
    return Section("What is assumed", [Items([_capital(text) for text in result.assumptions])])
