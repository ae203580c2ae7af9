"""A benchmark's figures and what they should be."""

from typing import NamedTuple


class Row(NamedTuple):
    """One measured ratio."""

    name: str
    ratio: float
    unit: str
    limit: float | None = None
    """At most this (if `higher_is_better`, at least)."""
    higher_is_better: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the figure is within its limit; None if it has none."""
        if self.limit is None:
            return None
        return self.ratio >= self.limit if self.higher_is_better else self.ratio <= self.limit

    def __str__(self) -> str:
        mark = {None: "", True: "met", False: "NOT MET"}[self.met]
        sign = ">=" if self.higher_is_better else "<="
        limit = "" if self.limit is None else f"{sign} {self.limit:g}"
        return f"  {self.name:<46} {self.ratio:>9.2f} {self.unit:<22} {limit:>8}  {mark}"
