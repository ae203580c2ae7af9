"""Helpers for reading a study's TOML file: type checks, and line numbers in messages."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sellf.errors import InputError

LARGEST = 10**12
"""Largest integer in a study; larger studies would never end."""


@dataclass(frozen=True)
class Lines:
    """Locates words in the text of a file."""

    text: str
    source: str

    @contextmanager
    def at(self, word: str, table: str = "") -> Iterator[None]:
        """Prefix the message of an InputError with the file and the line of a word."""
        try:
            yield
        except InputError as error:
            line = self.line(word, table)
            raise InputError(f"{self.source}, line {line}: {error.typed}") from None

    def line(self, word: str, table: str) -> int:
        """Return the line number of a word, searched from the start of its table."""
        lines = [line.partition("#")[0] for line in self.text.splitlines()]
        heads = [i for i, line in enumerate(lines) if line.strip().startswith(f"[{table}")]
        start = heads[0] if table and heads else 0
        whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        found = [i for i, line in enumerate(lines) if i >= start and whole.search(line)]
        return (found[0] if found else start) + 1


def whole(key: str, content: Mapping[str, Any], default: int, lines: Lines) -> int:
    """Return an integer setting of a study."""
    value = content.get(key, default)
    with lines.at(key):
        if type(value) is not int or not 1 <= value <= LARGEST:
            raise InputError(
                f"{key} is {str(value)[:80]}: give a whole number from 1 to {LARGEST:,}."
            )
    return value


def words(key: str, value: Any) -> tuple[str, ...]:
    """Return a list of names."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise InputError(f"{key} is {value!r}: give a list of names.")
    return tuple(value)


def expect(key: str, value: Any, expected: type, description: str) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, expected):
        raise InputError(f"{key} is {value!r}: give {description}.")
