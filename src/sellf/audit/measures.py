"""What an audit adds to the disparity where it is asked for: the table of such results."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sellf.audit.evidence import Evidence
from sellf.audit.ladder import Ladder
from sellf.audit.measured import Measured
from sellf.audit.panel import Panel
from sellf.audit.result import Audit
from sellf.errors import InputError
from sellf.fairness.notions import define
from sellf.logs.columns import name_of

KINDS: dict[str, type[Measured]] = {kind.key: kind for kind in (Ladder, Panel)}
"""The results by name, in the order in which they are shown."""


@dataclass(frozen=True)
class Wanted:
    """What was asked for beside the disparity."""

    panel: bool = False
    reference: str | None = None
    unknown: tuple[str, ...] = ()
    ladder: bool = False
    examiner: str | None = None

    @property
    def anything(self) -> bool:
        """Whether anything was."""
        return self.panel or self.ladder

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns it needs, each with the option that named it."""
        return () if self.examiner is None else ((self.examiner, "examiner"),)


def wanted(options: dict[str, Any]) -> Wanted:
    """Return what was asked for, taken out of the options of an audit."""
    reference = options.pop("reference")
    unknown = options.pop("unknown_group")
    unknown = (unknown,) if isinstance(unknown, str) else tuple(unknown)
    panel = bool(options.pop("panel")) or reference is not None or bool(unknown)
    examiner = options.pop("examiner")
    examiner = None if examiner is None else name_of(examiner, "examiner")
    ladder = bool(options.pop("ladder")) or examiner is not None
    found = Wanted(panel, reference, tuple(map(str, unknown)), ladder, examiner)
    if found.anything and options["anytime"]:
        raise InputError(
            "anytime bounds the disparity alone: leave out --anytime, or --panel and the like."
        )
    return found


def measured(audit: Audit, evidence: Evidence, asked: Wanted) -> Audit:
    """Return an audit with what else was asked for; of several rates, each with its own."""
    if not asked.anything:
        return audit
    if audit.parts:
        parts = {name: measured(part, evidence, asked) for name, part in audit.parts.items()}
        return replace(audit, parts=parts)
    usable = evidence if audit.void is None else evidence.without_propensities()
    found: list[Measured] = []
    if asked.ladder:
        from sellf.audit.rungs import ladder

        found += [one for one in (ladder(audit, evidence, asked.examiner),) if one is not None]
    if asked.panel:
        found.append(_panel(audit, usable, asked))
    return replace(audit, measures={one.key: one for one in found})


def _panel(audit: Audit, evidence: Evidence, asked: Wanted) -> Panel:
    from sellf.audit.comparing import panel

    value = np.array([group.value for group in audit.by_group.values()])
    how = {"delta": audit.delta, "reference": asked.reference, "unknown": asked.unknown}
    return panel(define(audit.notion).alone, evidence, value, **how)
