"""The index of several audits and runs: a line for each, and its details below."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sellf.audit.result import Audit, Audits
from sellf.palette import VIEWS
from sellf.report import audits as audit_pages
from sellf.report.charts import Marks, Rows, distinct, number, numbers, shown
from sellf.report.page import Block, Code, Facts, Grid, Page, Paragraph, Section, render

if TYPE_CHECKING:
    from sellf.report.run_data import Run

VERDICTS = ("unfair", "undetermined", "fair")


@dataclass(frozen=True)
class SavedAudit:
    """An audit of one notion, and the file that holds it."""

    file: Path
    audit: Audit

    @property
    def name(self) -> str:
        """What it is called in the index."""
        return f"{shown(self.file.stem)}: {self.audit.notion}"


def saved(path: Path, result: Audit | Audits) -> list[SavedAudit]:
    """Return the audits that a file holds, one for each notion."""
    found = result.by_notion.values() if isinstance(result, Audits) else [result]
    return [SavedAudit(path, audit) for audit in found]


def report(audits: Sequence[SavedAudit], runs: Sequence["Run"], command: str) -> str:
    """Return the index as one HTML file; `command` is the command that makes it."""
    return render(page(audits, runs, command))


def page(audits: Sequence[SavedAudit], runs: Sequence["Run"], command: str) -> Page:
    """Return the index of audits and runs."""
    titles = distinct([*(one.name for one in audits), *(shown(run.name) for run in runs)])
    audit_titles, run_titles = titles[: len(audits)], titles[len(audits) :]
    sections = []
    if audits:
        sections.append(Section("Audits", _audit_lines(audits, audit_titles)))
    if runs:
        sections.append(Section("Runs", _run_lines(runs, run_titles)))
    sections += [
        Section(title, _audit_detail(one), listed=False)
        for title, one in zip(audit_titles, audits, strict=True)
    ]
    sections += [
        Section(title, _run_detail(run), listed=False)
        for title, run in zip(run_titles, runs, strict=True)
    ]
    sections.append(Section("How to reproduce this", [Code(command)]))
    return Page(
        title="Index of audits and runs",
        kicker=" and ".join(_counted(audits, runs)),
        answer=_answer(audits, runs),
        sections=sections,
    )


def _counted(audits: Sequence[SavedAudit], runs: Sequence["Run"]) -> list[str]:
    return [
        f"{len(some):,} {name}{'' if len(some) == 1 else 's'}"
        for name, some in (("audit", audits), ("run", runs))
        if some
    ]


def _answer(audits: Sequence[SavedAudit], runs: Sequence["Run"]) -> str:
    """Return the counts of the audits' verdicts, and the range of the runs' disparities."""
    sentences = []
    if audits:
        found = [one.audit.verdict for one in audits]
        counts = [
            f"{n:,} {'is' if n == 1 else 'are'} {v}" for v in VERDICTS if (n := found.count(v))
        ]
        sentences.append(f"Of {len(audits):,} audits, {', '.join(counts)}.")
    gaps = [gap for run in runs if (gap := run.figure("true")) is not None]
    if gaps:
        low, high = min(gaps), max(gaps)
        between = f"is {low:.3f}" if len(gaps) == 1 else f"lies between {low:.3f} and {high:.3f}"
        sentences.append(f"The true disparity of {len(gaps):,} deployed runs {between}.")
    return " ".join(sentences) or "No run is finished yet."


def _audit_lines(audits: Sequence[SavedAudit], titles: list[str]) -> list[Block]:
    found = [one.audit for one in audits]
    columns: dict[str, list[Any]] = {
        "audit": titles,
        "verdict": [audit.verdict for audit in found],
        "disparity": [audit.difference.value for audit in found],
        "low": [audit.difference.low for audit in found],
        "high": [audit.difference.high for audit in found],
        "tolerated": [audit.omega for audit in found],
        "accepted only": [number(audit.naive) for audit in found],
        "people": [sum(group.people for group in audit.by_group.values()) for audit in found],
        "groups": [len(audit.by_group) for audit in found],
        "date": [_date(one.file) for one in audits],
    }
    chart = Rows(
        title="The disparity of every audit",
        text="Largest minus smallest group. Tolerances may differ; the table has them.",
        x_label="disparity",
        names=titles,
        marks=[
            Marks("estimate", numbers(columns["disparity"]), VIEWS["true"], "circle"),
            Marks("accepted only", columns["accepted only"], VIEWS["accepted"], "cross"),
        ],
        low=numbers(columns["low"]),
        high=numbers(columns["high"]),
        interval="interval, with each audit's own confidence",
        x_range=(0.0, None),
        tabled="the table of audits",
    )
    note = "accepted only: what a tool that drops the rejected reports. date: of the file."
    return [Grid(columns, "A line for each audit", note, links=titles), chart]


def _run_lines(runs: Sequence["Run"], titles: list[str]) -> list[Block]:
    columns: dict[str, list[Any]] = {
        "run": titles,
        "reward": [run.figure("reward") for run in runs],
        "true disparity": [run.figure("true") for run in runs],
        "accepted only": [run.figure("accepted") for run in runs],
        "tolerated": [run.spec.omega for run in runs],
        "world": [run.world for run in runs],
        "notion": [run.spec.notion for run in runs],
        "algorithm": [run.spec.algorithm.name for run in runs],
        "seed": [run.spec.seed for run in runs],
        "date": [_date(Path(run.name) / "config.json") for run in runs],
    }
    note = "A run without figures is not finished. date: when it was started."
    chart = Rows(
        title="The true disparity of every run",
        text="Means over deployments. Runs of different worlds or notions cannot be compared.",
        x_label="disparity",
        names=titles,
        marks=[
            Marks("true", columns["true disparity"], VIEWS["true"], "circle"),
            Marks("accepted only", columns["accepted only"], VIEWS["accepted"], "cross"),
        ],
        x_range=(0.0, None),
        tabled="the table of runs",
    )
    return [Grid(columns, "A line for each run", note, links=titles), chart]


def _audit_detail(one: SavedAudit) -> list[Block]:
    audit = one.audit
    blocks: list[Block] = [
        Paragraph(" ".join([audit_pages.answer(audit), *audit_pages.lead(audit)])),
        # For a notion of several rates, the figures of groups belong to the rates.
        *(block for rate in audit_pages.rates(audit) for block in audit_pages.figures(rate)),
    ]
    facts = [("File", shown(one.file)), ("Method", audit.method)]
    facts += [("Warning", line) for line in audit.warnings]
    return [*blocks, Facts(facts), *([Code(audit.origin.command)] if audit.origin else [])]


def _run_detail(run: "Run") -> list[Block]:
    from sellf.report.compare import answer, summary, training_command
    from sellf.report.configurations import configurations_of

    configurations = configurations_of([run])
    blocks: list[Block] = [Paragraph(" ".join(answer(configurations)))]
    if run.evaluation is not None:
        blocks.append(summary(configurations))
    return [*blocks, Code(training_command(run))]


def _date(path: Path) -> str:
    return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d}"
