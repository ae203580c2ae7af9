"""Interval estimates."""

from typing import NamedTuple


class Interval(NamedTuple):
    """An interval for an unknown number, with the point estimate inside it."""

    low: float
    value: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the two ends."""
        return self.high - self.low
