"""Audit many logs of one cell and count what was wrong."""

from dataclasses import asdict, dataclass, field, fields
from time import process_time
from typing import Any

import numpy as np

import sellf
from coverage_study.cells import Cell
from coverage_study.worlds import (
    EFFICIENT,
    OVERLAP,
    Group,
    draw,
    efficient_width,
    truths,
    used,
    world,
)
from sellf.errors import InputError
from sellf.fairness.notions import Notion, define

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
    by_group: list[int] = field(default_factory=list)
    """Misses of each group's own interval."""
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
    earlier: bool = False
    """Whether the intervals have changed since, so that these are figures of earlier ones."""

    @property
    def missed(self) -> int:
        """How many disparities are not in their interval."""
        return self.above + self.below

    @property
    def worst_group(self) -> int:
        """Misses of the group that is missed most often."""
        return max(self.by_group, default=0)

    def plus(self, more: "Counts") -> "Counts":
        """Return the counts of these logs and of others of the same cell."""
        found: dict[str, Any] = {}
        audited = [counts.logs - counts.refused for counts in (self, more)]
        for name in (one.name for one in fields(self)):
            one, two = getattr(self, name), getattr(more, name)
            if name == "by_group":
                found[name] = [a + b for a, b in zip(one, two, strict=True)]
            elif name in ("cell", "notion", "truth", "efficient", "earlier") or None in (one, two):
                found[name] = one
            elif name in ("width", "ratio"):
                found[name] = (audited[0] * one + audited[1] * two) / max(sum(audited), 1)
            else:
                found[name] = one + two
        return Counts(**found)


class Tally:
    """Counts of one notion as they come in."""

    def __init__(self, cell: Cell, notion: Notion, groups: list[Group]):
        self.true = {rate.name: truths(groups)[rate.name] for rate in define(notion).rates}
        truth = max(float(np.ptp(values)) for values in self.true.values())
        self.counts = Counts(cell.number, notion, truth)
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
        c.by_group = self.by_group.tolist()
        if self.widths:
            c.width, signed = map(float, np.mean(self.widths, axis=0))
            c.ratio = None if c.efficient is None else signed / c.efficient
        return c

    def _groups(self, audit: Any) -> np.ndarray:
        """Return which groups' intervals miss; a group that is not there yet misses nothing.

        Of a notion with several rates those of every rate have to hold.
        """
        found = np.zeros(len(self.by_group), dtype=bool)
        for rate, true in self.true.items():
            part = audit if len(self.true) == 1 else audit.parts[rate]
            for name, figures in part.by_group.items():
                found[int(name)] |= not figures.low <= true[int(name)] <= figures.high
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
    if notion not in EFFICIENT:
        return False
    known = cell.knowledge == "propensity" and cell.score == "true"
    return known and all(group.accept.min() >= OVERLAP for group in groups)


def measure(
    cell: Cell, *, first: int = 0, most: int = 2000, least: int = 200, seconds: float = 60
) -> list[dict[str, Any]]:
    """Audit logs until there are `most`, or until time is up and there are `least`.

    Every log has a seed of its own, so that stopping early leaves out logs and changes none. Time
    is the processor's, so that what else the machine does changes nothing either.

    Args:
        cell: to measure.
        first: how many logs of it were audited before.
        most: how many there are to be with these.
        least: how many, if time is up.
        seconds: after which it is.
    """
    groups = world(cell)
    tallies: dict[Notion, Tally] = {notion: Tally(cell, notion, groups) for notion in cell.notions}
    start = process_time()
    for log in range(first, most):
        if log >= least and process_time() - start > seconds:
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
