"""What can be typed after `sellf`: one function a command, its docstring the help text."""

from collections.abc import Sequence
from typing import Annotated

import tyro

DESCRIPTION = """Fair decisions over time when outcomes are only seen for the accepted.

`sellf COMMAND --help` says more; `sellf --version` says which version this is.
"""


def demo(
    people: Annotated[int, tyro.conf.arg(metavar="N")] = 20_000,
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0,
) -> None:
    """Show what the accepted-only view hides, on a simulated lending log.

    Args:
        people: how many applicants to simulate.
        seed: of the simulation; the same seed gives the same log.
    """
    from sellf.cli.demo import show

    show(people, seed)


def worlds(world: Annotated[str | None, tyro.conf.Positional] = None) -> None:
    """List the worlds: their groups, inputs, cost, dynamics and where the figures come from.

    Args:
        world: show this one only, with all its inputs and the whole provenance.
    """
    from sellf.cli.worlds import show

    show(world)


COMMANDS = {"demo": demo, "worlds": worlds}


def run(arguments: Sequence[str]) -> None:
    """Parse the arguments and run the command; exits with 2 if they make no sense."""
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="sellf",
        description=DESCRIPTION,
        args=arguments,
    )
