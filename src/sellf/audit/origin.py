"""Provenance of an audit: the command that repeats it, the data and the versions."""

import hashlib
import platform
import shlex
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sellf.audit.result import Origin
from sellf.logs.binary import values_of
from sellf.logs.columns import Columns
from sellf.logs.databases import is_server, without_password
from sellf.logs.files import are_files, listed, named_files
from sellf.logs.log import Log

PACKAGES = ("numpy", "scipy", "scikit-learn", "duckdb", "narwhals")
"""Packages whose versions may affect the figures of an audit."""


def trace(
    log: Any,
    source: Log,
    columns: Columns,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Origin:
    """Return the provenance of an audit.

    Args:
        log: the log as it was given.
        source: the opened log.
        columns: the meaning of its columns.
        options: all options, including the notion.
        defaults: the defaults, which are left out of the command.
    """
    named = {
        k: v
        for k, v in options.items()
        if (k not in defaults or v != defaults[k]) and not _nothing(v)
    }
    fingerprint, of = _fingerprint(log, source)
    return Origin(
        command=command(log, named),
        columns=columns.named(),
        rows=source.count,
        fingerprint=fingerprint,
        fingerprint_of=of,
        versions=dict(versions(PACKAGES)),
        seed=options["seed"],
        files=[str(path) for path in named_files(log)] if are_files(log) else [],
    )


def command(log: Any, options: Mapping[str, Any]) -> str:
    """Return what to type to repeat an audit: a command for a file, a Python call for a frame."""
    if not isinstance(log, str | Path):
        said = "".join(f", {name}={_quoted(value)}" for name, value in options.items())
        function = "audit_all" if options.get("notion") == "all" else "audit"
        name = repr([str(path) for path in log]) if are_files(log) else "log"
        return f"sellf.{function}({name}{said.replace(', notion=' + repr('all'), '')})"
    words = ["sellf", "audit", without_password(str(log)) if is_server(log) else str(log)]
    for name, value in options.items():
        flag = "--" + name.rstrip("s" if name == "features" else "").replace("_", "-")
        if isinstance(value, bool):
            words += [flag] if value else []
        else:
            value = as_typed(name, value)
            several = value if isinstance(value, list | tuple) else [value]
            words += [word for item in several for word in (flag, str(item))]
    return shlex.join(words)


def as_typed(name: str, value: Any) -> Any:
    """Return the value of an option as it is typed on the command line."""
    if name == "groups" and isinstance(value, Mapping):
        return ",".join(f"{group}={'+'.join(values_of(own))}" for group, own in value.items())
    if name == "groups" and isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if name == "bands" and isinstance(value, Mapping):
        return [f"{column}={','.join(map(str, values_of(c)))}" for column, c in value.items()]
    if name == "score_range" and isinstance(value, list | tuple):
        return ":".join(map(str, value))
    return value


@cache
def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the version of Python, of sellf and of those packages that are installed."""
    from sellf._version import __version__

    found = {"sellf": __version__, "Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _nothing(value: Any) -> bool:
    """Return whether an option is empty."""
    if isinstance(value, list | tuple | dict):
        return not value
    return value is None or value is False


def _quoted(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)


def _fingerprint(log: Any, source: Log) -> tuple[str | None, str]:
    if are_files(log):
        paths = named_files(log)
        total = hashlib.sha256()
        for one in paths:
            with one.open("rb") as file:
                while piece := file.read(1 << 20):
                    total.update(piece)
        several = f"the {len(paths)} files {listed(paths)}, one after the other"
        return total.hexdigest(), f"the file {paths[0].name}" if len(paths) == 1 else several
    return source.fingerprint()
