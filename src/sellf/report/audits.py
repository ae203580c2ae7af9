"""The report of an audit: what a credit-risk officer needs to know about a decision log."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Any

from sellf.audit.assumptions import are_joint, nothing_hidden
from sellf.audit.result import Audit, Audits, Origin
from sellf.audit.terms import Words
from sellf.fairness.notions import define
from sellf.logs.names import say
from sellf.numbers import confidence
from sellf.report import audit_charts, audit_measures
from sellf.report.audit_quality import data
from sellf.report.charts import shown
from sellf.report.page import (
    Block,
    Callout,
    Code,
    Facts,
    Grid,
    Items,
    Page,
    Paragraph,
    Section,
    formatted,
    render,
)

WELL = 0.25
"""The largest width of an interval for which the group's estimate is stated in a sentence."""
BADGES = {"fair": "✓ Fair", "unfair": "✗ Unfair", "undetermined": "? Undetermined"}


def page(result: Audit | Audits) -> Page:
    """Return the report of an audit of one or several notions."""
    audits = list(result.by_notion.values()) if isinstance(result, Audits) else [result]
    first = audits[0]
    if len(audits) == 1:
        sections = [
            Section(
                "The picture",
                [
                    audit_charts.disparity([*audits, *first.parts.values()]),
                    *map(audit_charts.groups, rates(first)),
                ],
            ),
            Section("The numbers", [block for rate in rates(first) for block in figures(rate)]),
            *_details(first),
        ]
    else:
        sections = [
            Section("The picture", [audit_charts.disparity(audits)]),
            Section("The numbers", [_notions(audits)]),
        ]
        sections += [
            Section(
                audit.notion.capitalize(),
                [
                    Paragraph(" ".join([answer(audit), *lead(audit)])),
                    # The rates of a notion with several are shown as notions of their own.
                    *([] if audit.parts else [audit_charts.groups(audit), *figures(audit)]),
                ]
                + [block for section in _details(audit, alone=False) for block in section.blocks],
            )
            for audit in audits
        ]
    sections += [*audit_charts.overlap(audits), _assumed(audits), _again(first.origin)]
    warnings = list(dict.fromkeys(line for audit in audits for line in audit.warnings))
    callouts = [Callout("Look at this first", warnings)] if warnings else []
    if len(audits) == 1 and first.needed is not None:
        callouts.append(Callout("What would settle it", [str(first.needed)]))
    sections = [*data(first.quality), *sections]
    worst = overall(audits)
    return Page(
        title="Audit of a decision log",
        kicker=_kicker(first),
        answer=answer(first) if len(audits) == 1 else _together(audits),
        verdict=worst,
        badge=BADGES[worst],
        lead=lead(first) if len(audits) == 1 else [],
        tiles=_tiles(audits),
        callouts=callouts,
        sections=sections,
    )


def _kicker(audit: Audit) -> str:
    """Return the line above the title: the kind of page, the files and the date."""
    what = "Audit of a decision log"
    if not nothing_hidden(audit.assumptions):
        what += ", where the outcome is known for accepted people only"
    origin = audit.origin
    names = [] if origin is None else [shown(Path(name).name) for name in origin.files[:3]]
    of = [", ".join(names)] if names else []
    return " · ".join([what, *of, f"{datetime.now(UTC):%Y-%m-%d}"])


def rates(audit: Audit) -> list[Audit]:
    """Return the audits of a notion's rates, or the audit itself if there is only one."""
    return list(audit.parts.values()) or [audit]


def report(result: Audit | Audits, words: Words | None = None) -> str:
    """Return the report of an audit as one HTML file, in the given words."""
    made = page(result)
    return render(made if words is None else words.page(made))


def overall(audits: Sequence[Audit]) -> str:
    """Return the verdict of several audits together: fair if all of them are."""
    found = {audit.verdict for audit in audits}
    return next(v for v in ("unfair", "undetermined", "fair") if v in found)


def answer(audit: Audit) -> str:
    """Return the answer in a sentence."""
    low, _, high = audit.difference
    sure = f"{confidence(audit.delta)} confidence"
    if audit.void is not None:
        return (
            f"There is no verdict on {audit.notion}: the propensities contradict the decisions. "
            f"Without them the disparity is between {low:.3f} and {high:.3f} ({sure})."
        )
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
        f"At a tolerance of {audits[0].omega:g}, with {confidence(audits[0].delta)} confidence "
        f"each, the decisions are {'; '.join(parts)}."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def lead(audit: Audit) -> list[str]:
    """Return the answer in numbers of people, and the disparity among the accepted alone."""
    text = [_in_people(audit)] if _known_well(audit) else []
    if not define(audit.notion).hides:
        return text
    if isnan(audit.naive):
        return [*text, "Among the accepted alone the disparity is undefined."]
    return [
        *text,
        f"Among the accepted alone, which is what most tools report, the disparity is "
        f"{audit.naive:.3f}.",
    ]


def _known_well(audit: Audit) -> list[tuple[str, float]]:
    """Return the groups whose interval is narrow enough to state an estimate, lowest first."""
    known = [
        (shown(say(name)), group.value)
        for name, group in audit.by_group.items()
        if group.high - group.low <= WELL
    ]
    return sorted(known, key=lambda item: item[1]) if len(known) > 1 else []


def _in_people(audit: Audit) -> str:
    (low_name, low), *_, (high_name, high) = _known_well(audit)
    who, what = audit.rate.says
    few = "" if len(_known_well(audit)) == len(audit.by_group) else ", of the groups known best"
    return (
        f"Of 100 {who}, about {100 * low:.0f} {what} in group {low_name} and about "
        f"{100 * high:.0f} in group {high_name}{few}."
    )


def _tiles(audits: Sequence[Audit]) -> list[tuple[str, str, str]]:
    first = audits[0]
    people = sum(group.people for group in first.by_group.values())
    accepted = sum(group.accepted for group in first.by_group.values())
    tiles = []
    if len(audits) == 1:
        low, value, high = first.difference
        tiles.append(("Disparity", f"{value:.3f}", f"between {low:.3f} and {high:.3f}"))
        if define(first.notion).hides:
            tiles.append(("Accepted only", formatted(first.naive), "what most tools report"))
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


def figures(audit: Audit) -> list[Block]:
    """Return the table of estimates by group."""
    caption = f"{audit.notion.capitalize()} by group"
    return [
        Grid(
            audit._table(),
            caption,
            "naive: among the accepted only. imputed: with predictions in place of hidden "
            "outcomes. ours: the estimate, with the interval from low to high. unidentified: the "
            "part of the interval's width that more rows like these would not remove.",
        )
    ]


def _notions(audits: Sequence[Audit]) -> Grid:
    table = Audits({a.notion: a for a in audits})._table()
    return Grid(audit_measures.verdict_early(table), "Disparity by notion")


def _details(audit: Audit, *, alone: bool = True) -> list[Section]:
    sections = []
    if audit.needed is not None and not (alone and not audit.needed.people):
        sections.append(Section("What would settle it", [_settle(audit, alone=alone)]))
    sections += [one for rate in rates(audit) for one in audit_measures.sections(rate)]
    if audit.periods:
        sections.append(Section("Over time", [audit_charts.periods(audit), _period_table(audit)]))
    if audit.sensitivity:
        sections.append(Section("If decisions used hidden knowledge", audit_charts.doubts(audit)))
    if audit.certificate is not None:
        from sellf.audit.printing import certificate_in_words

        words = certificate_in_words(audit.certificate)
        sections.append(Section("The paper's conditions", [Paragraph(words)]))
    return sections


def _settle(audit: Audit, *, alone: bool) -> Block:
    needed = audit.needed
    if needed is None or not needed.people:
        return Paragraph(str(needed))
    names = list(needed.people)
    return Grid(
        {
            "group": [say(name) for name in names],
            "new applications": [needed.people[name] for name in names],
            "accepted to learn" if needed.accept_share is not None else "of these accepted": [
                needed.labels[name] for name in names
            ],
        },
        f"What would settle {audit.notion} in about 80% of cases, audited alone",
        "" if alone else str(needed),  # a page about one notion says it at the top
    )


def _period_table(audit: Audit) -> Grid:
    periods = audit.periods
    columns: dict[str, list[Any]] = {
        "period": [p.name for p in periods],
        "verdict": [p.verdict for p in periods],
        "disparity": [p.value for p in periods],
        "low": [p.low for p in periods],
        "high": [p.high for p in periods],
        "people": [p.people for p in periods],
    }
    if audit.drift is None:
        columns |= {
            "so far: low": [p.so_far_low for p in periods],
            "so far: high": [p.so_far_high for p in periods],
            "so far": [p.so_far for p in periods],
        }
    return Grid(columns, f"The disparity in {audit.notion} by period")


def _assumed(audits: Sequence[Audit]) -> Section:
    lines = list(dict.fromkeys(line for audit in audits for line in audit.assumptions))
    methods = list(dict.fromkeys(audit.method for audit in audits))
    kind = (
        "The intervals hold at this sample size."
        if all(audit.finite_sample for audit in audits)
        else "Some intervals hold for large samples only (asymptotic)."
    )
    blocks: list[Block] = [Items(lines), Paragraph(f"Method: {'; '.join(methods)}. {kind}")]
    if len(audits) > 1 and not are_joint(audits[0].assumptions):
        blocks.append(
            Paragraph("Each notion's interval holds separately, not all of them jointly.")
        )
    return Section("What was assumed", blocks)


def _again(origin: Origin | None) -> Section:
    if origin is None:
        return Section(
            "How to reproduce this", [Paragraph("The origin of this audit is not recorded.")]
        )
    columns = ", ".join(f"{shown(name)} ({kind})" for name, kind in origin.columns.items())
    of = shown(origin.fingerprint_of)
    digest = f"SHA-256 of {of}: {origin.fingerprint}" if origin.fingerprint else f"of {of}"
    return Section(
        "How to reproduce this",
        [
            Code(origin.command),
            Facts(
                [
                    ("Data", f"{origin.rows:,} rows; columns {columns}"),
                    ("Fingerprint", digest),
                    ("Seed", "not recorded" if origin.seed is None else str(origin.seed)),
                    ("Versions", ", ".join(f"{k} {v}" for k, v in origin.versions.items())),
                ]
            ),
        ],
    )
