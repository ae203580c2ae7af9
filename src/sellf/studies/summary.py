"""Summary of a study's runs: means, intervals and differences from the paper's figures."""

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
"""Number of steps that training times are scaled to, as in the paper."""
ROUNDED = 0.005
"""Rounding error of the paper's disparities, which have two decimals."""
GRIDS = {"beta_disparity", "beta_increase", "beta_renyi", "beta_bias", "nu_max", "limit"}
"""Settings that the paper selected from grids; it left all others at their defaults."""
SAME_WORLD = {"microdata", "population", "window"}
"""Settings of a world that do not affect comparability with the paper."""


class Group(NamedTuple):
    """Figures of a group under an algorithm, averaged over all deployments and seeds."""

    acceptance: float
    """Share accepted."""
    qualified_at_first: float
    qualified_at_last: float
    """P(Y = 1) in the population at the first and the last recorded time."""


@dataclass(frozen=True)
class Row:
    """Summary of one cell of a study."""

    task: str
    """World and notion, in words."""
    cell: Cell
    disparity: Estimate
    """|Delta| over the window, with all labels."""
    exact: Estimate
    """|Delta| of the whole population, without a window and its noise."""
    seen: Estimate
    """|Delta| in the view that the algorithm itself observes."""
    view: View
    reward: Estimate
    by_group: dict[str, Group]
    published: Published | None
    comparable: bool
    """Whether steps and settings are the paper's, such that differences are meaningful."""
    best_disparity: bool
    best_reward: bool
    regret: float | None = None
    """Additional reward of the best policy with the same exact disparity, if known."""

    @property
    def seeds(self) -> int:
        """Number of training seeds."""
        return len(self.cell.final)

    @property
    def sentences(self) -> list[str]:
        """Remarks on the selection, and differences from the paper beyond the spread."""
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
    """Return a row for every finished cell, ordered by task and as in the study."""
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
            # Several cells of one algorithm are an ablation, without counterparts in the paper.
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
    """Return world and notion in words, with the changed settings of the world."""
    records = cell.final or cell.grid
    changed = records[0].spec.world.settings if records else {}
    world = f"{cell.world} ({format_settings(changed)})" if changed else cell.world
    return f"{world}, {cell.notion}"


def format_settings(settings: dict[str, Any]) -> str:
    """Return settings in words."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in settings.items())


def format_value(value: Any) -> str:
    """Return a setting's value as it is typed."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def records_of(cells: list[Cell]) -> list[Record]:
    """Return every run of some cells once, since final runs may be part of the grid."""
    each = [record for cell in cells for record in [*cell.grid, *cell.final]]
    return list({record.spec.identity: record for record in each}.values())


def varied(cells: list[Cell]) -> list[str]:
    """Return the settings that differ between runs of an algorithm on a task."""
    names: dict[str, None] = {}
    for key in dict.fromkeys((task_name(cell), cell.algorithm) for cell in cells):
        runs = records_of([cell for cell in cells if (task_name(cell), cell.algorithm) == key])
        for name in runs[0].spec.hyperparameters if runs else ():
            if len({repr(run.spec.hyperparameters.get(name)) for run in runs}) > 1:
                names[name] = None
    return list(names)


def names(cells: Sequence[Cell]) -> list[str]:
    """Return names for the cells of a task: the algorithm, with settings where it is ambiguous."""
    often = Counter(cell.algorithm for cell in cells)
    return [
        cell.algorithm
        if often[cell.algorithm] == 1
        else f"{cell.algorithm} ({format_settings(cell.chosen) or 'as it is'})"
        for cell in cells
    ]


class Time(NamedTuple):
    """Training time of an algorithm in a world."""

    world: str
    algorithm: str
    minutes: float
    """Minutes for 500,000 steps, the median over runs."""
    runs: int
    published: float | None

    @property
    def ratio(self) -> float | None:
        """Ratio of the paper's training time to this one."""
        return None if self.published is None else self.published / self.minutes


def times(results: Results) -> list[Time]:
    """Return the training times of every algorithm in every world."""
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
    # An episode that ended early has no disparity afterwards; its last time is before that.
    going = ~np.isnan(np.concatenate([run.evaluation.by_time["disparity"] for run in cell.final]))
    last = going.shape[1] - 1 - np.argmax(going[:, ::-1], axis=1)
    figures = (share, qualified[:, 0], qualified[np.arange(len(last)), last])
    means = np.stack([values.mean(axis=0, dtype=float) for values in figures], axis=1)
    return {name: Group(*map(float, row)) for name, row in zip(first.groups, means, strict=True)}


def _as_published(run: "RunSpec") -> bool:
    """Return whether the steps and settings of a run are among those of the paper."""
    return run.steps == STEPS and run.changed.keys() <= GRIDS


def _differs(
    name: str, what: str, ours: Estimate, theirs: float, spread: float, digits: int
) -> str:
    gap = ours.mean - theirs
    kind = "half of the interval over seeds" if ours.half is not None else "std over deployments"
    return (
        f"{name}: the {what} is {abs(gap):,.{digits}f} {'above' if gap > 0 else 'below'} the "
        f"paper's ({ours.mean:,.{digits}f} against {theirs:,.{digits}f}), more than the spread "
        f"here ({ours.spread:,.{digits}f}, {kind}) and more than the paper's "
        f"({spread:,.{digits}f})."
    )
