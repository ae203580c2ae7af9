"""Figure of an ablation: configurations of one algorithm side by side."""

from typing import TYPE_CHECKING

import numpy as np

from sellf.studies.plots import style
from sellf.studies.records import Cell, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def variants(results: Results, cells: list[Cell]) -> "Figure | None":
    """Draw the reward and the disparity of every seed of every configuration."""
    done = [cell for cell in cells if cell.final]
    if not done:
        return None
    several = len({cell.algorithm for cell in done}) > 1
    figure = style.new(8.5, 1.4 + 0.32 * len(done))
    left, right = figure.subplots(1, 2, sharey=True)
    for row, cell in enumerate(done):
        how = style.look(cell.algorithm)
        runs = [record.evaluation for record in cell.final]
        for axes, values in (
            (left, [run.reward for run in runs]),
            (right, [run.disparity for run in runs]),
        ):
            axes.plot(values, [row] * len(values), how.marker, color=how.color, alpha=0.4, ms=5)
            axes.plot(np.mean(values), row, "|", color="black", ms=14, mew=2)
    names = [_name(cell, several) for cell in done]
    left.set_yticks(range(len(done)), names)
    left.invert_yaxis()
    left.set(xlabel="reward")
    right.set(xlabel="true |disparity|")
    right.set_xlim(left=0)
    omegas = {record.spec.omega for cell in done for record in cell.final}
    if len(omegas) == 1 and (omega := omegas.pop()) is not None:
        right.axvline(omega, color="#555555", linestyle="--", linewidth=1)
        right.text(omega, -0.75, " omega", fontsize=8, color="#333333", va="center")
    note = "each dot a seed, the bar their mean"
    return style.finish(figure, results, done, note)


def _name(cell: Cell, several: bool) -> str:
    settings = ", ".join(f"{name} = {value}" for name, value in cell.chosen.items())
    return f"{cell.algorithm}: {settings or 'as it is'}" if several else settings or "as it is"
