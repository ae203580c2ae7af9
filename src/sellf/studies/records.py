"""The results of a study: finished runs, cells with their selection, and frontiers."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf.fairness import Notion
from sellf.studies.frontiers import Curve, key

if TYPE_CHECKING:
    from sellf.training.evaluation import Evaluation
    from sellf.training.spec import RunSpec


@dataclass(frozen=True)
class Record:
    """A finished run."""

    spec: "RunSpec"
    evaluation: "Evaluation"
    metrics: dict[str, np.ndarray]
    """Metrics of the training, of shape (iterations,) or (iterations, groups)."""
    seconds: float
    """Training time without compilation; the run's share if it was trained in a batch."""


@dataclass(frozen=True)
class Cell:
    """One algorithm in one world, evaluated by one notion.

    In a study without selection (`select = "all"`), there is one cell per configuration.
    """

    world: str
    notion: Notion
    algorithm: str
    grid: list[Record]
    """One run per configuration, with the seed used for selection."""
    chosen: dict[str, Any]
    """The selected values of the settings that the grid varies; empty if it varies none."""
    final: list[Record]
    """Runs of the selected configuration, one per seed."""
    remark: str = ""
    """A remark on the selection, if there is one."""


@dataclass(frozen=True)
class Results:
    """The results of a study so far."""

    study: str
    quick: bool
    """Whether the study was shrunk for a first look, which every table and figure must state."""
    cells: list[Cell]
    source: str = ""
    """The file of the study, if a command must name the file instead of the study."""
    frontiers: dict[str, Curve] = field(default_factory=dict)
    """The computed frontiers, by `frontiers.key`."""

    def frontier(self, cell: Cell) -> Curve | None:
        """Return the reward frontier of a cell's world and notion, if it is known."""
        records = cell.final or cell.grid
        return self.frontiers.get(key(records[0].spec.world, cell.notion)) if records else None
