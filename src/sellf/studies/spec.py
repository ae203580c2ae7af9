"""Study files in TOML: worlds, notions, algorithms with grids, seeds and selection."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from sellf import files
from sellf.errors import InputError
from sellf.fairness.checks import number, one_of
from sellf.fairness.notions import NOTIONS, TABLE, Notion, define
from sellf.studies.entries import MOST_RUNS, Entry, read_entries
from sellf.studies.lines import Lines, expect, whole, words
from sellf.toml import parse_toml

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
"""The figures that `sellf study figures` can draw."""
LARGEST = 10_000_000
"""Largest size of a study file in bytes."""
_NAME = re.compile(r"[\w+-][\w .+-]{0,99}")
_FOREIGN = re.compile(r"^\.+|[^\w .+-]+")
STUDY_NOTIONS = tuple(name for name in NOTIONS if define(name).needs_label)
LARGEST_SEED = 999_999
"""Largest seed of a training; deployments use a larger seed, which no training uses."""
QUICK = {"steps": 6_144, "deployments": 2, "seeds": 2}
"""Size with `--quick`: three rollouts, two deployments, two seeds, the ends of every grid."""


@dataclass(frozen=True)
class Study:
    """The runs of a study, the selection among them, and the figures to draw."""

    name: str
    cells: tuple[tuple[str, Notion], ...]
    """Worlds, each with a notion."""
    entries: tuple[Entry, ...]
    summary: str = ""
    world_settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings by world that differ from the paper's."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds of the final trainings."""
    selection_seeds: tuple[int, ...] = (0,)
    """Seeds of the trainings used for selection."""
    steps: int = 500_000
    deployments: int = 10
    select: str = "paper"
    """"paper": one configuration per algorithm (Algorithm 2); "all": all are final."""
    omega: float = 0.05
    """The disparity that selection tolerates."""
    alone: bool = False
    """Whether runs are done one at a time, to measure their training times."""
    draw: tuple[str, ...] = ("deployment",)
    """The names of the figures to draw."""
    quick: bool = False
    """Whether the study is shrunk for a first look."""
    source: str = ""
    """The file that the study was read from, if it is not built in."""

    @property
    def title(self) -> str:
        """The name of the study for display."""
        return self.name + (" (quick)" if self.quick else "")


def load(name: str | Path, quick: bool = False) -> Study:
    """Return a built-in study by name, or the one in a TOML file; shrunk if `quick`."""
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


def shrunk(study: Study) -> Study:
    """Return a study shrunk to a few minutes, as a first look without meaningful results."""
    entries = tuple(
        replace(entry, grid=_ends(entry.grid), more={w: _ends(g) for w, g in entry.more.items()})
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


def _ends(grid: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    return (grid[0], grid[-1]) if len(grid) > 1 else grid


def parse(text: str, source: str) -> Study:
    """Return the study that a TOML text describes; errors name the line."""
    try:
        content = parse_toml(text)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{source} is not valid TOML: {error}.") from None
    lines = Lines(text, source)
    for key in content:
        with lines.at(key):
            one_of("key", key, KEYS)
    values = {key: content[key] for key in ("name", "summary") if key in content}
    for key, value in values.items():
        with lines.at(key):
            expect(key, value, str, "a text")
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
        expect("alone", content.get("alone", False), bool, "true or false")
    with lines.at("draw"):
        draw = words("draw", content.get("draw", list(Study.draw)))
        for figure in draw:
            one_of("figure", figure, FIGURES)
    with lines.at("omega"):
        omega = number("omega", content.get("omega", Study.omega), low=0)
    made = Study(
        name=name,
        summary=values.get("summary", ""),
        cells=_cells(content, lines),
        entries=read_entries(content, lines),
        world_settings=_world_settings(content, lines),
        seeds=_seeds("seeds", content, Study.seeds, lines),
        selection_seeds=_seeds("selection_seeds", content, Study.selection_seeds, lines),
        steps=whole("steps", content, Study.steps, lines),
        deployments=whole("deployments", content, Study.deployments, lines),
        select=content.get("select", "paper"),
        omega=omega,
        alone=content.get("alone", False),
        draw=draw,
    )
    configurations = sum(
        len(entry.configurations(world)) for entry in made.entries for world, _ in made.cells
    )
    number_of = configurations * len(made.seeds)
    if number_of > MOST_RUNS:
        raise InputError(
            f"{source} has {number_of:,} runs, more than {MOST_RUNS:,}: take a smaller grid or "
            "fewer seeds."
        )
    return made


def _cells(content: Mapping[str, Any], lines: Lines) -> tuple[tuple[str, Any], ...]:
    from sellf.envs.worlds import WORLDS

    key = "cells" if "cells" in content else "worlds"
    with lines.at(key):
        if ("cells" in content) == ("worlds" in content or "notions" in content):
            raise InputError(
                "name the worlds and notions: cells = [[WORLD, NOTION], ...], or worlds = [...] "
                "and notions = [...], not both."
            )
        if key == "cells":
            pairs = content["cells"]
            right = isinstance(pairs, list) and all(
                isinstance(pair, list) and len(pair) == 2 for pair in pairs
            )
            if not right:
                raise InputError("cells is a list of pairs: [[WORLD, NOTION], ...].")
        else:
            worlds = words("worlds", content.get("worlds", []))
            notions = words("notions", content.get("notions", []))
            pairs = [list(pair) for pair in product(worlds, notions)]
        if not pairs:
            raise InputError("there is no world with a notion: name at least one of each.")
    for world, notion in pairs:
        with lines.at(str(world)):
            WORLDS.find(world, typed=True)
        with lines.at(str(notion)):
            if not TABLE.find(notion, typed=True).needs_label:
                one_of("notion", notion, STUDY_NOTIONS)
    return tuple(dict.fromkeys((world, notion) for world, notion in pairs))


def _world_settings(content: Mapping[str, Any], lines: Lines) -> dict[str, dict[str, Any]]:
    from sellf.envs.worlds import WORLDS, make_world

    tables = content.get("world_settings", {})
    with lines.at("world_settings"):
        expect("world_settings", tables, dict, "tables, [world_settings.lending]")
    for world, settings in tables.items():
        table = f"world_settings.{world}"
        with lines.at(world, table):
            WORLDS.find(world, typed=True)
            expect(table, settings, dict, "a table of settings")
        for key, value in settings.items():
            with lines.at(key, table):
                try:
                    make_world(world, **{key: value})
                except (TypeError, AttributeError, OverflowError):
                    raise InputError(f"{key} is {value!r}: {world} does not take that.") from None
    return tables


def _seeds(
    key: str, content: Mapping[str, Any], default: tuple[int, ...], lines: Lines
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


def _path(name: str) -> Path:
    """Return the file of a study, given by path or as the name of a built-in study."""
    if name.endswith(".toml") or "/" in name:
        if not Path(name).is_file():
            raise InputError(f"there is no study file {name}.")
        return Path(name)
    one_of("study", name, tuple(builtin()))
    return BUILTIN / f"{name}.toml"
