"""Charts as data, from which a static picture, an interactive one and a table are made.

There are three kinds: lines or points over x, rows with intervals and marks, shares of a whole.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from sellf.palette import LOOKS, Marker

Number = float | None
"""A number; None if it is missing."""
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
    """Whether to draw points without a line."""
    labels: list[str] | None = None
    """The label of each point, which its tooltip shows."""
    colour: int = 0
    """The index of its colour in the palette; series of the same colour differ in `style`."""
    style: int = 0
    """The index of its dashes and marker in the palette."""
    small: bool = False
    """Whether to draw small points, for minor series."""
    step: bool = False
    """Whether the line is a step function, as a Pareto front is."""
    beside: str = ""
    """The name of another series whose legend entry is also this one's."""

    @property
    def marker(self) -> Marker:
        """The shape of its points."""
        return LOOKS[self.style % len(LOOKS)].marker

    def thinner(self, most: int) -> "Series":
        """Return a line with at most `most` points, including the first and the last."""
        if self.points or len(self.x) <= most:
            return self
        kept = np.linspace(0, len(self.x) - 1, most).round().astype(int)
        lists = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        return replace(self, **{k: [v[i] for i in kept] for k, v in lists.items() if v})


@dataclass(frozen=True)
class Reference:
    """A straight reference line."""

    value: float
    label: str
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True)
class Plot:
    """Lines or points over x."""

    title: str
    text: str
    """A description in one or two sentences."""
    x_label: str
    y_label: str
    series: list[Series]
    x_names: list[str] | None = None
    """The names of the positions 0, 1, ... on the x axis, if it is categorical."""
    references: list[Reference] = field(default_factory=list)
    y_range: tuple[Number, Number] = (None, None)
    """The fixed ends of the y axis; None for an end that depends on the data."""
    x_range: tuple[Number, Number] = (None, None)
    spread: str = ""
    """What the bands show."""

    kind = "plot"

    def thinner(self, most: int) -> "Plot":
        """Return the same plot with at most `most` points per line, evenly spaced."""
        return replace(self, series=[series.thinner(most) for series in self.series])

    def columns(self) -> dict[str, list[Any]]:
        """Return all numbers as a table, with one row per point of a series."""
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
    """One row per name, with an interval and marks on the same scale."""

    title: str
    text: str
    x_label: str
    names: list[str]
    marks: list[Marks]
    low: list[Number] | None = None
    high: list[Number] | None = None
    interval: str = "interval"
    """What the bars show."""
    reference: Reference | None = None
    band: tuple[float, float, str] | None = None
    """The ends of a shaded part of the scale, and its name."""
    x_range: tuple[Number, Number] = (None, None)
    tabled: str = ""
    """Another table of the page that contains the same numbers, if there is one."""

    kind = "rows"

    def columns(self) -> dict[str, list[Any]]:
        """Return all numbers as a table."""
        columns: dict[str, list[Any]] = {"": list(self.names)}
        if self.low and self.high:
            columns |= {"low": list(self.low), "high": list(self.high)}
        return columns | {mark.name: list(mark.values) for mark in self.marks}


@dataclass(frozen=True)
class Shares:
    """One row per name, divided into shares that sum to 1."""

    title: str
    text: str
    x_label: str
    names: list[str]
    parts: dict[str, list[Number]]

    kind = "shares"

    def columns(self) -> dict[str, list[Any]]:
        """Return all numbers as a table."""
        return {"": list(self.names)} | {name: list(v) for name, v in self.parts.items()}


Chart = Plot | Rows | Shares


def dashes(style: int) -> str | None:
    """Return the dashes of a line in SVG's format; None for a solid line."""
    return " ".join(f"{STROKE * part:.3g}" for part in LOOKS[style % len(LOOKS)].dash) or None


WIDE = 0.5
"""The spread of shares above which their axis runs from 0 to 1."""


def zoomed(shares: Iterable[float]) -> tuple[float, float]:
    """Return the part of an axis from 0 to 1 in which shares differ; NaN is left out.

    Its ends are round numbers, which do not collide with the labels beside them.
    """
    known = [share for share in shares if share == share] or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low > WIDE:
        return 0.0, 1.0
    around = max(high - low, 0.02) / 4
    step = 0.1 if high - low > WIDE / 3 else 0.05 if high - low > WIDE / 10 else 0.01
    first, last = math.floor((low - around) / step), math.ceil((high + around) / step)
    return max(round(first * step, 2), 0.0), min(round(last * step, 2), 1.0)


def numbers(values: Any) -> list[Number]:
    """Return values as floats, with None in place of NaN and infinities."""
    return [None if math.isnan(v) or math.isinf(v) else v for v in map(float, values)]


def number(value: Any) -> Number:
    """Return a value as a float; None if it is NaN or infinite."""
    return numbers([value])[0]


def band(name: str, x: Any, mean: np.ndarray, spread: np.ndarray, colour: int) -> Series:
    """Return a line, with a band around it if the spread is known; `colour` sets the style too."""
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
    """Return a name that is safe to show, without invisible or text-direction characters."""
    text = str(name).encode("utf-8", "replace").decode()
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    return clean or "(no name)"


def shortened(name: str, most: int = 28) -> str:
    """Return a name shortened to fit beside an axis."""
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"


def distinct(names: Sequence[str]) -> list[str]:
    """Return distinct names: repeated ones get a number."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
