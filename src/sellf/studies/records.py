"""What a study consists of: runs to do, runs that are done, and what was selected among them."""

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
    """A run that is done."""

    spec: "RunSpec"
    evaluation: "Evaluation"
    metrics: dict[str, np.ndarray]
    """Of the training: (iterations,), or (iterations, groups)."""
    seconds: float
    """What the training took, without compiling; its share, if it was trained in a batch."""


@dataclass(frozen=True)
class Cell:
    """One algorithm in one world, judged by one notion.

    Where a study selects nothing (`select = "all"`), there is one such cell per configuration.
    """

    world: str
    notion: Notion
    algorithm: str
    grid: list[Record]
    """One per configuration, with the seed that selection looks at."""
    chosen: dict[str, Any]
    """The settings that were selected, of those the grid varies; empty if it varies none."""
    final: list[Record]
    """The selected configuration, one per seed."""
    remark: str = ""
    """What has to be said of the selection, if anything."""


@dataclass(frozen=True)
class Results:
    """All that a study has come to so far."""

    study: str
    quick: bool
    """Whether it was shrunk for a first look: every table and figure has to say so."""
    cells: list[Cell]
    source: str = ""
    """How the study is named in a command, if not by its name: its file."""
    frontiers: dict[str, Curve] = field(default_factory=dict)
    """Those that have been computed, by `frontiers.key`."""

    def frontier(self, cell: Cell) -> Curve | None:
        """Return the most that any policy earns in a cell's world, if it is known."""
        records = cell.final or cell.grid
        return self.frontiers.get(key(records[0].spec.world, cell.notion)) if records else None
