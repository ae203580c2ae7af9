"""The pages of reports: one self-contained HTML file each."""

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from sellf._version import __version__
from sellf.numbers import figure
from sellf.palette import LOOKS, SHAPES
from sellf.report.charts import STROKE, Chart, Plot, Rows, Shares, distinct, shortened, shown
from sellf.text import plain

MOST_ROWS = 40
"""The largest number of rows in a chart; the table behind it has all of them."""
LARGEST = 2_900_000
"""The largest size of a report in bytes."""


@dataclass(frozen=True)
class Detail:
    """How much detail a page contains."""

    points: int = 10_000
    """The largest number of points of a line."""
    again: bool = True
    """Whether a chart's table contains rows that are not drawn and that another table has too."""
    exact: bool = True
    """Whether tables contain more digits than they show, for sorting."""
    letters: int = 10_000
    """The largest length of a name."""
    undrawn: bool = True
    """Whether charts contain rows that are not drawn, for searching."""


DETAILS = (
    Detail(),
    Detail(again=False),
    Detail(again=False, exact=False),
    *(Detail(points, again=False, exact=False) for points in (25, 12, 6)),
    *(Detail(6, False, False, letters, undrawn=False) for letters in (100, 50, 12)),
)
"""Levels of detail, tried in turn until a report is small enough."""


@dataclass(frozen=True)
class Grid:
    """A table."""

    columns: Mapping[str, Sequence[Any]]
    caption: str
    note: str = ""
    best: frozenset[tuple[int, str]] = frozenset()
    """Cells to mark as best, by row and column."""
    links: Sequence[str] = ()
    """Titles of the sections that the rows link to."""
    detail: Detail = field(default_factory=Detail)

    kind = "grid"

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """The columns' names, and whether they hold numbers."""
        return [(shown(name) if name else "", _numeric(v)) for name, v in self.columns.items()]

    @property
    def rows(self) -> list[list[dict[str, Any]]]:
        """The cells, by row."""
        numeric = [number for _, number in self.heads]
        names = list(self.columns)
        return [
            [
                self._cell(value, is_number, best=(i, name) in self.best)
                for name, value, is_number in zip(names, row, numeric, strict=True)
            ]
            for i, row in enumerate(zip(*self.columns.values(), strict=True))
        ]

    def _cell(self, value: Any, numeric: bool, *, best: bool) -> dict[str, Any]:
        text = shortened(formatted(value), self.detail.letters)
        # The text itself can be sorted by, unless it contains commas.
        sortable = numeric and (self.detail.exact or "," in text)
        number = _sortable(value) if sortable else None
        return {"text": text, "numeric": numeric, "value": number, "best": best}


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str
    kind = "paragraph"


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str
    kind = "heading"


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[str]
    kind = "items"


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    facts: Sequence[tuple[str, str]]
    kind = "facts"


@dataclass(frozen=True)
class Code:
    """A command to type, with control characters escaped."""

    text: str
    kind = "code"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", plain(self.text))


@dataclass(frozen=True)
class Callout:
    """A highlighted box."""

    title: str
    lines: Sequence[str]
    kind = "callout"


@dataclass(frozen=True)
class Pair:
    """Charts side by side, if there is room."""

    blocks: Sequence[Chart]
    kind = "pair"


Block = Grid | Paragraph | Heading | Items | Facts | Code | Callout | Pair | Chart


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    blocks: Sequence[Block]
    listed: bool = True
    """Whether it is in the table of contents."""


@dataclass(frozen=True)
class Page:
    """The content of a report."""

    title: str
    kicker: str
    """The kind of report, above the answer."""
    answer: str
    """The answer in a sentence."""
    sections: Sequence[Section]
    lead: Sequence[str] = ()
    """Further sentences below the answer."""
    tiles: Sequence[tuple[str, str, str]] = ()
    """Key figures: a name, a number, a remark."""
    callouts: Sequence[Callout] = ()
    verdict: str = ""
    badge: str = ""
    """The verdict as it is displayed."""
    date: datetime = field(default_factory=lambda: datetime.now(UTC))


def render(page: Page) -> str:
    """Return the HTML file; all names are escaped, and it loads no other file."""
    text = ""
    for detail in DETAILS:
        text = _rendered(page, detail)
        if len(text.encode()) < LARGEST:
            break
    return text


def _rendered(page: Page, detail: Detail) -> str:
    from markupsafe import Markup

    template = _template()
    charts: list[dict[str, Any]] = []
    sections = [
        {
            "title": s.title,
            "listed": s.listed,
            "blocks": [_prepared(block, charts, detail) for block in s.blocks],
        }
        for s in page.sections
    ]
    places = {section.title: f"s{i}" for i, section in enumerate(page.sections, 1)}
    scripts = [asset("echarts.min.js"), asset("report.js")]
    return template.render(
        page={**{k: getattr(page, k) for k in page.__dataclass_fields__}, "sections": sections},
        css=Markup(asset("report.css") + colours()),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        data=Markup(in_script({"charts": charts, **_drawing()})),
        places=places,
        version=__version__,
        date=f"{page.date:%Y-%m-%d}",
    )


def in_script(content: Any) -> str:
    """Return JSON that is safe inside script tags: without markup or unusual line breaks."""
    text = json.dumps(_rounded(content), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def formatted(value: Any) -> str:
    """Return a value as it is shown in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return figure(value) if value is None or isinstance(value, int | float) else shown(value)


@cache
def colours() -> str:
    """Return the style sheet of the palette: lines, whiskers, bands and marks in every colour."""
    light, dark = (
        " ".join(f"--c{i}: {getattr(look, scheme)};" for i, look in enumerate(LOOKS))
        for scheme in ("light", "dark")
    )
    drawn = "".join(
        f".f{i}, .b{i} {{ fill: var(--c{i}); }} .l{i}, .o{i}, .w{i} {{ stroke: var(--c{i}); }}\n"
        for i in range(len(LOOKS))
    )
    how = {
        "l": f"fill: none; stroke-width: {STROKE}; stroke-linejoin: round;",
        "o": "fill: none; stroke-width: 2.4;",
        "w": "fill: none; stroke-width: 1.4; opacity: .75;",
        "b": "opacity: .17; stroke: none;",
    }
    for kind, rule in how.items():
        drawn += f"{', '.join(f'.{kind}{i}' for i in range(len(LOOKS)))} {{ {rule} }}\n"
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{drawn}"
    )


def _drawing() -> dict[str, Any]:
    """Return the styles with which interactive charts are drawn like the static ones."""
    return {
        "markers": [look.marker for look in LOOKS],
        "dashes": [[STROKE * part for part in look.dash] for look in LOOKS],
        "shapes": {name: list(map(list, corners)) for name, corners in SHAPES.items()},
    }


@cache
def asset(name: str) -> str:
    """Return the content of a file from which pages are made."""
    return (files(__package__ or "") / "assets" / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=False)
    return environment.from_string(asset("page.html.j2"))


def _policy(scripts: list[str]) -> str:
    """Return the content security policy, which lets a browser run the page's own scripts only."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _prepared(block: Block, charts: list[dict[str, Any]], detail: Detail) -> Any:
    """Return a block as the template takes it; the data of a chart are added to `charts`."""
    if isinstance(block, Pair):
        return {"kind": "pair", "blocks": [_prepared(one, charts, detail) for one in block.blocks]}
    if isinstance(block, Grid):
        return replace(block, detail=detail)
    if not isinstance(block, Plot | Rows | Shares):
        return block
    return _figure(block, charts, detail)


def _figure(block: Chart, charts: list[dict[str, Any]], detail: Detail) -> dict[str, Any]:
    """Return a chart as the template takes it, and add its data to `charts`."""
    from sellf.report import legend, svg

    more, first = "", []
    if isinstance(block, Plot):
        still = live = behind = block.thinner(detail.points)
    else:
        live = behind = _with_short_names(block, detail.letters)
        still, first = _first(live)
        elsewhere = "" if detail.again or isinstance(block, Shares) else block.tabled
        if first:
            more = f" {len(first)} of {len(block.names)} are drawn, those at both ends; "
            more += f"{elsewhere or 'the table'} has all."
            behind = still if elsewhere else live
        if not detail.undrawn:
            live, first = still, []
    content = asdict(live) | {"kind": block.kind}
    if not isinstance(live, Plot):
        content["first"] = first
    if not isinstance(live, Shares):
        content["axes"] = svg.axes(live)
    place = len(charts)
    charts.append(content)
    return {
        "kind": "figure",
        "identity": f"chart-{place}",
        "index": place,
        "title": block.title,
        "text": block.text + more,
        "legend": legend.entries(live),
        "svg": svg.draw(still, f"chart-{place}"),
        "grid": Grid(behind.columns(), f"Figures of “{block.title}”", detail=detail),
    }


def _with_short_names(chart: Rows | Shares, most: int) -> Rows | Shares:
    if all(len(name) <= most for name in chart.names):
        return chart
    return replace(chart, names=distinct([shortened(name, most) for name in chart.names]))


def _first(chart: Rows | Shares) -> tuple[Rows | Shares, list[int]]:
    """Return a chart with at most MOST_ROWS rows, from both ends, and the indices of these rows."""
    count = len(chart.names)
    if count <= MOST_ROWS:
        return chart, []
    half = MOST_ROWS // 2
    kept = [*range(half), *range(count - half, count)]

    def some(values: Any) -> Any:
        return None if values is None else [values[i] for i in kept]

    if isinstance(chart, Shares):
        parts = {name: some(values) for name, values in chart.parts.items()}
        return replace(chart, names=some(chart.names), parts=parts), kept
    marks = [replace(mark, values=some(mark.values)) for mark in chart.marks]
    ends = {"low": some(chart.low), "high": some(chart.high)}
    return replace(chart, names=some(chart.names), marks=marks, **ends), kept


def _numeric(values: Sequence[Any]) -> bool:
    known = [v for v in values if v is not None]
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in known) and bool(
        known
    )


def _sortable(value: Any) -> Any:
    return None if value is None or not math.isfinite(value) else f"{value:.7g}"


def _rounded(content: Any) -> Any:
    """Return the content with numbers of at most seven digits, which is more than a chart shows."""
    if isinstance(content, float):
        return float(f"{content:.7g}") if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_rounded(value) for value in content]
    return content
