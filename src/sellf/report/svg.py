"""Charts as static pictures: SVG that needs no script, prints, and has a light and a dark style."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sellf.numbers import tick
from sellf.palette import LOOKS, SHAPES, Marker
from sellf.report.charts import (
    Chart,
    Number,
    Plot,
    Reference,
    Rows,
    Series,
    Shares,
    dashes,
    shortened,
)

COLOURS = len(LOOKS)
WIDTH = 760
RIGHT, TOP, BOTTOM = 26, 30, 46
ROW = 26


@dataclass(frozen=True)
class Scale:
    """A linear map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value; values outside the range are drawn at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element with its content escaped."""
    inside = Markup("").join(children)
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    written = Markup("").join(
        Markup(' {}="{}"').format(Markup(key), f"{v:.1f}" if isinstance(v, float) else v)
        for key, v in named.items()
        if v is not None
    )
    start = Markup("<") + Markup(name) + written
    return start + Markup(">") + inside + Markup(f"</{name}>")


def draw(chart: Chart, identity: str) -> Markup:
    """Return the picture of a chart; `identity` is its identifier on the page."""
    body, height = {"plot": _plot, "rows": _rows, "shares": _shares}[chart.kind](chart)  # pyright: ignore
    title, text = f"{identity}-title", f"{identity}-text"
    return tag(
        "svg",
        tag("title", chart.title, id=title),
        tag("desc", chart.text, id=text),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        role="img",
        aria_labelledby=f"{title} {text}",
    )


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def ends(values: Sequence[Number], fixed: tuple[Number, Number]) -> tuple[float, float]:
    """Return the ends of an axis: the fixed ones, else round numbers around the values."""
    known = [v for v in (*values, *fixed) if v is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = ticks(low, high)
    width = step[1] - step[0] if len(step) > 1 else high - low
    low = math.floor(low / width + 1e-9) * width if fixed[0] is None else fixed[0]
    high = math.ceil(high / width - 1e-9) * width if fixed[1] is None else fixed[1]
    return (low, high) if high > low else (low, low + 1.0)


def mark(kind: Marker, x: float, y: float, r: float = 4.5) -> str:
    """Return the outline of a marker."""
    if kind in ("circle", "ring"):
        return f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
    if kind == "cross":
        return f"M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}M{x - r:.1f} {y + r:.1f}l{2 * r} {-2 * r}"
    return "M" + "L".join(f"{x + a * r:.1f} {y + b * r:.1f}" for a, b in SHAPES[kind]) + "z"


def drawn_mark(kind: Marker, x: float, y: float, colour: int, r: float = 4.5) -> Markup:
    """Return a marker in its colour; crosses and rings are not filled."""
    open_ = kind in ("cross", "ring")
    return tag("path", d=mark(kind, x, y, r), class_=f"{'o' if open_ else 'f'}{colour % COLOURS}")


def swatch(colour: int, style: int | None, marker: Marker | None, r: float = 4.5) -> Markup:
    """Return the small picture of a line or mark beside its name in a legend."""
    parts = []
    if style is not None:
        line = {"class_": f"l{colour % COLOURS}", "stroke_dasharray": dashes(style)}
        parts.append(tag("path", d="M1 7h26", **line))
    if marker is not None:
        parts.append(drawn_mark(marker, 14, 7, colour, r))
    return tag("svg", *parts, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def bar_swatch(colour: int, faint: bool = False) -> Markup:
    """Return the small picture of a bar."""
    kind = "b" if faint else "f"
    bar = tag("rect", x=1, y=3, width=26, height=8, rx=2, class_=f"{kind}{colour % COLOURS}")
    return tag("svg", bar, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "t") -> Markup:
    return tag("text", words, x=float(x), y=float(y), text_anchor=anchor, class_=kind)


def _across(scale: Scale, top: float, bottom: float) -> Iterator[Markup]:
    """Return the ticks and grid lines of a horizontal axis."""
    for value in ticks(scale.low, scale.high):
        x = scale(value)
        yield tag("path", d=f"M{x:.1f} {top:.1f}V{bottom:.1f}", class_="g")
        yield _text(x, bottom + 16, tick(value), "middle")


def _upright(scale: Scale, line: Reference, top: float, bottom: float) -> list[Markup]:
    x = scale(line.value)
    right = x > WIDTH - 160
    return [
        tag("path", d=f"M{x:.1f} {top - 6:.1f}V{bottom:.1f}", class_="r"),
        _text(x + (-5 if right else 5), top - 8, line.label, "end" if right else "start", "t s"),
    ]


def axes(chart: Plot | Rows) -> dict[str, tuple[float, float]]:
    """Return the ends of a chart's axes, by name."""
    if isinstance(chart, Rows):
        figures = [v for m in chart.marks for v in m.values]
        figures += [*(chart.low or ()), *(chart.high or ())]
        if chart.reference is not None:
            figures.append(chart.reference.value)
        return {"x": ends(figures, chart.x_range)}
    across = [v for s in chart.series for v in (*s.x, *(s.x_low or ()), *(s.x_high or ()))]
    upward = [v for s in chart.series for v in (*s.y, *(s.low or ()), *(s.high or ()))]
    across += [line.value for line in chart.references if line.axis == "x"]
    upward += [line.value for line in chart.references if line.axis == "y"]
    low, high = chart.x_range
    if chart.x_names is not None:
        low, high = -0.4, len(chart.x_names) - 0.6
    elif not any(s.points for s in chart.series):
        # Points keep a margin to the frame; lines fill it.
        known = [v for v in across if v is not None] or [0.0, 1.0]
        low, high = min(known) if low is None else low, max(known) if high is None else high
    return {"x": ends(across, (low, high)), "y": ends(upward, chart.y_range)}


def _plot(chart: Plot) -> tuple[list[Markup], float]:
    height, left = 320.0, 62.0
    bottom = height - BOTTOM
    found = axes(chart)
    x, y = Scale(*found["x"], left, WIDTH - RIGHT), Scale(*found["y"], bottom, TOP)
    body: list[Markup] = []
    for value in ticks(y.low, y.high):
        body.append(tag("path", d=f"M{left} {y(value):.1f}H{WIDTH - RIGHT}", class_="g"))
        body.append(_text(left - 8, y(value) + 4, tick(value), "end"))
    if chart.x_names is None:
        for value in ticks(x.low, x.high):
            body.append(_text(x(value), bottom + 17, tick(value), "middle"))
    else:
        longest = max(map(len, chart.x_names), default=1)
        room = (WIDTH - RIGHT - left) / max(len(chart.x_names), 1)
        step = max(1, math.ceil((min(longest, 14) * 6.5 + 8) / room))
        for i in range(0, len(chart.x_names), step):
            name = shortened(chart.x_names[i], 14)
            body.append(_text(x(i), bottom + 17, name, "middle"))
    body.append(_text(left - 8, 13, chart.y_label, "start", "t s"))
    body.append(_text((left + WIDTH - RIGHT) / 2, height - 8, chart.x_label, "middle", "t s"))
    for line in chart.references:
        if line.axis == "x":
            body += _upright(x, line, TOP, bottom)
        else:
            at = y(line.value)
            body.append(tag("path", d=f"M{left} {at:.1f}H{WIDTH - RIGHT}", class_="r"))
            body.append(_text(WIDTH - RIGHT - 4, at - 5, line.label, "end", "t s"))
    for series in chart.series:
        body += _series(series, x, y)
    return body, height


def _series(series: Series, x: Scale, y: Scale) -> Iterator[Markup]:
    colour = series.colour % COLOURS
    points = [
        None if a is None or b is None else (x(a), y(b))
        for a, b in zip(series.x, series.y, strict=True)
    ]
    if series.points:
        for i, at in enumerate(points):
            if at is None:
                continue
            for lows, highs, scale, upright in (
                (series.low, series.high, y, True),
                (series.x_low, series.x_high, x, False),
            ):
                low, high = (lows[i], highs[i]) if lows and highs else (None, None)
                if low is not None and high is not None:
                    path = (
                        f"M{at[0]:.1f} {scale(low):.1f}V{scale(high):.1f}"
                        if upright
                        else f"M{scale(low):.1f} {at[1]:.1f}H{scale(high):.1f}"
                    )
                    yield tag("path", d=path, class_=f"w{colour}")
            yield drawn_mark(series.marker, *at, colour, 2.5 if series.small else 5.5)
        return
    if series.low and series.high:
        for part in _parts(series):
            edge = [(x(series.x[i]), y(series.high[i])) for i in part]  # pyright: ignore
            edge += [(x(series.x[i]), y(series.low[i])) for i in reversed(part)]  # pyright: ignore
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in edge) + "z"
            yield tag("path", d=path, class_=f"b{colour}")
    path, pen = "", "M"
    for at in points:
        if at is None:
            pen = "M"
            continue
        level = f"H{at[0]:.1f}" if series.step and pen == "L" else ""
        path += f"{level}{pen}{at[0]:.1f} {at[1]:.1f}"
        pen = "L"
    yield tag("path", d=path, class_=f"l{colour}", stroke_dasharray=dashes(series.style))
    if len(points) <= 15:
        for at in points:
            if at is not None:
                yield drawn_mark(series.marker, *at, colour, 3.5)


def _parts(series: Series) -> list[list[int]]:
    """Return the indices of the parts of a band between gaps."""
    parts: list[list[int]] = [[]]
    for i, pair in enumerate(zip(series.low or (), series.high or (), strict=True)):
        if None in pair:
            parts.append([])
        else:
            parts[-1].append(i)
    return [part for part in parts if part]


def _left(names: Sequence[str]) -> float:
    return min(32 + 6.6 * max(map(len, map(shortened, names)), default=4), 220.0)


def _rows(chart: Rows) -> tuple[list[Markup], float]:
    left, bottom = _left(chart.names), TOP + ROW * len(chart.names) + 6.0
    x = Scale(*axes(chart)["x"], left, WIDTH - RIGHT)
    body: list[Markup] = []
    if chart.band is not None:
        a, b = x(chart.band[0]), x(chart.band[1])
        body.append(tag("rect", x=a, y=float(TOP), width=b - a, height=bottom - TOP, class_="band"))
    body += _across(x, TOP, bottom)
    for i, name in enumerate(chart.names):
        middle = TOP + ROW * (i + 0.5) + 3
        body.append(_text(left - 14, middle + 4, shortened(name), "end"))
        low, high = (chart.low[i], chart.high[i]) if chart.low and chart.high else (None, None)
        if low is not None and high is not None:
            width = max(x(high) - x(low), 2.0)
            body.append(
                tag("rect", x=x(low), y=middle - 5, width=width, height=10, rx=3, class_="b0 bar")
            )
        for kind in chart.marks:
            value = kind.values[i]
            if value is not None:
                body.append(drawn_mark(kind.marker, x(value), middle, kind.colour, 5.0))
    if chart.reference is not None:
        body += _upright(x, chart.reference, TOP, bottom)
    body.append(_text((left + WIDTH - RIGHT) / 2, bottom + 36, chart.x_label, "middle", "t s"))
    return body, bottom + BOTTOM


def _shares(chart: Shares) -> tuple[list[Markup], float]:
    left, bottom = _left(chart.names), TOP + ROW * len(chart.names) + 6.0
    x = Scale(0.0, 1.0, left, WIDTH - RIGHT)
    body = list(_across(x, TOP, bottom))
    for i, name in enumerate(chart.names):
        middle = TOP + ROW * (i + 0.5) + 3
        body.append(_text(left - 14, middle + 4, shortened(name), "end"))
        start = 0.0
        for colour, values in enumerate(chart.parts.values()):
            share = values[i] or 0.0
            width = x(start + share) - x(start)
            if width > 0:
                body.append(
                    tag(
                        "rect",
                        x=x(start),
                        y=middle - 8,
                        width=width,
                        height=16,
                        class_=f"h{colour}",
                    )
                )
            start += share
    body.append(_text((left + WIDTH - RIGHT) / 2, bottom + 36, chart.x_label, "middle", "t s"))
    return body, bottom + BOTTOM
