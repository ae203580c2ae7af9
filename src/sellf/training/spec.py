"""The specification of a training run: resolved once, and serialized only to files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from sellf import files
from sellf.algorithms import catalogue
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import LATER, Settings, as_dict
from sellf.envs import saving
from sellf.envs.table import tabulated
from sellf.envs.world import World
from sellf.envs.worlds import WORLDS
from sellf.errors import InputError
from sellf.fairness import Notion, View, define
from sellf.fairness.checks import number, whole
from sellf.fairness.checks import seed as check_seed
from sellf.fairness.notions import TABLE

FORMAT = 1
"""Format of saved agents and runs; incremented when older ones can no longer be read."""
NEEDED = {
    "world": str,
    "world_settings": dict,
    "world_rules": dict,
    "algorithm": str,
    "notion": str,
    "config": dict,
    "seed": int,
}
"""Required keys of the configuration of a saved agent or run, with their types."""
MOST_STEPS = 10**12


def trained() -> tuple[Notion, ...]:
    """Return the notions that are available for training."""
    return tuple(name for name, notion in TABLE.items() if notion.needs_label)


@dataclass(frozen=True)
class WorldSpec:
    """A world by name and settings, made when needed, or a world that is given as an object."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    given: World | None = field(default=None, repr=False)

    def make(self) -> World:
        """Return the world; repeated calls return the same object."""
        return saving.named(self.name, self.settings) if self.given is None else self.given

    @cached_property
    def by_name(self) -> bool:
        """Whether the world can be made again from its name and settings."""
        return self.given is None or saving.by_name(self.given, self.settings)


@dataclass(frozen=True)
class RunSpec:
    """One training run with all settings resolved."""

    world: WorldSpec
    algorithm: Algorithm
    """The algorithm in the variant that its settings select."""
    config: Settings
    """All settings of the algorithm."""
    notion: Notion
    seed: int
    steps: int
    deployments: int = 0
    """Number of deployments that are part of the run, in a study."""
    origin: str = ""
    """Checksum of the agent that the training continues from; empty if there is none."""

    @property
    def has_predictor(self) -> bool:
        """Whether the algorithm predicts labels; otherwise nothing is imputed."""
        return self.algorithm.predictor is not None

    @property
    def view(self) -> View:
        """The view in which the algorithm may observe the disparity."""
        return self.algorithm.view

    @property
    def omega(self) -> float | None:
        """The tolerated disparity; None if the algorithm has no such setting."""
        return self.hyperparameters.get("omega")

    @property
    def iterations(self) -> int:
        """Number of rollouts that the steps are rounded up to."""
        return -(-self.steps // self.config.rollout)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """The algorithm's settings as plain values; shared between runs, so not to be modified."""
        return _plain(self.config)

    @cached_property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from the algorithm's defaults."""
        usual = as_dict(type(self.config)())
        return {name: v for name, v in self.hyperparameters.items() if v != usual[name]}

    @cached_property
    def identity(self) -> str:
        """All inputs that the run's results depend on, as a text that is equal for equal runs."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain values; requires a world that is made by name."""
        own = self.hyperparameters.items()
        return {
            "world": self.world.name,
            "world_settings": self.world.settings,
            "notion": self.notion,
            "algorithm": self.algorithm.name,
            "settings": {name: v for name, v in own if name not in LATER or v != LATER[name]},
            "seed": self.seed,
            "steps": self.steps,
            "deployments": self.deployments,
        }

    @cached_property
    def digest(self) -> str:
        """A checksum of the run's configuration in `config.json`."""
        content = json.dumps(self.to_config(), sort_keys=True)
        return sha256(content.encode()).hexdigest()

    def to_config(self) -> dict[str, Any]:
        """Return the run's configuration, the content of `config.json` in its folder."""
        world = self.world.make()
        return {
            "world": world.name,
            "world_settings": saving.plain_settings(self.world.settings),
            "world_rules": saving.rules_of(world),
            "world_tables": not self.world.by_name,
            "algorithm": self.algorithm.name,
            "notion": self.notion,
            "config": self.hyperparameters,
            "seed": self.seed,
            "steps": self.steps,
            "has_predictor": self.has_predictor,
            "view": self.view,
            **({"origin": self.origin} if self.origin else {}),
        }

    def world_files(self) -> dict[str, bytes]:
        """Return the tables of the world as a file, unless name and settings are sufficient."""
        if self.world.by_name:
            return {}
        tables = saving.tables_of(tabulated(self.world.make(), "saving"))
        return {"world.safetensors": files.tensors_to_bytes(tables)}


@lru_cache(maxsize=1024)
def _plain(config: Settings) -> dict[str, Any]:
    return as_dict(config)


def resolve(
    world: World | str,
    algorithm: str,
    notion: Notion,
    *,
    seed: int,
    steps: int,
    settings: Mapping[str, Any],
    world_settings: Mapping[str, Any],
) -> RunSpec:
    """Check the arguments of a training and return the resolved run.

    Args:
        world: a world or its name.
        algorithm: name of the algorithm.
        notion: a notion that needs labels; see `sellf.disparity`.
        seed: seed of the training.
        steps: number of decisions to learn from.
        settings: settings of the algorithm that differ from its defaults.
        world_settings: settings of a world given by name.
    """
    TABLE.find(notion, typed=True)
    catalogue.ALGORITHMS.find(algorithm, typed=True)
    if not define(notion).needs_label:
        raise InputError(
            f"notion is {notion!r}, which needs no label: training is for notions with hidden "
            f"labels. Train on one of {', '.join(map(repr, trained()))}."
        )
    if isinstance(world, str):
        made = WorldSpec(world, dict(world_settings))
        made.make()
    elif world_settings:
        raise InputError(
            "world_settings are for a world by name: change the settings of the given world, or "
            "give a name, world='lending'."
        )
    else:
        made = WorldSpec(world.name, given=world)
    found, config = catalogue.resolve(algorithm, dict(settings), notion)
    number("steps", steps, low=1)
    steps = whole("steps", steps, low=1, high=MOST_STEPS)
    return RunSpec(made, found, config, notion, check_seed("seed", seed), steps)


def from_json(content: Mapping[str, Any]) -> RunSpec:
    """Return the run from the result of `RunSpec.to_json`; missing settings take their defaults."""
    algorithm, config = catalogue.resolve(
        content["algorithm"], content["settings"], content["notion"]
    )
    world = WorldSpec(content["world"], content["world_settings"])
    numbers = (content[name] for name in ("seed", "steps", "deployments"))
    return RunSpec(world, algorithm, config, content["notion"], *numbers)


def from_folder(folder: Path, config: Mapping[str, Any]) -> RunSpec:
    """Return the run of a folder, including its world, given its configuration."""
    files.check_run(folder)
    try:
        define(config["notion"])
    except InputError as error:
        raise InputError(f"{folder}: {error.typed}") from None
    algorithm, resolved = catalogue.resolve(config["algorithm"], config["config"], config["notion"])
    world = WorldSpec(config["world"], config["world_settings"], _load_world(folder, config))
    seed = check_seed(f"{folder}: seed", config["seed"])
    # Agents that an earlier version saved outside a run folder lack the number of steps.
    steps = whole(f"{folder}: steps", config.get("steps", 0), low=0, high=MOST_STEPS)
    origin = str(config.get("origin", ""))
    return RunSpec(world, algorithm, resolved, config["notion"], seed, steps, origin=origin)


def _load_world(path: Path, config: Mapping[str, Any]) -> World:
    """Restore the world of a saved run, by name or from its saved tables."""
    rules, settings = saving.current(config["world_rules"]), config["world_settings"]
    if config.get("world_tables", config["world"] not in WORLDS.names()):
        tables = files.read_tensors(path / "world.safetensors", finite=True)
        world = saving.restore(rules, tables)
    else:
        reads = sorted(set(settings) & set(saving.READS))
        if reads:
            raise InputError(
                f"{path} was made with {reads[0]}, a file that loading does not read, and lacks "
                "the world's tables: train again."
            )
        WORLDS.find(config["world"])  # does not import code that only a file names
        world = saving.named(config["world"], settings)
    if saving.plain_settings(saving.rules_of(world)) != rules or world.name != config["world"]:
        raise InputError(
            f"{path} was made for a world {config['world']} with other rules than its name and "
            "settings give now: it is damaged, or was saved by an earlier version. Train again."
        )
    return world
