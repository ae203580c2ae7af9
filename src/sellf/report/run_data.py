"""Runs as a report sees them: what was trained, how it went, and whom it accepts."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf import files
from sellf.errors import InputError
from sellf.training import metrics

if TYPE_CHECKING:
    from sellf.envs.world import World
    from sellf.studies.records import Record
    from sellf.training.evaluation import Evaluation

DEPLOYMENTS = 10
"""To how many new populations an agent is deployed ..."""
ALTOGETHER = 200
"""... unless there are many agents: then to fewer, so that a report is quick."""
CLASSES = 30
"""The most classes of people that are drawn one by one."""


@dataclass(frozen=True)
class Policy:
    """Whom a policy accepts."""

    axis: str
    """What people are told apart by."""
    classes: list[str]
    chance: np.ndarray
    """(groups, classes), NaN where there is nobody."""


@dataclass(frozen=True)
class Deed:
    """A training, and the deployments of what came of it."""

    name: str
    world: str
    world_settings: dict[str, Any]
    notion: str
    algorithm: str
    settings: dict[str, Any]
    seed: int
    steps: int
    history: dict[str, np.ndarray]
    """Of the training: (iterations,), or (iterations, groups)."""
    evaluation: "Evaluation | None"
    """None if the training is not finished."""
    policy: Policy | None = None
    versions: str = ""
    fingerprint: str = ""
    """SHA-256 of the agent's parameters."""

    @property
    def task(self) -> tuple[str, ...]:
        """Where it may be compared with others."""
        return (self.world, self.notion, json.dumps(self.world_settings, sort_keys=True))

    @property
    def omega(self) -> float | None:
        """The disparity that it tolerates, if it knows of any."""
        value = self.settings.get("omega")
        return None if value is None else float(value)


def from_folders(
    paths: Sequence[Path], notify: Callable[[str], None] = lambda _: None
) -> list[Deed]:
    """Read runs from their folders, and deploy their agents.

    Args:
        paths: the folders of runs, or of several runs each.
        notify: is told what takes long.
    """
    folders = [run for path in paths for run in runs_in(path)]
    configs = [_config(folder) for folder in folders]
    done = [(folder / "agent.safetensors").is_file() for folder in folders]
    evaluations, policies = _deploy([f for f, ok in zip(folders, done, strict=True) if ok], notify)
    found = iter(zip(evaluations, policies, strict=True))
    deeds = []
    for folder, config, ok in zip(folders, configs, done, strict=True):
        evaluation, policy = next(found) if ok else (None, None)
        parameters = folder / "agent.safetensors"
        deeds.append(
            Deed(
                name=str(folder),
                world=config["world"],
                world_settings=config["world_settings"],
                notion=config["notion"],
                algorithm=config["algorithm"],
                settings=config["config"],
                seed=config["seed"],
                steps=int(config.get("steps") or 0),
                history=columns_of(metrics.read(folder / "metrics.jsonl")),
                evaluation=evaluation,
                policy=policy,
                versions=_versions(config),
                fingerprint=hashlib.sha256(parameters.read_bytes()).hexdigest() if ok else "",
            )
        )
    return deeds


def from_record(record: "Record") -> Deed:
    """Return a study's run."""
    spec = record.spec
    return Deed(
        name=f"{spec.algorithm} on {spec.world}, seed {spec.seed}",
        world=spec.world,
        world_settings=spec.world_settings,
        notion=spec.notion,
        algorithm=spec.algorithm,
        settings=spec.settings,
        seed=spec.seed,
        steps=spec.steps,
        history={name: np.asarray(values) for name, values in record.metrics.items()},
        evaluation=record.evaluation,
    )


def runs_in(path: Path) -> list[Path]:
    """Return the run folders that a path means: itself, or those within it."""
    if not path.is_dir():
        raise InputError(f"there is no folder {path}.")
    if (path / "config.json").is_file():
        return [path]
    found = sorted(inner.parent for inner in path.glob("*/config.json"))
    if not found:
        raise InputError(f"{path} holds no run: type `sellf train lending sellf --out {path}`.")
    return found


def columns_of(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the metrics of a training by name; NaN where an iteration lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        known = next(row[name] for row in rows if name in row)
        nothing = np.full(np.shape(known), np.nan).tolist()
        try:
            columns[name] = np.array([row.get(name, nothing) for row in rows], float)
        except (TypeError, ValueError):
            continue  # no number, or of several shapes
    return columns


def classes_of(world: "World") -> tuple[str, list[str], np.ndarray]:
    """Return what people are told apart by, its classes, and the class of every profile.

    A score of few classes if that is what decisions change; else the chance of a good label, which
    the decision maker does not know.
    """
    changes = np.asarray(world.encoding.changes)
    states, width = changes.shape
    if 2 <= states <= CLASSES and states == width and (changes == np.eye(states)).all():
        names = list(world.columns[-len(world.groups) - width : -len(world.groups)])
        # "score 0-10", "score 10-20", ...: the word they share belongs to the axis.
        first = names[0].split(" ")[0]
        shared = all(name.startswith(f"{first} ") for name in names)
        short = [name[len(first) + 1 :] for name in names] if shared else names
        return (first if shared else "class"), short, np.asarray(world.encoding.changing)
    tenth = np.minimum((np.asarray(world.alpha) * 10).astype(int), 9)
    names = [f"{i / 10:g}-{(i + 1) / 10:g}" for i in range(10)]
    return "true chance of a good outcome", names, tenth


def policy_picture(world: "World", accept: np.ndarray) -> Policy:
    """Return the chance of acceptance by group and class, of newcomers."""
    axis, names, member = classes_of(world)
    group = np.asarray(world.group)
    # People whom nobody is like at first count only where there is nobody else.
    weight = np.full(len(group), 1e-9)
    share = np.diff(np.asarray(world.arrivals.cumulative, float), prepend=0.0)
    np.add.at(weight, np.asarray(world.arrivals.profile), share)
    cell = group * len(names) + member
    size = len(world.groups) * len(names)
    total = np.bincount(cell, weight, size)
    chance = np.bincount(cell, weight * accept, size) / np.where(total > 0, total, np.nan)
    return Policy(axis, names, chance.reshape(len(world.groups), len(names)))


def _deploy(
    folders: list[Path], notify: Callable[[str], None]
) -> tuple[list["Evaluation"], list[Policy]]:
    if not folders:
        return [], []
    from sellf.training.agent import load
    from sellf.training.evaluation import evaluate_all

    agents = [load(folder) for folder in folders]
    deployments = max(2, min(DEPLOYMENTS, ALTOGETHER // len(agents)))
    many = f"{len(agents)} agents" if len(agents) > 1 else "The agent"
    notify(f"{many} will be deployed to {deployments} new populations.")
    policies = [policy_picture(agent.world, agent.by_profile()[0]) for agent in agents]
    return evaluate_all(agents, deployments), policies


def _config(folder: Path) -> dict[str, Any]:
    from sellf.training.agent import FORMAT, NEEDED

    return files.read_json(folder / "config.json", FORMAT, NEEDED)


def _versions(config: dict[str, Any]) -> str:
    named = {"sellf": "sellf", "python": "Python", "jax": "JAX"}
    parts = [f"{label} {config[key]}" for key, label in named.items() if config.get(key)]
    if config.get("git"):
        parts.append(f"revision {str(config['git'])[:12]}")
    return ", ".join(parts)
