"""A study's results as figures, each as SVG and PNG."""

import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sellf import files
from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.studies.plots import learning, outcome, style, worlds
from sellf.studies.plots import variants as listed
from sellf.studies.plots.choose import by_task
from sellf.studies.provenance import command
from sellf.studies.records import Cell, Results
from sellf.studies.spec import FIGURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BY_TASK: dict[str, Callable[[Results, list[Cell]], "Figure | None"]] = {
    "deployment": outcome.deployment,
    "tradeoff": outcome.tradeoff,
    "ablation-renyi": learning.ablation,
    "ablation-disparity": outcome.ablation,
    "bound-terms": learning.bound,
    "weights": learning.weights,
    "variants": listed.variants,
}
"""Figures that are drawn for every world and notion of a study."""
NEEDS = {
    "deployment": "runs that have been selected and trained",
    "tradeoff": "runs that have been selected and trained",
    "ablation-renyi": "runs of an algorithm with a label predictor (sellf), by beta_renyi",
    "ablation-disparity": "runs of an algorithm with a penalty (sellf, pocar), by beta_disparity",
    "bound-terms": "runs of an algorithm with a label predictor (sellf), by beta_renyi",
    "weights": "runs of an algorithm with a label predictor (sellf), by beta_renyi",
    "variants": "runs of several configurations",
    "timing": "runs",
}
"""The runs that each figure requires."""


def write(results: Results, folder: Path, names: list[str]) -> list[Path]:
    """Draw figures of a study into a folder, and return the files.

    Args:
        results: the results of the study.
        folder: the folder to write to.
        names: the figures: "deployment", "tradeoff", "ablation-renyi", "ablation-disparity",
            "bound-terms", "weights", "variants", "timing" or "worlds".
    """
    for name in names:
        one_of("figure", name, FIGURES)
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("figures need matplotlib: type `pip install 'sellf[report]'`.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with style.drawing():
        for name in names:
            drawn = [(title, figure) for title, figure in _draw(results, name) if figure]
            if not drawn:
                raise InputError(
                    f"{name} needs {NEEDS[name]}; {results.study} has none yet: type "
                    f"`{command(results)}`, or leave this figure out."
                )
            for title, figure in drawn:
                for kind in ("svg", "png"):
                    written.append(folder / f"{_plain(title)}.{kind}")
                    files.write(written[-1], style.to_bytes(figure, kind))
    return written


def _draw(results: Results, name: str) -> Iterator[tuple[str, "Figure | None"]]:
    if name == "timing":
        yield name, outcome.timing(results)
    elif name == "worlds":
        for world, settings in _worlds(results).values():
            changed = "-".join(f"{key}-{value}" for key, value in settings.items())
            yield f"{name}-{world}-{changed}", worlds.distributions(results, world, settings)
    else:
        for task, cells in by_task(results.cells).items():
            yield f"{name}-{task}", BY_TASK[name](results, cells)


def _worlds(results: Results) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the worlds of a study; the paper's four worlds if there are no runs."""
    found = {}
    for cell in results.cells:
        for run in [*cell.grid, *cell.final]:
            pair = (run.spec.world.name, run.spec.world.settings)
            found[repr(pair)] = pair
    return found or {name: (name, {}) for name in worlds.FEATURES}


def _plain(title: str) -> str:
    """Return a file name that is valid on any file system."""
    return re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.")
