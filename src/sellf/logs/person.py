"""The data of a log on people, as arrays."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BINS = 10
"""Number of strata of the propensity, and of the prediction; people in a stratum are similar."""


class LeftOut(NamedTuple):
    """Rows of a log that are not used, and the reason."""

    why: str
    rows: int


@dataclass(frozen=True)
class Facts:
    """Descriptive facts about a log."""

    duplicates: int | None = None
    """Rows that repeat another one in every column; None: not counted."""
    first: str | None = None
    """Date of the first decision, if a column records it."""
    last: str | None = None
    identifiers: tuple[str, ...] = ()
    """Columns in which all values are different."""
    after_decision: tuple[str, ...] = ()
    """Columns that are filled for the accepted only, as if recorded after the decision."""


NO_FACTS = Facts()


class Person(NamedTuple):
    """The data of a log on the people of one group, with one entry per row."""

    accepted: Floats
    """A, 1 or 0."""
    positive: Floats
    """A Y: accepted and with a good outcome, 1 or 0; 0 for an outcome that is not known yet."""
    propensity: Floats | None
    """p; None if the log does not record it."""
    prediction: Floats | None
    """f, fixed on other data; None if there is none."""
    rejected_positive: Floats | None = None
    """(1 - A) Y where the outcomes of the rejected are known and trusted."""
    pending: Floats | None = None
    """1 for accepted people whose outcome is not known; None if there are none."""
    unit: NDArray[np.intp] | None = None
    """Index of each row's person; None if every row is a different person."""
    weight: Floats | None = None
    """Weight of each row, 1 on average; None: all rows have equal weight."""

    def take(self, rows: NDArray[np.intp] | slice) -> "Person":
        """Return some of the rows."""
        fields: Any = (None if field is None else field[rows] for field in self)
        return Person(*fields)

    @property
    def units(self) -> int:
        """Number of people."""
        return len(self.accepted) if self.unit is None else len(np.unique(self.unit))

    def digest(self) -> int:
        """Return a number that depends on the rows, but not on their order.

        It is part of the seed of random generators. If the user's seed were used alone, the same
        ranks of the sorted rows would be drawn in every log of the same size, and intervals would
        hold only on average over seeds, not for a given seed. Sums to seven digits distinguish
        logs, but are not affected by rounding, which differs between engines.
        """
        columns = [column for column in self._replace(unit=None) if column is not None]
        told = [f"{x:.6e}" for column in columns for x in (column.sum(), (column**2).sum())]
        found = sha256(" ".join([str(len(self.accepted)), *told]).encode()).digest()
        return int.from_bytes(found[:8], "big")

    def sorted(self) -> "Person":
        """Return the rows in an order that depends only on the rows themselves.

        A seed then gives the same random orders however the log is stored. Rows of one person stay
        together, in the order of the log.
        """
        if self.unit is not None:
            return self.take(np.argsort(self.unit, kind="stable"))
        code = self.accepted + 2 * self.positive
        code = code if self.pending is None else code + 4 * self.pending
        keys = [code, self.propensity, self.prediction, self.rejected_positive]
        return self.take(np.lexsort([key for key in keys if key is not None][::-1]))
