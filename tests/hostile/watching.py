"""What is opened, made or changed outside of where it may be."""

import ctypes
import os
import struct
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IN_MODIFY, IN_OPEN, IN_MOVED, IN_CREATE, IN_DELETE = 0x2, 0x20, 0xC0, 0x100, 0x200
EVENT = struct.Struct("iIII")
CANARY = "race,approved,repaid,p\na,1,1,0.5\nb,0,,0.5\na,0,,0.5\nb,1,0,0.5\n"


class Opened:
    """The files that Python opens outside of a folder; libraries that open their own are not seen.

    Python's own files and the project's may be read, never written. Compiled programs are kept in
    the cache, by whatever takes long to compile: on a busy machine that is more.
    """

    def __init__(self) -> None:
        self.within: tuple[str, ...] = ()
        self.strange: list[str] = []
        known = [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), ROOT, "/proc", "/sys"]
        self.known = tuple(str(Path(path).resolve()) for path in known)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not self.within or not isinstance(arguments[0], str | bytes):
            return
        path = os.fsdecode(arguments[0])
        writes = isinstance(arguments[2], int) and arguments[2] & 3 != 0
        full = os.path.abspath(path)  # noqa: PTH100 - it takes out dots, and is quick
        if full in ("/dev/null", "/dev/urandom") or full.startswith(self.within):
            return
        if writes or not full.startswith(self.known):
            self.strange.append(full)

    @contextmanager
    def watch(self, folder: Path) -> Iterator[None]:
        """Note what is opened outside of a folder."""
        cache = os.environ.get("SELLF_CACHE")
        self.within = (str(folder), str(Path(cache).resolve())) if cache else (str(folder),)
        self.strange = []
        try:
            yield
        finally:
            self.within = ()


class Canaries:
    """Folders that nobody has any business in, watched by the system itself (Linux only).

    DuckDB opens files without Python. Where a damaged or forged file may lead, there lie these.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.handle = -1
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("canary.csv", "planted.py", "outside", "log.csv", "log1.csv"):
                (folder / name).write_text(CANARY)
        library = ctypes.CDLL(None)
        if hasattr(library, "inotify_init1"):
            self.handle = library.inotify_init1(os.O_NONBLOCK)
            wanted = IN_MODIFY | IN_OPEN | IN_MOVED | IN_CREATE | IN_DELETE
            for folder in folders:
                library.inotify_add_watch(self.handle, os.fsencode(folder), wanted)
        self.before = [] if self.handle >= 0 else self._there()

    def _there(self) -> list[tuple[str, int, int]]:
        return [
            (entry.path, entry.stat().st_size, entry.stat().st_mtime_ns)
            for folder in self.folders
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        ]

    def touched(self) -> list[str]:
        """Return which of them were opened, made or changed since the last time one asked."""
        if self.handle < 0:
            return ["changed"] if self._there() != self.before else []
        try:
            content = os.read(self.handle, 65536)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(content):
            _, _, _, length = EVENT.unpack_from(content, at)
            name = content[at + EVENT.size : at + EVENT.size + length].rstrip(b"\0")
            found.append(os.fsdecode(name))
            at += EVENT.size + length
        return [name or "a folder" for name in found]


OPENED = Opened()


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return all files below a folder, with what tells whether they were changed."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = f"{path}/{name}"
            stat = os.lstat(full)
            found[full] = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
    return found


def peak() -> float:
    """Return the most memory that this process had since `forget_peak`, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Begin anew to note the most memory."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
