"""Heartbeats in a store: which processes work on it, for `sellf study status`."""

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sellf import files
from sellf.errors import InputError
from sellf.leftovers import running

ALIVE = 60.0
"""Seconds without a heartbeat after which a process on another machine counts as ended."""


@dataclass(frozen=True)
class Heartbeat:
    """The state of a process that runs studies."""

    studies: list[str]
    quick: bool
    running: list[str]
    """The names of the runs in progress."""
    workers: int
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    time: float = field(default_factory=time.time)

    @property
    def alive(self) -> bool:
        """Whether the process is still running, as far as is known."""
        if self.host == socket.gethostname():
            return running(self.pid)
        return time.time() - self.time < ALIVE


def path_of(folder: Path) -> Path:
    """Return the path of this process's heartbeat in a store."""
    host = "".join(c if c.isalnum() else "-" for c in socket.gethostname())
    return folder / "active" / f"{host}-{os.getpid()}.json"


def write(path: Path, beat: Heartbeat) -> None:
    """Write a heartbeat."""
    files.write(path, json.dumps(asdict(beat)).encode())


def read(path: Path) -> Heartbeat | None:
    """Read a heartbeat; return None if the file is no valid heartbeat."""
    try:
        beat = Heartbeat(**files.parse_json(files.read(path, files.LARGEST_TEXT)))
    except (OSError, ValueError, TypeError):
        return None
    types = {
        "studies": list,
        "quick": bool,
        "running": list,
        "workers": int,
        "host": str,
        "pid": int,
    }
    right = all(type(getattr(beat, name)) is expected for name, expected in types.items())
    right = right and isinstance(beat.time, int | float)
    right = right and all(isinstance(name, str) for name in (*beat.studies, *beat.running))
    return beat if right else None


def beats(folder: Path) -> list[Heartbeat]:
    """Return the heartbeats of the processes that work on a store."""
    found = map(read, sorted((folder / "active").glob("*.json")))
    return [beat for beat in found if beat is not None and beat.alive]


def sweep(folder: Path) -> None:
    """Remove the heartbeats of ended processes, and invalid files."""
    for path in (folder / "active").glob("*.json"):
        beat = read(path)
        if beat is None or not beat.alive:
            with suppress(OSError, InputError):
                path.unlink(missing_ok=True)
