"""Durations of earlier tasks on this machine, from which those of new tasks are estimated.

They are stored next to the compiled programs, in seconds per unit of size for each kind of task. If
the file is damaged, there is no estimate, and nothing else is affected.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

NAME = "durations.json"
MOST = 200
"""The largest number of kinds of tasks that are stored."""


def cache_folder() -> str:
    """Return the cache folder; an empty string if nothing is to be cached.

    $SELLF_CACHE, else $XDG_CACHE_HOME/sellf, else ~/.cache/sellf.
    """
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("SELLF_CACHE", str(Path(home) / "sellf"))


def expected(kind: str, size: float = 1.0) -> float | None:
    """Return the expected seconds of a task, proportional to its size; None if unknown."""
    found = _read().get(kind)
    return None if found is None else found * size


def note(kind: str, seconds: float, size: float = 1.0) -> None:
    """Store how long a task took."""
    folder = cache_folder()
    if not folder or "://" in folder or size <= 0:
        return
    known = {k: v for k, v in _read().items() if k != kind}
    content = {**dict(list(known.items())[1 - MOST :]), kind: seconds / size}
    with suppress(OSError):
        target = Path(folder) / NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        # Written atomically: another command may read the file at the same time.
        part = target.with_suffix(f".{os.getpid()}.tmp")
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(target)


def _read() -> dict[str, float]:
    try:
        content = json.loads((Path(cache_folder()) / NAME).read_text(encoding="utf-8"))
        return {str(k): float(v) for k, v in content.items() if 0 < float(v) < 1e6}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
