"""A log's configuration in a file, to be reviewed and kept: `sellf audit audit.toml`.

```toml
format = 1

[log]
file = "loans.csv"          # beside this file
where = "year = 2014"

[columns]
group = "race"
decision = "approved"

[audit]
omega = 0.05
```

Entries are named as options are. `[log]` and `[columns]` are a `LogConfig`; what else starts from a
log reads these two tables and has one of its own beside `[audit]`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sellf import files
from sellf.errors import InputError
from sellf.logs.config import OF_COLUMNS, OF_READING, LogConfig
from sellf.logs.databases import is_server
from sellf.toml import parse_toml

FORMAT = 1
LARGEST = 2**20
"""Bytes that a configuration may have."""


@dataclass(frozen=True)
class Configured:
    """What a configuration file says."""

    log: str | list[str]
    """The file or files, or the address of a database."""
    options: dict[str, Any]
    """What columns mean and how the log is read, by the names of options."""
    tables: dict[str, dict[str, Any]]
    """What else the file holds, such as the options of an audit."""

    @property
    def config(self) -> LogConfig:
        """The same, checked."""
        for name in ("group", "decision"):
            if not self.options.get(name):
                raise InputError(f'{name} is missing: name it in [columns], {name} = "...".')
        return LogConfig.of(self.options)


def read_config(path: Path, tables: Mapping[str, tuple[str, ...]] | None = None) -> Configured:
    """Return what a configuration file says.

    Args:
        path: of the file.
        tables: the tables that it may have beside [log] and [columns], with their entries; None:
            any.
    """
    try:
        content = parse_toml(files.read(path, LARGEST).decode())
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path}: type `sellf audit --init LOG --out {path.name}` to get one."
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path} is not TOML that can be read: {error}.") from None
    if content.pop("format", None) != FORMAT:
        raise InputError(f"{path} does not begin with `format = {FORMAT}`: write that first.")
    for name, table in content.items():
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name} stands outside of a table: put it under [log].")
    log = content.pop("log", {})
    columns = content.pop("columns", {})
    given = log.pop("file", None)
    known = (*OF_COLUMNS, *OF_READING)
    for title, table in (("log", log), ("columns", columns)):
        _check_entries(path, title, table, known)
    both = next((name for name in log if name in columns), None)
    if both is not None:
        raise InputError(f"{path} has {both} in [log] and in [columns]: write it once.")
    for title, table in content.items():
        if tables is not None:
            if title not in tables:
                shown = ", ".join(f"[{one}]" for one in ("log", "columns", *tables))
                raise InputError(f"{path} has a table [{title}]: it may have {shown}.")
            _check_entries(path, title, table, tables[title])
    return Configured(_located(path, given), {**log, **columns}, content)


def _located(path: Path, given: Any) -> str | list[str]:
    """Return the log's files: a name is looked for beside the configuration."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(
        isinstance(name, str) and name for name in names
    ):  # fmt: skip
        raise InputError(f'{path} names no log: write file = "loans.csv" under [log].')
    found = [name if is_server(name) else str(path.parent / name) for name in names]
    return found[0] if isinstance(given, str) else found


def _check_entries(path: Path, title: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for name, value in table.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InputError(f"{path} has {name} in [{title}], which is no option.{hint}")
        if isinstance(value, dict) and name not in ("groups", "bands"):
            raise InputError(f"{path}: {name} in [{title}] is a table: write a value.")


def written(log: str, options: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """Return a configuration as the text of a file.

    Args:
        log: the file, as seen from where the configuration will be.
        options: of the log, and the audit's that are not `LogConfig`'s.
        notes: what to say beside some of them.
    """
    tables: dict[str, list[str]] = {"log": [f"file = {_toml(log)}"], "columns": [], "audit": []}
    for name, value in options.items():
        title = "columns" if name in OF_COLUMNS else "log" if name in OF_READING else "audit"
        note = f"  # {notes[name]}" if name in notes else ""
        tables[title].append(f"{name} = {_toml(value)}{note}")
    parts = [f"[{title}]\n" + "\n".join(lines) for title, lines in tables.items() if lines]
    start = f"# Read this through, then type `sellf audit` and its name.\nformat = {FORMAT}"
    return "\n\n".join([start, *parts]) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(name))} = {_toml(one)}" for name, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # A basic string of TOML is one of JSON, but for DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
