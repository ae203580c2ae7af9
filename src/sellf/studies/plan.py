"""The runs of a study: those known from the start, and those added by selection."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sellf.fairness import Notion, View
from sellf.studies.spec import Study

if TYPE_CHECKING:
    from sellf.algorithms.algorithm import Algorithm
    from sellf.algorithms.config import Settings
    from sellf.training.spec import RunSpec, WorldSpec

FORMAT = 1
"""Format of a run's name and of its folder; incremented when either changes."""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Group:
    """One algorithm in one world with one notion, with every configuration of its grid."""

    world: "WorldSpec"
    notion: Notion
    algorithm: str
    """Name of the algorithm in the study's tables."""
    varied: tuple[dict[str, Any], ...]
    """The settings from the grid, by configuration."""
    resolved: tuple[tuple["Algorithm", "Settings"], ...]
    """The variant of the algorithm and all its settings, by configuration."""

    @property
    def view(self) -> View:
        """The view of the disparity that selection may use: that of the algorithm."""
        return self.resolved[0][0].view

    def runs(self, study: Study, configuration: int, seeds: Iterable[int]) -> list["RunSpec"]:
        """Return the runs of one configuration."""
        from sellf.training.spec import RunSpec

        algorithm, config = self.resolved[configuration]
        common = (self.world, algorithm, config, self.notion)
        return [RunSpec(*common, seed, study.steps, study.deployments) for seed in seeds]

    def selects(self, study: Study) -> bool:
        """Return whether a configuration has to be selected."""
        return study.select == "paper" and len(self.varied) > 1

    def first(self, study: Study) -> list["RunSpec"]:
        """Return the runs that do not depend on a selection."""
        seeds = study.selection_seeds if self.selects(study) else study.seeds
        return [run for i in range(len(self.varied)) for run in self.runs(study, i, seeds)]

    def to_come(self, study: Study) -> int:
        """Return the number of runs that a selection will add."""
        fresh = set(study.seeds) - set(study.selection_seeds)
        return len(fresh) if self.selects(study) else 0


def groups(study: Study) -> list[Group]:
    """Return the groups of a study, with all settings resolved."""
    from sellf.algorithms import catalogue
    from sellf.training.spec import WorldSpec

    resolved = {
        (entry.name, world, notion): tuple(
            catalogue.resolve(entry.algorithm, entry.settings | one, notion)
            for one in entry.configurations(world)
        )
        for entry in study.entries
        for world, notion in study.cells
    }
    return [
        Group(
            WorldSpec(world, study.world_settings.get(world, {})),
            notion,
            entry.name,
            entry.configurations(world),
            resolved[entry.name, world, notion],
        )
        for world, notion in study.cells
        for entry in study.entries
    ]


def key(run: "RunSpec") -> str:
    """Return the name of a run, which is the same for equal runs of different studies.

    It depends on all inputs of the run's results except the versions of sellf and JAX: a store
    holds runs of one version only, and records which.
    """
    return key_of(run.to_json())


def key_of(content: dict[str, Any]) -> str:
    """Return the name of a run given as plain values."""
    return sha256(_JSON.encode({"format": FORMAT} | content).encode()).hexdigest()[:32]


def program(run: "RunSpec") -> str:
    """Return a key of the compiled program of a run, which is independent of floats and seeds."""
    world = (run.world.name, run.world.settings)
    return repr((*world, run.notion, run.algorithm.name, _shape(run.config), run.steps))


@lru_cache(maxsize=1024)
def _shape(config: "Settings") -> str:
    """Return the settings that determine the compiled program, as a text."""
    from sellf.algorithms.config import as_dict

    return repr(
        [(n, value) for n, value in as_dict(config).items() if not isinstance(value, float)]
    )
