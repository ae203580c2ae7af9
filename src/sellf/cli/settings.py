"""An algorithm's settings as flags: one per field of its configuration, whose docstring is help."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, get_type_hints

import tyro

from sellf.algorithms import catalogue
from sellf.algorithms.config import Settings
from sellf.cli.documented import documented
from sellf.errors import InputError


def choices(name: str) -> tuple[str, ...]:
    """Return the valid values of a setting; empty if any value is allowed."""
    return catalogue.CHOICES.get(name, ())


def of_all_algorithms() -> dict[str, str]:
    """Return the settings of all algorithms, with their descriptions."""
    found: dict[str, str] = {}
    for algorithm in catalogue.ALGORITHMS.values():
        found = documented(algorithm.config) | found
    return found


def flags(config: type[Settings]) -> list[inspect.Parameter]:
    """Return the settings as parameters of a command; None stands for the default."""
    defaults, types = config(), get_type_hints(config)
    found = []
    for name, text in documented(config).items():
        default, kind = getattr(defaults, name), types[name]
        words = choices(name) or (("True", "False") if kind is bool else ())
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        described = tyro.conf.arg(
            help=text,
            metavar="|".join(words) or {int: "N", float: "X"}.get(kind, "TEXT"),
            help_behavior_hint=f"(default: {shown})",
        )
        typed = Annotated[kind | None, described]
        found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=typed,
                                       default=None))  # fmt: skip
    return found


def with_settings(command: Callable[..., None], arguments: Sequence[str]) -> Callable[..., None]:
    """Return a command that takes the settings of the algorithm that the arguments name."""
    own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
    algorithm = _named(arguments) or next(p.default for p in own if p.name == "algorithm")
    config = catalogue.find(algorithm).config
    added = flags(config)
    _check_others(algorithm, arguments, {p.name for p in [*own, *added]})

    @wraps(command)
    def run(*positional: Any, **options: Any) -> None:
        command(*positional, **options)

    hints = get_type_hints(command, include_extras=True)
    listed = [p.replace(annotation=hints[p.name]) for p in own] + added
    run.__signature__ = inspect.Signature(listed)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {p.name: p.annotation for p in listed} | {"return": None}
    del run.__wrapped__  # pyright: ignore[reportAttributeAccessIssue]
    return run


def _named(arguments: Sequence[str]) -> str | None:
    """Return the algorithm that the arguments name; a plug-in has to be the second word."""
    known = next((word for word in arguments if word in catalogue.ALGORITHMS), None)
    if known is not None or len(arguments) < 2 or arguments[1].startswith("-"):
        return known
    if arguments[1] not in catalogue.ALGORITHMS.installed() and ":" not in arguments[1]:
        return None
    catalogue.ALGORITHMS.find(arguments[1], typed=True)
    return arguments[1]


def _check_others(algorithm: str, arguments: Sequence[str], known: set[str]) -> None:
    """Refuse settings of other algorithms."""
    others = of_all_algorithms().keys() - known
    for word in arguments:
        flag = word.partition("=")[0]
        name = flag.removeprefix("--").replace("-", "_")
        if flag.startswith("--") and name in others:
            raise InputError(f"{flag} is not a setting of {algorithm}: leave it out.")
