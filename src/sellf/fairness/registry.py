"""Registry of algorithms, worlds and notions, including those of other packages.

A name is looked up in three places: the entries that the program has registered, the entry points
of installed packages, and, if the user typed the name, `"package.module:name"`. A name that was
read from a file is never imported: reading a folder runs no code.
"""

import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from sellf.errors import InputError
from sellf.fairness.checks import one_of, short

T = TypeVar("T")
REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
NAME = re.compile(r"[A-Za-z][\w.-]*")


class Registry(dict[str, T], Generic[T]):
    """Entries by name: those of the package, and those that are loaded when requested."""

    def __init__(self, kind: str, adapt: Callable[[Any, str], T]) -> None:
        """Make an empty registry.

        Args:
            kind: the kind of entries, as a noun. Entry points of a "world" are in the group
                "sellf.worlds".
            adapt: converts an object from a plug-in, and its name, to an entry; refuses an object
                of another kind.
        """
        super().__init__()
        self.kind, self.adapt = kind, adapt

    def register(self, thing: Any, name: str) -> None:
        """Add an entry under a new name."""
        if not NAME.fullmatch(name):
            raise InputError(
                f"{short(name)} is not a valid name for a {self.kind}: give letters, digits and "
                "hyphens."
            )
        if name in self:
            raise InputError(f"there is a {self.kind} {name!r} already: give another name.")
        self[name] = self.adapt(thing, name)

    def installed(self) -> dict[str, EntryPoint]:
        """Return the entry points of installed packages that are not in the registry yet."""
        found = {point.name: point for point in entry_points(group=f"sellf.{self.kind}s")}
        return {name: point for name, point in found.items() if not dict.__contains__(self, name)}

    def names(self) -> tuple[str, ...]:
        """Return all available names."""
        return (*self, *sorted(self.installed()))

    def find(self, name: Any, typed: bool = False) -> T:
        """Return the entry with a name; refuse an unknown name.

        Args:
            name: the name to look up.
            typed: whether the user typed the name, so that "package.module:name" is imported.
        """
        if isinstance(name, str) and name not in self:
            if typed and REFERENCE.fullmatch(name):
                self[name] = self.adapt(_imported(name), name)
            elif REFERENCE.fullmatch(name):
                raise InputError(
                    f"{self.kind} is {name!r}, which is code, and reading a file runs no code: "
                    f"register it first, sellf.register({name.partition(':')[2]}, {name!r}) after "
                    "importing it, or install it with an entry point."
                )
            elif name in (points := self.installed()):
                self[name] = self.adapt(_loaded(points[name]), name)
        if not isinstance(name, str) or name not in self:
            one_of(self.kind, name, self.names())
        return self[name]

    def each(self) -> Iterator[tuple[str, T | InputError]]:
        """Yield every entry, including those of installed packages, or the error that it raises."""
        for name in self.names():
            try:
                yield name, self.find(name)
            except InputError as error:
                yield name, error


def _imported(reference: str) -> Any:
    module, _, name = reference.partition(":")
    # Modules in the current folder can be imported, as with `python -m`.
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        found = import_module(module)
    except Exception as error:
        raise InputError(
            f"{reference!r} cannot be imported: {type(error).__name__}: {error}. Is the package "
            "installed, or its folder the current one?"
        ) from error
    finally:
        if added:
            sys.path.remove(here)
    if not hasattr(found, name):
        raise InputError(f"{module} has no {name!r}: write package.module:name.")
    return getattr(found, name)


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise InputError(
            f"{point.name!r} of the installed package cannot be loaded from {point.value}: "
            f"{type(error).__name__}: {error}"
        ) from error
