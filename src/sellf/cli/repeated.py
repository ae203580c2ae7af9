"""Options that are typed twice, of which the parser would silently use the last in most cases."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

from sellf.errors import InputError


def check(command: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Refuse an option that is given two different values, unless it may be repeated.

    Args:
        command: the function behind the command.
        arguments: what was typed after the command's name.
    """
    given: dict[str, set[str]] = {}
    for place, word in enumerate(arguments):
        if word == "--":
            break
        if word.startswith("--"):
            name, _, value = word.partition("=")
            following = arguments[place + 1 : place + 2]
            value = value if "=" in word else "".join(following)
            given.setdefault(name.removeprefix("--").replace("_", "-"), set()).add(value)
    if not any(len(values) > 1 for values in given.values()):
        return
    once = _once(command)
    for name, values in given.items():
        if len(values) > 1 and name in once:
            raise InputError(f"--{name} is typed twice, and takes one value only: type it once.")


def _once(command: Callable[..., Any]) -> set[str]:
    """Return the options that take a value and may not be repeated."""
    found = set()
    for name, hint in _hints(command).items():
        inner = get_args(hint)[0] if get_args(hint) else hint
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            found |= _once(inner)
        elif "UseAppendAction" not in repr(hint) and inner is not bool:
            found.add(name.replace("_", "-"))
    return found


def _hints(command: Any) -> dict[str, Any]:
    hints = get_type_hints(command, include_extras=True)
    if isinstance(command, type):
        return hints
    made = inspect.signature(command).parameters
    return {name: hints.get(name, one.annotation) for name, one in made.items()}
