"""What an audit asks of a log, wherever its rows are."""

from datetime import date
from typing import TYPE_CHECKING, Any, Protocol

from sellf.logs.columns import Columns
from sellf.logs.limits import Limits
from sellf.logs.person import Facts, LeftOut, Person
from sellf.logs.sums import Sums

if TYPE_CHECKING:
    from sellf.logs.rows import Rows


class Log(Protocol):
    """A checked log; `Rows` is one in memory, `LazyLog` one that stays in its engine."""

    @property
    def count(self) -> int:
        """How many rows it has."""
        ...

    @property
    def columns(self) -> Columns:
        """What its columns mean."""
        ...

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What of the log was not read."""
        ...

    @property
    def facts(self) -> Facts:
        """What was seen of all its columns."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its columns make one doubt."""
        ...

    @property
    def rows(self) -> "Rows | None":
        """The log itself if it is in memory."""
        ...

    def fingerprint(self) -> tuple[str | None, str]:
        """Return a SHA-256 of what was read, if rows were, and what it was taken of."""
        ...

    def people_by_group(self) -> dict[Any, int]:
        """Return how many rows each group has."""
        ...

    def sums(self, overlap: float) -> tuple[list[Any], Sums]:
        """Return the groups and their sums; propensities below `overlap` are not weighted by."""
        ...

    def sums_by(self, overlap: float, by: str) -> tuple[list[str], list[Sums]]:
        """Return the names and the sums of every period ("month")."""
        ...

    def people(self, names: list[Any], sums: Sums, limits: Limits) -> tuple[Person | None, ...]:
        """Return the rows of each group that is small enough to be looked at row by row."""
        ...

    def in_order(self) -> "Log":
        """Return the log in the order of time, if that is for us to say."""
        ...

    def latest(self) -> date:
        """Return the day of the last decision."""
        ...

    def up_to(self, cutoff: date) -> "Log":
        """Return the log with the decisions marked that were made until a day."""
        ...

    def matured(self) -> "Log":
        """Return what `up_to` marked, or say why there is too little of it."""
        ...
