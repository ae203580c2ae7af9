"""Temporary files of processes that were killed while writing: found by name and removed."""

import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

STALE = 3600.0
"""Seconds after which a temporary file of another machine counts as left behind."""
_OURS = re.compile(r"\..+\.(?P<place>[0-9a-f]{8})-(?P<process>\d{1,10})-\w*\.tmp")


def affixes(name: str) -> tuple[str, str]:
    """Return the prefix and suffix of the temporary file that will replace a file."""
    short = name.encode()[:100].decode(errors="ignore")
    return f".{short}.{mark()}-", ".tmp"


def mark() -> str:
    """Return an identifier of this process that is unique across machines."""
    return f"{_place()}-{os.getpid()}"


@cache
def _place() -> str:
    """Return an identifier of the process-number space: the machine, boot and container."""
    known = [platform.node()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8"))
        # Containers on one machine number their processes separately.
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256("\n".join(known).encode()).hexdigest()[:8]


@contextmanager
def temporary_files(name: str) -> Iterator[None]:
    """Make libraries put their temporary files into a folder that is removed afterwards."""
    before, place = tempfile.tempdir, Path(tempfile.gettempdir())
    sweep(place)
    prefix, suffix = affixes(name)
    own = tempfile.mkdtemp(dir=place, prefix=prefix, suffix=suffix)
    try:
        tempfile.tempdir = own
        yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(own, ignore_errors=True)


def of(name: str, target: str) -> bool:
    """Return whether this is the name of a temporary file that was to replace `target`."""
    return name.startswith(f".{target}.") and _OURS.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Remove the temporary files of ended processes from a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _left_behind(entry):
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path)
                    else:
                        Path(entry.path).unlink()


def _left_behind(entry: os.DirEntry[str]) -> bool:
    found = _OURS.fullmatch(entry.name)
    if found is None:
        return False
    if found["place"] == _place():
        return not running(int(found["process"]))
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > STALE
    except OSError:
        return False


def running(process: int) -> bool:
    """Return whether a process of this machine is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
