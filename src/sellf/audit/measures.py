"""Optional results of an audit in addition to the disparity."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sellf.audit.evidence import Evidence
from sellf.audit.ladder import Ladder
from sellf.audit.measured import Measured
from sellf.audit.panel import Panel
from sellf.audit.proxy import Proxy
from sellf.audit.result import Audit
from sellf.audit.strata import Within
from sellf.errors import InputError
from sellf.fairness.notions import define
from sellf.logs.columns import name_of, names_of

KINDS: dict[str, type[Measured]] = {kind.key: kind for kind in (Proxy, Ladder, Panel, Within)}
"""The kinds of results by name, in the order in which they are shown."""


@dataclass(frozen=True)
class Wanted:
    """The results requested in addition to the disparity."""

    panel: bool = False
    reference: str | None = None
    unknown: tuple[str, ...] = ()
    ladder: bool = False
    examiner: str | None = None
    within: tuple[str, ...] = ()
    proxy: str | None = None
    weight: str | None = None
    joint: bool = False

    @property
    def anything(self) -> bool:
        """Whether a panel, a ladder or strata were requested."""
        return self.panel or self.ladder or bool(self.within)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns that these results need, each with the option that named it."""
        single = (
            (self.examiner, "examiner"),
            (self.proxy, "group_probability"),
            (self.weight, "weight"),
        )
        named = [(name, option) for name, option in single if name is not None]
        return (*named, *((name, "within") for name in self.within))


def wanted(options: dict[str, Any]) -> Wanted:
    """Return the requested results and remove their options from those of an audit."""
    reference = options.pop("reference")
    unknown = options.pop("unknown_group")
    unknown = (unknown,) if isinstance(unknown, str) else tuple(unknown)
    panel = bool(options.pop("panel")) or bool(unknown)
    within = _listed(options.pop("within"))
    panel |= reference is not None and not within
    examiner = options.pop("examiner")
    examiner = None if examiner is None else name_of(examiner, "examiner")
    ladder = bool(options.pop("ladder")) or examiner is not None
    found = Wanted(
        panel=panel,
        reference=reference,
        unknown=tuple(map(str, unknown)),
        ladder=ladder,
        examiner=examiner,
        within=within,
        proxy=_proxy(options),
        weight=_weight(options),
        joint=bool(options.pop("joint")),
    )
    for name, option in found.columns:
        for role in ("decision", "outcome", "group"):
            given = options[role]
            if name == given or (isinstance(given, list | tuple) and name in given):
                flag = option.replace("_", "-")
                raise InputError(
                    f"{option} is {name!r}, the {role} itself: type --{flag} with another column."
                )
    if found.anything and options["anytime"]:
        raise InputError(
            "anytime bounds the disparity alone: leave out --anytime, or --panel, --ladder and "
            "--within."
        )
    if found.weight is not None and (found.ladder or found.within or found.proxy):
        raise InputError(
            "weight is available for the disparity and --panel: leave out --ladder, --examiner, "
            "--within and --group-probability, or --weight."
        )
    if found.proxy is not None and found.anything:
        raise InputError(
            "group_probability bounds one difference: leave out --panel, --reference, --ladder, "
            "--examiner and --within, or name a column of groups with --group."
        )
    return found


def _weight(options: dict[str, Any]) -> str | None:
    """Return the column of weights, checked against the other options."""
    if options["weight"] is None:
        return None
    for name in ("by", "anytime", "person"):
        if options[name]:
            raise InputError(f"--weight does not go with --{name}: leave one of them out.")
    return name_of(options["weight"], "weight")


def _proxy(options: dict[str, Any]) -> str | None:
    """Return the column of group probabilities, checked against the other options."""
    if options["group_probability"] is None:
        return None
    column = name_of(options["group_probability"], "group_probability")
    if options["group"]:
        raise InputError(
            "group and group_probability are both named: give the column of groups, or the chance "
            "of belonging to one that is not recorded."
        )
    for name in ("by", "anytime", "person", "matures_after"):
        if options[name]:
            flag = name.replace("_", "-")
            raise InputError(
                f"--group-probability does not go with --{flag}: leave one of them out."
            )
    return column


def _listed(names: Any) -> tuple[str, ...]:
    """Return the names of columns given one by one or separated by commas."""
    several = (names,) if isinstance(names, str) else names_of(names, "within")
    return names_of([part.strip() for name in several for part in name.split(",")], "within")


def measured(audit: Audit, evidence: Evidence, asked: Wanted) -> Audit:
    """Add the requested results to an audit, or to each of its parts if it has several rates."""
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
    if asked.within:
        from sellf.audit.standardising import within

        found.append(within(audit, usable, asked.within, asked.reference))
    return replace(audit, measures={one.key: one for one in found})


def _panel(audit: Audit, evidence: Evidence, asked: Wanted) -> Panel:
    from sellf.audit.comparing import panel

    value = np.array([group.value for group in audit.by_group.values()])
    how = {"delta": audit.delta, "reference": asked.reference, "unknown": asked.unknown}
    return panel(define(audit.notion).alone, evidence, value, **how)
