"""Results of `sellf.whatif`: measures under both policies with intervals, and verdicts."""

import json
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

from sellf.audit.interval import Interval
from sellf.fairness.tables import Table
from sellf.logs.names import say
from sellf.numbers import confidence, defined, or_none

EVERYONE = "everyone"


class Change(NamedTuple):
    """One measure under both policies, and the paired difference between them."""

    measure: str
    """"reward", "acceptance", or a notion."""
    group: Any
    """The group; None: everybody, or for a notion the disparity between groups."""
    now: Interval
    proposed: Interval
    change: Interval
    relative: Interval | None = None
    """Change of the reward as a share of the current one; None if that may be 0 or less."""

    @property
    def direction(self) -> str:
        """Whether the measure "rises", "falls", or may do either ("open")."""
        if self.change.low > 0:
            return "rises"
        return "falls" if self.change.high < 0 else "open"

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain values."""
        ends = {
            f"{name}_{end}": or_none(getattr(getattr(self, name), end))
            for name in ("now", "proposed", "change")
            for end in Interval._fields
        }
        if self.measure == "reward":
            ends |= {
                f"relative_{end}": None if self.relative is None else getattr(self.relative, end)
                for end in Interval._fields
            }
        group = None if self.group is None else say(self.group)
        return {"measure": self.measure, "group": group, **ends, "direction": self.direction}


@dataclass(frozen=True)
class WhatIf(Table):
    """A policy compared with the one that made the decisions, on the same people."""

    changes: tuple[Change, ...]
    cost: float | None
    omega: float
    delta: float
    people: int
    finite_sample: bool
    policy: str
    """Name of the proposed policy."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    void: str | None = None
    """Why the propensities were not used."""
    unidentified: float = 0.0
    """Share of people whom the proposed policy accepts and the log has no information about."""
    seed: int = 0

    def __getitem__(self, measure: str) -> Change:
        """Return the overall change of a measure; for a notion, that of its disparity."""
        found = {change.measure: change for change in self.changes if change.group is None}
        if measure not in found:
            raise KeyError(f"{measure!r} was not compared: there are {', '.join(found)}.")
        return found[measure]

    @property
    def sentences(self) -> tuple[str, ...]:
        """A verdict on each overall measure, in words."""
        return tuple(
            _sentence(change, self.omega) for change in self.changes if change.group is None
        )

    def _title(self) -> str:
        kind = "" if self.finite_sample else ", asymptotic"
        return (
            f"What if: {self.policy} in place of the decisions made, {self.people:,} people "
            f"({confidence(self.delta)} confidence each{kind})"
        )

    def _table(self) -> dict[str, list[Any]]:
        rows = [change.to_dict() for change in self.changes]
        for row in rows:
            row["group"] = row["group"] or EVERYONE
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    def __str__(self) -> str:
        rows = [("", "", "now", "proposed", "change")]
        for change in self.changes:
            what = change.measure
            if change.group is None and what not in ("reward", "acceptance"):
                what += " disparity"
            who = EVERYONE if change.group is None else say(change.group)
            cells = (ranged(change.now), ranged(change.proposed), ranged(change.change, sign=True))
            rows.append((what, who, *cells))
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        told = [f"- {sentence}" for sentence in self.sentences]
        notes = [f"note: {text}" for text in self.warnings]
        if self.void:
            notes.insert(0, f"note: {self.void} The intervals above do not use them.")
        assumed = ["assumed: " + "; ".join(self.assumptions)]
        return "\n".join([self._title(), "", *lines, "", *told, "", *notes, *assumed])

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain values."""
        return {
            "policy": self.policy,
            "people": self.people,
            "cost": self.cost,
            "omega": self.omega,
            "delta": self.delta,
            "finite_sample": self.finite_sample,
            "changes": [change.to_dict() for change in self.changes],
            "sentences": list(self.sentences),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
            "void": self.void,
            "unidentified": self.unidentified,
            "seed": self.seed,
        }

    def to_json(self) -> str:
        """Return all results as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def plot(self) -> Any:
        """Draw every measure under both policies; needs matplotlib."""
        from sellf.offline.plots import draw_changes

        return draw_changes(self)


def ranged(interval: Interval, *, sign: bool = False) -> str:
    """Return an estimate with its interval, as it is printed."""
    plus = "+" if sign else ""
    value = defined(interval.value, f"{plus}z.3f")
    return f"{value} ({interval.low:{plus}z.3f} to {interval.high:{plus}z.3f})"


def _sentence(change: Change, omega: float) -> str:
    low, _, high = change.change
    if change.measure == "reward":
        return _earns(change)
    if change.measure == "acceptance":
        words = {
            "rises": "accepts more",
            "falls": "accepts fewer",
            "open": "no difference in acceptance shown",
        }
        return f"{words[change.direction]}: {_between(low, high)} of everyone"
    if isnan(change.proposed.value) or isnan(change.now.value):
        when = "under the policy" if isnan(change.proposed.value) else "now"
        return f"{change.measure}: undefined {when}, since it is about nobody in some group"
    within = ""
    if change.proposed.high <= omega:
        within = f", and within {omega:g}"
    elif change.proposed.low > omega:
        within = f", and above {omega:g}"
    if change.direction == "falls":
        return f"{change.measure}: fairer, by {-high:.3f} to {-low:.3f}{within}"
    if change.direction == "rises":
        return f"{change.measure}: less fair, by {low:.3f} to {high:.3f}{within}"
    return f"{change.measure}: no difference shown, between {low:+z.3f} and {high:+z.3f}{within}"


def _earns(change: Change) -> str:
    low, _, high = change.change
    said = f"between {low:+z.4f} and {high:+z.4f} per person"
    if change.relative is not None:
        low, _, high = change.relative
        said = f"between {low:+z.1%} and {high:+z.1%} of what is earned now"
    words = {"rises": "earns more", "falls": "earns less", "open": "no difference in reward shown"}
    return f"{words[change.direction]}: {said}"


def _between(low: float, high: float) -> str:
    return f"between {low:+z.1%} and {high:+z.1%}"
