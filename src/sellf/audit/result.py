"""What an audit found: it prints itself, turns into a frame, JSON or a picture."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sellf.audit.interval import Interval
from sellf.audit.schema import VERSION
from sellf.audit.verdict import Verdict
from sellf.fairness.bounds import Certificate
from sellf.fairness.notions import Notion, Rate, define
from sellf.fairness.tables import Table
from sellf.files import sealed
from sellf.logs.names import say
from sellf.numbers import confidence

MOST_PAIRED = 50
"""JSON holds the differences of all pairs for up to this many groups."""


class GroupFigures(NamedTuple):
    """What the log says of one group."""

    low: float
    value: float
    """The estimate; the middle of what is identified."""
    high: float
    people: int
    accepted: int
    naive: float
    """Among the accepted alone; NaN if there is nobody."""
    imputed: float
    """With predictions filled in for the rejected."""
    unidentified: float
    """The part of the width that more rows like these would not remove."""
    method: str


@dataclass(frozen=True)
class Origin:
    """What an audit was made of, and how."""

    command: str
    """To type for the same audit."""
    columns: dict[str, str]
    """The columns that were used, and as what."""
    rows: int
    fingerprint: str | None
    """A SHA-256 in hexadecimal; None for a log that stayed in its engine."""
    fingerprint_of: str
    """What it was taken of, or why there is none."""
    versions: dict[str, str]
    seed: int | None = None
    """Of what was drawn at random; the same seed repeats the audit exactly."""
    files: list[str] = field(default_factory=list)
    """The files that were read; none for a log in memory or in an engine."""


@dataclass(frozen=True)
class Waiting:
    """Whose outcome is not known yet, for notions that need outcomes."""

    cutoff: str | None
    """The last day of decisions that count; None: all count."""
    immature: dict[Any, int]
    """How many rows of each group are set aside, since they were decided later."""
    pending: dict[Any, int]
    """How many accepted people have no outcome, by group, among those who count."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "cutoff": self.cutoff,
            "immature": _by_name(self.immature),
            "pending": _by_name(self.pending),
        }


class Overlap(NamedTuple):
    """How likely people of each group were to be accepted, which says how much is known of them."""

    level: float
    """Below this propensity nothing is concluded from the accepted about the rejected."""
    by_group: dict[Any, tuple[int, ...]]
    """How many people there are in each tenth of the propensity's range, those below left out."""
    below: dict[Any, int]
    """How many people there are below."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "level": self.level,
            "by_group": {say(name): list(counts) for name, counts in self.by_group.items()},
            "below": _by_name(self.below),
        }


class Doubt(NamedTuple):
    """The disparity if decisions knew what the log does not hold."""

    level: float
    """L, by which the odds of acceptance of people who look alike may differ."""
    low: float
    high: float
    verdict: Verdict


@dataclass(frozen=True)
class Needed:
    """What would settle an open verdict."""

    people: dict[Any, int]
    """How many new applications of each group that decides; empty if it is not practicable."""
    labels: dict[Any, int]
    """How many of those would show an outcome; with exploration, how many more are accepted."""
    accept_share: float | None
    """What share of the rejected whose outcome nothing tells of to accept at random."""
    power: float | None
    """The chance that a new log of that size is settled."""
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "people": _by_name(self.people),
            "labels": _by_name(self.labels),
            "accept_share": self.accept_share,
            "power": self.power,
            "sentence": self.sentence,
        }


class Period(NamedTuple):
    """The audit of one period, and of everything up to its end."""

    name: str
    people: int
    value: float
    low: float
    high: float
    verdict: Verdict
    """Of the period alone."""
    so_far_low: float
    """Of all periods until then; NaN where the log drifts, so that periods speak for themselves."""
    so_far_high: float
    so_far: Verdict | None


@dataclass(frozen=True)
class Audit(Table):
    """Whether decisions were fair, as far as the log can tell."""

    notion: Notion
    omega: float
    """The disparity that is tolerated."""
    delta: float
    """The chance with which the interval may miss."""
    verdict: Verdict
    difference: Interval
    """Largest minus smallest utility over the groups."""
    signed: Interval | None
    """Second minus first of two groups, if they were bet on together; narrower than `by_group`."""
    by_group: dict[Any, GroupFigures]
    naive: float
    """The disparity among the accepted alone, which most tools report."""
    imputed: float
    """The disparity with predictions filled in."""
    needed: Needed | None
    """What would settle it; None if it is settled."""
    method: str
    finite_sample: bool
    """Whether the guarantee holds at this sample size, or for large ones only."""
    sensitivity: tuple[Doubt, ...]
    overturned_at: float | None
    """The smallest L that overturns the verdict; infinite if none does, None for an open one."""
    certificate: Certificate | None
    """What the paper's conditions certify on the same log."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    periods: tuple[Period, ...] = ()
    truth: dict[Any, float] | None = None
    """The known utilities, where the log was simulated."""
    overlap: Overlap | None = None
    """None where no propensities are known, or none are needed."""
    origin: Origin | None = None
    """What to type to get this again, on which data."""
    void: str | None = None
    """Why there can be no verdict, if the decisions contradict the propensities. The intervals are
    then those of a log that has none."""
    drift: str | None = None
    """What changed over the periods, if something did."""
    differences: dict[tuple[Any, Any], Interval] | None = None
    """Second minus first of every two groups, if judged together."""
    waiting: Waiting | None = None
    """Whose outcome is not known yet; None if there is nobody, or if no outcomes are needed."""
    quality: Any = None
    """What there is to know of the data (`quality.Quality`), before anything is concluded."""
    parts: dict[str, "Audit"] = field(default_factory=dict)
    """Of a notion that asks several rates to be equal, the audit of each; figures by group are
    those of the rate whose disparity is largest."""
    measures: dict[str, Any] = field(default_factory=dict)
    """What else was asked for, by name: "panel" and the like; see `measures.KINDS`."""

    @property
    def pairs(self) -> dict[tuple[Any, Any], Interval]:
        """The difference of every two groups, second minus first, all at once."""
        items = list(self.by_group.items())
        if self.signed is not None:
            return {(items[0][0], items[1][0]): self.signed}
        if self.differences is not None:
            return self.differences
        return {
            (a, b): Interval(y.low - x.high, y.value - x.value, y.high - x.low)
            for i, (a, x) in enumerate(items)
            for b, y in items[i + 1 :]
        }

    @property
    def rate(self) -> Rate:
        """What figures by group are of: the notion's rate, or the one that differs most."""
        if not self.parts:
            return define(self.notion).alone
        largest = max(self.parts.values(), key=lambda part: part.difference.value)
        return largest.rate

    def _title(self) -> str:
        low, value, high = self.difference
        known = all(group.unidentified < 1 for group in self.by_group.values())
        kind = "" if self.finite_sample else ", asymptotic"
        if self.void is not None:
            return (
                f"{self.notion} disparity UNDETERMINED: the propensities contradict the decisions. "
                f"Without them it is between {low:.3f} and {high:.3f} ({confidence(self.delta)} "
                "confidence)"
            )
        return (
            f"{self.notion} disparity {f'{value:.3f}' if known else 'undefined'}, between "
            f"{low:.3f} and {high:.3f} ({confidence(self.delta)} confidence{kind}): "
            f"{self.verdict.upper()} at tolerance {self.omega:g}"
        )

    def _table(self) -> dict[str, list[Any]]:
        groups = list(self.by_group.values())
        columns: dict[str, list[Any]] = {
            "group": [say(name) for name in self.by_group],
            "people": [group.people for group in groups],
            "accepted": [group.accepted for group in groups],
            "naive": [group.naive for group in groups],
            "imputed": [group.imputed for group in groups],
            "ours": [group.value if group.unidentified < 1 else float("nan") for group in groups],
            "low": [group.low for group in groups],
            "high": [group.high for group in groups],
            "unidentified": [group.unidentified for group in groups],
        }
        if self.truth is not None:
            columns["truth"] = [self.truth[name] for name in self.by_group]
        return columns

    def __str__(self) -> str:
        from sellf.audit.printing import report

        return report(self, super().__str__())

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as plain values; what is not a number is None."""
        return {
            "schema_version": VERSION,
            "notion": self.notion,
            "omega": self.omega,
            "delta": self.delta,
            "verdict": self.verdict,
            "difference": _plain(self.difference),
            "naive": _number(self.naive),
            "imputed": _number(self.imputed),
            "method": self.method,
            "finite_sample": self.finite_sample,
            "by_group": [
                {
                    "group": _name(name),
                    **_plain(group),
                    "imputation_bias": _number(group.imputed - group.value),
                }
                for name, group in self.by_group.items()
            ],
            "pairs": [
                {"first": _name(a), "second": _name(b), **_plain(interval)}
                for (a, b), interval in (
                    self.pairs if len(self.by_group) <= MOST_PAIRED else {}
                ).items()
            ],
            "needed": None if self.needed is None else self.needed.to_dict(),
            "sensitivity": [_plain(doubt) for doubt in self.sensitivity],
            "overturned_at": _number(self.overturned_at),
            "never_overturned": self.overturned_at == float("inf"),
            "certificate": self._certificate(),
            "assumptions": list(self.assumptions),
            "warnings": list(self.warnings),
            "void": self.void,
            "drift": self.drift,
            "parts": {name: part.to_dict() for name, part in self.parts.items()},
            "periods": [_plain(period) for period in self.periods],
            "truth": None if self.truth is None else _by_name(self.truth),
            "overlap": None if self.overlap is None else self.overlap.to_dict(),
            "origin": None if self.origin is None else asdict(self.origin),
            "waiting": None if self.waiting is None else self.waiting.to_dict(),
            "quality": None if self.quality is None else self.quality.to_dict(),
            "measures": {name: found.to_dict() for name, found in self.measures.items()},
        }

    def _certificate(self) -> dict[str, Any] | None:
        found = self.certificate
        if found is None:
            return None
        figures = ("disparity_bound", "imputed", "bias", "limit", "v")
        shares = zip(self.by_group, found.share_by_group.values(), strict=True)
        return {
            "certified": found.certified,
            **{name: _number(getattr(found, name)) for name in figures},
            "share_by_group": {say(name): _number(share) for name, share in shares},
        }

    def to_json(self) -> str:
        """Return every figure as JSON, with a checksum."""
        return _json(sealed(self.to_dict()))

    def plot(self) -> Any:
        """Draw each group's interval beside the naive and the imputed figure; needs matplotlib."""
        from sellf.audit.picture import draw

        return draw(self)


@dataclass(frozen=True)
class Audits(Table):
    """The audits of several notions on one log."""

    by_notion: dict[Notion, Audit]

    def __getitem__(self, notion: Notion) -> Audit:
        return self.by_notion[notion]

    def _title(self) -> str:
        first = next(iter(self.by_notion.values()))
        return (
            f"Disparity by notion, tolerance {first.omega:g}, each with {confidence(first.delta)} "
            "confidence"
        )

    def _table(self) -> dict[str, list[Any]]:
        audits = list(self.by_notion.values())
        return {
            "notion": list(self.by_notion),
            "naive": [audit.naive for audit in audits],
            "imputed": [audit.imputed for audit in audits],
            "ours": [audit.difference.value for audit in audits],
            "low": [audit.difference.low for audit in audits],
            "high": [audit.difference.high for audit in audits],
            "verdict": [audit.verdict for audit in audits],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as plain values, by notion."""
        return {str(notion): audit.to_dict() for notion, audit in self.by_notion.items()}

    def to_json(self) -> str:
        """Return every figure as JSON, each audit with a checksum."""
        return _json({name: sealed(content) for name, content in self.to_dict().items()})

    def plot(self) -> Any:
        """Draw each notion's interval beside the naive and the imputed figure; needs matplotlib."""
        from sellf.audit.picture import draw_notions

        return draw_notions(self)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _by_name(values: dict[Any, Any]) -> dict[str, Any]:
    return {say(name): value for name, value in values.items()}


def _name(name: Any) -> Any:
    return list(map(str, name)) if isinstance(name, tuple) else say(name)


def _plain(figures: Any) -> dict[str, Any]:
    return {key: _number(value) for key, value in figures._asdict().items()}


def _number(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
