"""The algorithms of a study, each with its settings and its grid."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.studies.lines import Lines, expect

if TYPE_CHECKING:
    from sellf.algorithms.algorithm import Algorithm

MOST_RUNS = 1_000_000
KEYS = ("algorithm", "settings", "grid", "variants", "more_in")
_NAME = re.compile(r"[\w+-][\w .,=()+-]{0,59}")

Settings = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One row of a study's tables: an algorithm with its settings and its grid."""

    name: str
    """Name of the row: that of the algorithm, unless it appears with several settings."""
    algorithm: str
    settings: Settings = field(default_factory=dict)
    """Settings common to all configurations."""
    grid: tuple[Settings, ...] = ({},)
    """Varied settings by configuration; a single empty one if there is no grid."""
    more: dict[str, tuple[Settings, ...]] = field(default_factory=dict)
    """Additional configurations of single worlds."""

    def configurations(self, world: str) -> tuple[Settings, ...]:
        """Return the varied settings of every configuration in a world."""
        return self.grid + self.more.get(world, ())


def read_entries(content: Mapping[str, Any], lines: Lines) -> tuple[Entry, ...]:
    """Return the algorithms of a study."""
    tables = content.get("algorithms")
    with lines.at("algorithms"):
        if not isinstance(tables, dict) or not tables:
            raise InputError("name the algorithms to run, each in a table: [algorithms.sellf].")
    return tuple(_entry(name, table, lines) for name, table in tables.items())


def _entry(name: str, content: Any, lines: Lines) -> Entry:
    from sellf.algorithms import catalogue

    table = f"algorithms.{name}"
    with lines.at(name, table):
        expect(table, content, dict, "a table")
        algorithm = catalogue.ALGORITHMS.find(content.get("algorithm", name), typed=True)
        if not _NAME.fullmatch(name):
            raise InputError(f"{name[:60]!r} is no name for a row: give letters and digits.")
    for key in content:
        with lines.at(key, table):
            one_of(f"key of {table}", key, KEYS)
            if key not in ("variants", "algorithm"):
                expect(key, content[key], dict, "a table of settings")
    settings = content.get("settings", {})
    for key, value in settings.items():
        with lines.at(key, table):
            catalogue.configure(algorithm, {key: value})
    with lines.at("grid", table):
        if "grid" in content and not content["grid"]:
            raise InputError("the grid is empty: give lists of values, or leave it out.")
    combined = _combined(algorithm, content.get("grid", {}), settings, lines, table)
    if "variants" in content:
        combined = _variants(content, table, lines)
    more = _more(algorithm, content, settings, lines, table)
    for one in (*combined, *(one for several in more.values() for one in several)):
        with lines.at(name, table):
            catalogue.configure(algorithm, settings | one)
    return Entry(name, algorithm.name, settings, tuple(combined), more)


def _combined(
    algorithm: "Algorithm", grid: Any, settings: Settings, lines: Lines, table: str
) -> list[Settings]:
    """Return every combination of a grid's values."""
    from sellf.algorithms import catalogue

    for key, values in grid.items():
        with lines.at(key, table):
            if key in settings:
                raise InputError(f"{key} is in settings and in the grid: leave one out.")
            if not isinstance(values, list) or not values:
                raise InputError(f"the grid of {key} is empty: give a list of values, [1, 2].")
            for value in values:
                catalogue.configure(algorithm, {key: value})
    with lines.at("grid", table):
        configurations = prod(map(len, grid.values()))
        if configurations > MOST_RUNS:
            raise InputError(f"the grid has {configurations:,} configurations: take a smaller one.")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _more(
    algorithm: "Algorithm", content: Any, settings: Settings, lines: Lines, table: str
) -> dict[str, tuple[Settings, ...]]:
    """Return the additional grids of single worlds."""
    from sellf.envs.worlds import WORLDS

    found = {}
    for world, grid in content.get("more_in", {}).items():
        with lines.at(world, table):
            WORLDS.find(world, typed=True)
            expect(f"more_in.{world}", grid, dict, "a grid")
        found[world] = tuple(_combined(algorithm, grid, settings, lines, table))
    return found


def _variants(content: Mapping[str, Any], table: str, lines: Lines) -> list[Settings]:
    """Return configurations that are listed individually instead of a grid."""
    variants = content["variants"]
    with lines.at("variants", table):
        if "grid" in content:
            raise InputError("there are both a grid and variants: leave one out.")
        listed = isinstance(variants, list) and all(isinstance(one, dict) for one in variants)
        if not listed or not variants:
            raise InputError("variants is a list of settings: [{}, { omega = 0.1 }].")
    return variants
