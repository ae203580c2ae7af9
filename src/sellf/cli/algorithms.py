"""`sellf algorithms`: list the algorithms, or the settings of one."""

from rich.console import Console
from rich.table import Table

from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.catalogue import ALGORITHMS
from sellf.algorithms.config import as_dict
from sellf.cli.settings import documented
from sellf.errors import InputError

VIEWS = {
    "true": "every label (an oracle)",
    "accepted": "labels revealed by decisions",
    "imputed": "labels revealed by decisions, and predictions for the rest",
}
"""The labels that an algorithm sees, by its view."""


def print_algorithms(name: str | None) -> None:
    """Print all algorithms in a table, or one with its settings."""
    console = Console(highlight=False)
    if name is None:
        console.print(_all())
        console.print("\n[dim]`sellf algorithms NAME` shows the settings of one.[/dim]")
        return
    algorithm = ALGORITHMS.find(name, typed=True)
    console.print(f"[bold]{name}[/bold]: {algorithm.summary}; sees {_sees(algorithm)}", markup=True)
    table = Table()
    for heading in ("setting", "default", "what it is"):
        table.add_column(heading, no_wrap=heading != "what it is")
    texts, defaults = documented(algorithm.config), as_dict(algorithm.config())
    for setting, default in defaults.items():
        table.add_row(setting, str(default), texts[setting])
    console.print(table)


def _all() -> Table:
    table = Table(show_lines=True)
    for heading in ("algorithm", "what it does", "sees", "from"):
        table.add_column(heading, no_wrap=heading == "algorithm")
    installed = ALGORITHMS.installed()
    for name, algorithm in ALGORITHMS.each():
        point = installed.get(name)
        package = point.dist.name if point is not None and point.dist is not None else "sellf"
        if isinstance(algorithm, InputError):
            table.add_row(f"[bold]{name}[/bold]", f"cannot be loaded: {algorithm}", "", package)
        else:
            table.add_row(f"[bold]{name}[/bold]", algorithm.summary, _sees(algorithm), package)
    return table


def _sees(algorithm: Algorithm) -> str:
    return VIEWS[algorithm.view]
