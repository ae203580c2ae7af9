"""A trained agent: its policy, its label predictor and the world it was trained in."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from textwrap import fill
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sellf import files
from sellf.algorithms import networks
from sellf.algorithms.algorithm import Algorithm
from sellf.compiling import compiled
from sellf.envs import frames
from sellf.envs.policy import Categorical, Chances, Policy
from sellf.envs.space import SMALL, Space, by_profile, observe, rescaled
from sellf.envs.table import tabulated
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness import Notion
from sellf.fairness.checks import seed as check_seed
from sellf.fairness.checks import short
from sellf.text import plain
from sellf.training import metrics
from sellf.training.spec import FORMAT, NEEDED, RunSpec, WorldSpec, from_folder

WIDTH = 79
"""Width of printed text, in characters."""


@dataclass(frozen=True, repr=False)
class Agent:
    """A policy for a world, with its label predictor if it has one."""

    spec: RunSpec
    """The specification of its training."""
    parameters: Float[Array, " size"]
    """Parameters of all its networks, as a flat array."""
    predictor: Float[Array, " size"] | None = None
    """Parameters of the label predictor."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """The metrics of each iteration of its training."""

    def __repr__(self) -> str:
        spec = self.spec
        named = f"{self.algorithm} on {spec.world.name}, {self.notion}, seed {self.seed}"
        return plain(f"<Agent: {named}>")

    def __str__(self) -> str:
        spec, size = self.spec, self.parameters.size
        predicts = (
            "" if self.predictor is None else f", {self.predictor.size:,} predictor parameters"
        )
        parts = [
            f"{self.algorithm} on {spec.world.name}, {self.notion}, seed {self.seed}: "
            f"{spec.steps:,} steps.",
            f"Changed settings: {', '.join(f'{k} = {v}' for k, v in spec.changed.items())}."
            if spec.changed
            else "Default settings.",
            f"{size:,} policy parameters{predicts}; fingerprint {self.fingerprint[:12]}.",
            *([self.statement] if self.statement else []),
        ]
        return plain("\n".join(fill(part, WIDTH) for part in parts))

    @property
    def world(self) -> World:
        """The world that the agent was trained in."""
        return self.spec.world.make()

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""
        return self.spec.algorithm.name

    @property
    def notion(self) -> Notion:
        """The notion of fairness that the agent was trained for."""
        return self.spec.notion

    @property
    def config(self) -> dict[str, Any]:
        """The algorithm's settings, as plain values."""
        return self.spec.hyperparameters

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return self.spec.seed

    @property
    def statement(self) -> str | None:
        """Statement about the constraint of the training; None if there was none."""
        if not self.history:
            return None
        return self.spec.algorithm.statement(self.notion, self.spec.config, self.history)

    def in_world(self, world: World) -> "Agent":
        """Return the same agent for another world with the same groups, inputs and actions.

        Numeric features are standardised as in the original world. The statement about a
        constraint of its training applies to the original world only, and is dropped.
        """
        if not isinstance(world, World):
            raise InputError(f"world is {short(world)}: give a world, sellf.make_world('lending').")
        asked = ("groups", "columns", "actions")
        for name in asked:
            own, other = getattr(self.world.space, name), getattr(world.space, name)
            if own != other:
                raise InputError(
                    f"the agent was trained where {name} are {short(own)}, but {world.name} has "
                    f"{short(other)}: it cannot decide there."
                )
        space = rescaled(world.space, self.world.space)
        world = world if space is world.space else replace(world, space=space)
        spec = replace(self.spec, world=WorldSpec(world.name, given=world))
        return replace(self, spec=spec, history=[])

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of the parameters of the policy and the predictor."""
        parts = [self.parameters, *([] if self.predictor is None else [self.predictor])]
        return sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()

    def plot(self) -> Any:
        """Draw the metrics of the training: reward, disparity, acceptance and multiplier."""
        from sellf.training.plots import draw

        return draw(self.spec, self.history)

    def probability(self, features: Any, group: Any) -> np.ndarray:
        """Return each person's probability of acceptance, or of another favourable action.

        Args:
            features: the features of people: a data frame or a mapping of columns, with raw values
                under the names that the world was made with. An array is taken as already encoded:
                one row per person, in the order of `world.columns` without the group columns, with
                categories as one column of 0 and 1 each and numeric features standardised.
            group: the name of each person's group, or, with a frame, the column that has it.
        """
        return np.asarray(self._decision(features, group).chance(self.world.space.favourable))

    def decide(self, features: Any, group: Any, seed: int | None = None) -> np.ndarray:
        """Return decisions about people, drawn with the policy's probabilities.

        A decision is an index into `world.space.actions`; in the paper's worlds, 1 means accept.

        Args:
            features: as for `probability`.
            group: as for `probability`.
            seed: the same seed draws the same decisions; by default they differ every time.
        """
        if seed is not None:
            seed = check_seed("seed", seed)
        chance = np.asarray(self._decision(features, group).at_least())
        luck = np.random.default_rng(seed).random(chance.shape[1:])
        return (luck < chance).sum(axis=0)

    def _decision(self, features: Any, group: Any) -> Categorical:
        x, space, algorithm = self._inputs(features, group), self.world.space, self.spec.algorithm
        outputs = networks.run(algorithm.stacks(space), self.parameters, x)
        return networks.policy(space, lambda _: outputs, algorithm.reject_below)(x)

    def predict_label(self, features: Any, group: Any) -> np.ndarray:
        """Return the predicted probability of a good label; arguments as for `probability`."""
        if self.predictor is None or self.spec.algorithm.predictor is None:
            raise InputError(
                f"{self.algorithm} has no label predictor: train sellf, sellf-direct or another "
                "algorithm that has one."
            )
        x = self._inputs(features, group)
        outputs = networks.run((self.spec.algorithm.predictor,), jnp.asarray(self.predictor), x)
        return np.asarray(jax.nn.sigmoid(outputs[0]))

    def by_profile(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities of acceptance and of a good label, by profile.

        Without a predictor the latter is 0 everywhere, as in a decision window.
        """
        log_odds, predict = self.tables()
        decided = Categorical(jnp.asarray(log_odds))
        return np.asarray(decided.chance(self.world.space.favourable)), predict

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the policy's log-odds and the probabilities of a good label, by profile."""
        run, world = _tables(self.spec.algorithm), tabulated(self.world, "a table of decisions")
        # In pieces, since a large world is too large for one pass through a network. The last piece
        # is padded, so all pieces use one compiled program.
        piece = min(world.profiles, SMALL)
        profiles = jnp.arange(-(-world.profiles // piece) * piece) % world.profiles
        pieces = [
            run(world, self.parameters, self.predictor, profiles[start : start + piece])
            for start in range(0, len(profiles), piece)
        ]
        log_odds, predict = (
            np.concatenate(part, axis=-1)[..., : world.profiles]
            for part in zip(*pieces, strict=True)
        )
        return log_odds, predict

    def _inputs(self, features: Any, group: Any) -> Array:
        groups = self.world.groups
        if frames.is_frame(features):
            if isinstance(group, str):
                if group in groups and group not in frames.names_of(features):
                    raise InputError(f"group is {group!r}: give a list, or a column that has it.")
                group = frames.read(features, [group], ())[group]
            numbers = frames.encode(self.world.space, features)
        else:
            numbers = self._encoded(features)
        # A list with NaN and names would become an array of names, one of them "nan".
        several = isinstance(group, Iterable) and not isinstance(group, str)
        given = list(group) if several else [group]
        if any(map(frames.is_missing, given)):
            raise InputError("group is missing for somebody: fill it in or leave the row out.")
        names = [str(name) for name in given]
        strange = [name for name in names if name not in groups]
        if strange:
            raise InputError(f"group is {strange[0]!r}: it is one of {', '.join(groups)}.")
        if len(names) != len(numbers):
            raise InputError(f"features has {len(numbers)} rows, group has {len(names)}.")
        member = np.array([groups.index(name) for name in names], np.int64)
        return jnp.asarray(np.hstack([numbers, np.eye(len(groups), dtype=np.float32)[member]]))

    def _encoded(self, features: Any) -> np.ndarray:
        """Return features that are encoded already, of the right shape and finite."""
        if np.ma.is_masked(features):
            raise InputError("features has masked values: fill them in or leave the rows out.")
        try:
            given = np.asarray(features)
            numbers = given.astype(np.float32) if given.dtype.kind in "biufO" else None
        except (TypeError, ValueError, OverflowError):
            numbers = None
        if numbers is None:
            raise InputError(
                f"features is {short(features)}: give a data frame of raw columns, or an array of "
                "numbers that is encoded as world.columns."
            )
        wide = self.world.inputs - len(self.world.groups)
        if numbers.ndim != 2 or numbers.shape[1] != wide:
            raise InputError(
                f"features has shape {numbers.shape}: give one row per person with the {wide} "
                f"inputs {', '.join(self.world.columns[:3])}, ... (see world.columns), or a data "
                "frame of raw columns."
            )
        if not np.isfinite(numbers).all():
            raise InputError("features has a value that is not a finite number: fill it in.")
        return numbers

    def save(self, path: str | Path) -> Path:
        """Write the agent to a folder, completely or not at all; `sellf.load` reads it."""
        config = files.sealed_json({"format": FORMAT, **self.spec.to_config()})
        rows = self.history
        if not rows:
            return files.write_folder(Path(path), {"config.json": config, **self.tensors()})
        # With its metrics, since its statement is derived from them.
        lines = b"".join(map(metrics.line, rows))
        own = self.tensors(metrics=metrics.note(len(rows), metrics.digest(rows)))
        contents = {"config.json": config, "metrics.jsonl": lines, **own}
        return files.write_folder(Path(path), contents)

    def tensors(self, **notes: str) -> dict[str, bytes]:
        """Return the files with the parameters and notes, and with the world's tables if needed."""
        arrays = {"parameters": np.asarray(self.parameters)}
        if self.predictor is not None:
            arrays["predictor"] = np.asarray(self.predictor)
        # The digest distinguishes the agents of different runs.
        own = files.tensors_to_bytes(arrays, run=self.spec.digest, **notes)
        return {"agent.safetensors": own, **self.spec.world_files()}


def load(path: str | Path) -> Agent:
    """Load an agent written by `Agent.save` or `sellf train --out`; no code is executed."""
    path = Path(path)
    config = files.read_json(path / "config.json", FORMAT, NEEDED)
    if not (path / "agent.safetensors").is_file():
        raise InputError(
            f"{path} contains no finished agent: type `sellf train --resume {path}` to finish it."
        )
    arrays = files.read_tensors(path / "agent.safetensors", finite=True)
    spec = from_folder(path, config)
    if files.notes(path / "agent.safetensors").get("run") != spec.digest:
        raise InputError(
            f"{path}: agent.safetensors is not the agent that config.json describes. {files.AGAIN}"
        )
    world, algorithm = spec.world.make(), spec.algorithm
    expected = {"parameters": algorithm.stacks(world.space)}
    if algorithm.predictor is not None:
        expected["predictor"] = (algorithm.predictor,)
    for name, stacks in expected.items():
        size = networks.size(stacks, world.inputs)
        found = arrays.get(name, np.empty(0))
        if found.shape != (size,) or found.dtype != np.float32:
            raise InputError(
                f"{path}: agent.safetensors does not fit {algorithm.name} on {world.name}: "
                f"expected {size:,} {name}. It may be damaged."
            )
    predictor = arrays.get("predictor")
    return Agent(
        spec,
        jnp.asarray(arrays["parameters"]),
        None if predictor is None else jnp.asarray(predictor),
        metrics.read(path / "metrics.jsonl", spec.iterations),
    )


def decisions(
    algorithm: Algorithm, space: Space, parameters: Array, predictor: Array | None
) -> tuple[Policy, Chances | None]:
    """Return an agent's policy and its predictor (or None) as functions of people."""
    outputs = by_profile(space, partial(networks.run, algorithm.stacks(space), parameters))
    policy = networks.policy(space, outputs, algorithm.reject_below)
    if predictor is None or algorithm.predictor is None:
        return policy, None
    labels = by_profile(space, partial(networks.run, (algorithm.predictor,), predictor))
    return policy, lambda people: jax.nn.sigmoid(labels(people)[0])


@lru_cache(maxsize=64)
def _tables(algorithm: Algorithm) -> Any:
    """Return a compiled function that computes the log-odds and predictions of some profiles."""

    def run(world: World, parameters: Array, predictor: Any, profile: Array) -> tuple[Array, Array]:
        space = world.space
        x = observe(space, profile)
        outputs = networks.run(algorithm.stacks(space), parameters, x)
        log_odds = networks.policy(space, lambda _: outputs, algorithm.reject_below)(x).log_odds
        if predictor is None or algorithm.predictor is None:
            return log_odds, jnp.zeros(profile.shape)
        return log_odds, jax.nn.sigmoid(networks.run((algorithm.predictor,), predictor, x)[0])

    return compiled(run)
