"""The ladder: the disparity under weaker and stronger beliefs about hidden outcomes."""

from dataclasses import dataclass
from typing import Any, ClassVar

from sellf.audit.interval import Interval
from sellf.audit.measured import Measured
from sellf.audit.verdict import Verdict, decide
from sellf.numbers import confidence


@dataclass(frozen=True)
class Rung:
    """The disparity under one belief about the hidden outcomes."""

    belief: str
    says: str
    interval: Interval
    verdict: Verdict
    finite_sample: bool
    contradicted: bool = False
    """Whether the log contradicts the belief, in which case there is no verdict."""


@dataclass(frozen=True)
class Ladder(Measured):
    """The disparity under every belief, from the weakest to the strongest."""

    key: ClassVar[str] = "ladder"
    heading: ClassVar[str] = "The disparity under weaker and stronger beliefs"

    rate: str
    omega: float
    delta: float
    rungs: tuple[Rung, ...]

    def check(self) -> None:
        """Raise ValueError if a verdict does not follow from the figures beside it."""
        for rung in self.rungs:
            follows = "undetermined" if rung.contradicted else decide(rung.interval, self.omega)
            if rung.verdict != follows:
                raise ValueError(f"the verdict under {rung.belief!r} does not follow")

    @property
    def weakest(self) -> Rung | None:
        """The first rung with a verdict."""
        return next((rung for rung in self.rungs if rung.verdict != "undetermined"), None)

    def _title(self) -> str:
        found = self.weakest
        if found is None:
            return (
                f"{self.rate}: no belief of the ladder gives a verdict at tolerance {self.omega:g}"
            )
        if found is self.rungs[0]:
            return f"{self.rate}: {found.verdict.upper()} whatever is assumed about the rejected"
        return (
            f"{self.rate}: {found.verdict.upper()} under the belief that {found.says}; weaker "
            "beliefs give no verdict"
        )

    def _table(self) -> dict[str, list[Any]]:
        return {
            "belief": [rung.belief for rung in self.rungs],
            "disparity": [rung.interval.value for rung in self.rungs],
            "low": [rung.interval.low for rung in self.rungs],
            "high": [rung.interval.high for rung in self.rungs],
            "verdict": ["contradicted" if r.contradicted else r.verdict for r in self.rungs],
            "guarantee": [
                "finite-sample" if rung.finite_sample else "asymptotic" for rung in self.rungs
            ],
        }

    def notes(self) -> list[str]:
        """Return the meaning of each belief."""
        lines = [f"- {rung.belief}: {rung.says}" for rung in self.rungs]
        return [
            *lines,
            f"Each interval holds with {confidence(self.delta)} confidence by itself if its belief "
            "is true.",
        ]

    def plot(self) -> Any:
        """Draw every rung's interval beside the tolerance; needs matplotlib."""
        from sellf.audit.picture import draw_ladder

        return draw_ladder(self)
