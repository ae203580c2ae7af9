"""Audit many logs of one cell and count what was wrong."""

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

import sellf
from coverage_study.cells import Cell
from coverage_study.worlds import OVERLAP, Group, draw, efficient_width, truths, used, world
from sellf.errors import InputError
from sellf.fairness.notions import Notion

NUDGE = 1e-12
"""How far from the truth the tolerance is, relative to it."""


@dataclass
class Counts:
    """What was counted for one notion of a cell."""

    cell: int
    notion: Notion
    truth: float
    """The disparity."""
    logs: int = 0
    refused: int = 0
    """Logs that the audit would not take; nothing is claimed of them, so nothing is wrong."""
    warned: int = 0
    above: int = 0
    """The truth is above the disparity's interval: it would be called fair though it is not."""
    below: int = 0
    """The truth is below: it would be called unfair though it is not."""
    groups_missed: int = 0
    """Some group's own interval misses."""
    worst_group: int = 0
    """Misses of the group that is missed most often."""
    judged: int = 0
    """Logs whose tolerance was next to this notion's truth, so that its verdict can be wrong."""
    wrong_verdicts: int = 0
    contradictions: int = 0
    """Verdicts that are not what the interval's ends say, other than undetermined."""
    width: float = 0.0
    """Of the disparity's interval, the mean."""
    efficient: float | None = None
    """The width of the efficient normal interval, where there is one."""
    ratio: float | None = None
    """The mean width of the signed difference over the efficient one."""

    @property
    def missed(self) -> int:
        """How many disparities are not in their interval."""
        return self.above + self.below


class Tally:
    """Counts of one notion as they come in."""

    def __init__(self, cell: Cell, notion: Notion, groups: list[Group]):
        self.true = truths(groups)[notion]
        self.counts = Counts(cell.number, notion, float(np.ptp(self.true)))
        self.by_group = np.zeros(len(groups), dtype=int)
        self.widths: list[tuple[float, float]] = []
        if comparable(cell, notion, groups):
            self.counts.efficient = efficient_width(notion, groups, cell.sizes)

    def tolerance(self, log: int) -> float:
        """Return the truth, a hair less and a hair more in turn; either verdict can be wrong."""
        nudged = self.counts.truth * (1 - NUDGE if log % 2 else 1 + NUDGE)
        return float(np.clip(nudged, 0, 1))

    def add(self, audits: list[Any], judged: bool) -> None:
        """Count one log: the looks at it, of which every one has to hold."""
        c, truth = self.counts, self.counts.truth
        c.logs += 1
        c.warned += any(audit.warnings for audit in audits)
        above = any(audit.difference.high < truth for audit in audits)
        c.above += above
        c.below += not above and any(audit.difference.low > truth for audit in audits)
        missed = np.any([self._groups(audit) for audit in audits], axis=0)
        self.by_group += missed
        c.groups_missed += bool(missed.any())
        c.judged += judged
        c.wrong_verdicts += judged and any(self._wrong(audit) for audit in audits)
        c.contradictions += any(contradicts(audit) for audit in audits)
        last = audits[-1]
        self.widths.append((last.difference.high - last.difference.low, signed_width(last)))

    def refuse(self) -> None:
        """Count a log that was not audited."""
        self.counts.logs += 1
        self.counts.refused += 1

    def done(self) -> Counts:
        """Return the counts with what is known at the end."""
        c = self.counts
        c.worst_group = int(self.by_group.max())
        if self.widths:
            c.width, signed = map(float, np.mean(self.widths, axis=0))
            c.ratio = None if c.efficient is None else signed / c.efficient
        return c

    def _groups(self, audit: Any) -> np.ndarray:
        """Return which groups' intervals miss; a group that is not there yet misses nothing."""
        found = np.zeros(len(self.true), dtype=bool)
        for name, figures in audit.by_group.items():
            found[int(name)] = not figures.low <= self.true[int(name)] <= figures.high
        return found

    def _wrong(self, audit: Any) -> bool:
        fair = self.counts.truth <= audit.omega
        return audit.verdict == ("unfair" if fair else "fair")


def signed_width(audit: Any) -> float:
    """Return the width of the first two groups' difference, which does not end at 0."""
    interval = next(iter(audit.pairs.values())) if audit.signed is None else audit.signed
    return interval.high - interval.low


def contradicts(audit: Any) -> bool:
    """Return whether a verdict claims more than the interval does."""
    low, _, high = audit.difference
    return (audit.verdict == "fair" and high > audit.omega) or (
        audit.verdict == "unfair" and low <= audit.omega
    )


def comparable(cell: Cell, notion: Notion, groups: list[Group]) -> bool:
    """Return whether the efficient normal interval is what the audit competes with."""
    if len(groups) != 2 or cell.applications > 1 or cell.looks > 1:
        return False
    if notion == "demographic":
        return True
    known = cell.knowledge == "propensity" and cell.score == "true"
    return known and all(group.accept.min() >= OVERLAP for group in groups)


def measure(
    cell: Cell, *, most: int = 2000, least: int = 200, seconds: float = 60
) -> list[dict[str, Any]]:
    """Audit logs until there are `most`, or until time is up and there are `least`.

    Every log has a seed of its own, so that stopping early leaves out logs and changes none.
    """
    groups = world(cell)
    tallies: dict[Notion, Tally] = {notion: Tally(cell, notion, groups) for notion in cell.notions}
    start = perf_counter()
    for log in range(most):
        if log >= least and perf_counter() - start > seconds:
            break
        # One tolerance an audit: the notions take turns at having it next to their truth.
        asked: Notion = cell.notions[log // 2 % len(cell.notions)]
        omega = tallies[asked].tolerance(log)
        columns = draw(cell, groups, np.random.default_rng([14, cell.number, log]))
        try:
            looks = [
                audit(cell, part, omega, seed=log, anytime=cell.looks > 1)
                for part in growing(cell, columns)
            ]
        except InputError:
            for tally in tallies.values():
                tally.refuse()
            continue
        for notion, tally in tallies.items():
            tally.add([look[notion] for look in looks], judged=notion == asked)
    return [asdict(tally.done()) for tally in tallies.values()]


def growing(cell: Cell, columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the log as it is at each look: twice as long every time."""
    rows = len(columns["group"])
    ends = [rows >> halvings for halvings in reversed(range(cell.looks))]
    return [{name: column[:end] for name, column in columns.items()} for end in ends]


def audit(
    cell: Cell, columns: dict[str, Any], omega: float, *, seed: int, **more: Any
) -> dict[Notion, Any]:
    """Return the audits of a log by notion, through the public functions."""
    options: dict[str, Any] = {**used(cell), "omega": omega, "seed": seed, **more}
    if cell.knowledge == "trusted":
        options["trust_rejected_outcomes"] = True
    if cell.knowledge == "estimated":
        options["model"] = "logistic"
    return sellf.audit_all(columns, notions=cell.notions, **options).by_notion
