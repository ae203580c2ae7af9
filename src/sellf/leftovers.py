"""What a process that was killed while it wrote left behind: found by its name, and removed."""

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
"""Seconds after which what another machine was writing is taken for left behind."""
_OURS = re.compile(r"\..+\.(?P<place>[0-9a-f]{8})-(?P<process>\d{1,10})-\w*\.tmp")


def affixes(name: str) -> tuple[str, str]:
    """Return the beginning and end of the name of what is being written in a file's place."""
    short = name.encode()[:100].decode(errors="ignore")
    return f".{short}.{mark()}-", ".tmp"


def mark() -> str:
    """Return what tells this process from others, those of other machines too."""
    return f"{_place()}-{os.getpid()}"


@cache
def _place() -> str:
    """Return what processes have in common that know each other by number."""
    known = [platform.node()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8"))
        # Containers on one machine count their processes apart.
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256("\n".join(known).encode()).hexdigest()[:8]


@contextmanager
def temporary_files(name: str) -> Iterator[None]:
    """Have libraries put their temporary files into a folder that is removed, here or later."""
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
    """Return whether this is the name of what was being written in the place of a file."""
    return name.startswith(f".{target}.") and _OURS.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Remove from a folder what a process that is gone was writing."""
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
    """Return whether a process of this machine is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
