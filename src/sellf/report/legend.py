"""The legend of a chart."""

from typing import Any

from sellf.report.charts import Chart, Plot, Rows, Series
from sellf.report.svg import bar_swatch, swatch, tag


def entries(chart: Chart) -> list[dict[str, Any]]:
    """Return the entries of a chart's legend; `key` names what a click shows or hides."""
    if isinstance(chart, Plot):
        found = _plotted(chart.series)
        if chart.spread:
            found.append(_entry(None, chart.spread, bar_swatch(7, faint=True)))
        return found
    if isinstance(chart, Rows):
        found = [
            _entry(str(i), m.name, swatch(m.colour, None, m.marker))
            for i, m in enumerate(chart.marks)
        ]
        if chart.low:
            found.insert(0, _entry("interval", chart.interval, bar_swatch(0, faint=True)))
        if chart.band is not None:
            found.append(_entry(None, chart.band[2], bar_swatch(2, faint=True)))
        return found
    return [_entry(str(k), name, _part(k)) for k, name in enumerate(chart.parts)]


def _plotted(series: list[Series]) -> list[dict[str, Any]]:
    """Return one entry for each series and those beside it, whose keys are separated by blanks."""
    places: dict[str, int] = {}
    for i, one in enumerate(series):
        if not one.beside:
            places.setdefault(one.name, i)
    keys: dict[int, list[str]] = {}
    for i, one in enumerate(series):
        keys.setdefault(places.get(one.beside, i), []).append(str(i))
    return [_entry(" ".join(k), series[i].name, _series(series[i])) for i, k in keys.items()]


def _series(series: Series) -> Any:
    if series.points:
        return swatch(series.colour, None, series.marker, 2.5 if series.small else 4.5)
    return swatch(series.colour, series.style, None)


def _entry(key: str | None, name: str, picture: Any) -> dict[str, Any]:
    return {"key": key, "name": name, "swatch": picture}


def _part(colour: int) -> Any:
    bar = tag("rect", x=1, y=2, width=26, height=10, class_=f"h{colour}")
    return tag("svg", bar, viewBox="0 0 28 14", class_="swatch", aria_hidden="true")
