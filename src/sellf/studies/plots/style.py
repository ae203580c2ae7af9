"""Style of all figures, which are legible in greyscale and reproducible byte by byte."""

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sellf import palette
from sellf.numbers import tick
from sellf.studies.provenance import QUICK, extent
from sellf.studies.records import Cell, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RULES: Any = {
    "svg.hashsalt": "sellf",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "savefig.dpi": 150,
}


class Look(NamedTuple):
    """Colour, dashes and marker of a line, each of which distinguishes it from the others."""

    color: str
    dash: Any
    marker: str


DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)), (0, (3, 3)))
MARKERS = "osD^vP*Xh"


MANY = 6
"""Number of lines above which their bands are drawn fainter."""


def looks(algorithms: Sequence[str]) -> list[Look]:
    """Return the looks of algorithms, the same as in reports."""
    return [_in_matplotlib(palette.LOOKS[i]) for i in palette.places_of(algorithms)]


def view(name: str) -> Look:
    """Return the look of a view of the disparity."""
    return _in_matplotlib(palette.LOOKS[palette.VIEWS[name]])


def look(algorithm: str) -> Look:
    """Return the look of an algorithm."""
    return looks([algorithm])[0]


def _in_matplotlib(one: palette.Look) -> Look:
    return Look(one.light, palette.drawn(one)["linestyle"], palette.MATPLOTLIB[one.marker])


PARETO: dict[str, Any]
FRONTIER: dict[str, Any]
PARETO, FRONTIER = (
    palette.drawn(palette.LOOKS[style]) | {"color": palette.LOOKS[palette.GREY].light}
    for style in (palette.PARETO, palette.FRONTIER)
)
"""Line styles of the Pareto front, and of the frontier of the best plans."""


def shades(number: int) -> list[Look]:
    """Return looks for ordered values, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    colours = colormaps["viridis"](np.linspace(0, 0.85, number))
    return [
        Look(to_hex(colour), DASHES[i % len(DASHES)], MARKERS[i % len(MARKERS)])
        for i, colour in enumerate(colours)
    ]


@contextmanager
def drawing() -> Iterator[None]:
    """Use the package's matplotlib settings instead of the user's."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RULES)
        yield


def new(width: float, height: float) -> "Figure":
    """Return an empty figure that belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def line(
    axes: "Axes", x: np.ndarray, values: np.ndarray, half: np.ndarray | None, how: Look, name: str,
    *, of: int = 1,
) -> None:  # fmt: skip
    """Draw one of several lines with some markers, and its band if there is one."""
    every = max(1, len(x) // 7)
    axes.plot(
        x, values, color=how.color, linestyle=how.dash, marker=how.marker, markevery=every,
        label=name,
    )  # fmt: skip
    if half is not None:
        # Many bands on top of each other would hide the lines.
        alpha = 0.15 if of <= MANY else 0.06
        axes.fill_between(x, values - half, values + half, color=how.color, alpha=alpha, lw=0)


def finish(figure: "Figure", results: Results, cells: list[Cell], note: str) -> "Figure":
    """Write the origin of a figure below it."""
    parts = [results.study, *([extent(cells)] if cells else []), *([note] if note else [])]
    width = int(figure.get_figwidth() * 17)
    text = textwrap.fill("; ".join(parts) + ".", width)
    if results.quick:
        text = f"{QUICK}\n{text}"
    figure.supxlabel(text, fontsize=7.5, color="#333333", x=0.01, ha="left", linespacing=1.3)
    return figure


def legend(figure: "Figure", axes: "Axes", title: str | None = None) -> None:
    """Put one legend above all panels, with as many columns as fit."""
    handles, labels = axes.get_legend_handles_labels()
    fit = int(figure.get_figwidth() * 11 / (max(map(len, labels)) + 9))
    figure.legend(
        handles, labels, loc="outside upper center", ncols=max(1, min(fit, len(labels))),
        title=title, handlelength=3.5, fontsize=9,
    )  # fmt: skip


def to_bytes(figure: "Figure", kind: str) -> bytes:
    """Return a figure as a file: "svg" or "png", without a date or anything else that changes."""
    out = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def spread_out(axes: "Axes") -> None:
    """Use a logarithmic axis with plain numbers if values span orders of magnitude."""
    from matplotlib.ticker import LogLocator, NullLocator

    values = np.concatenate(_heights(axes))
    axes.set_ylim(bottom=values.min() - 0.05 * np.ptp(values))
    if values.min() > 0 and values.max() / values.min() > 10:
        # Set before the locators, which a new scale replaces. Bands below 0 are clipped.
        axes.set_yscale("log")
        axes.set_ylim(values.min() / 1.3, values.max() * 1.3)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter("{x:g}")


def settle(axes: "Axes") -> None:
    """Fit the axis to the values after the first twentieth, which are much smaller."""
    later = np.concatenate([heights[len(heights) // 20 :] for heights in _heights(axes)])
    low, high = min(later.min(), 0.0), max(later.max(), 0.0)
    room = 0.25 * (high - low) or 1.0
    axes.set_ylim(low - room if low < 0 else 0.0, high + room)


def _heights(axes: "Axes") -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]


def plain_ticks(*axes: "Axes") -> None:
    """Format the numbers of both axes as in reports, with no more ticks than fit."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    for one in axes:
        one.xaxis.set_major_locator(MaxNLocator(4))
        one.xaxis.set_major_formatter(tick)
        if not isinstance(one.yaxis.get_major_locator(), LogLocator):
            one.yaxis.set_major_formatter(tick)
