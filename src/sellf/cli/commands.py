"""What can be typed after `sellf`: one function a command, its docstring the help text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

DESCRIPTION = """Fair decisions over time when outcomes are only seen for the accepted.

`sellf COMMAND --help` says more; `sellf --version` says which version this is.
"""


def demo(
    log: bool = False,
    people: Annotated[int, tyro.conf.arg(metavar="N")] = 20_000,
    steps: Annotated[int, tyro.conf.arg(metavar="N")] = 500_000,
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0,
) -> None:
    """Show what a simulated lending log hides, then train PPO and SELLF on lending.

    Args:
        log: only the log: it needs no training and takes a second.
        people: how many applicants the log has.
        steps: how many decisions to train on.
        seed: the same seed gives the same log and the same agents.
    """
    from sellf.cli import demo as demos

    demos.show_log(people, seed)
    if not log:
        demos.train_and_compare(steps, seed)


def worlds(world: Annotated[str | None, tyro.conf.Positional] = None) -> None:
    """List the worlds: their groups, inputs, cost, dynamics and where the figures come from.

    Args:
        world: show this one only, with all its inputs and the whole provenance.
    """
    from sellf.cli.worlds import show

    show(world)


def train(
    world: Annotated[str | None, tyro.conf.Positional] = None,
    algorithm: Annotated[str, tyro.conf.Positional] = "sellf",
    notion: str = "opportunity",
    steps: int = 500_000,
    seed: int = 0,
    out: Path | None = None,
    resume: Path | None = None,
    quiet: bool = False,
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = (),
    beta_disparity: float | None = None,
    beta_renyi: float | None = None,
    omega: float | None = None,
) -> None:
    """Train an agent.

    Args:
        world: lending, recidivism, school or school-continuous.
        algorithm: sellf, sellf-semi, sellf-relu, ppo, pocar, pocar-oracle, elbert or focops.
        notion: opportunity, accuracy or qualification.
        steps: how many decisions to learn from.
        seed: the same seed gives the same agent.
        out: a folder for configuration, metrics, checkpoints and the agent (default: runs/...).
        resume: go on with the run in this folder; needs nothing else.
        quiet: show no progress.
        set: any setting of the algorithm or the world, e.g. --set learning_rate=1e-4 groups=all.
        beta_disparity: weight of the disparity penalty (pocar, sellf).
        beta_renyi: weight of the Renyi term (sellf).
        omega: the disparity that is tolerated.
    """
    from sellf.cli import train as command

    named = {"beta_disparity": beta_disparity, "beta_renyi": beta_renyi, "omega": omega}
    given = {name: value for name, value in named.items() if value is not None}
    if resume is not None:
        command.resume(resume, not quiet)
    else:
        command.train(world, algorithm, notion, steps, seed, out, list(set), given, not quiet)


def evaluate(
    run: Annotated[Path, tyro.conf.Positional],
    deployments: int = 10,
    seed: int = 0,
    json: bool = False,
    plot: Path | None = None,
) -> None:
    """Deploy a trained agent to new populations.

    Args:
        run: the folder of a run or an agent.
        deployments: to how many.
        seed: of the deployments.
        json: print one JSON object instead of a table.
        plot: draw reward and disparity over time into this file (.png, .svg or .pdf).
    """
    from sellf.cli import train as command

    command.evaluate(run, deployments, seed, json, plot)


COMMANDS = {"demo": demo, "worlds": worlds, "train": train, "evaluate": evaluate}


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command; exits with 2 if they make no sense."""
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="sellf",
        description=DESCRIPTION,
        args=arguments,
    )
