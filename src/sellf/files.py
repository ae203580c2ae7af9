"""Files that are written atomically and cannot run code: JSON, JSON lines, safetensors."""

import errno
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from sellf import leftovers
from sellf.errors import InputError

LARGEST = 2**30
"""The largest size in bytes of a file that is read at once; larger files are refused."""
LARGEST_TEXT = 2**26
"""The largest size in bytes of a JSON file."""
RUN = (
    "config.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "agent.safetensors",
    "world.safetensors",
    "results.safetensors",
    "sha256sums",
    "loggers.json",
)
"""The files of a run's folder, also in a store; no output is written over these."""
_STREAMS = re.compile(r"/dev/(?P<name>stdout|stderr|null)|/(dev|proc/self)/fd/(?P<number>\d{1,6})")
_NUMBERS = {"stdout": 1, "stderr": 2}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def check_output(path: Path, inputs: Iterable[Path] = (), option: str = "-o") -> None:
    """Refuse an output that would replace an input or cannot be written, before any work is done.

    Args:
        path: the output file.
        inputs: the files that are read, and folders from which any file may be read; paths that do
            not exist are ignored.
        option: the option with which the path was given.
    """
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for {option} {path}: make it first.")
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder: name a file in it.")
    for one in inputs:
        if _same_place(path, one):
            raise InputError(
                f"{option} {path} is read by this command, and would be lost: give another name."
            )
    if _streamed(path):
        return
    if is_stdout(path):
        raise InputError(
            f"{option} {path} is where this command's own output goes: give another name."
        )
    if path.exists() and not path.is_file():
        raise InputError(
            f"{option} {path} is not a regular file but a device, a pipe or a socket: give the "
            "name of a file."
        )
    target = _where(path)
    if not target.parent.is_dir():
        raise InputError(f"{option} {path} leads to {target}, whose folder does not exist.")
    refused = target if target.exists() else target.parent
    if not os.access(refused, os.W_OK) or not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {option} {path}: {os.strerror(errno.EACCES)}.")
    leftovers.sweep(target.parent)


def _where(path: Path) -> Path:
    """Return the target of a path after following links."""
    try:
        return path.resolve()
    except (RuntimeError, OSError, ValueError):  # depends on the Python version; or a null byte
        raise InputError(
            f"{path} is a link that leads back to itself, or not a valid name: give another one."
        ) from None


def _same_place(path: Path, other: Path) -> bool:
    """Return whether a path is the same file as `other`, or is within the folder `other`."""
    if other.is_dir():
        return _where(path).is_relative_to(_where(other))
    return path.exists() and other.exists() and path.samefile(other)


def write(path: Path, content: bytes) -> None:
    """Write a file atomically, by renaming a temporary file; standard output is written directly.

    If the path is a link, its target is replaced and the link is kept.
    """
    try:
        if _streamed(path):
            _to_stream(path, content)
            return
        path = _where(path) if path.is_symlink() else path
        if path.exists() and not path.is_file():
            raise InputError(f"cannot write {path}: it is not a regular file.")
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
        prefix, suffix = leftovers.affixes(path.name)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=suffix)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError(
            f"cannot write {path}: {error.strerror}. An existing file is as it was."
        ) from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _streamed(path: Path) -> bool:
    """Return whether a path is a stream of this process or /dev/null, which is written directly.

    Other devices and named pipes are refused: a pipe without a reader would block.
    """
    return _STREAMS.fullmatch(str(path.absolute())) is not None


def _to_stream(path: Path, content: bytes) -> None:
    """Write to a stream of this process; opening its path again would truncate a file behind it."""
    number = _number(path)
    if number is None:
        return
    if number == 1:
        sys.stdout.flush()
    with os.fdopen(os.dup(number), "wb") as stream:
        stream.write(content)


def _number(path: Path) -> int | None:
    """Return the file descriptor that a path stands for; None for /dev/null and other paths."""
    found = _STREAMS.fullmatch(str(path.absolute()))
    if found is None:
        return None
    return int(found["number"]) if found["number"] else _NUMBERS.get(found["name"])


def is_stdout(path: Path) -> bool:
    """Return whether a path is the standard output of this process."""
    if _number(path) == 1:
        return True
    try:
        where, printed = path.stat(), os.fstat(1)
    except (OSError, ValueError):  # a null byte in the name
        return False
    return not stat.S_ISCHR(where.st_mode) and os.path.samestat(where, printed)


def check_run(folder: Path) -> None:
    """Refuse a run whose files are links, which may lead anywhere, or not regular files."""
    check_own((folder / name for name in RUN), "a run")


def check_own(paths: Iterable[Path], what: str) -> None:
    """Refuse files of a folder that are links or not regular files."""
    for path in paths:
        if path.is_symlink():
            raise InputError(f"{path} is a link: {what} holds its files itself. Put a copy there.")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a regular file, and is not read.")


def write_folder(path: Path, contents: dict[str, bytes]) -> Path:
    """Write a new folder of files atomically."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path} exists: choose another name, or remove it first.")
    prefix, suffix = leftovers.affixes(path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        leftovers.sweep(path.parent)
        beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=prefix, suffix=suffix))
    except OSError as error:
        raise InputError(
            f"cannot make the folder {path}: {error.strerror}. Give another place."
        ) from None
    try:
        for name, content in contents.items():
            write(beside / name, content)
        beside.chmod(0o777 & ~_umask())
        beside.replace(path)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise InputError(f"cannot make the folder {path}: {error.strerror}.") from None
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return path


def _umask() -> int:
    """Return the permissions that new files do not get, which temporary files do not follow."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path: Path, most: int = LARGEST, *, follow: bool = True) -> bytes:
    """Return the content of a regular file of at most `most` bytes; follow links if `follow`.

    Devices and pipes, which may be endless, are refused.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError(f"{path} is not a regular file, and is not read.")
        content = file.read(most + 1) or b""  # None if there is nothing to read yet
    if len(content) > most:
        raise InputError(f"{path} has more than {most:,} bytes: it is not what was expected here.")
    return content


def tensors_to_bytes(arrays: dict[str, np.ndarray], **notes: str) -> bytes:
    """Return arrays in the safetensors format, with a checksum of all of them, and notes."""
    from safetensors.numpy import save

    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # A single entry, since safetensors writes several in random order.
    said = json.dumps(notes | {"sha256": _checksum(ordered)}, sort_keys=True)
    return save(ordered, metadata={"sellf": said})


def read_tensors(path: Path, *, finite: bool = False) -> dict[str, np.ndarray]:
    """Read arrays in the safetensors format; refuse them if they are not as they were written.

    Args:
        path: the file.
        finite: whether to refuse NaN and infinities.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = read(path)
        arrays = load(content)
        written = metadata(content).get("sha256")
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(
            f"cannot read {path}: it is missing or damaged ({error}). {AGAIN}"
        ) from None
    if written != _checksum(arrays):
        raise InputError(f"{path} is damaged: its numbers are not as they were written. {AGAIN}")
    if finite:
        bad = [name for name, array in arrays.items() if not _finite(array)]
        if bad:
            raise InputError(
                f"{path}: {', '.join(bad)} contains a value that is not a number. {AGAIN}"
            )
    return arrays


AGAIN = "Restore it from a copy, or train anew into another folder."


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    total = sha256()
    for name in sorted(arrays):
        array = arrays[name]
        total.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        total.update(array.tobytes())
    return total.hexdigest()


def metadata(content: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file: its length (8 bytes) is followed by JSON."""
    length = int.from_bytes(content[:8], "little")
    said = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    return json.loads(said.get("sellf", "{}"))


def _finite(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def parse_json(content: bytes) -> Any:
    """Parse JSON; raise a ValueError if it contains invalid numbers or text."""
    text = content.decode(json.detect_encoding(content))
    try:
        parsed = json.loads(text, parse_constant=_no_number, parse_float=_float)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _SURROGATE.search(text):
        # A lone surrogate, which cannot be printed.
        json.dumps(parsed, ensure_ascii=False).encode()
    return parsed


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def sealed_json(content: dict[str, Any]) -> bytes:
    """Return an object as JSON, with a checksum that `read_json` verifies."""
    return json.dumps(sealed(content), indent=2).encode()


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its checksum."""
    return content | {"sha256": seal(content)}


def seal(content: dict[str, Any]) -> str:
    """Return the checksum of an object, ignoring a checksum that it contains."""
    plain = {name: value for name, value in content.items() if name != "sha256"}
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def notes(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            return metadata(start + file.read(min(int.from_bytes(start, "little"), LARGEST_TEXT)))
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


def read_json(
    path: Path, expected_format: int, needed: dict[str, type], *, sealed: bool = True
) -> dict[str, Any]:
    """Read a JSON object and check its format, its required entries and its checksum.

    Args:
        path: the file.
        expected_format: the required value of the entry "format".
        needed: the required entries and their types.
        sealed: whether it has a checksum.
    """
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}.")
    try:
        content = parse_json(read(path, LARGEST_TEXT))
    except FileNotFoundError:
        raise InputError(f"{path.parent} holds no {path.name}: it is not a run folder.") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{path} is damaged: it is not valid JSON. {AGAIN}") from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != expected_format:
        raise InputError(
            f"{path} has format {found!r}, this version reads {expected_format}: use the version "
            "of sellf that wrote it."
        )
    lost = [name for name, kind in needed.items() if not _is(content.get(name), kind)]
    if lost:
        raise InputError(
            f"{path} lacks {', '.join(lost)}, or holds something else there: it is damaged, or "
            "not what was expected here. Train anew, under another name."
        )
    if sealed and content.get("sha256") != seal(content):
        raise InputError(f"{path} is damaged: it is not as it was written. {AGAIN}")
    return content


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
