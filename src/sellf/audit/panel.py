"""The panel of measures that validators and regulators require, each with an interval."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from sellf.audit.interval import Interval
from sellf.audit.measured import Measured
from sellf.numbers import confidence

FOUR_FIFTHS = 0.8
"""The ratio of selection rates below which adverse impact is presumed (29 CFR 1607.4 D)."""
SMALL = 0.02
"""New York's rules for bias audits allow leaving out categories with a smaller share of people."""

MOST_LISTED = 20
"""The largest number of categories in a printed table; the report and the JSON have all."""

Impact: TypeAlias = Literal["at least 0.8", "below 0.8", "undetermined"]


def impact(ratio: Interval) -> Impact:
    """Return on which side of four fifths a ratio lies."""
    if ratio.low >= FOUR_FIFTHS:
        return "at least 0.8"
    return "below 0.8" if ratio.high < FOUR_FIFTHS else "undetermined"


@dataclass(frozen=True)
class Comparison:
    """One group compared with another."""

    group: str
    against: str
    difference: Interval
    """The group's rate minus the other's."""
    ratio: Interval
    """The group's rate over the other's."""
    odds_ratio: Interval
    impact: Impact
    test: str
    """The classical test of equal rates on the observed outcomes."""
    p_value: float
    direction: str
    """A sentence that says which group fares better."""


@dataclass(frozen=True)
class ScoreGap:
    """The standardised mean difference of scores."""

    group: str
    against: str
    mean: float
    other_mean: float
    smd: Interval
    """The difference of mean scores over their pooled standard deviation."""


@dataclass(frozen=True)
class CalibrationBand:
    """The share of good outcomes in a score band, including hidden outcomes."""

    group: str
    score_from: float
    score_to: float
    people: int
    mean_score: float
    good: Interval
    inside: bool
    """Whether the mean score lies in the interval of the share of good outcomes."""


@dataclass(frozen=True)
class Selection:
    """A row of New York's table: a category's selection rate and impact ratio."""

    category: str
    people: int
    selected: int
    selection_rate: Interval
    impact_ratio: Interval
    """Ratio to the category with the highest rate among those that count."""
    small: bool
    """Whether the category has less than 2% of the people, so that it may be left out."""
    unknown: bool
    """Whether it holds the people whose category is not known, who are counted only."""


@dataclass(frozen=True)
class Panel(Measured):
    """Groups compared by several measures."""

    key: ClassVar[str] = "panel"
    heading: ClassVar[str] = "Measures for validators and regulators"

    rate: str
    whom: str
    what: str
    delta: float
    reference: str | None
    """The group that others are compared with; None: the group with the largest rate."""
    impact_ratio: Interval
    """The smallest ratio of two compared groups' rates, the smaller over the larger."""
    verdict: Impact
    finite_sample: bool
    comparisons: tuple[Comparison, ...]
    scores: tuple[ScoreGap, ...] = ()
    calibration: tuple[CalibrationBand, ...] = ()
    selection: tuple[Selection, ...] = ()

    def check(self) -> None:
        """Raise ValueError if a verdict does not follow from the figures beside it."""
        found = [(self.verdict, self.impact_ratio)]
        found += [(one.impact, one.ratio) for one in self.comparisons]
        if any(impact(ratio) != said for said, ratio in found):
            raise ValueError("a verdict on a ratio does not follow from its interval")

    def _title(self) -> str:
        low, value, high = self.impact_ratio
        kind = "" if self.finite_sample else ", asymptotic"
        return (
            f"Adverse impact ratio of {self.rate} {value:.3f}, between {low:.3f} and {high:.3f} "
            f"({confidence(self.delta)} confidence{kind}): {self.verdict.upper()}"
        )

    def _table(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {
            "group": [one.group for one in self.comparisons],
            "against": [one.against for one in self.comparisons],
        }
        for name in ("difference", "ratio", "odds_ratio"):
            found = [getattr(one, name) for one in self.comparisons]
            label = name.replace("_", " ")
            columns[label] = [interval.value for interval in found]
            columns[f"{label} low"] = [interval.low for interval in found]
            columns[f"{label} high"] = [interval.high for interval in found]
        columns["four fifths"] = [one.impact for one in self.comparisons]
        columns["p"] = [one.p_value for one in self.comparisons]
        return columns

    def notes(self) -> list[str]:
        """Return the comparisons in words, and which intervals hold together."""
        tests = list(dict.fromkeys(one.test for one in self.comparisons if one.p_value >= 0))
        lines = [one.direction for one in self.comparisons[:10]]
        lines.append(
            "All differences hold together, and so do all ratios and all odds ratios, each kind "
            f"with {confidence(self.delta)} confidence."
        )
        if tests:
            lines.append(
                f"p is the p-value of {' or '.join(tests)} on what the log shows: hidden outcomes "
                "are left out, and one pair is tested at a time."
            )
        lines += [
            f"Scores of {gap.group} less those of {gap.against}: {gap.smd.value:+.3f} standard "
            f"deviations, between {gap.smd.low:+.3f} and {gap.smd.high:+.3f} (asymptotic)."
            for gap in self.scores
        ]
        off = [band for band in self.calibration if not band.inside]
        if self.calibration:
            lines.append(
                f"Calibration within groups: in {len(off)} of {len(self.calibration)} bands of "
                "scores the mean score is outside the interval of the share of good outcomes."
            )
        lines += [
            f"- {band.group}, scores {band.score_from:.2f} to {band.score_to:.2f}: mean score "
            f"{band.mean_score:.3f}, good outcomes between {band.good.low:.3f} and "
            f"{band.good.high:.3f}"
            for band in off[:5]
        ]
        return [*lines, *self._new_york()]

    def _new_york(self) -> list[str]:
        """Return New York's table in words: the rate, ratio and marks of every category."""
        if not self.selection:
            return []
        lines = ["Selection rates for New York's Local Law 144, with ratios to the highest rate:"]
        for row in self.selection[:MOST_LISTED]:
            rate = f"- {row.category}: {row.selected:,} of {row.people:,} selected"
            if row.unknown:
                lines.append(f"{rate}; category not known, counted only")
                continue
            mark = ", less than 2% of the people" if row.small else ""
            ratio, span = row.impact_ratio, row.selection_rate
            lines.append(
                f"{rate}, {span.value:.3f} ({span.low:.3f} to {span.high:.3f}); impact ratio "
                f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}){mark}"
            )
        return lines
