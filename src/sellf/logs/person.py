"""What a log says of people, as arrays."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BINS = 10
"""Strata of the propensity, and of the prediction: people the decision maker held to be alike."""


class LeftOut(NamedTuple):
    """Rows of a log that are not used, and why."""

    why: str
    rows: int


@dataclass(frozen=True)
class Facts:
    """What was seen of a log."""

    duplicates: int | None = None
    """Rows that repeat another one in every column; None: not counted."""
    first: str | None = None
    """The day of the first decision, if a column says so."""
    last: str | None = None
    identifiers: tuple[str, ...] = ()
    """Columns in which every row has a value of its own."""
    after_decision: tuple[str, ...] = ()
    """Columns that the accepted have and the rejected have not, as what is recorded later."""


NO_FACTS = Facts()


class Person(NamedTuple):
    """What a log says of each person of one group, one entry a row."""

    accepted: Floats
    """A, 1 or 0."""
    positive: Floats
    """A Y: accepted and with a good outcome, 1 or 0; 0 for an outcome that is not known yet."""
    propensity: Floats | None
    """p; None if the log does not say."""
    prediction: Floats | None
    """f, fixed on other data; None if there is none."""
    rejected_positive: Floats | None = None
    """(1 - A) Y where the outcomes of the rejected are known and trusted."""
    pending: Floats | None = None
    """1 for accepted people whose outcome is not known; None where there are none."""
    unit: NDArray[np.intp] | None = None
    """Whose row it is, as a number; None where every row is another person's."""
    weight: Floats | None = None
    """How much each row counts, 1 on average; None: all count alike."""

    def take(self, rows: NDArray[np.intp] | slice) -> "Person":
        """Return some of the rows."""
        fields: Any = (None if field is None else field[rows] for field in self)
        return Person(*fields)

    @property
    def units(self) -> int:
        """How many people there are."""
        return len(self.accepted) if self.unit is None else len(np.unique(self.unit))

    def digest(self) -> int:
        """Return a number that depends on the rows, but not on their order.

        Part of what generators are seeded with: if the user's seed alone decided, then in every log
        of one size that is audited with one seed the same ranks of the sorted rows would be drawn,
        and intervals would hold on average over seeds only, not for this one. Sums to seven digits
        tell logs apart, and rounding, which differs between engines, does not.
        """
        columns = [column for column in self._replace(unit=None) if column is not None]
        told = [f"{x:.6e}" for column in columns for x in (column.sum(), (column**2).sum())]
        found = sha256(" ".join([str(len(self.accepted)), *told]).encode()).digest()
        return int.from_bytes(found[:8], "big")

    def sorted(self) -> "Person":
        """Return the rows in an order that depends on nothing but the rows themselves.

        Then a seed means the same orders however the log is stored. Rows of one person stay
        together, in the order of the log.
        """
        if self.unit is not None:
            return self.take(np.argsort(self.unit, kind="stable"))
        code = self.accepted + 2 * self.positive
        code = code if self.pending is None else code + 4 * self.pending
        keys = [code, self.propensity, self.prediction, self.rejected_positive]
        return self.take(np.lexsort([key for key in keys if key is not None][::-1]))
