"""The metrics of a training: JSON lines, one an iteration."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from sellf import files
from sellf.errors import InputError
from sellf.files import AGAIN

MAY_BE_UNDEFINED = ("disparity_true", "disparity_imputed", "disparity_accepted")
"""Figures that are null where they are not defined: nobody was accepted of some group, say."""


def _lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a last line that was cut off is left out."""
    if not path.is_file():
        return []
    try:
        lines = files.read(path).split(b"\n")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    rows: list[dict[str, Any]] = []
    for number, text in enumerate(lines, start=1):
        try:
            row = files.parse_json(text)
        except ValueError:
            # What follows the last line break was being written, or is nothing.
            if number == len(lines):
                break
            raise InputError(f"{path}, line {number}, is damaged. {AGAIN}") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}, is damaged. {AGAIN}")
        rows.append(row)
    return rows


def read(path: Path, iterations: int) -> list[dict[str, Any]]:
    """Read the metrics of a training: a row an iteration, each with the same figures.

    The checkpoint beside them knows what they were when it was written, and so does the agent.

    Args:
        path: of the file.
        iterations: how many the training has at most.
    """
    # The checkpoint first: while a training goes on, metrics are written before it.
    noted = _noted(path.with_name("checkpoint.safetensors"))
    noted = noted or _noted(path.with_name("agent.safetensors"))
    rows = _lines(path)
    if len(rows) > iterations:
        raise InputError(
            f"{path} holds {len(rows):,} iterations, and the training has {iterations:,}: it is "
            f"damaged. {AGAIN}"
        )
    if noted is not None and noted[1] != digest(rows[: noted[0]]).hexdigest():
        raise InputError(f"{path} is damaged: its figures are not as they were written. {AGAIN}")
    shape = _shape(rows[0]) if rows else {}
    for number, row in enumerate(rows):
        known = {"iteration", "reward", "acceptance", "disparity_true"} <= shape.keys()
        if not known or _shape(row) != shape or row["iteration"] != number:
            raise InputError(
                f"{path}, line {number + 1}, does not hold the figures of iteration {number}: it "
                f"is damaged. {AGAIN}"
            )
    return rows


def digest(rows: Iterable[dict[str, Any]]) -> Any:
    """Return the checksum of metrics, to which more can be added."""
    return sha256(b"".join(map(line, rows)))


def line(row: dict[str, Any]) -> bytes:
    """Return an iteration's figures as they are written."""
    return json.dumps(row).encode() + b"\n"


def note(rows: int, total: Any) -> str:
    """Return what a checkpoint notes of the metrics up to it."""
    return f"{rows} {total.hexdigest()}"


def _noted(path: Path) -> tuple[int, str] | None:
    try:
        rows, total = files.notes(path)["metrics"].split()
        return int(rows), total
    except (ValueError, KeyError, AttributeError):
        return None  # not there, or damaged, which resuming tells


def _shape(row: dict[str, Any]) -> dict[str, int]:
    """Return how many numbers there are under each name: 0 for one that stands alone."""
    lists = {
        name: value if isinstance(value, list) else [value]
        for name, value in row.items()
        if value is not None or name not in MAY_BE_UNDEFINED
    }
    numbers = all(
        isinstance(one, int | float) and not isinstance(one, bool)
        for values in lists.values()
        for one in values
    )
    if not numbers:
        return {}
    return {name: len(v) if isinstance(v, list) else 0 for name, v in row.items()}
