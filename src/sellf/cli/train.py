"""`sellf train` and `sellf evaluate`."""

import json
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from sellf import files, interrupts
from sellf.algorithms import catalogue
from sellf.algorithms.config import as_dict
from sellf.cli.showing import check_plot, draw, waiting
from sellf.envs.worlds import WORLDS
from sellf.errors import InputError
from sellf.fairness import Notion
from sellf.fairness.checks import one_of
from sellf.studies.statistics import DEVIATION
from sellf.text import name as name_of
from sellf.text import plain
from sellf.training import loop, run_folder
from sellf.training.agent import Agent, load
from sellf.training.evaluation import Evaluation
from sellf.training.evaluation import evaluate as deploy
from sellf.training.loggers import LogWarning


def train(
    world: str | None,
    algorithm: str,
    notion: str | None,
    steps: int | None,
    seed: int | None,
    out: Path | None,
    assignments: list[str],
    given: dict[str, Any],
    progress: bool,
    log: Sequence[str] = (),
    continue_from: Path | None = None,
) -> None:
    """Train an agent and print where it is stored."""
    if world is None:
        raise InputError(
            "no world named: type for example `sellf train lending`, or "
            "`sellf train --resume FOLDER` to resume a run."
        )
    notion = "opportunity" if notion is None else notion
    steps, seed = 500_000 if steps is None else steps, seed or 0
    WORLDS.find(world, typed=True)
    catalogue.ALGORITHMS.find(algorithm, typed=True)
    world_settings, settings = _split(assignments, world, algorithm)
    out = out or run_folder.free(
        Path("runs"), "-".join((*map(_in_path, (world, algorithm, notion)), str(seed)))
    )
    everything: dict[str, Any] = settings | given
    with _warnings_as_sentences():
        agent = loop.train(
            world,
            algorithm,
            notion=cast(Notion, notion),
            steps=steps,
            seed=seed,
            out=out,
            progress=progress,
            log=log,
            continue_from=continue_from,
            world_settings=world_settings,
            **everything,
        )
    _done(agent, out)


def check_alone(names: list[str]) -> None:
    """Refuse arguments that --resume would ignore: a run resumes with its own settings."""
    if names:
        raise InputError(
            f"--resume uses the settings of the run itself: leave {', '.join(names)} out, or type "
            "--continue-from to begin another run with its agent."
        )


def resume(folder: Path, progress: bool, log: Sequence[str] = ()) -> None:
    """Resume a run and print where the agent is stored."""
    with _warnings_as_sentences():
        agent = loop.resume(folder, progress, log or None)
    _done(agent, folder)


def evaluate(run: Path, deployments: int, seed: int, as_json: bool, plot: Path | None) -> None:
    """Deploy an agent and print its reward and disparity."""
    check_plot(plot, [run / name for name in files.RUN])
    agent = load(run)
    print(
        f"Deploying {agent.algorithm} to new populations of {plain(agent.world.name)}: "
        f"{deployments:,}. The first time, a program is compiled, which takes a few seconds.",
        file=sys.stderr,
        flush=True,
    )
    work = (f"evaluate {agent.world.name} {agent.notion}", float(deployments))
    with waiting("deploying", *work), interrupts.nothing_to_lose():
        result = deploy(agent, deployments=deployments, seed=seed)
    if as_json:
        print(json.dumps(result.summary()))
    else:
        Console(highlight=False).print(summary_table({agent.algorithm: result}))
    draw(result, plot)


def summary_table(results: dict[str, Evaluation]) -> Table:
    """Return a table of evaluations, one per row."""
    first = next(iter(results.values()))
    table = Table(
        title=f"{first.deployments} deployments, {first.notion} disparity",
        title_justify="left",
        title_style="bold",
    )
    for name in ("", "reward", "true", "imputed", "naive"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for group in first.groups:
        table.add_column(name_of(group), justify="right", no_wrap=True)
    table.caption = (
        f"in brackets: {DEVIATION}; naive: among the accepted only;\n"
        "under a group's name: its share accepted"
    )
    for name, result in results.items():
        figures = result.summary()
        table.add_row(
            name_of(name, "bold"),
            f"{figures['reward']:,.0f} ({figures['reward_std']:,.0f})",
            f"{_three(figures['disparity'])} ({_three(figures['disparity_std'])})",
            _three(figures["disparity_imputed"]),
            _three(figures["disparity_accepted"]),
            *(f"{share:.0%}" for share in figures["acceptance"].values()),
        )
    return table


def _three(value: float | None) -> str:
    """Return a figure with three decimals; "-" where there is none."""
    return "-" if value is None else f"{value:.3f}"


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print warnings about a failed tracker in the format of other messages."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any) -> None:
            if issubclass(category, LogWarning):
                print(f"sellf: {plain(message)}", file=sys.stderr)
            else:
                usual(message, category, *rest)

        warnings.showwarning = show
        yield


def _done(agent: Agent, folder: Path) -> None:
    text = (
        f"{agent.algorithm} on {agent.world.name} is trained: {folder}\n"
        + (f"{agent.statement}\n" if agent.statement else "")
        + f"Type `sellf evaluate {shlex.quote(str(folder))}` to deploy it."
    )
    Console(stderr=True, highlight=False).print(plain(text), markup=False)


def _split(
    assignments: list[str], world: str, algorithm: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sort NAME=VALUE into settings of the world and of the algorithm."""
    for_world, for_algorithm = {}, {}
    own = WORLDS.find(world).takes
    known = as_dict(catalogue.find(algorithm).config())
    for text in assignments:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f"--set {text}: write NAME=VALUE, for example learning_rate=1e-4.")
        name, given = name.replace("-", "_"), _value(value)
        # A setting that both have is a number in the world: a word is for the algorithm.
        if name in own and not (name in known and isinstance(given, str)):
            for_world[name] = given
        elif name in known:
            for_algorithm[name] = given
        else:
            one_of("setting", name, (*own, *known))
    return for_world, for_algorithm


def _in_path(name: str) -> str:
    return name.replace(":", ".")


def _value(text: str) -> Any:
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError as error:
            raise InputError(f"--set: {text} is not valid JSON: {error}.") from None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.split(",") if "," in text else text
