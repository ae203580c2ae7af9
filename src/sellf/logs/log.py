"""The interface of a log, in memory or in an engine."""

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
        """Number of rows."""
        ...

    @property
    def columns(self) -> Columns:
        """What its columns mean."""
        ...

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Rows that were left out."""
        ...

    @property
    def facts(self) -> Facts:
        """Descriptive facts about all its columns."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about its columns."""
        ...

    @property
    def rows(self) -> "Rows | None":
        """The log itself if it is in memory, else None."""
        ...

    def fingerprint(self) -> tuple[str | None, str]:
        """Return a SHA-256 of the rows that were read, if any, and what it covers."""
        ...

    def people_by_group(self) -> dict[Any, int]:
        """Return the number of rows of each group."""
        ...

    def sums(self, overlap: float) -> tuple[list[Any], Sums]:
        """Return the groups and their sums; propensities below `overlap` are not used to weight."""
        ...

    def sums_by(self, overlap: float, by: str) -> tuple[list[str], list[Sums]]:
        """Return the names and the sums of every period ("month")."""
        ...

    def people(self, names: list[Any], sums: Sums, limits: Limits) -> tuple[Person | None, ...]:
        """Return the rows of each group that is small enough to be analysed row by row."""
        ...

    def in_order(self) -> "Log":
        """Return the log in order of time, if it is in memory."""
        ...

    def latest(self) -> date:
        """Return the day of the last decision."""
        ...

    def up_to(self, cutoff: date) -> "Log":
        """Return the log with the decisions up to a day marked."""
        ...

    def matured(self) -> "Log":
        """Return the decisions that `up_to` marked; refuse a log with too few of them."""
        ...
