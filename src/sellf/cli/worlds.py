"""`sellf worlds`: what there is to decide about."""

from rich.console import Console
from rich.table import Table

from sellf.envs.registration import IDS
from sellf.envs.tables import provenance
from sellf.envs.worlds import WORLDS, make_world
from sellf.fairness.checks import one_of


def print_worlds(name: str | None) -> None:
    """Print all worlds in a table, or one with everything there is to know of it."""
    console = Console(highlight=False)
    if name is None:
        console.print(_all())
        console.print(
            "\n[dim]`sellf worlds NAME` shows its inputs and the provenance of its figures;\n"
            "sellf.make_world(NAME, ...) makes one, sellf.world_from_frame(...) one of your "
            "own.[/dim]"
        )
        return
    one_of("world", name, tuple(WORLDS))
    kind, world = WORLDS[name], make_world(name)
    facts = {
        "groups": ", ".join(world.groups),
        "inputs": f"{world.inputs}: {', '.join(world.columns)}",
        "cost": f"{world.cost:g} (an acceptance is worth y - {world.cost:g})",
        "horizon": f"{world.horizon:,} decisions, from a resource of {world.start:,.0f}",
        "people": f"{world.population:,}",
        "dynamics": kind.dynamics,
        "settings": ", ".join(kind.settings),
        "Gymnasium": IDS[name],
        "figures": provenance(kind.source),
    }
    table = Table(show_header=False, box=None, title=name, title_justify="left", title_style="bold")
    for key, value in facts.items():
        table.add_row(f"[bold]{key}[/bold]", value)
    console.print(table)


def _all() -> Table:
    table = Table(show_lines=True)
    for heading in ("world", "groups", "inputs", "cost", "horizon", "dynamics", "figures"):
        right = heading in ("inputs", "cost", "horizon")
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    for name, kind in WORLDS.items():
        world = make_world(name)
        source = provenance(kind.source).removeprefix("source: ").split(";")[0]
        table.add_row(
            f"[bold]{name}[/bold]",
            ", ".join(world.groups),
            str(world.inputs),
            f"{world.cost:g}",
            f"{world.horizon:,}",
            kind.dynamics,
            source,
        )
    return table
