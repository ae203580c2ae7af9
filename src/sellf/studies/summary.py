"""What a study's runs come to: means, intervals, and how far they are from the paper's."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sellf.fairness import View
from sellf.studies import paper
from sellf.studies.paper import Published
from sellf.studies.records import Cell, Record, Results
from sellf.studies.statistics import Estimate, estimate

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec

STEPS = 500_000
"""What times are scaled to: as many as in the paper."""
ROUNDED = 0.005
"""The paper's disparities have two decimals: each may be this far from what was measured."""
GRIDS = {"beta_disparity", "beta_increase", "beta_renyi", "beta_bias", "nu_max", "limit"}
"""What the paper chose from grids; everything else it left as it is."""
SAME_WORLD = {"microdata", "population", "window"}
"""Settings of a world that leave it comparable with the paper's."""


class Group(NamedTuple):
    """What became of a group under an algorithm, over all deployments and seeds."""

    acceptance: float
    """The share that was accepted."""
    qualified_at_first: float
    qualified_at_last: float
    """P(Y = 1) in the population, at the first and last moments that were recorded."""


@dataclass(frozen=True)
class Row:
    """What one cell of a study came to."""

    task: str
    """World and notion, in words."""
    cell: Cell
    disparity: Estimate
    """|Delta|, of the window, with all labels."""
    exact: Estimate
    """Of the whole population: no window, no noise."""
    seen: Estimate
    """What the algorithm itself could see: in its own view."""
    view: View
    reward: Estimate
    by_group: dict[str, Group]
    published: Published | None
    comparable: bool
    """Whether steps and settings are the paper's, so that a difference means something."""
    best_disparity: bool
    best_reward: bool
    regret: float | None = None
    """What the best policy of the same exact disparity earns more, if the frontier is known."""

    @property
    def seeds(self) -> int:
        """How many trainings there were."""
        return len(self.cell.final)

    @property
    def sentences(self) -> list[str]:
        """What selection has to say, and where ours and the paper's differ beyond the spread."""
        remark = [f"{self.task}, {self.cell.algorithm}: {self.cell.remark}"]
        return (remark if self.cell.remark else []) + self._differences

    @property
    def _differences(self) -> list[str]:
        if self.published is None or not self.comparable:
            return []
        pairs = [
            ("disparity", self.disparity, self.published.disparity,
             max(self.published.disparity_std, ROUNDED), 3),
            ("reward", self.reward, self.published.reward, self.published.reward_std, 1),
        ]  # fmt: skip
        name = f"{self.task}, {self.cell.algorithm}"
        return [
            _differs(name, what, ours, theirs, spread, digits)
            for what, ours, theirs, spread, digits in pairs
            if abs(ours.mean - theirs) > max(ours.spread, spread)
        ]


def rows(results: Results) -> list[Row]:
    """Return a row for every cell that has been trained, tasks together, in the study's order."""
    done = [cell for cell in results.cells if cell.final]
    often = Counter((task_name(cell), cell.algorithm) for cell in done)
    found = []
    for where in dict.fromkeys(map(task_name, done)):
        cells = [cell for cell in done if task_name(cell) == where]
        gaps = [_figure(cell, "true") for cell in cells]
        rewards = [estimate([r.evaluation.rewards for r in cell.final]) for cell in cells]
        least = min((round(gap.mean, 3) for gap in gaps if gap.mean == gap.mean), default=None)
        most = max(round(reward.mean, 1) for reward in rewards)
        for cell, gap, reward in zip(cells, gaps, rewards, strict=True):
            spec = cell.final[0].spec
            # One algorithm several times over is an ablation: no cell of the paper's is like it.
            alike = often[where, cell.algorithm] == 1 and spec.world.settings.keys() <= SAME_WORLD
            found.append(
                Row(
                    task=where,
                    cell=cell,
                    disparity=gap,
                    exact=_figure(cell, "exact"),
                    seen=_figure(cell, spec.view),
                    view=spec.view,
                    reward=reward,
                    by_group=_groups(cell),
                    published=paper.find(cell.world, cell.notion, cell.algorithm)
                    if alike
                    else None,
                    comparable=_as_published(spec),
                    best_disparity=round(gap.mean, 3) == least,
                    best_reward=round(reward.mean, 1) == most,
                    regret=_regret(results, cell, reward),
                )
            )
    return found


def task_name(cell: Cell) -> str:
    """Return world and notion in words, with what was changed in the world."""
    records = cell.final or cell.grid
    changed = records[0].spec.world.settings if records else {}
    world = f"{cell.world} ({format_settings(changed)})" if changed else cell.world
    return f"{world}, {cell.notion}"


def format_settings(settings: dict[str, Any]) -> str:
    """Return settings in words."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in settings.items())


def format_value(value: Any) -> str:
    """Return a setting's value as one types it."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def records_of(cells: list[Cell]) -> list[Record]:
    """Return every run of some cells once: a selected one may be in the grid and in the finals."""
    each = [record for cell in cells for record in [*cell.grid, *cell.final]]
    return list({record.spec.identity: record for record in each}.values())


def varied(cells: list[Cell]) -> list[str]:
    """Return the settings that differ between the runs of an algorithm on a task."""
    names: dict[str, None] = {}
    for key in dict.fromkeys((task_name(cell), cell.algorithm) for cell in cells):
        runs = records_of([cell for cell in cells if (task_name(cell), cell.algorithm) == key])
        for name in runs[0].spec.hyperparameters if runs else ():
            if len({repr(run.spec.hyperparameters.get(name)) for run in runs}) > 1:
                names[name] = None
    return list(names)


def names(cells: Sequence[Cell]) -> list[str]:
    """Return what to call cells of one task: the algorithm, with what tells it from itself."""
    often = Counter(cell.algorithm for cell in cells)
    return [
        cell.algorithm
        if often[cell.algorithm] == 1
        else f"{cell.algorithm} ({format_settings(cell.chosen) or 'as it is'})"
        for cell in cells
    ]


class Time(NamedTuple):
    """What training takes."""

    world: str
    algorithm: str
    minutes: float
    """For 500,000 steps: the median over the runs."""
    runs: int
    published: float | None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the paper's."""
        return None if self.published is None else self.published / self.minutes


def times(results: Results) -> list[Time]:
    """Return what training takes, of every algorithm in every world."""
    found = []
    for world, algorithm in dict.fromkeys((c.world, c.algorithm) for c in results.cells):
        cells = [c for c in results.cells if (c.world, c.algorithm) == (world, algorithm)]
        runs = records_of(cells)
        if runs:
            each = [run.seconds / run.spec.steps * STEPS / 60 for run in runs]
            theirs = paper.minutes(algorithm, world)
            found.append(Time(world, algorithm, float(np.median(each)), len(runs), theirs))
    return found


def _figure(cell: Cell, view: str) -> Estimate:
    return estimate([record.evaluation.disparities[view] for record in cell.final])


def _regret(results: Results, cell: Cell, reward: Estimate) -> float | None:
    curve, gap = results.frontier(cell), _figure(cell, "exact").mean
    best = None if curve is None or np.isnan(gap) else curve.reward_at(gap)
    return None if best is None else best - reward.mean


def _groups(cell: Cell) -> dict[str, Group]:
    first = cell.final[0].evaluation
    share = np.concatenate([run.evaluation.acceptances for run in cell.final])
    qualified = np.concatenate([run.evaluation.by_time["qualification"] for run in cell.final])
    # An episode that ended early has no disparity from then on: its last moment is before.
    going = ~np.isnan(np.concatenate([run.evaluation.by_time["disparity"] for run in cell.final]))
    last = going.shape[1] - 1 - np.argmax(going[:, ::-1], axis=1)
    figures = (share, qualified[:, 0], qualified[np.arange(len(last)), last])
    means = np.stack([values.mean(axis=0, dtype=float) for values in figures], axis=1)
    return {name: Group(*map(float, row)) for name, row in zip(first.groups, means, strict=True)}


def _as_published(run: "RunSpec") -> bool:
    """Return whether a run is one that the paper may have made: its steps and settings."""
    return run.steps == STEPS and run.changed.keys() <= GRIDS


def _differs(
    name: str, what: str, ours: Estimate, theirs: float, spread: float, digits: int
) -> str:
    gap = ours.mean - theirs
    kind = "half of the interval over seeds" if ours.half is not None else "std over deployments"
    return (
        f"{name}: the {what} is {abs(gap):,.{digits}f} {'above' if gap > 0 else 'below'} the "
        f"paper's ({ours.mean:,.{digits}f} against {theirs:,.{digits}f}), more than our spread "
        f"({ours.spread:,.{digits}f}, {kind}) and more than the paper's ({spread:,.{digits}f})."
    )
