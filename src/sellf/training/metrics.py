"""The metrics of a training as JSON lines, one line per iteration."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from sellf import files
from sellf.errors import InputError
from sellf.files import AGAIN

MAY_BE_UNDEFINED = ("disparity_true", "disparity_imputed", "disparity_accepted")
"""Figures that are null where undefined, for example if nobody of some group was accepted."""


def _lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a truncated last line is skipped."""
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
            # The text after the last line break is empty, or was being written.
            if number == len(lines):
                break
            raise InputError(f"{path}, line {number}, is damaged. {AGAIN}") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}, is damaged. {AGAIN}")
        rows.append(row)
    return rows


def read(path: Path, iterations: int) -> list[dict[str, Any]]:
    """Read and check the metrics of a training: one row per iteration, all with the same figures.

    They are compared with the checksum that the checkpoint, or else the agent, contains.

    Args:
        path: the file.
        iterations: maximum number of iterations of the training.
    """
    # The checkpoint first: during a training, metrics are written before it.
    noted = _noted(path.with_name("checkpoint.safetensors"))
    noted = noted or _noted(path.with_name("agent.safetensors"))
    rows = _lines(path)
    if len(rows) > iterations:
        raise InputError(
            f"{path} contains {len(rows):,} iterations, but the training has {iterations:,}: it is "
            f"damaged. {AGAIN}"
        )
    if noted is not None and noted[1] != digest(rows[: noted[0]]).hexdigest():
        raise InputError(f"{path} is damaged: its figures are not as they were written. {AGAIN}")
    shape = _shape(rows[0]) if rows else {}
    for number, row in enumerate(rows):
        known = {"iteration", "reward", "acceptance", "disparity_true"} <= shape.keys()
        if not known or _shape(row) != shape or row["iteration"] != number:
            raise InputError(
                f"{path}, line {number + 1}, does not contain the figures of iteration {number}: "
                f"it is damaged. {AGAIN}"
            )
    return rows


def digest(rows: Iterable[dict[str, Any]]) -> Any:
    """Return the checksum of metrics as a hash object that can be updated."""
    return sha256(b"".join(map(line, rows)))


def line(row: dict[str, Any]) -> bytes:
    """Return the figures of an iteration as a line of the file."""
    return json.dumps(row).encode() + b"\n"


def note(rows: int, total: Any) -> str:
    """Return the note in a checkpoint about the metrics up to it."""
    return f"{rows} {total.hexdigest()}"


def _noted(path: Path) -> tuple[int, str] | None:
    try:
        rows, total = files.notes(path)["metrics"].split()
        return int(rows), total
    except (ValueError, KeyError, AttributeError):
        return None  # missing, or damaged, which resuming reports


def _shape(row: dict[str, Any]) -> dict[str, int]:
    """Return the length of the list under each name; 0 for a single number."""
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
