"""The report of an audit: what a credit-risk officer needs to know of a decision log."""

from collections.abc import Sequence
from math import isnan

from sellf.audit.result import Audit, Audits, Origin
from sellf.audit.verdict import say
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
)
from sellf.report.page import (
    Block,
    Callout,
    Code,
    Facts,
    Grid,
    Items,
    Page,
    Section,
    Words,
    render,
    said,
)

MEANING = {
    "opportunity": "the chance of being accepted, of people whose outcome is good",
    "accuracy": "the share of decisions that suit the outcome",
    "qualification": "the share of people whose outcome is good",
    "demographic": "the share of people who are accepted",
}
COUNTED = {
    "opportunity": ("Of 100 people whose outcome is good", "are accepted"),
    "accuracy": ("Of 100 decisions", "suit the outcome"),
    "qualification": ("Of 100 people", "have a good outcome"),
    "demographic": ("Of 100 people", "are accepted"),
}
WELL = 0.25
"""A group is known well if its interval is at most this wide."""
BADGES = {"fair": "✓ Fair", "unfair": "✗ Unfair", "undetermined": "? Undetermined"}


def page(result: Audit | Audits) -> Page:
    """Return the report of an audit of one or several notions."""
    audits = list(result.by_notion.values()) if isinstance(result, Audits) else [result]
    first = audits[0]
    if len(audits) == 1:
        sections = [
            Section("The picture", [_disparity(audits), _groups(first)]),
            Section("The numbers", _figures(first)),
            *_details(first),
        ]
    else:
        sections = [
            Section("The picture", [_disparity(audits)]),
            Section("The numbers", [_notions(audits)]),
        ]
        sections += [
            Section(
                audit.notion.capitalize(),
                [Words(" ".join([answer(audit), *_lead(audit)])), _groups(audit), *_figures(audit)]
                + [block for section in _details(audit, alone=False) for block in section.blocks],
            )
            for audit in audits
        ]
    sections += [*_overlap(audits), _assumed(audits), _again(first.origin)]
    warnings = list(dict.fromkeys(line for audit in audits for line in audit.warnings))
    callouts = [Callout("Look at this first", warnings)] if warnings else []
    if len(audits) == 1 and first.needed is not None:
        callouts.append(Callout("What would settle it", [str(first.needed)]))
    worst = overall(audits)
    return Page(
        title="Audit of a decision log",
        kicker="Audit of a decision log, where the outcome is known of accepted people only",
        answer=answer(first) if len(audits) == 1 else _together(audits),
        verdict=worst,
        badge=BADGES[worst],
        lead=_lead(first) if len(audits) == 1 else [],
        tiles=_tiles(audits),
        callouts=callouts,
        sections=sections,
    )


def report(result: Audit | Audits) -> str:
    """Return the report of an audit as one HTML file."""
    return render(page(result))


def overall(audits: Sequence[Audit]) -> str:
    """Return the verdict of several audits together: fair if all of them are."""
    found = {audit.verdict for audit in audits}
    return next(v for v in ("unfair", "undetermined", "fair") if v in found)


def answer(audit: Audit) -> str:
    """Return the answer in a sentence."""
    low, _, high = audit.difference
    sure = f"{1 - audit.delta:.0%} confidence"
    if audit.verdict == "fair":
        return (
            f"The decisions are fair: the disparity in {audit.notion} is at most {high:.3f} "
            f"({sure}), and {audit.omega:g} is tolerated."
        )
    if audit.verdict == "unfair":
        return (
            f"The decisions are unfair: the disparity in {audit.notion} is between {low:.3f} and "
            f"{high:.3f} ({sure}), and only {audit.omega:g} is tolerated."
        )
    return (
        f"The log cannot tell whether the decisions are fair: the disparity in {audit.notion} is "
        f"between {low:.3f} and {high:.3f} ({sure}), and {audit.omega:g} is tolerated."
    )


def _together(audits: Sequence[Audit]) -> str:
    by_verdict = {
        verdict: [audit.notion for audit in audits if audit.verdict == verdict]
        for verdict in ("unfair", "undetermined", "fair")
    }
    said_of = {
        "unfair": "unfair in {}",
        "undetermined": "open in {}",
        "fair": "fair in {}",
    }
    parts = [said_of[v].format(_listed(names)) for v, names in by_verdict.items() if names]
    return (
        f"At a tolerance of {audits[0].omega:g}, with {1 - audits[0].delta:.0%} confidence each, "
        f"the decisions are {'; '.join(parts)}."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _lead(audit: Audit) -> list[str]:
    """Return the answer in people, and what a look at the accepted alone would have said."""
    text = [_in_people(audit)] if _known_well(audit) else []
    if audit.notion == "demographic":
        return text
    if isnan(audit.naive):
        return [*text, "Among the accepted alone the disparity is not even defined."]
    return [
        *text,
        f"Whoever looks at the accepted alone, as most tools do, reports a disparity of "
        f"{audit.naive:.3f}.",
    ]


def _known_well(audit: Audit) -> list[tuple[str, float]]:
    """Return the groups whose interval is narrow enough to speak of an estimate, lowest first."""
    known = [
        (shown(say(name)), group.value)
        for name, group in audit.by_group.items()
        if group.high - group.low <= WELL
    ]
    return sorted(known, key=lambda item: item[1]) if len(known) > 1 else []


def _in_people(audit: Audit) -> str:
    (low_name, low), *_, (high_name, high) = _known_well(audit)
    who, what = COUNTED[audit.notion]
    few = "" if len(_known_well(audit)) == len(audit.by_group) else ", in the groups known best"
    return (
        f"{who}, about {100 * low:.0f} {what} in {low_name} and about {100 * high:.0f} in "
        f"{high_name}{few}."
    )


def _tiles(audits: Sequence[Audit]) -> list[tuple[str, str, str]]:
    first = audits[0]
    people = sum(group.people for group in first.by_group.values())
    accepted = sum(group.accepted for group in first.by_group.values())
    tiles = []
    if len(audits) == 1:
        low, value, high = first.difference
        tiles.append(("Disparity", f"{value:.3f}", f"between {low:.3f} and {high:.3f}"))
        if first.notion != "demographic":
            tiles.append(("Accepted only", said(first.naive), "what most tools report"))
    tiles += [
        ("Tolerated", f"{first.omega:g}", "omega"),
        ("People", f"{people:,}", f"{accepted / max(people, 1):.0%} accepted"),
        ("Groups", f"{len(first.by_group):,}", _smallest(first)),
    ]
    if first.truth is not None and len(audits) == 1:
        values = list(first.truth.values())
        tiles.append(("Truth", f"{max(values) - min(values):.3f}", "known: the log is simulated"))
    return tiles


def _smallest(audit: Audit) -> str:
    name, group = min(audit.by_group.items(), key=lambda item: item[1].people)
    return f"the smallest, {shown(say(name))[:40]}, has {group.people:,}"


def _disparity(audits: Sequence[Audit]) -> Rows:
    first = audits[0]
    confidence = f"{1 - first.delta:.0%} interval"
    marks = [
        Marks("ours", numbers(a.difference.value for a in audits), 0, "circle"),
        Marks("accepted only", numbers(a.naive for a in audits), 1, "cross"),
        Marks("imputed", numbers(a.imputed for a in audits), 2, "diamond"),
    ]
    if all(a.truth for a in audits):
        true = [max(a.truth.values()) - min(a.truth.values()) for a in audits if a.truth]
        marks.append(Marks("truth", numbers(true), 6, "ring"))
    words = "; ".join(
        f"{a.notion}: between {a.difference.low:.3f} and {a.difference.high:.3f}, {a.verdict}"
        for a in audits
    )
    return Rows(
        title="The disparity, and what is tolerated",
        text=f"Largest minus smallest group, by notion. {words}. A bar left of the line is fair, "
        "right of it unfair, across it open.",
        x_label="disparity",
        names=[a.notion for a in audits],
        marks=marks,
        low=numbers(a.difference.low for a in audits),
        high=numbers(a.difference.high for a in audits),
        interval=confidence,
        reference=Reference(first.omega, f"tolerated: {first.omega:g}", "x"),
        x_range=(0.0, None),
    )


def _groups(audit: Audit) -> Rows:
    items = sorted(audit.by_group.items(), key=lambda item: -item[1].value)
    groups = [group for _, group in items]
    marks = [
        Marks("ours", numbers(g.value for g in groups), 0, "circle"),
        Marks("accepted only", numbers(g.naive for g in groups), 1, "cross"),
        Marks("imputed", numbers(g.imputed for g in groups), 2, "diamond"),
    ]
    if audit.truth is not None:
        true = [audit.truth[name] for name, _ in items]
        marks.append(Marks("truth", numbers(true), 6, "ring"))
    highest = groups[0].value
    return Rows(
        title=f"{audit.notion.capitalize()} by group",
        text=f"For each group {MEANING[audit.notion]}. All bars hold at once with "
        f"{1 - audit.delta:.0%} confidence; estimates outside the shaded stretch are more than "
        f"{audit.omega:g} below the highest.",
        x_label=audit.notion,
        names=distinct([shown(say(name)) for name, _ in items]),
        marks=marks,
        low=numbers(g.low for g in groups),
        high=numbers(g.high for g in groups),
        interval=f"{1 - audit.delta:.0%} interval",
        band=(max(highest - audit.omega, 0.0), highest, f"within {audit.omega:g} of the highest"),
        x_range=(0.0, 1.0),
    )


def _figures(audit: Audit) -> list[Block]:
    caption = f"{audit.notion.capitalize()} by group"
    return [
        Grid(
            audit._table(),
            caption,
            "naive: among the accepted only. imputed: with predictions in place of hidden "
            "outcomes. ours: the estimate, between low and high. unidentified: the part of that "
            "width that more rows like these would not remove.",
        )
    ]


def _notions(audits: Sequence[Audit]) -> Grid:
    return Grid(Audits({a.notion: a for a in audits})._table(), "Disparity by notion")


def _details(audit: Audit, *, alone: bool = True) -> list[Section]:
    sections = []
    if audit.needed is not None and not (alone and not audit.needed.people):
        sections.append(Section("What would settle it", [_settle(audit, alone=alone)]))
    if audit.periods:
        sections.append(Section("Over time", [_periods(audit), _period_table(audit)]))
    if audit.sensitivity:
        sections.append(Section("If decisions knew more than the log", _doubts(audit)))
    if audit.certificate is not None:
        from sellf.audit.words import certificate_in_words

        words = certificate_in_words(audit.certificate)
        sections.append(Section("The paper's conditions", [Words(words)]))
    return sections


def _settle(audit: Audit, *, alone: bool) -> Block:
    needed = audit.needed
    if needed is None or not needed.people:
        return Words(str(needed))
    names = list(needed.people)
    return Grid(
        {
            "group": [say(name) for name in names],
            "more applications": [needed.people[name] for name in names],
            "of these accepted": [needed.labels[name] for name in names],
        },
        f"What would settle {audit.notion}, if the estimates are right",
        "" if alone else str(needed),  # a page about one notion says it at the top
    )


def _doubts(audit: Audit) -> list[Block]:
    doubts = audit.sensitivity
    middle = [(d.low + d.high) / 2 for d in doubts]
    if audit.overturned_at is None:
        verdict = "The verdict is open to begin with."
    elif audit.overturned_at == float("inf"):
        verdict = "No such factor overturns the verdict."
    else:
        verdict = f"The smallest factor that overturns the verdict is {audit.overturned_at:.2f}."
    return [
        Plot(
            title=f"How much hidden knowledge {audit.notion}'s verdict bears",
            text="The range of the disparity if the odds of acceptance of people who look alike "
            f"in the log differed by a factor. {verdict}",
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


def _periods(audit: Audit) -> Plot:
    periods = audit.periods
    places = numbers(range(len(periods)))
    so_far = [(p.so_far_low + p.so_far_high) / 2 for p in periods]
    return Plot(
        title=f"The disparity in {audit.notion} over time",
        text="Each period by itself, and everything up to its end. Either holds for all periods at "
        f"once with {1 - audit.delta:.0%} confidence.",
        x_label="period",
        y_label="disparity",
        x_names=[p.name for p in periods],
        series=[
            Series(
                "each period by itself",
                places,
                numbers(p.value for p in periods),
                numbers(p.low for p in periods),
                numbers(p.high for p in periods),
                place=0,
            ),
            Series(
                "everything so far (middle)",
                places,
                numbers(so_far),
                numbers(p.so_far_low for p in periods),
                numbers(p.so_far_high for p in periods),
                place=1,
                style=1,
            ),
        ],
        references=[Reference(audit.omega, f"tolerated: {audit.omega:g}")],
        y_range=(0.0, None),
        spread="intervals",
    )


def _period_table(audit: Audit) -> Grid:
    periods = audit.periods
    return Grid(
        {
            "period": [p.name for p in periods],
            "people": [p.people for p in periods],
            "disparity": [p.value for p in periods],
            "low": [p.low for p in periods],
            "high": [p.high for p in periods],
            "verdict": [p.verdict for p in periods],
            "so far: low": [p.so_far_low for p in periods],
            "so far: high": [p.so_far_high for p in periods],
            "so far": [p.so_far for p in periods],
        },
        f"The disparity in {audit.notion} by period",
    )


def _overlap(audits: Sequence[Audit]) -> list[Section]:
    """Return who could have been accepted; the same for all notions."""
    title = "What the accepted can tell of the rejected"
    found = next((audit.overlap for audit in audits if audit.overlap is not None), None)
    if found is None:
        if all(audit.notion == "demographic" for audit in audits):
            return []
        trusted = any("outcomes of the rejected" in line for line in audits[0].assumptions)
        if trusted:
            return []
        text = (
            "The log does not say how likely each person was to be accepted (no propensities), and "
            "has nothing to estimate it from. So nothing is concluded about the rejected: each of "
            "their outcomes may be good or bad, and the intervals are as wide as that. Record the "
            "chance of every decision, or name features with --feature."
        )
        return [Section(title, [Words(text)])]
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
        "How likely people of each group were to be accepted. Of the rejected with a small chance "
        "few alike were accepted, so intervals are wide; below "
        f"{level} nothing is concluded: that is {none:,} of {everyone:,} people."
    )
    chart = Shares(
        title="Chance of acceptance, by group",
        text=text,
        x_label="share of the group",
        names=distinct([shown(say(name)) for name in names]),
        parts={name: numbers(values) for name, values in parts.items()},
    )
    return [Section(title, [chart])]


def _assumed(audits: Sequence[Audit]) -> Section:
    lines = list(dict.fromkeys(line for audit in audits for line in audit.assumptions))
    methods = list(dict.fromkeys(audit.method for audit in audits))
    kind = (
        "The intervals hold at this sample size."
        if all(audit.finite_sample for audit in audits)
        else "Some intervals hold for large samples only (asymptotic)."
    )
    blocks: list[Block] = [Items(lines), Words(f"Method: {'; '.join(methods)}. {kind}")]
    if len(audits) > 1:
        blocks.append(Words("Each notion's interval holds by itself, not all of them together."))
    return Section("What was assumed", blocks)


def _again(origin: Origin | None) -> Section:
    if origin is None:
        return Section(
            "How to get this again", [Words("This audit does not say where it comes from.")]
        )
    columns = ", ".join(f"{shown(name)} ({kind})" for name, kind in origin.columns.items())
    print_ = origin.fingerprint or "none"
    return Section(
        "How to get this again",
        [
            Code(origin.command),
            Facts(
                [
                    ("Data", f"{origin.rows:,} rows; columns {columns}"),
                    ("Fingerprint", f"SHA-256 of {shown(origin.fingerprint_of)}: {print_}"),
                    ("Versions", ", ".join(f"{k} {v}" for k, v in origin.versions.items())),
                ]
            ),
        ],
    )
