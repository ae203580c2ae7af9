"""How long something took here before, to say how long it will take now.

Kept beside the compiled programs, as seconds by kind and size; whatever is wrong with that file
costs an estimate and nothing else.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

NAME = "durations.json"
MOST = 200
"""Kinds of work that are remembered."""


def cache_folder() -> str:
    """Return the folder for what need not be made twice; empty if nothing is to be kept.

    $SELLF_CACHE, else $XDG_CACHE_HOME/sellf, else ~/.cache/sellf.
    """
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("SELLF_CACHE", str(Path(home) / "sellf"))


def expected(kind: str, size: float = 1.0) -> float | None:
    """Return how many seconds it will take, in proportion to its size; None if nobody knows."""
    found = _read().get(kind)
    return None if found is None else found * size


def note(kind: str, seconds: float, size: float = 1.0) -> None:
    """Remember how long something took."""
    folder = cache_folder()
    if not folder or "://" in folder or size <= 0:
        return
    known = {k: v for k, v in _read().items() if k != kind}
    content = {**dict(list(known.items())[1 - MOST :]), kind: seconds / size}
    with suppress(OSError):
        target = Path(folder) / NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another command may read it at this moment.
        part = target.with_suffix(f".{os.getpid()}.tmp")
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(target)


def _read() -> dict[str, float]:
    try:
        content = json.loads((Path(cache_folder()) / NAME).read_text(encoding="utf-8"))
        return {str(k): float(v) for k, v in content.items() if 0 < float(v) < 1e6}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
