"""Limits on the size of logs, by the way in which they are processed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Numbers of rows up to which a log, or a group of it, is processed in a certain way."""

    in_memory: int = 2_000_000
    """Largest log that is loaded into memory as a whole from a file or an engine."""
    fetched: int = 2_000_000
    """Rows of the smallest groups that are loaded from a larger log."""
    row_by_row: int = 2_000_000
    """Largest group in memory that is analysed row by row; larger ones are analysed by sums."""
    fitted: int = 200_000
    """Rows on which models of propensities and outcomes are fitted; larger logs are sampled."""
    anytime: int = 1_000_000
    """Largest log for anytime-valid intervals, which process the rows in order of time."""


DEFAULT = Limits()
