"""Signs of life in a store: who is at work on it, for `sellf study status`."""

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
"""Seconds after which silence on another machine means that nobody works there any more."""


@dataclass(frozen=True)
class Sign:
    """What a process that runs a study says of itself."""

    study: str
    quick: bool
    running: list[str]
    """The names of the runs that are under way."""
    workers: int
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    time: float = field(default_factory=time.time)

    @property
    def alive(self) -> bool:
        """Whether the process is still there, as far as one can tell."""
        if self.host == socket.gethostname():
            return running(self.pid)
        return time.time() - self.time < ALIVE


def path_of(folder: Path) -> Path:
    """Return where this process leaves its sign in a store."""
    host = "".join(c if c.isalnum() else "-" for c in socket.gethostname())
    return folder / "active" / f"{host}-{os.getpid()}.json"


def write(path: Path, sign: Sign) -> None:
    """Leave a sign."""
    files.write(path, json.dumps(asdict(sign)).encode())


def read(path: Path) -> Sign | None:
    """Return a sign; nothing if that is not what the file holds."""
    try:
        sign = Sign(**files.parse_json(files.read(path, files.LARGEST_TEXT)))
    except (OSError, ValueError, TypeError):
        return None
    kinds = {"study": str, "quick": bool, "running": list, "workers": int, "host": str, "pid": int}
    right = all(type(getattr(sign, name)) is kind for name, kind in kinds.items())
    right = right and isinstance(sign.time, int | float)
    return sign if right and all(isinstance(name, str) for name in sign.running) else None


def signs(folder: Path) -> list[Sign]:
    """Return who is at work on a store."""
    found = map(read, sorted((folder / "active").glob("*.json")))
    return [sign for sign in found if sign is not None and sign.alive]


def sweep(folder: Path) -> None:
    """Remove the signs of processes that are gone, and what is no sign."""
    for path in (folder / "active").glob("*.json"):
        sign = read(path)
        if sign is None or not sign.alive:
            with suppress(OSError, InputError):
                path.unlink(missing_ok=True)
