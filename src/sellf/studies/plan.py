"""From a study to its runs: what there is to do at first, and what after a selection."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from sellf.fairness import Notion, View
from sellf.studies.records import RunSpec
from sellf.studies.spec import Study

FORMAT = 1
"""Of what a run's name is made from, and of its folder; one more if either changes."""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Group:
    """One algorithm in one world by one notion, with every configuration of its grid."""

    world: str
    world_settings: dict[str, Any]
    notion: Notion
    algorithm: str
    view: View
    """What it may be selected by: the disparity as it sees it."""
    varied: tuple[dict[str, Any], ...]
    """By configuration, what the grid says."""
    settings: tuple[dict[str, Any], ...]
    """By configuration, all settings."""

    def runs(self, study: Study, configuration: int, seeds: Iterable[int]) -> list[RunSpec]:
        """Return the runs of one configuration."""
        return [
            RunSpec(
                self.world,
                self.world_settings,
                self.notion,
                self.algorithm,
                self.settings[configuration],
                seed,
                study.steps,
                study.deployments,
            )
            for seed in seeds
        ]

    def selects(self, study: Study) -> bool:
        """Return whether there is anything to select."""
        return study.select == "paper" and len(self.varied) > 1

    def first(self, study: Study) -> list[RunSpec]:
        """Return the runs that wait for no selection."""
        seeds = study.selection_seeds if self.selects(study) else study.seeds
        return [run for i in range(len(self.varied)) for run in self.runs(study, i, seeds)]

    def to_come(self, study: Study) -> int:
        """Return how many runs a selection will add."""
        fresh = set(study.seeds) - set(study.selection_seeds)
        return len(fresh) if self.selects(study) else 0


def groups(study: Study) -> list[Group]:
    """Return a study's algorithms by cell, all settings resolved."""
    from sellf.algorithms import catalogue
    from sellf.algorithms.config import as_dict

    resolved = {
        entry.algorithm: [
            catalogue.resolve(entry.algorithm, entry.settings | one) for one in entry.grid
        ]
        for entry in study.entries
    }
    return [
        Group(
            world,
            study.world_settings.get(world, {}),
            notion,
            entry.algorithm,
            resolved[entry.algorithm][0][0].view,
            entry.grid,
            tuple(as_dict(config) for _, config in resolved[entry.algorithm]),
        )
        for world, notion in study.cells
        for entry in study.entries
    ]


def key(run: RunSpec) -> str:
    """Return a run's name: equal runs have equal names, whatever study asks for them.

    Everything that its numbers depend on is in it, except the versions of sellf and JAX: a store
    holds runs of one version only, and says which.
    """
    text = _JSON.encode({"format": FORMAT} | vars(run))
    return sha256(text.encode()).hexdigest()[:32]


def program(run: RunSpec) -> str:
    """Return what compiled program a run needs: floats and seeds do not matter to it."""
    shape = [(name, value) for name, value in run.settings.items() if not isinstance(value, float)]
    return repr((run.world, run.world_settings, run.notion, run.algorithm, shape, run.steps))


def to_json(run: RunSpec) -> dict[str, Any]:
    """Return a run as plain values."""
    return asdict(run)
