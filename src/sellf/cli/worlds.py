"""`sellf worlds`: list the worlds, or the details of one."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sellf.envs.registration import IDS
from sellf.envs.tables import provenance
from sellf.envs.world import World
from sellf.envs.worlds import WORLDS, Kind, make_world
from sellf.errors import InputError
from sellf.text import name as name_of
from sellf.text import plain


def print_worlds(name: str | None) -> None:
    """Print all worlds in a table, or the details of one."""
    console = Console(highlight=False)
    if name is None:
        console.print(_all())
        console.print(
            "\n[dim]`sellf worlds NAME` shows its inputs and the provenance of its figures;\n"
            "sellf.make_world(NAME, ...) makes one, sellf.world_from_frame(...) one of your "
            "own.[/dim]"
        )
        return
    kind = WORLDS.find(name, typed=True)
    world = make_world(name)
    facts = {
        "groups": ", ".join(world.groups),
        "inputs": f"{world.inputs}: {', '.join(world.columns)}",
        "horizon": f"{world.horizon:,} decisions, from a resource of {world.start:,.0f}",
        "people": f"{world.population:,}",
        "dynamics": kind.dynamics,
        "actions": _actions(world),
        "settings": ", ".join(kind.settings) or "none",
        "Gymnasium": IDS.get(name) or f'WorldEnv("{name}")',
        "figures": _source(kind, "of the package that provides it"),
    }
    table = Table(show_header=False, box=None, title=name, title_justify="left", title_style="bold")
    for key, value in facts.items():
        table.add_row(f"[bold]{key}[/bold]", value)
    console.print(table)


def _source(kind: Kind, otherwise: str) -> str:
    return provenance(kind.source) if kind.source else kind.described or otherwise


def _actions(world: World) -> str:
    space = world.space
    return "; ".join(
        f"{name} ({bad:+g} or {good:+g}{', shows the outcome' if shows else ''})"
        for name, (bad, good), shows in zip(space.actions, space.gain, space.reveals, strict=True)
    )


def _all() -> Table:
    """Return a table with a few lines per world, which fits a terminal of any width."""
    table = Table(show_header=False, box=None, padding=(0, 2, 1, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, kind in WORLDS.each():
        try:
            if isinstance(kind, InputError):
                raise kind
            world = make_world(name)
        except (InputError, TypeError) as error:
            table.add_row(name_of(name, "bold"), Text(plain(f"cannot be made: {error}")))
            continue
        told = _source(kind, "an installed package")
        lines = (
            f"{', '.join(world.groups)}; {world.inputs} inputs; cost {world.cost:g}; "
            f"{world.horizon:,} decisions",
            kind.dynamics,
            f"figures: {told.removeprefix('source: ').split(';')[0]}",
        )
        table.add_row(name_of(name, "bold"), Text("\n".join(map(plain, lines))))
    return table
