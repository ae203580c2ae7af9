"""A trained agent: what decides, what predicts labels, and the world it was made for."""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sellf import files, metrics
from sellf.algorithms import catalogue, networks
from sellf.algorithms.algorithm import Algorithm
from sellf.compiling import compiled
from sellf.envs import saving
from sellf.envs.policy import Categorical, Chances, Policy
from sellf.envs.space import SMALL, by_profile
from sellf.envs.world import World
from sellf.envs.worlds import WORLDS
from sellf.errors import InputError
from sellf.fairness import Notion, define

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


@dataclass(frozen=True)
class Agent:
    """A policy for a world, with its label predictor if it has one."""

    world: World
    algorithm: str
    notion: Notion
    config: dict[str, Any]
    seed: int
    parameters: Float[Array, " size"]
    """Of all its networks, flat."""
    predictor: Float[Array, " size"] | None = None
    """Parameters of the label predictor."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of the world, if it was made by name."""
    history: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """The metrics of each iteration of its training."""

    @property
    def hooks(self) -> Algorithm:
        """The algorithm itself, as the settings want it."""
        return catalogue.resolve(self.algorithm, self.config)[0]

    @property
    def statement(self) -> str | None:
        """What its training says of the constraint it was under; None if it was under none."""
        hooks, config = catalogue.resolve(self.algorithm, self.config)
        return hooks.statement(self.notion, config, self.history) if self.history else None

    def plot(self) -> Any:
        """Draw how the training went: reward, disparity, acceptance and what it cost."""
        from sellf.curves import draw

        return draw(self)

    def probability(self, features: Any, group: Any) -> np.ndarray:
        """Return the chance of acceptance of people, or of another favourable action.

        Args:
            features: one row per person, in the order of `world.columns` without the group's.
            group: the name of each person's group.
        """
        return np.asarray(self._decision(features, group).chance(self.world.space.favourable))

    def decide(self, features: Any, group: Any, seed: int | None = None) -> np.ndarray:
        """Return decisions about people, drawn with the policy's probabilities.

        A decision is a place in `world.space.actions`: in the paper's worlds 1 is to accept.

        Args:
            features: as for `probability`.
            group: as for `probability`.
            seed: the same seed draws the same decisions; by default they differ every time.
        """
        chance = np.asarray(self._decision(features, group).at_least())
        luck = np.random.default_rng(seed).random(chance.shape[1:])
        return (luck < chance).sum(axis=0)

    def _decision(self, features: Any, group: Any) -> Categorical:
        x, space, hooks = self._inputs(features, group), self.world.space, self.hooks
        outputs = networks.run(hooks.stacks(space), self.parameters, x)
        return networks.policy(space, lambda _: outputs, hooks.reject_below)(x)

    def predict_label(self, features: Any, group: Any) -> np.ndarray:
        """Return the predicted chance of a good label; arguments as for `probability`."""
        if self.predictor is None or self.hooks.predictor is None:
            raise InputError(
                f"{self.algorithm} has no label predictor: train sellf, sellf-semi or sellf-relu."
            )
        x = self._inputs(features, group)
        outputs = networks.run((self.hooks.predictor,), jnp.asarray(self.predictor), x)
        return np.asarray(jax.nn.sigmoid(outputs[0]))

    def by_profile(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the chance of acceptance and the predicted chance of a good label, by profile.

        Without a predictor the latter is 0 everywhere, as in a decision window.
        """
        log_odds, predict = self.tables()
        decided = Categorical(jnp.asarray(log_odds))
        return np.asarray(decided.chance(self.world.space.favourable)), predict

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the policy's log-odds and the predicted chance of a good label, by profile."""
        run = _tables(self.hooks)
        profiles = jnp.arange(self.world.profiles)
        # Piece by piece: a large world does not fit through a network at once.
        pieces = [
            run(self.world, self.parameters, self.predictor, profiles[start : start + SMALL])
            for start in range(0, len(profiles), SMALL)
        ]
        log_odds, predict = (
            np.concatenate(list(map(np.asarray, part)), axis=-1)
            for part in zip(*pieces, strict=True)
        )
        return log_odds, predict

    def _inputs(self, features: Any, group: Any) -> Array:
        groups = self.world.groups
        numbers = np.asarray(features, np.float32)
        wide = self.world.inputs - len(groups)
        if numbers.ndim != 2 or numbers.shape[1] != wide:
            raise InputError(
                f"features has shape {numbers.shape}: give one row per person with the {wide} "
                f"inputs {', '.join(self.world.columns[:3])}, ... (see world.columns)."
            )
        names = [str(name) for name in np.atleast_1d(np.asarray(group))]
        strange = [name for name in names if name not in groups]
        if strange:
            raise InputError(f"group is {strange[0]!r}: it is one of {', '.join(groups)}.")
        if len(names) != len(numbers):
            raise InputError(f"features has {len(numbers)} rows, group has {len(names)}.")
        member = np.array([groups.index(name) for name in names])
        return jnp.asarray(np.hstack([numbers, np.eye(len(groups), dtype=np.float32)[member]]))

    def save(self, path: str | Path) -> Path:
        """Write the agent to a folder, whole or not at all; `sellf.load` reads it."""
        return files.write_folder(Path(path), {"config.json": self.describe(), **self.tensors()})

    def describe(self) -> bytes:
        """Return what the agent is, as JSON."""
        return files.sealed_json(self.description())

    def description(self) -> dict[str, Any]:
        """Return what the agent is, as plain values."""
        return {
            "format": FORMAT,
            **describe_world(self.world, self.settings),
            "algorithm": self.algorithm,
            "notion": self.notion,
            "config": self.config,
            "seed": self.seed,
        }

    def tensors(self) -> dict[str, bytes]:
        """Return the parameters, and a world that no name can make again, as files."""
        arrays = {"parameters": np.asarray(self.parameters)}
        if self.predictor is not None:
            arrays["predictor"] = np.asarray(self.predictor)
        return {
            "agent.safetensors": files.tensors_to_bytes(arrays),
            **world_files(self.world, self.settings),
        }


def load(path: str | Path) -> Agent:
    """Read an agent that `Agent.save` or `sellf train --out` wrote; nothing in it can run code."""
    path = Path(path)
    config = files.read_json(path / "config.json", FORMAT, NEEDED)
    if not (path / "agent.safetensors").is_file():
        raise InputError(
            f"{path} holds no finished agent: type `sellf train --resume {path}` to finish it."
        )
    try:
        define(config["notion"])
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    arrays = files.read_tensors(path / "agent.safetensors", finite=True)
    world = load_world(path, config)
    hooks, _ = catalogue.resolve(config["algorithm"], config["config"])
    expected = {"parameters": hooks.stacks(world.space)}
    if hooks.predictor is not None:
        expected["predictor"] = (hooks.predictor,)
    for name, stacks in expected.items():
        size = networks.size(stacks, world.inputs)
        found = arrays.get(name, np.empty(0))
        if found.shape != (size,) or found.dtype != np.float32:
            raise InputError(
                f"{path}: agent.safetensors does not fit {config['algorithm']} on "
                f"{config['world']}: expected {size:,} {name}. It may be damaged."
            )
    predictor = arrays.get("predictor")
    return Agent(
        world=world,
        algorithm=config["algorithm"],
        notion=config["notion"],
        config=config["config"],
        seed=config["seed"],
        parameters=jnp.asarray(arrays["parameters"]),
        predictor=None if predictor is None else jnp.asarray(predictor),
        settings=config["world_settings"],
        history=metrics.read(path / "metrics.jsonl"),
    )


def describe_world(world: World, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what the configuration of an agent or run says of its world."""
    return {
        "world": world.name,
        "world_settings": saving.plain_settings(settings),
        "world_rules": saving.rules_of(world),
        "world_tables": not saving.by_name(world, settings),
    }


def world_files(world: World, settings: dict[str, Any]) -> dict[str, bytes]:
    """Return the tables of a world as a file, if its name and settings do not make it again."""
    if saving.by_name(world, settings):
        return {}
    return {"world.safetensors": files.tensors_to_bytes(saving.tables_of(world))}


def load_world(path: Path, config: dict[str, Any]) -> World:
    """Make a saved agent's or run's world again: by name, or from the tables beside it."""
    rules, settings = saving.current(config["world_rules"]), config["world_settings"]
    if config.get("world_tables", config["world"] not in WORLDS):
        tables = files.read_tensors(path / "world.safetensors", finite=True)
        world = saving.restore(rules, tables)
    else:
        reads = sorted(set(settings) & set(saving.READS))
        if reads:
            raise InputError(
                f"{path} was made with {reads[0]}, a file that loading does not read, and without "
                "the world's tables: train anew."
            )
        world = saving.named(config["world"], settings)
    if saving.plain_settings(saving.rules_of(world)) != rules or world.name != config["world"]:
        raise InputError(
            f"{path} was made for a world {config['world']} with other rules than its name and "
            "settings make now: it is damaged, or was saved by an earlier version. Train anew."
        )
    return world


@lru_cache(maxsize=64)
def _tables(hooks: Algorithm) -> Any:
    """Return a compiled function: what an agent of this algorithm makes of some profiles."""

    def run(world: World, parameters: Array, predictor: Any, profile: Array) -> tuple[Array, Array]:
        predict = predictor_of(hooks, world, predictor)
        guess = jnp.zeros(profile.shape) if predict is None else predict(profile)
        return policy_of(hooks, world, parameters)(profile).log_odds, guess

    return compiled(run)


def policy_of(hooks: Algorithm, world: World, parameters: Array) -> Policy:
    """Return the policy of an agent, by profile."""
    space = world.space
    outputs = by_profile(space, partial(networks.run, hooks.stacks(space), parameters))
    return networks.policy(space, outputs, hooks.reject_below)


def predictor_of(hooks: Algorithm, world: World, predictor: Array | None) -> Chances | None:
    """Return the label predictor of an agent, by profile, if it has one."""
    if predictor is None or hooks.predictor is None:
        return None
    outputs = by_profile(world.space, partial(networks.run, (hooks.predictor,), predictor))
    return lambda profile: jax.nn.sigmoid(outputs(profile)[0])
