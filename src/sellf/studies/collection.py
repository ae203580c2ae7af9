"""Collections of studies under one name, such as all studies of `sellf study run paper`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sellf.errors import InputError
from sellf.studies import spec
from sellf.studies.spec import Study

FILE = Path(__file__).parent / "collections.toml"


@dataclass(frozen=True)
class Collection:
    """Studies that are run and reported together."""

    name: str
    summary: str
    studies: tuple[Study, ...]

    @property
    def title(self) -> str:
        """The name of the collection for display."""
        return self.name + (" (quick)" if self.studies[0].quick else "")


@cache
def _listed() -> dict[str, dict[str, object]]:
    return tomllib.loads(FILE.read_text("utf-8"))


def summaries() -> dict[str, str]:
    """Return the names and summaries of the collections."""
    return {name: str(content["summary"]) for name, content in _listed().items()}


def load(name: str, quick: bool = False) -> Collection | None:
    """Return a collection by name; None if there is none of that name."""
    if name not in _listed():
        return None
    content = _listed()[name]
    parts = content["studies"]
    if not isinstance(parts, list):
        raise InputError(f"{FILE} names no studies of {name!r}.")
    return Collection(
        name, str(content["summary"]), tuple(spec.load(part, quick) for part in parts)
    )
