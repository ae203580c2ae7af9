"""A range for an unknown number."""

from typing import NamedTuple


class Interval(NamedTuple):
    """A range for an unknown number, and the estimate within it."""

    low: float
    value: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low
