"""A study as a small TOML file: worlds, notions, algorithms with grids, seeds, how to select."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from sellf import files
from sellf.errors import InputError
from sellf.fairness.checks import number, one_of
from sellf.fairness.notions import NOTIONS, Notion, define

BUILTIN = Path(__file__).parent / "builtin"
KEYS = (
    "name",
    "summary",
    "cells",
    "worlds",
    "notions",
    "algorithms",
    "world_settings",
    "seeds",
    "selection_seeds",
    "steps",
    "deployments",
    "select",
    "omega",
    "alone",
    "draw",
)
SELECT = ("paper", "all")
FIGURES = (
    "deployment",
    "tradeoff",
    "ablation-renyi",
    "ablation-disparity",
    "bound-terms",
    "weights",
    "variants",
    "timing",
    "worlds",
)
"""What `sellf study figures` can draw."""
MOST_RUNS = 1_000_000
DEEPEST = 1_000
"""Parts of a name in a study file."""
LARGEST = 10_000_000
"""Bytes of a study file."""
_NAME = re.compile(r"[\w+-][\w .+-]{0,99}")
_FOREIGN = re.compile(r"^\.+|[^\w .+-]+")
STUDY_NOTIONS = tuple(name for name in NOTIONS if define(name).needs_label)
LARGEST_SEED = 999_999
"""Of a training; deployments draw from a seed above, so that no training has seen theirs."""
QUICK = {"steps": 6_144, "deployments": 2, "seeds": 2}
"""What `--quick` leaves: three rollouts, two deployments, two seeds, the ends of every grid."""


@dataclass(frozen=True)
class Entry:
    """One algorithm of a study."""

    algorithm: str
    settings: dict[str, Any] = field(default_factory=dict)
    """The same in every configuration."""
    grid: tuple[dict[str, Any], ...] = ({},)
    """What differs, by configuration; one that changes nothing if there is no grid."""


@dataclass(frozen=True)
class Study:
    """What to run, how to select among it and what to draw of it."""

    name: str
    cells: tuple[tuple[str, Notion], ...]
    """Worlds, each with a notion."""
    entries: tuple[Entry, ...]
    summary: str = ""
    world_settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By world, where they are not the paper's."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Of the final trainings."""
    selection_seeds: tuple[int, ...] = (0,)
    """Of the trainings that selection looks at."""
    steps: int = 500_000
    deployments: int = 10
    select: str = "paper"
    """"paper": one configuration per algorithm (Algorithm 2); "all": every one is final."""
    omega: float = 0.05
    """The disparity that selection tolerates."""
    alone: bool = False
    """One run at a time, so that what each takes can be measured."""
    draw: tuple[str, ...] = ("deployment",)
    """The figures, by name."""
    quick: bool = False
    """Shrunk for a first look."""
    source: str = ""
    """The file that it was read from, if it is not built in."""

    @property
    def title(self) -> str:
        """How it is called where it is shown."""
        return self.name + (" (quick)" if self.quick else "")


def load(name: str | Path, quick: bool = False) -> Study:
    """Return a built-in study by name, or the one in a TOML file; shrunk, if asked to."""
    path = _path(str(name))
    try:
        text = files.read(path, LARGEST).decode()
    except InputError:
        raise
    except (OSError, UnicodeDecodeError):
        raise InputError(f"cannot read {path}: give a study file in TOML.") from None
    known = path.parent == BUILTIN
    study = parse(text, path.name if known else str(path))
    study = study if known else replace(study, source=str(path))
    return shrunk(study) if quick else study


def builtin() -> dict[str, str]:
    """Return the names and summaries of the built-in studies, the paper's main one first."""
    files = sorted(BUILTIN.glob("*.toml"), key=lambda path: (path.stem != "paper-main", path.stem))
    return {path.stem: tomllib.loads(path.read_text("utf-8"))["summary"] for path in files}


def _check_depth(text: str) -> None:
    """Refuse names of very many parts, which take memory with the square of their number."""
    if any(line.split("=", 1)[0].count(".") > DEEPEST for line in text.splitlines()):
        raise ValueError("a name has too many parts")


def shrunk(study: Study) -> Study:
    """Return a study that takes a few minutes: a first look, whose figures mean little."""
    entries = tuple(
        replace(entry, grid=tuple({0: entry.grid[0], 1: entry.grid[-1]}.values()))
        if len(entry.grid) > 1
        else entry
        for entry in study.entries
    )
    return replace(
        study,
        entries=entries,
        seeds=study.seeds[: QUICK["seeds"]],
        selection_seeds=study.selection_seeds[:1],
        steps=min(study.steps, QUICK["steps"]),
        deployments=min(study.deployments, QUICK["deployments"]),
        quick=True,
    )


def parse(text: str, source: str) -> Study:
    """Return the study that a TOML text describes; mistakes are told with their line."""
    try:
        _check_depth(text)
        content = tomllib.loads(text)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{source} is not valid TOML: {error}.") from None
    except RecursionError:
        raise InputError(f"{source} is not a study: it is nested too deeply.") from None
    lines = _Source(text, source)
    for key in content:
        with lines.at(key):
            one_of("key", key, KEYS)
    values = {key: content[key] for key in ("name", "summary") if key in content}
    for key, value in values.items():
        with lines.at(key):
            _expect(key, value, str, "a text")
    name = values.get("name", _FOREIGN.sub("-", Path(source).stem)[:100] or "study")
    with lines.at("name"):
        if not _NAME.fullmatch(name):
            raise InputError(
                f"name is {name[:100]!r}: give up to 100 letters, digits, spaces and - _ . +, as "
                "results are written to a folder of this name."
            )
    with lines.at("select"):
        one_of("select", content.get("select", "paper"), SELECT)
    with lines.at("alone"):
        _expect("alone", content.get("alone", False), bool, "true or false")
    with lines.at("draw"):
        draw = _words("draw", content.get("draw", list(Study.draw)))
        for figure in draw:
            one_of("figure", figure, FIGURES)
    with lines.at("omega"):
        omega = number("omega", content.get("omega", Study.omega), low=0)
    made = Study(
        name=name,
        summary=values.get("summary", ""),
        cells=_cells(content, lines),
        entries=_entries(content, lines),
        world_settings=_world_settings(content, lines),
        seeds=_seeds("seeds", content, Study.seeds, lines),
        selection_seeds=_seeds("selection_seeds", content, Study.selection_seeds, lines),
        steps=_whole("steps", content, Study.steps, lines),
        deployments=_whole("deployments", content, Study.deployments, lines),
        select=content.get("select", "paper"),
        omega=omega,
        alone=content.get("alone", False),
        draw=draw,
    )
    number_of = sum(len(entry.grid) for entry in made.entries) * len(made.cells) * len(made.seeds)
    if number_of > MOST_RUNS:
        raise InputError(
            f"{source} asks for {number_of:,} runs, more than {MOST_RUNS:,}: take a smaller grid "
            "or fewer seeds."
        )
    return made


@dataclass(frozen=True)
class _Source:
    """Where in a text something stands."""

    text: str
    source: str

    @contextmanager
    def at(self, word: str, table: str = "") -> Iterator[None]:
        """Put the file and the line of a word before the message of any mistake."""
        try:
            yield
        except InputError as error:
            line = self.line(word, table)
            raise InputError(f"{self.source}, line {line}: {error}") from None

    def line(self, word: str, table: str) -> int:
        """Return the line of a word, looked for from where its table begins."""
        lines = [line.partition("#")[0] for line in self.text.splitlines()]
        heads = [i for i, line in enumerate(lines) if line.strip().startswith(f"[{table}")]
        start = heads[0] if table and heads else 0
        whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        found = [i for i, line in enumerate(lines) if i >= start and whole.search(line)]
        return (found[0] if found else start) + 1


def _cells(content: Mapping[str, Any], lines: _Source) -> tuple[tuple[str, Any], ...]:
    from sellf.envs.worlds import WORLDS

    key = "cells" if "cells" in content else "worlds"
    with lines.at(key):
        if ("cells" in content) == ("worlds" in content or "notions" in content):
            raise InputError(
                "say where to run: cells = [[WORLD, NOTION], ...], or worlds = [...] and "
                "notions = [...], not both."
            )
        if key == "cells":
            pairs = content["cells"]
            right = isinstance(pairs, list) and all(
                isinstance(pair, list) and len(pair) == 2 for pair in pairs
            )
            if not right:
                raise InputError("cells is a list of pairs: [[WORLD, NOTION], ...].")
        else:
            worlds = _words("worlds", content.get("worlds", []))
            notions = _words("notions", content.get("notions", []))
            pairs = [list(pair) for pair in product(worlds, notions)]
        if not pairs:
            raise InputError("there is no world with a notion: name at least one of each.")
    for world, notion in pairs:
        with lines.at(str(world)):
            one_of("world", world, tuple(WORLDS))
        with lines.at(str(notion)):
            one_of("notion", notion, STUDY_NOTIONS)
    return tuple(dict.fromkeys((world, notion) for world, notion in pairs))


def _entries(content: Mapping[str, Any], lines: _Source) -> tuple[Entry, ...]:
    tables = content.get("algorithms")
    with lines.at("algorithms"):
        if not isinstance(tables, dict) or not tables:
            raise InputError("name the algorithms to run, each in a table: [algorithms.sellf].")
    return tuple(_entry(name, table, lines) for name, table in tables.items())


def _entry(name: str, content: Any, lines: _Source) -> Entry:
    from sellf.algorithms import catalogue

    table = f"algorithms.{name}"
    with lines.at(name, table):
        algorithm = catalogue.find(name)
        _expect(table, content, dict, "a table")
    for key in content:
        with lines.at(key, table):
            one_of(f"key of {table}", key, ("grid", "settings", "variants"))
            if key != "variants":
                _expect(key, content[key], dict, "a table of settings")
    settings, grid = content.get("settings", {}), content.get("grid", {})
    for key, value in settings.items():
        with lines.at(key, table):
            catalogue.configure(algorithm, {key: value})
    for key, values in grid.items():
        with lines.at(key, table):
            if key in settings:
                raise InputError(f"{key} is in settings and in the grid: leave one out.")
            if not isinstance(values, list) or not values:
                raise InputError(f"the grid of {key} is empty: give a list of values, [1, 2].")
            for value in values:
                catalogue.configure(algorithm, {key: value})
    with lines.at("grid", table):
        if "grid" in content and not grid:
            raise InputError("the grid is empty: give lists of values, or leave it out.")
    with lines.at("grid", table):
        configurations = prod(map(len, grid.values()))
        if configurations > MOST_RUNS:
            raise InputError(f"the grid has {configurations:,} configurations: take a smaller one.")
    combined = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if "variants" in content:
        combined = _variants(content, table, lines)
    for one in combined:
        with lines.at(name, table):
            catalogue.configure(algorithm, settings | one)
    return Entry(name, settings, tuple(combined))


def _variants(content: Mapping[str, Any], table: str, lines: _Source) -> list[dict[str, Any]]:
    """Return configurations that are listed one by one, in place of a grid."""
    variants = content["variants"]
    with lines.at("variants", table):
        if "grid" in content:
            raise InputError("there is a grid and there are variants: leave one out.")
        listed = isinstance(variants, list) and all(isinstance(one, dict) for one in variants)
        if not listed or not variants:
            raise InputError("variants is a list of settings: [{}, { omega = 0.1 }].")
    return variants


def _world_settings(content: Mapping[str, Any], lines: _Source) -> dict[str, dict[str, Any]]:
    from sellf.envs.worlds import WORLDS, make_world

    tables = content.get("world_settings", {})
    with lines.at("world_settings"):
        _expect("world_settings", tables, dict, "tables, [world_settings.lending]")
    for world, settings in tables.items():
        table = f"world_settings.{world}"
        with lines.at(world, table):
            one_of("world", world, tuple(WORLDS))
            _expect(table, settings, dict, "a table of settings")
        for key, value in settings.items():
            with lines.at(key, table):
                try:
                    make_world(world, **{key: value})
                except (TypeError, AttributeError, OverflowError):
                    raise InputError(f"{key} is {value!r}: {world} does not take that.") from None
    return tables


def _seeds(
    key: str, content: Mapping[str, Any], default: tuple[int, ...], lines: _Source
) -> tuple[int, ...]:
    given: Any = content.get(key, default)
    with lines.at(key):
        if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= LARGEST_SEED + 1:
            given = tuple(range(given))
        listed = list(given) if isinstance(given, list | tuple) else []
        if not listed or not all(type(s) is int and 0 <= s <= LARGEST_SEED for s in listed):
            raise InputError(
                f"{key} is {str(content.get(key))[:80]}: give how many, or a list of whole numbers "
                f"from 0 to {LARGEST_SEED}."
            )
    return tuple(dict.fromkeys(listed))


def _whole(key: str, content: Mapping[str, Any], default: int, lines: _Source) -> int:
    value = content.get(key, default)
    with lines.at(key):
        if type(value) is not int or value < 1:
            raise InputError(f"{key} is {value!r}: give a whole number, 1 or more.")
    return value


def _words(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise InputError(f"{key} is {value!r}: give a list of names.")
    return tuple(value)


def _expect(key: str, value: Any, expected: type, description: str) -> None:
    if not isinstance(value, expected):
        raise InputError(f"{key} is {value!r}: give {description}.")


def _path(name: str) -> Path:
    """Return the file of a study: one that exists, or a built-in one."""
    if name.endswith(".toml") or "/" in name:
        if not Path(name).is_file():
            raise InputError(f"there is no study file {name}.")
        return Path(name)
    one_of("study", name, tuple(builtin()))
    return BUILTIN / f"{name}.toml"
