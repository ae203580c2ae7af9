"""The looks of lines and marks in the figures of studies and in reports.

A look is a colour, dashes and a marker, each of which distinguishes it from the others. An
algorithm has the same look everywhere; groups, views and variants use the first eight in turn.
"""

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal, NamedTuple

Marker = Literal[
    "circle", "diamond", "square", "triangle", "cross", "ring", "down", "left", "right",
    "pentagon", "star", "plus", "saltire", "hexagon", "slim",
]  # fmt: skip
Corners = tuple[tuple[float, float], ...]


class Look(NamedTuple):
    """A colour on white and on black, dashes in line widths, and a marker."""

    light: str
    dark: str
    dash: tuple[float, ...]
    marker: Marker


GENERAL = (
    Look("#0072b2", "#56b4e9", (), "circle"),
    Look("#d55e00", "#f08437", (3.2, 1.8), "diamond"),
    Look("#009e73", "#2fc498", (1, 1.8), "square"),
    Look("#cc79a7", "#dd9dc0", (4.5, 1.8, 1, 1.8), "triangle"),
    Look("#a8700a", "#e6b84f", (), "cross"),
    Look("#2f8fc4", "#2f86bd", (3.2, 1.8), "ring"),
    Look("#000000", "#ffffff", (1, 1.8), "circle"),
    Look("#707070", "#a5a5a5", (4.5, 1.8, 1, 1.8), "diamond"),
)
"""Colours after Okabe and Ito, which colour-blind people can distinguish."""
ALGORITHMS = {
    "ppo": Look("#000000", "#ffffff", (), "circle"),
    "pocar": Look("#c98200", "#e69f00", (3.7, 1.6), "square"),
    "pocar-oracle": Look("#8c510a", "#cf9a5b", (1, 1.65), "diamond"),
    "focops": Look("#808080", "#b0b0b0", (6.4, 1.6, 1, 1.6), "down"),
    "elbert": Look("#2f9bd6", "#7cc8f2", (5, 1, 1, 1, 1, 1), "triangle"),
    "ppo-lagrangian": Look("#882255", "#d97bab", (8, 2), "left"),
    "pid-lagrangian": Look("#117733", "#5cc47f", (3, 3), "right"),
    "cup": Look("#332288", "#a193ee", (3, 1, 1, 1), "pentagon"),
    "sellf": Look("#d55e00", "#f08437", (), "star"),
    "sellf-semi": Look("#cc79a7", "#dd9dc0", (3.7, 1.6), "plus"),
    "sellf-relu": Look("#009e73", "#2fc498", (6.4, 1.6, 1, 1.6), "saltire"),
    "sellf-direct": Look("#0072b2", "#56b4e9", (1, 1), "hexagon"),
    "sellf-plan": Look("#aa3377", "#e58abb", (5, 1), "slim"),
}
LOOKS = (*GENERAL, *ALGORITHMS.values())
"""All looks; charts refer to them by their index."""
PARETO, FRONTIER = 1, 0
"""The indices of the dashes of a Pareto front and of the frontier, both drawn in grey."""
GREY = 7
"""The index of grey."""
VIEWS = {"true": 0, "accepted": 1, "imputed": 2, "exact": 6}
"""The looks of a disparity's views: true, among the accepted only, with predictions, exact."""
_OWN = {name: len(GENERAL) + i for i, name in enumerate(ALGORITHMS)}


def places_of(algorithms: Sequence[str]) -> list[int]:
    """Return the looks of algorithms that are drawn together, distinct as long as there are enough.

    An algorithm that occurs once has its own look. Unknown and repeated ones have general looks in
    turn, starting with those whose colour no other algorithm in the chart has.
    """
    names = list(algorithms)
    own = {name: place for name, place in _OWN.items() if names.count(name) == 1}
    colours = {LOOKS[place].light for place in own.values()}
    free = cycle(sorted(range(len(GENERAL)), key=lambda place: GENERAL[place].light in colours))
    return [own[name] if name in own else next(free) for name in names]


def _round(corners: int, turn: float = 0.0, radii: Sequence[float] = (1.15,)) -> Corners:
    """Return corners on one circle, or on several in turn, starting at the top; y is downwards."""
    return tuple(
        (
            round(radii[i % len(radii)] * math.sin(2 * math.pi * i / corners + turn), 3),
            round(-radii[i % len(radii)] * math.cos(2 * math.pi * i / corners + turn), 3),
        )
        for i in range(corners)
    )


def _turned(corners: Corners, quarters: float) -> Corners:
    c, s = math.cos(quarters * math.pi / 2), math.sin(quarters * math.pi / 2)
    return tuple((round(c * x - s * y, 3), round(s * x + c * y, 3)) for x, y in corners)


_UP: Corners = ((0, -1.2), (1.1, 0.85), (-1.1, 0.85))
_PLUS: Corners = (
    (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4), (0.4, 1.2),
    (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
)  # fmt: skip
SHAPES: dict[Marker, Corners] = {
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "slim": ((0, -1.3), (0.8, 0), (0, 1.3), (-0.8, 0)),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": _UP,
    "right": _turned(_UP, 1),
    "down": _turned(_UP, 2),
    "left": _turned(_UP, 3),
    "pentagon": _round(5),
    "hexagon": _round(6),
    "star": _round(10, radii=(1.4, 0.6)),
    "plus": _PLUS,
    "saltire": _turned(_PLUS, 0.5),
}
"""The corners of filled markers, for a radius of 1; "circle", "ring" and "cross" have none."""


def drawn(look: Look) -> dict[str, Any]:
    """Return colour and dashes of a line as arguments of matplotlib."""
    return {"color": look.light, "linestyle": (0, look.dash) if look.dash else "-"}


MATPLOTLIB: dict[Marker, str] = {
    "circle": "o", "ring": "o", "cross": "x", "diamond": "D", "slim": "d", "square": "s",
    "triangle": "^", "right": ">", "down": "v", "left": "<", "pentagon": "p", "hexagon": "h",
    "star": "*", "plus": "P", "saltire": "X",
}  # fmt: skip
"""The same shapes as markers of matplotlib."""
