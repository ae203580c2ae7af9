"""The runs of a report: their settings, metrics, deployments and policies."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from sellf import files
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import Settings
from sellf.envs.policy import Categorical
from sellf.envs.table import TableWorld
from sellf.errors import InputError
from sellf.report.charts import number, shown
from sellf.studies.records import Record
from sellf.training import metrics
from sellf.training.agent import Agent, load
from sellf.training.evaluation import Evaluation, defined_mean, evaluate, evaluate_all
from sellf.training.policies import tabulated_policy
from sellf.training.spec import FORMAT, NEEDED, RunSpec, from_folder

DEPLOYMENTS = 10
"""The number of new populations to which an agent is deployed."""
ALTOGETHER = 200
"""The largest number of deployments of all agents together, so that a report is quick."""
CLASSES = 30
"""The largest number of classes of people that are drawn separately."""


@dataclass(frozen=True)
class Policy:
    """Whom a policy accepts."""

    axis: str
    """The variable that defines the classes."""
    classes: list[str]
    chance: np.ndarray
    """(groups, classes); NaN for empty classes."""


@dataclass(frozen=True)
class Run:
    """A training run, and the deployments of its agent."""

    name: str
    spec: RunSpec
    metrics: dict[str, np.ndarray]
    """The metrics of the training: (iterations,), or (iterations, groups)."""
    evaluation: Evaluation | None
    """None if the training is not finished."""
    policy: Policy | None = None
    versions: str = ""
    fingerprint: str = ""
    """SHA-256 of the agent's parameters."""
    elsewhere: bool = False
    """Whether it is a policy that was trained elsewhere, so that there are no metrics."""

    @property
    def world(self) -> str:
        """The world's name, safe to show."""
        return shown(self.spec.world.name)

    def figure(self, what: str) -> float | None:
        """Return the mean reward, or the mean disparity in a view; None if it was not deployed."""
        found = self.evaluation
        if found is None:
            return None
        return number(found.reward if what == "reward" else defined_mean(found.disparities[what]))

    @property
    def task(self) -> tuple[str, ...]:
        """The world, its settings and the notion: runs of the same task may be compared."""
        world = self.spec.world
        return (world.name, self.spec.notion, json.dumps(world.settings, sort_keys=True))


def from_folders(
    paths: Sequence[Path],
    notify: Callable[[str], None] = lambda _: None,
    policies: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Read runs from their folders, and deploy their agents.

    Args:
        paths: the folders of runs, or folders that contain several runs.
        notify: called with a message before steps that take long.
        policies: other policies to deploy to the same populations, by name; several in a list
            count as runs that differ in their seed.
    """
    folders = [run for path in paths for run in runs_in(path)]
    configs = {f: files.read_json(f / "config.json", FORMAT, NEEDED) for f in folders}
    finished = [folder for folder in folders if (folder / "agent.safetensors").is_file()]
    agents = {folder: load(folder) for folder in finished}
    given = [
        (name, one)
        for name, some in (policies or {}).items()
        for one in (some if isinstance(some, list | tuple) else [some])
    ]
    deployments = max(2, min(DEPLOYMENTS, ALTOGETHER // max(1, len(agents) + len(given))))
    if agents:
        many = f"{len(agents) + len(given)} agents" if len(agents) + len(given) > 1 else "The agent"
        notify(f"{many} will be deployed to {deployments} new populations.")
    deployed = dict(zip(finished, _deploy(list(agents.values()), deployments), strict=True))
    runs: list[Run] = []
    for folder, config in configs.items():
        evaluation, policy = deployed.get(folder, (None, None))
        parameters = folder / "agent.safetensors"
        agent = agents.get(folder)
        spec = from_folder(folder, config) if agent is None else agent.spec
        runs.append(
            Run(
                name=str(folder),
                spec=spec,
                metrics=columns_of(metrics.read(folder / "metrics.jsonl", spec.iterations)),
                evaluation=evaluation,
                policy=policy,
                versions=_versions(config),
                fingerprint=hashlib.sha256(parameters.read_bytes()).hexdigest() if agent else "",
            )
        )
    return [*runs, *_from_policies(given, list(agents.values()), deployments)]


def _from_policies(
    policies: list[tuple[str, Any]], agents: list[Agent], deployments: int
) -> list[Run]:
    """Deploy policies that were trained elsewhere to the populations of the agents."""
    if not policies:
        return []
    tasks = {(one.world.name, one.notion, json.dumps(one.spec.world.settings)) for one in agents}
    if len(tasks) != 1:
        raise InputError(
            f"the finished runs are of {len(tasks)} worlds and notions: policies from elsewhere "
            "are compared with runs of one world and one notion. Give the folders of those."
        )
    like, world, runs = agents[0].spec, agents[0].world, []
    for name, policy in policies:
        seed = sum(run.spec.algorithm.name == name for run in runs)
        own = Algorithm(name, Settings, "a policy from elsewhere")
        spec = RunSpec(like.world, own, Settings(), like.notion, seed, steps=0)
        found = evaluate(policy, world, like.notion, deployments)
        picture = None
        if isinstance(world, TableWorld):
            decided = Categorical(jnp.asarray(tabulated_policy(policy, world.space)))
            picture = policy_picture(world, np.asarray(decided.chance(world.space.favourable)))
        runs.append(Run(name, spec, {}, found, picture, elsewhere=True))
    return runs


def from_record(record: Record) -> Run:
    """Return the run of a study's record."""
    spec = record.spec
    name = f"{spec.algorithm.name} on {spec.world.name}, seed {spec.seed}"
    columns = {name: np.asarray(values) for name, values in record.metrics.items()}
    return Run(name, spec, columns, record.evaluation)


def runs_in(path: Path) -> list[Path]:
    """Return the run folders of a path: the path itself, or the run folders in it."""
    if not path.is_dir():
        raise InputError(f"there is no folder {path}.")
    if (path / "config.json").is_file():
        return [path]
    found = sorted(inner.parent for inner in path.glob("*/config.json"))
    if not found:
        raise InputError(f"{path} holds no run: type `sellf train lending sellf --out {path}`.")
    return found


def columns_of(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the metrics of a training by name; NaN if an iteration lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        known = next((row[name] for row in rows if row.get(name) is not None), np.nan)
        nothing = np.full(np.shape(known), np.nan).tolist()
        try:
            columns[name] = np.array([row.get(name, nothing) for row in rows], float)
        except (TypeError, ValueError):
            continue  # not a number, or of different shapes
    return columns


def classes_of(world: TableWorld) -> tuple[str, list[str], np.ndarray]:
    """Return the variable by which people are classed, its classes, and the class of every profile.

    The variable is the score if it has few classes and is what decisions change; otherwise it is
    the probability of a good label, which the decision maker does not know.
    """
    changes = np.asarray(world.encoding.changes)
    states, width = changes.shape
    if 2 <= states <= CLASSES and states == width and (changes == np.eye(states)).all():
        names = list(world.columns[-len(world.groups) - width : -len(world.groups)])
        # "score 0-10", "score 10-20", ...: the common word is the name of the axis.
        first = names[0].split(" ")[0]
        shared = all(name.startswith(f"{first} ") for name in names)
        short = [name[len(first) + 1 :] for name in names] if shared else names
        return (first if shared else "class"), short, np.asarray(world.encoding.changing)
    tenth = np.minimum((np.asarray(world.alpha) * 10).astype(int), 9)
    names = [f"{i / 10:g}-{(i + 1) / 10:g}" for i in range(10)]
    return "true chance of a good outcome", names, tenth


def policy_picture(world: TableWorld, accept: np.ndarray) -> Policy:
    """Return the probability that newcomers are accepted, by group and class."""
    axis, names, member = classes_of(world)
    group = np.asarray(world.group)
    # Profiles that no newcomer has count only in classes without newcomers.
    weight = np.full(len(group), 1e-9)
    share = np.diff(np.asarray(world.arrivals.cumulative, float), prepend=0.0)
    np.add.at(weight, np.asarray(world.arrivals.profile), share)
    cell = group * len(names) + member
    size = len(world.groups) * len(names)
    total = np.bincount(cell, weight, size)
    chance = np.bincount(cell, weight * accept, size) / np.where(total > 0, total, np.nan)
    return Policy(axis, names, chance.reshape(len(world.groups), len(names)))


def _deploy(agents: list[Agent], deployments: int) -> list[tuple[Evaluation, Policy | None]]:
    """Return the evaluation and the policy of each agent."""
    policies = [
        # Only in a world with a table of profiles can a policy be drawn by class.
        policy_picture(agent.world, agent.by_profile()[0])
        if isinstance(agent.world, TableWorld)
        else None
        for agent in agents
    ]
    return list(zip(evaluate_all(agents, deployments), policies, strict=True))


def _versions(config: dict[str, Any]) -> str:
    named = {"sellf": "sellf", "python": "Python", "jax": "JAX"}
    parts = [f"{label} {config[key]}" for key, label in named.items() if config.get(key)]
    if config.get("git"):
        parts.append(f"revision {str(config['git'])[:12]}")
    return ", ".join(parts)
