"""Comparison of the disparity in two logs."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from sellf.audit.interval import Interval
from sellf.audit.measured import Measured
from sellf.audit.result import Audit
from sellf.errors import InputError
from sellf.fairness.notions import Notion
from sellf.logs.names import say
from sellf.numbers import confidence

Direction: TypeAlias = Literal["larger", "smaller", "undetermined"]


def direction(change: Interval) -> Direction:
    """Return the direction of a change, if its interval excludes 0."""
    if change.low > 0:
        return "larger"
    return "smaller" if change.high < 0 else "undetermined"


@dataclass(frozen=True)
class GroupChange:
    """One group's rate in both logs."""

    group: str
    old: Interval
    new: Interval
    change: Interval


@dataclass(frozen=True)
class Change(Measured):
    """The disparity of a notion in two logs, and the difference between them."""

    key: ClassVar[str] = "change"
    heading: ClassVar[str] = "What changed"

    notion: str
    delta: float
    old: Interval
    new: Interval
    change: Interval
    """The new disparity minus the old one."""
    verdict: Direction
    groups: tuple[GroupChange, ...]

    def check(self) -> None:
        """Raise ValueError if the verdict does not follow from the figures beside it."""
        if direction(self.change) != self.verdict:
            raise ValueError("the verdict on the change does not follow from its interval")

    def _title(self) -> str:
        low, value, high = self.change
        said = {
            "larger": "LARGER than before",
            "smaller": "SMALLER than before",
            "undetermined": "NO CHANGE SHOWN",
        }[self.verdict]
        return (
            f"{self.notion} disparity {self.old.value:.3f} before and {self.new.value:.3f} now, a "
            f"change of {value:+.3f}, between {low:+.3f} and {high:+.3f} ({confidence(self.delta)} "
            f"confidence): {said}"
        )

    def _table(self) -> dict[str, list[Any]]:
        rows = (self, *self.groups)
        columns: dict[str, list[Any]] = {"of": ["disparity", *(one.group for one in self.groups)]}
        for name in ("old", "new", "change"):
            spans: list[Interval] = [getattr(row, name) for row in rows]
            columns[name] = [span.value for span in spans]
            columns[f"{name} low"] = [span.low for span in spans]
            columns[f"{name} high"] = [span.high for span in spans]
        return columns

    def notes(self) -> list[str]:
        """Return the assumptions and the joint confidence level."""
        return [
            "Assumed: what each audit assumes, and that the two logs are independent draws.",
            f"All of the changes hold together with {confidence(self.delta)} confidence: each log "
            "gets half of delta, and half of that is for its groups.",
        ]


def audit_change(old: Any, new: Any, *, notion: Notion = "opportunity", **options: Any) -> Change:
    """Compare the disparity of two logs, or of two periods of one log.

    Args:
        old: the earlier log, as for `sellf.audit`.
        new: the later log.
        notion: the notion of fairness.
        options: options as for `sellf.audit`, the same for both logs.
    """
    from sellf.audit.run import audit

    delta = options.pop("delta", 0.05)
    both = [
        # The interval of the disparity and those of the groups each get half of a log's share.
        audit(log, notion=notion, delta=delta / 4, **options)
        for log in (old, new)
    ]
    return of_audits(both[0], both[1], delta)


def of_audits(old: Audit, new: Audit, delta: float) -> Change:
    """Return the change between two audits of one notion, each made with a quarter of delta."""
    if old.notion != new.notion:
        raise InputError(f"one audit is of {old.notion}, the other of {new.notion}.")
    shared = [name for name in old.by_group if name in new.by_group]
    if len(shared) < 2:
        raise InputError(
            "the two logs have fewer than two groups in common: name the same groups in both."
        )
    groups = []
    for name in shared:
        first, second = old.by_group[name], new.by_group[name]
        before = Interval(first.low, first.value, first.high)
        after = Interval(second.low, second.value, second.high)
        groups.append(GroupChange(say(name), before, after, _less(after, before)))
    change = _less(new.difference, old.difference)
    return Change(
        old.notion, delta, old.difference, new.difference, change, direction(change), tuple(groups)
    )


def _less(after: Interval, before: Interval) -> Interval:
    return Interval(after.low - before.high, after.value - before.value, after.high - before.low)
