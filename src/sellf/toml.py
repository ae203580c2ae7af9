"""Parsing of TOML with limits on its size."""

import tomllib
from typing import Any

MOST_PARTS = 1_000
"""The largest number of parts of a dotted name."""


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise a ValueError if it is invalid or exceeds the limits."""
    # The memory for a dotted name grows with the square of the number of its parts.
    if any(line.split("=", 1)[0].count(".") > MOST_PARTS for line in text.splitlines()):
        raise ValueError("a name has too many parts")
    try:
        found = tomllib.loads(text)
        _check_integers(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _check_integers(value: Any) -> None:
    """Refuse integers that exceed TOML's range, which Python would accept."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has more than 64 bits")
    parts = list(value.values()) if isinstance(value, dict) else value
    for part in parts if isinstance(parts, list) else []:
        _check_integers(part)
