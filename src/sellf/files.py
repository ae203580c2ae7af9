"""Files that are whole or not there, and that cannot run code: JSON, JSON lines, safetensors."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sellf.errors import InputError


def write(path: Path, content: bytes) -> None:
    """Write a file whole: beside it first, then in its place."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(
            f"cannot write {path}: {error.strerror}. What was there is as it was."
        ) from None


def write_folder(path: Path, contents: dict[str, bytes]) -> Path:
    """Write a folder of files that did not exist, whole or not at all."""
    if path.exists():
        raise InputError(f"{path} exists: choose another name, or remove it first.")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"))
    try:
        for name, content in contents.items():
            write(beside / name, content)
        beside.chmod(0o777 & ~_umask())
        beside.replace(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return path


def _umask() -> int:
    """Return which permissions new files do not get; temporary ones start with fewer."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def tensors_to_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Return arrays in the safetensors format."""
    from safetensors.numpy import save

    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Read arrays in the safetensors format."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(
            f"cannot read {path}: it is missing or damaged ({error}). Restore it from a copy, or "
            "train anew into another folder."
        ) from None


def read_json(path: Path, expected_format: int, needed: dict[str, type]) -> dict[str, Any]:
    """Read a JSON object written by this version, with the entries (and their types) it needs."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"{path.parent} holds no {path.name}: it is not a run folder.") from None
    except ValueError:
        raise InputError(
            f"{path} is damaged: it is not valid JSON. Restore it from a copy, or train anew into "
            "another folder."
        ) from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != expected_format:
        raise InputError(
            f"{path} has format {found!r}, this version reads {expected_format}: use the version "
            "of sellf that wrote it."
        )
    lost = [name for name, kind in needed.items() if not isinstance(content.get(name), kind)]
    if lost:
        raise InputError(
            f"{path} lacks {', '.join(lost)}, or holds something else there: it is damaged, or "
            "not what was expected here. Train anew, under another name."
        )
    return content


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a last line that was cut off is left out."""
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
