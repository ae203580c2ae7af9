"""TOML as people write it: bounded, and no more than the format has room for."""

import tomllib
from typing import Any

MOST_PARTS = 1_000
"""Of a name."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML says; a ValueError where it is none, or nothing that one would write."""
    # The parts of names take memory with the square of their number.
    if any(line.split("=", 1)[0].count(".") > MOST_PARTS for line in text.splitlines()):
        raise ValueError("a name has too many parts")
    try:
        found = tomllib.loads(text)
        _check_integers(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _check_integers(value: Any) -> None:
    """Refuse whole numbers that TOML has no room for, and Python would take."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has more than 64 bits")
    parts = list(value.values()) if isinstance(value, dict) else value
    for part in parts if isinstance(parts, list) else []:
        _check_integers(part)
