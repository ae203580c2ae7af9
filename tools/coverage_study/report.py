"""The study as a table of all cells, and as a page that says what it came to."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import beta, binom

from coverage_study.cells import Cell
from coverage_study.measure import Counts

DELTA = 0.05
LEVEL = 0.05
"""The chance that the study as a whole blames intervals that keep their word, by promise."""
PROMISES = ("disparity", "groups", "verdict")
MANY_REFUSED = 0.01


@dataclass(frozen=True)
class Line:
    """One notion of one cell, with its tests."""

    cell: Cell
    counts: Counts
    p_values: dict[str, float]
    """By promise, corrected for the number of lines: small if it is broken."""

    @property
    def answered(self) -> bool:
        """Whether any log was audited: a cell that was always refused says nothing."""
        return self.counts.refused < self.counts.logs

    @property
    def coverage(self) -> float:
        """The share of logs whose disparity is in its interval."""
        return 1 - self.counts.missed / self.counts.logs

    @property
    def groups_covered(self) -> float:
        """The share of logs in which every group's interval holds."""
        return 1 - self.counts.groups_missed / self.counts.logs

    @property
    def wrong(self) -> float:
        """The share of wrong verdicts where the tolerance is next to the truth."""
        return self.counts.wrong_verdicts / max(self.counts.judged, 1)


def at_least(misses: int, logs: int) -> float:
    """Return the chance of so many misses or more if the promise is kept."""
    return float(binom.sf(misses - 1, logs, DELTA)) if logs else 1.0


def holm(p_values: list[float]) -> list[float]:
    """Return p-values corrected for their number, after Holm."""
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    steps = np.maximum.accumulate(np.array(p_values)[order] * factors)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(steps, 1)
    return corrected.tolist()


def lines(cells: list[Cell], done: dict[int, list[Counts]]) -> list[Line]:
    """Return what was measured, with tests among the cells that make the same kind of promise."""
    found: list[Line] = []
    for finite in (True, False):
        mine = [
            (cell, counts)
            for cell in cells
            if cell.finite_sample == finite
            for counts in done.get(cell.number, [])
        ]
        raw = {
            "disparity": [at_least(c.missed, c.logs) for _, c in mine],
            "groups": [at_least(c.groups_missed, c.logs) for _, c in mine],
            "verdict": [at_least(c.wrong_verdicts, c.judged) for _, c in mine],
        }
        corrected = {promise: holm(values) for promise, values in raw.items()}
        found += [
            Line(cell, counts, {promise: corrected[promise][i] for promise in PROMISES})
            for i, (cell, counts) in enumerate(mine)
        ]
    return found


def write(folder: Path, cells: list[Cell], done: dict[int, list[Counts]], command: str) -> None:
    """Write coverage.csv and coverage.md, each whole or not at all."""
    found = lines(cells, done)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("csv", as_csv(found)), ("md", page(cells, found, command))):
        part = folder / f"coverage.{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(folder / f"coverage.{name}")


COLUMNS: dict[str, Callable[[Line], object]] = {
    "cell": lambda line: line.cell.number,
    "kind": lambda line: line.cell.kind,
    "promise": lambda line: "finite-sample" if line.cell.finite_sample else "asymptotic",
    "notion": lambda line: line.counts.notion,
    "groups": lambda line: len(line.cell.sizes),
    "smallest_group": lambda line: min(line.cell.sizes),
    "largest_group": lambda line: max(line.cell.sizes),
    "what": lambda line: str(line.cell),
    "truth": lambda line: f"{line.counts.truth:.6g}",
    "logs": lambda line: line.counts.logs,
    "refused": lambda line: line.counts.refused,
    "warned": lambda line: line.counts.warned,
    "coverage": lambda line: f"{line.coverage:.5f}" if line.answered else "",
    "above": lambda line: line.counts.above,
    "below": lambda line: line.counts.below,
    "groups_missed": lambda line: line.counts.groups_missed,
    "worst_group": lambda line: line.counts.worst_group,
    "judged": lambda line: line.counts.judged,
    "wrong_verdicts": lambda line: line.counts.wrong_verdicts,
    "contradictions": lambda line: line.counts.contradictions,
    "width": lambda line: f"{line.counts.width:.5f}",
    "ratio": lambda line: "" if line.counts.ratio is None else f"{line.counts.ratio:.4f}",
    "intervals": lambda line: "earlier" if line.counts.earlier else "now",
    **{f"p_{promise}": lambda line, of=promise: f"{line.p_values[of]:.3g}" for promise in PROMISES},
}


def as_csv(found: list[Line]) -> str:
    """Return every line."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([value(line) for value in COLUMNS.values()] for line in found)
    return file.getvalue()


def page(cells: list[Cell], found: list[Line], command: str) -> str:
    """Return the page: what it came to, the worst, the tables by kind.

    Figures of intervals that have changed since are in the table of all cells alone.
    """
    older = sum(line.counts.earlier for line in found)
    found = [line for line in found if not line.counts.earlier]
    finite = [line for line in found if line.cell.finite_sample and line.answered]
    asymptotic = [line for line in found if not line.cell.finite_sample and line.answered]
    parts = [
        "# How often the intervals hold\n",
        f"Made by `{command}`, which audits simulated logs with `sellf.audit` and compares with "
        "the truth that they were drawn from. Every figure is in [coverage.csv](coverage.csv).\n",
        summary(cells, found, older),
        "## By notion\n",
        "All logs of all cells together; p is the chance of so many misses or more at 5 %.\n",
        by_notion(finite),
        "## What it would have found\n",
        "The share of misses that a test would have found with a chance of 80 %: in a single cell, "
        "corrected for the number of lines; and in all cells of a kind, if all of them missed so "
        "often, uncorrected. A cell of few logs finds gross faults alone.\n",
        power(finite),
        "## Worst\n",
        "The ten lowest coverages of the disparity; p is corrected for the number of lines.\n",
        _table(WORST, sorted(finite, key=lambda line: line.coverage)[:10]),
        "## By kind\n",
        "*Called fair though not*: the upper end is below the truth. *Wrong verdicts*: fair or "
        "unfair where the tolerance is next to the truth, on the other side. *Width*: of the "
        "signed difference over that of the efficient normal interval, where there is one (two "
        "groups; demographic, or propensities with the true score), the median over cells.\n",
        by_kind(finite),
    ]
    if asymptotic:
        parts += [
            "## Estimated propensities\n",
            "This interval is asymptotic, and says so. It is no part of what is promised at every "
            "sample size.\n",
            _table(WORST, asymptotic),
        ]
    return "\n".join(parts)


def summary(cells: list[Cell], found: list[Line], older: int = 0) -> str:
    """Return in words how many cells there are and whether a promise is broken.

    Args:
        cells: all.
        found: what was measured of them.
        older: how many lines are of intervals that have changed since.
    """
    finite = [line for line in found if line.cell.finite_sample and line.answered]
    measured = {line.cell.number for line in finite}
    wanted = [cell for cell in cells if cell.finite_sample]
    most: dict[int, int] = {}
    for line in finite:
        most[line.cell.number] = max(most.get(line.cell.number, 0), line.counts.logs)
    logs = sum(most.values())
    said = [
        f"- **{len(measured):,} cells, {len(finite):,} with notions counted apart, {logs:,} logs.**"
    ]
    if len(measured) < len(wanted):
        said.append(f"- Not complete: {len(wanted) - len(measured)} cells are not measured.")
    if older:
        said.append(
            f"- {older:,} lines, a notion of a cell each, were not measured again since intervals "
            "changed: the CSV has their figures of before (*earlier*), this page leaves them out."
        )
    names = {
        "disparity": "the disparity is missed",
        "groups": "some group's own interval misses",
        "verdict": "the verdict is wrong",
    }
    for promise, name in names.items():
        broken = [line for line in finite if line.p_values[promise] < LEVEL]
        many = f"in {len(broken):,} of {len(finite):,}" if broken else "in none"
        said.append(
            f"- Cells where {name} significantly more often than in 5 % of logs (exact binomial "
            f"test, Holm): **{many}**."
        )
    contradictions = sum(line.counts.contradictions for line in finite)
    said.append(f"- Verdicts that claim more than the interval does: {contradictions:,}.")
    refused = {
        line.cell.number for line in found if line.counts.refused > MANY_REFUSED * line.counts.logs
    }
    if refused:
        said.append(
            f"- Cells of which more than {MANY_REFUSED:.0%} of logs were refused, so that they say "
            f"little: {', '.join(map(str, sorted(refused)))}."
        )
    return "\n".join(said) + "\n"


def by_notion(finite: list[Line]) -> str:
    """Return one row a notion, over all cells."""
    rows: list[tuple[str, ...]] = []
    for notion in dict.fromkeys(line.counts.notion for line in finite):
        here = [line.counts for line in finite if line.counts.notion == notion]
        logs, missed, groups, judged, wrong = (
            sum(getattr(counts, name) for counts in here)
            for name in ("logs", "missed", "groups_missed", "judged", "wrong_verdicts")
        )
        rows.append(
            (
                notion,
                f"{len(here)}",
                f"{logs:,}",
                f"{1 - missed / logs:.2%}",
                f"{1 - groups / logs:.2%}",
                f"{wrong / judged:.2%}" if judged else "",
                f"{max(at_least(missed, logs), 0.0):.2g}",
            )
        )
    heads = ("notion", "cells", "logs", "covered", "all groups covered", "wrong verdicts", "p")
    return markdown(heads, rows)


def detectable(logs: int, level: float, chance: float = 0.8) -> float:
    """Return the smallest share of misses that the exact test finds with a chance; 1 if none.

    Args:
        logs: how many.
        level: of the test that misses are 5 % at most.
        chance: to find it.
    """
    least = int(binom.isf(level, logs, DELTA)) + 1  # so many misses are too many
    if least > logs:
        return 1.0
    # P(B >= m) of a binomial is a beta distribution's function of the share.
    return float(beta.ppf(chance, least, logs - least + 1))


def power(finite: list[Line]) -> str:
    """Return one row a kind: what its cells, and all of them together, would have found."""
    level = LEVEL / max(len(finite), 1)
    rows: list[tuple[str, ...]] = []
    for kind in dict.fromkeys(line.cell.kind for line in finite):
        logs = sorted(line.counts.logs for line in finite if line.cell.kind == kind)
        rows.append(
            (
                kind,
                *(
                    f"{detectable(many, level):.0%} ({many:,} logs)"
                    for many in (logs[0], logs[len(logs) // 2], logs[-1])
                ),
                f"{detectable(sum(logs), LEVEL):.1%} ({sum(logs):,})",
            )
        )
    heads = ("kind", "the cell with fewest logs", "a middling one", "the one with most", "all")
    return markdown(heads, rows)


def by_kind(finite: list[Line]) -> str:
    """Return one row a kind, with its worst cells."""
    kinds = dict.fromkeys(line.cell.kind for line in finite)
    rows: list[tuple[str, ...]] = []
    for kind in kinds:
        here = [line for line in finite if line.cell.kind == kind]
        worst = min(here, key=lambda line: line.coverage)
        ratios = [line.counts.ratio for line in here if line.counts.ratio is not None]
        rows.append(
            (
                kind,
                f"{len({line.cell.number for line in here})}",
                f"{min(line.counts.logs for line in here):,} to "
                f"{max(line.counts.logs for line in here):,}",
                f"{worst.coverage:.1%} ({worst.counts.notion}, cell {worst.cell.number})",
                f"{min(line.groups_covered for line in here):.1%}",
                f"{max(line.counts.above / line.counts.logs for line in here):.1%}",
                f"{max(line.wrong for line in here):.1%}",
                f"{min(min(line.p_values.values()) for line in here):.2g}",
                f"{np.median(ratios):.2f}" if ratios else "",
            )
        )
    heads = (
        "kind", "cells", "logs each", "covered, worst", "all groups covered, worst",
        "called fair though not, at most", "wrong verdicts, at most", "smallest p", "width",
    )  # fmt: skip
    return markdown(heads, rows)


WORST: dict[str, Callable[[Line], str]] = {
    "cell": lambda line: str(line.cell.number),
    "what": lambda line: str(line.cell),
    "notion": lambda line: line.counts.notion,
    "logs": lambda line: f"{line.counts.logs:,}",
    "true disparity": lambda line: f"{line.counts.truth:.4f}",
    "covered": lambda line: f"{line.coverage:.1%}",
    "all groups covered": lambda line: f"{line.groups_covered:.1%}",
    "called fair though not": lambda line: f"{line.counts.above / line.counts.logs:.1%}",
    "mean width": lambda line: f"{line.counts.width:.3f}",
    "p": lambda line: f"{line.p_values['disparity']:.2g}",
}


def _table(columns: dict[str, Callable[[Line], str]], found: list[Line]) -> str:
    return markdown(tuple(columns), ([of(line) for of in columns.values()] for line in found))


def markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table."""
    heads = list(heads)
    table = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in table)
