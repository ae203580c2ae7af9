"""Results of an audit, which convert to text, data frames, JSON and plots."""

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
    """Figures of one group."""

    low: float
    value: float
    """The estimate: the midpoint of the identified range."""
    high: float
    people: int
    accepted: int
    naive: float
    """Estimate among the accepted alone; NaN if there are none."""
    imputed: float
    """Estimate with predictions filled in for the rejected."""
    unidentified: float
    """The part of the width that more rows like these would not remove."""
    method: str


@dataclass(frozen=True)
class Origin:
    """Provenance of an audit: command, data, versions and seed."""

    command: str
    """The command or Python call that repeats the audit."""
    columns: dict[str, str]
    """The columns that were used, and their roles."""
    rows: int
    fingerprint: str | None
    """A SHA-256 in hexadecimal; None for a log that stayed in its engine."""
    fingerprint_of: str
    """What the fingerprint covers, or why there is none."""
    versions: dict[str, str]
    seed: int | None = None
    """Random seed; the same seed repeats the audit exactly."""
    files: list[str] = field(default_factory=list)
    """The files that were read; none for a log in memory or in an engine."""


@dataclass(frozen=True)
class Waiting:
    """Rows and people whose outcome is not known yet, for notions that need outcomes."""

    cutoff: str | None
    """The last day of decisions that count; None: all count."""
    immature: dict[Any, int]
    """Number of rows of each group that are set aside because they were decided later."""
    pending: dict[Any, int]
    """Number of accepted people without an outcome, by group, among those who count."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "cutoff": self.cutoff,
            "immature": _by_name(self.immature),
            "pending": _by_name(self.pending),
        }


class Overlap(NamedTuple):
    """Distribution of the propensity in each group."""

    level: float
    """The smallest propensity used for weighting."""
    by_group: dict[Any, tuple[int, ...]]
    """Number of people in each tenth of the propensity's range, without those below `level`."""
    below: dict[Any, int]
    """Number of people below `level`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "level": self.level,
            "by_group": {say(name): list(counts) for name, counts in self.by_group.items()},
            "below": _by_name(self.below),
        }


class Doubt(NamedTuple):
    """Range of the disparity under hidden confounding."""

    level: float
    """L, the factor by which the odds of acceptance of people who look alike may differ."""
    low: float
    high: float
    verdict: Verdict


@dataclass(frozen=True)
class Needed:
    """New data that would settle an undetermined verdict."""

    people: dict[Any, int]
    """Number of new applications of each deciding group; empty if it is not practicable."""
    labels: dict[Any, int]
    """Number of those with an outcome; with exploration, number of additional acceptances."""
    accept_share: float | None
    """Share of the rejected without overlap to accept at random; None without exploration."""
    power: float | None
    """Probability that a new log of that size is settled."""
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "people": _by_name(self.people),
            "labels": _by_name(self.labels),
            "accept_share": self.accept_share,
            "power": self.power,
            "sentence": self.sentence,
        }


class Period(NamedTuple):
    """The audit of one period, and of all periods up to its end."""

    name: str
    people: int
    value: float
    low: float
    high: float
    verdict: Verdict
    """Of the period alone."""
    so_far_low: float
    """Lower end for all periods up to this one; NaN if the log drifts."""
    so_far_high: float
    so_far: Verdict | None


@dataclass(frozen=True)
class Audit(Table):
    """The result of auditing a decision log for one notion of fairness."""

    notion: Notion
    omega: float
    """The tolerated disparity."""
    delta: float
    """One minus the confidence level."""
    verdict: Verdict
    difference: Interval
    """Largest minus smallest utility over the groups."""
    signed: Interval | None
    """Second minus first of two groups, if judged together; narrower than `by_group` implies."""
    by_group: dict[Any, GroupFigures]
    naive: float
    """The disparity among the accepted alone, which most tools report."""
    imputed: float
    """The disparity with predictions filled in for the rejected."""
    needed: Needed | None
    """What would settle the verdict; None if it is settled, or if this cannot be estimated."""
    method: str
    finite_sample: bool
    """Whether the guarantee holds at this sample size, or only asymptotically."""
    sensitivity: tuple[Doubt, ...]
    overturned_at: float | None
    """The smallest L that overturns the verdict; infinite if none does, None if undetermined."""
    certificate: Certificate | None
    """What the paper's conditions certify on the same log."""
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    periods: tuple[Period, ...] = ()
    truth: dict[Any, float] | None = None
    """The true utilities by group, if the log was simulated."""
    overlap: Overlap | None = None
    """None where no propensities are known, or none are needed."""
    origin: Origin | None = None
    """The command, data and versions behind the audit."""
    void: str | None = None
    """Why there is no verdict, if the decisions contradict the propensities. The intervals are then
    those of a log without propensities."""
    drift: str | None = None
    """Description of the change over the periods, if one was detected."""
    differences: dict[tuple[Any, Any], Interval] | None = None
    """Second minus first group for every pair of groups, if judged together."""
    waiting: Waiting | None = None
    """Outcomes that are not known yet; None if there are none, or if no outcomes are needed."""
    quality: Any = None
    """Description of the data and its possible problems (`quality.Quality`)."""
    parts: dict[str, "Audit"] = field(default_factory=dict)
    """For a notion that requires several rates to be equal, the audit of each rate; figures by
    group are those of the rate with the largest disparity."""
    measures: dict[str, Any] = field(default_factory=dict)
    """Further requested results by name, such as "panel"; see `measures.KINDS`."""

    @property
    def pairs(self) -> dict[tuple[Any, Any], Interval]:
        """The difference of every pair of groups, second minus first; all hold together."""
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
        """The rate shown by group: the notion's rate, or the one with the largest disparity."""
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
        """Return every figure as plain values; NaN and infinite values become None."""
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
