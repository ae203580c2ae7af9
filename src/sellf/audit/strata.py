"""The disparity within strata, and standardised over them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from sellf.audit.interval import Interval
from sellf.audit.measured import Measured
from sellf.audit.verdict import Verdict, decide
from sellf.numbers import confidence


def of_difference(difference: Interval, omega: float) -> Verdict:
    """Return the verdict on a signed difference, in either direction."""
    low, value, high = difference
    least = max(low, -high, 0.0)
    return decide(Interval(least, max(abs(value), least), max(abs(low), abs(high))), omega)


@dataclass(frozen=True)
class StratumGap:
    """The comparison of two groups in one stratum."""

    stratum: str
    group: str
    against: str
    people: int
    other_people: int
    share: float
    """The share of the people in strata with both groups who are in this one."""
    rate: float
    other_rate: float
    difference: Interval
    """The group's rate minus the other's; all strata hold together."""
    verdict: Verdict


@dataclass(frozen=True)
class Standardised:
    """The comparison of two groups, standardised to the strata of everybody together."""

    group: str
    against: str
    crude: float
    """The difference without regard to strata."""
    standardised: Interval
    """The mean of the strata's differences, weighted by their numbers of people."""
    composition: float
    """The rest of the crude difference, because the groups are in different strata."""
    left_out: int
    """The number of people in strata that contain only one of the two groups."""
    finite_sample: bool
    verdict: Verdict


@dataclass(frozen=True)
class Within(Measured):
    """The disparity within strata of people in the same circumstances."""

    key: ClassVar[str] = "within"
    heading: ClassVar[str] = "Given the same circumstances"

    rate: str
    columns: tuple[str, ...]
    omega: float
    delta: float
    strata: tuple[StratumGap, ...]
    overall: tuple[Standardised, ...]

    def check(self) -> None:
        """Raise ValueError if a verdict does not follow from the figures beside it."""
        found = [(one.difference, one.verdict) for one in self.strata]
        found += [(one.standardised, one.verdict) for one in self.overall]
        if any(of_difference(difference, self.omega) != said for difference, said in found):
            raise ValueError("a stratum's verdict does not follow from its interval")

    def _title(self) -> str:
        parts = [
            f"{one.group} less {one.against} {one.standardised.value:+.3f}, between "
            f"{one.standardised.low:+.3f} and {one.standardised.high:+.3f}: {one.verdict.upper()}"
            for one in self.overall
        ]
        by = " and ".join(self.columns)
        return f"Difference in {self.rate} given {by}, standardised: {'; '.join(parts)}"

    def _table(self) -> dict[str, list[Any]]:
        rows = self.strata
        return {
            "stratum": [row.stratum for row in rows],
            "group": [row.group for row in rows],
            "against": [row.against for row in rows],
            "people": [row.people for row in rows],
            "other people": [row.other_people for row in rows],
            "share": [row.share for row in rows],
            "rate": [row.rate for row in rows],
            "other rate": [row.other_rate for row in rows],
            "difference": [row.difference.value for row in rows],
            "low": [row.difference.low for row in rows],
            "high": [row.difference.high for row in rows],
            "verdict": [row.verdict for row in rows],
        }

    def notes(self) -> list[str]:
        """Return the decomposition of the differences, and which intervals hold together."""
        lines = []
        for one in self.overall:
            kind = "" if one.finite_sample else ", asymptotic"
            lines.append(
                f"{one.group} less {one.against}: {one.crude:+.3f} in all, of which "
                f"{one.standardised.value:+.3f} within strata ({confidence(self.delta)} interval"
                f"{kind}: {one.standardised.low:+.3f} to {one.standardised.high:+.3f}) and "
                f"{one.composition:+.3f} because the groups are in different strata."
            )
            if one.crude * one.standardised.value < 0:
                lines.append(
                    "The two have opposite signs (Simpson's paradox): given the same circumstances "
                    "the other group fares better."
                )
            if one.left_out:
                lines.append(
                    f"{one.left_out:,} people are in strata that one of the two groups is not in; "
                    "they count in neither."
                )
        lines.append(
            f"The intervals of all strata hold together with {confidence(self.delta)} confidence. "
            "Circumstances that are themselves a result of unequal treatment do not justify a "
            "difference."
        )
        return lines

    def plot(self) -> Any:
        """Plot the differences by stratum and standardised; needs matplotlib."""
        from sellf.audit.picture import draw_strata

        return draw_strata(self)
