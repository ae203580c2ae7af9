"""One training as data: made once where it is asked for, and written out only into files."""

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
"""Of saved agents and runs; one more whenever older ones can no longer be read."""
NEEDED = {
    "world": str,
    "world_settings": dict,
    "world_rules": dict,
    "algorithm": str,
    "notion": str,
    "config": dict,
    "seed": int,
}
"""What the configuration of a saved agent or run holds at least."""
MOST_STEPS = 10**12


def trained() -> tuple[Notion, ...]:
    """Return the notions that one can train for."""
    return tuple(name for name, notion in TABLE.items() if notion.needs_label)


@dataclass(frozen=True)
class WorldSpec:
    """A world by name and settings, made when it is needed; or a world that no name makes."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    given: World | None = field(default=None, repr=False)

    def make(self) -> World:
        """Return the world, the same object when asked again."""
        return saving.named(self.name, self.settings) if self.given is None else self.given

    @cached_property
    def by_name(self) -> bool:
        """Whether name and settings make the world again."""
        return self.given is None or saving.by_name(self.given, self.settings)


@dataclass(frozen=True)
class RunSpec:
    """One training, everything resolved."""

    world: WorldSpec
    algorithm: Algorithm
    """As its settings want it."""
    config: Settings
    """All of the algorithm's settings."""
    notion: Notion
    seed: int
    steps: int
    deployments: int = 0
    """How many belong to the run: a study's. Others are deployed when somebody asks."""
    origin: str = ""
    """A checksum of the agent that the training goes on from; empty if it starts anew."""

    @property
    def has_predictor(self) -> bool:
        """Whether labels are predicted: without that, nothing is imputed."""
        return self.algorithm.predictor is not None

    @property
    def view(self) -> View:
        """In which view the algorithm may see the disparity."""
        return self.algorithm.view

    @property
    def omega(self) -> float | None:
        """The disparity that it tolerates, if the algorithm knows of any."""
        return self.hyperparameters.get("omega")

    @property
    def iterations(self) -> int:
        """How many rollouts the steps come to."""
        return -(-self.steps // self.config.rollout)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """The algorithm's settings as plain values, not to be changed: runs share them."""
        return _plain(self.config)

    @cached_property
    def changed(self) -> dict[str, Any]:
        """Those that are not the algorithm's defaults."""
        usual = as_dict(type(self.config)())
        return {name: v for name, v in self.hyperparameters.items() if v != usual[name]}

    @cached_property
    def identity(self) -> str:
        """Everything that the run's numbers depend on, as a text: equal runs have equal ones."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain values; its world has to be one that has a name."""
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
        """A checksum of what `config.json` says of the run."""
        content = json.dumps(self.to_config(), sort_keys=True)
        return sha256(content.encode()).hexdigest()

    def to_config(self) -> dict[str, Any]:
        """Return what `config.json` in the folder of a run or agent says of it."""
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
        """Return the tables of a world as a file, if its name and settings do not make it again."""
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
    """Return the training that somebody asks for, every part of it checked.

    Args:
        world: a world, or the name of one.
        algorithm: its name.
        notion: one that needs labels; see `sellf.disparity`.
        seed: of the training.
        steps: decisions to learn from.
        settings: of the algorithm, where they are not its defaults.
        world_settings: of a world by name.
    """
    TABLE.find(notion, typed=True)
    catalogue.ALGORITHMS.find(algorithm, typed=True)
    if not define(notion).needs_label:
        raise InputError(
            f"notion is {notion!r}, which needs no label: training here is about labels that are "
            f"hidden. Train on one of {', '.join(map(repr, trained()))}."
        )
    if isinstance(world, str):
        made = WorldSpec(world, dict(world_settings))
        made.make()
    elif world_settings:
        raise InputError(
            "world_settings are for a world by name: change the world that is given, or give its "
            "name, world='lending'."
        )
    else:
        made = WorldSpec(world.name, given=world)
    found, config = catalogue.resolve(algorithm, dict(settings), notion)
    number("steps", steps, low=1)
    steps = whole("steps", steps, low=1, high=MOST_STEPS)
    return RunSpec(made, found, config, notion, check_seed("seed", seed), steps)


def from_json(content: Mapping[str, Any]) -> RunSpec:
    """Return the run that `RunSpec.to_json` wrote; settings that it lacks are the defaults."""
    algorithm, config = catalogue.resolve(
        content["algorithm"], content["settings"], content["notion"]
    )
    world = WorldSpec(content["world"], content["world_settings"])
    numbers = (content[name] for name in ("seed", "steps", "deployments"))
    return RunSpec(world, algorithm, config, content["notion"], *numbers)


def from_folder(folder: Path, config: Mapping[str, Any]) -> RunSpec:
    """Return the run whose folder this is, with its world; `config` is its configuration."""
    files.check_run(folder)
    try:
        define(config["notion"])
    except InputError as error:
        raise InputError(f"{folder}: {error.typed}") from None
    algorithm, resolved = catalogue.resolve(config["algorithm"], config["config"], config["notion"])
    world = WorldSpec(config["world"], config["world_settings"], _load_world(folder, config))
    seed = check_seed(f"{folder}: seed", config["seed"])
    # Agents that an earlier version saved outside a run's folder do not say how many.
    steps = whole(f"{folder}: steps", config.get("steps", 0), low=0, high=MOST_STEPS)
    origin = str(config.get("origin", ""))
    return RunSpec(world, algorithm, resolved, config["notion"], seed, steps, origin=origin)


def _load_world(path: Path, config: Mapping[str, Any]) -> World:
    """Make a saved run's world again: by name, or from the tables beside it."""
    rules, settings = saving.current(config["world_rules"]), config["world_settings"]
    if config.get("world_tables", config["world"] not in WORLDS.names()):
        tables = files.read_tensors(path / "world.safetensors", finite=True)
        world = saving.restore(rules, tables)
    else:
        reads = sorted(set(settings) & set(saving.READS))
        if reads:
            raise InputError(
                f"{path} was made with {reads[0]}, a file that loading does not read, and without "
                "the world's tables: train anew."
            )
        WORLDS.find(config["world"])  # which runs no code that only a file names
        world = saving.named(config["world"], settings)
    if saving.plain_settings(saving.rules_of(world)) != rules or world.name != config["world"]:
        raise InputError(
            f"{path} was made for a world {config['world']} with other rules than its name and "
            "settings make now: it is damaged, or was saved by an earlier version. Train anew."
        )
    return world
