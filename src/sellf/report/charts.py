"""What a chart shows, as data: it becomes a still picture, a live one and a table.

Three kinds are enough: lines or points over x, rows with intervals and marks, shares of a whole.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from sellf.palette import LOOKS, Marker

Number = float | None
"""A figure; None where there is none."""
STROKE = 2.2
"""The width of a line."""


@dataclass(frozen=True)
class Series:
    """One line, or one kind of point, with its band or whiskers."""

    name: str
    x: list[Number]
    y: list[Number]
    low: list[Number] | None = None
    high: list[Number] | None = None
    x_low: list[Number] | None = None
    x_high: list[Number] | None = None
    points: bool = False
    """Whether to draw points that no line connects."""
    labels: list[str] | None = None
    """What each point is, for whoever points at it."""
    colour: int = 0
    """The place of its colour in the palette; series of one colour differ in `style`."""
    style: int = 0
    """The place of its dash and marker."""
    small: bool = False
    """Whether its points are of minor interest."""
    step: bool = False
    """Whether its line goes on level up to the next point, as a Pareto front does."""

    @property
    def marker(self) -> Marker:
        """The shape of its points."""
        return LOOKS[self.style % len(LOOKS)].marker

    def thinner(self, most: int) -> "Series":
        """Return a line with at most so many points, the first and the last among them."""
        if self.points or len(self.x) <= most:
            return self
        kept = np.linspace(0, len(self.x) - 1, most).round().astype(int)
        lists = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        return replace(self, **{k: [v[i] for i in kept] for k, v in lists.items() if v})


@dataclass(frozen=True)
class Reference:
    """A straight line to compare with."""

    value: float
    label: str
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True)
class Plot:
    """Lines or points over x."""

    title: str
    text: str
    """What it shows, in a sentence or two."""
    x_label: str
    y_label: str
    series: list[Series]
    x_names: list[str] | None = None
    """What the positions 0, 1, ... on the x axis stand for, if they are no numbers."""
    references: list[Reference] = field(default_factory=list)
    y_range: tuple[Number, Number] = (None, None)
    """Ends of the y axis that are fixed."""
    x_range: tuple[Number, Number] = (None, None)
    spread: str = ""
    """What the bands are."""

    kind = "plot"

    def thinner(self, most: int) -> "Plot":
        """Return the same with at most so many points a line, evenly chosen."""
        return replace(self, series=[series.thinner(most) for series in self.series])

    def columns(self) -> dict[str, list[Any]]:
        """Return every figure in it, one row a point of a series."""
        rows: list[dict[str, Any]] = []
        for series in self.series:
            for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
                if y is None:
                    continue
                row: dict[str, Any] = {"series": series.name}
                if series.labels:
                    row["what"] = series.labels[i]
                row[self.x_label] = x if self.x_names is None else self.x_names[int(x or 0)]
                row[self.y_label] = y
                ends = {"low": series.low, "high": series.high}
                row |= {name: values[i] for name, values in ends.items() if values}
                rows.append(row)
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}


@dataclass(frozen=True)
class Marks:
    """One kind of mark on every row."""

    name: str
    values: list[Number]
    colour: int
    marker: Marker


@dataclass(frozen=True)
class Rows:
    """One row a name: its interval, and marks on the same scale."""

    title: str
    text: str
    x_label: str
    names: list[str]
    marks: list[Marks]
    low: list[Number] | None = None
    high: list[Number] | None = None
    interval: str = "interval"
    """What the bars are."""
    reference: Reference | None = None
    band: tuple[float, float, str] | None = None
    """A stretch of the scale to compare with, and what it is."""
    x_range: tuple[Number, Number] = (None, None)
    tabled: str = ""
    """Which other table of the page has its figures too, if one has."""

    kind = "rows"

    def columns(self) -> dict[str, list[Any]]:
        """Return every figure in it."""
        columns: dict[str, list[Any]] = {"": list(self.names)}
        if self.low and self.high:
            columns |= {"low": list(self.low), "high": list(self.high)}
        return columns | {mark.name: list(mark.values) for mark in self.marks}


@dataclass(frozen=True)
class Shares:
    """One row a name: what it consists of, as shares of 1."""

    title: str
    text: str
    x_label: str
    names: list[str]
    parts: dict[str, list[Number]]

    kind = "shares"

    def columns(self) -> dict[str, list[Any]]:
        """Return every figure in it."""
        return {"": list(self.names)} | {name: list(v) for name, v in self.parts.items()}


Chart = Plot | Rows | Shares


def dashes(style: int) -> str | None:
    """Return the dashes of a line as SVG has them; None for a line without gaps."""
    return " ".join(f"{STROKE * part:.3g}" for part in LOOKS[style % len(LOOKS)].dash) or None


WIDE = 0.5
"""Where shares spread over more than this, their axis is the whole of what is possible."""


def zoomed(shares: Iterable[float]) -> tuple[float, float]:
    """Return the part of an axis from 0 to 1 in which shares differ; NaN is left out."""
    known = [share for share in shares if share == share] or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low > WIDE:
        return 0.0, 1.0
    around = max(high - low, 0.02) / 4
    return max(round(low - around, 2), 0.0), min(round(high + around, 2), 1.0)


def numbers(values: Any) -> list[Number]:
    """Return plain numbers, None where there is none."""
    return [None if math.isnan(v) or math.isinf(v) else v for v in map(float, values)]


def number(value: Any) -> Number:
    """Return a plain number, or None."""
    return numbers([value])[0]


def band(name: str, x: Any, mean: np.ndarray, spread: np.ndarray, colour: int) -> Series:
    """Return a line, with a band around it where the spread is known; the style is the colour's."""
    half = None if np.isnan(spread).all() else np.nan_to_num(spread)
    return Series(
        name,
        numbers(x),
        numbers(mean),
        None if half is None else numbers(mean - half),
        None if half is None else numbers(mean + half),
        colour=colour,
        style=colour,
    )


def shown(name: Any) -> str:
    """Return a name as it can be shown: nothing invisible, nothing that turns text around."""
    text = str(name).encode("utf-8", "replace").decode()
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return clean or "(no name)"


def shortened(name: str, most: int = 28) -> str:
    """Return a name that fits beside an axis."""
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


def distinct(names: Sequence[str]) -> list[str]:
    """Return names that differ, the later ones with a number where they did not."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
