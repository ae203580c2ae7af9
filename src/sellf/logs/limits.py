"""How large a log may be for what is done with it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Numbers of rows up to which a log, or a group of it, is treated in a certain way."""

    in_memory: int = 2_000_000
    """Logs that live elsewhere are brought into memory as a whole."""
    fetched: int = 2_000_000
    """Of longer ones, so many rows of the smallest groups are."""
    row_by_row: int = 2_000_000
    """A group in memory is looked at row by row; a larger one is judged by its sums."""
    fitted: int = 200_000
    """Of longer ones, so many rows are drawn to fit models of propensities and outcomes on."""
    anytime: int = 1_000_000
    """A log may be bet on in the order of time."""


DEFAULT = Limits()
