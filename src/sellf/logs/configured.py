"""Configuration files of logs, which can be reviewed and kept: `sellf audit audit.toml`.

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

Entries have the names of options. `[log]` and `[columns]` form a `LogConfig`. Other commands that
read a log use these two tables and have a table of their own beside `[audit]`.
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
"""Largest size of a configuration file, in bytes."""


@dataclass(frozen=True)
class Configured:
    """The content of a configuration file."""

    log: str | list[str]
    """The file or files, or the address of a database."""
    options: dict[str, Any]
    """Options on what columns mean and how the log is read, by name."""
    tables: dict[str, dict[str, Any]]
    """Other tables of the file, such as the options of an audit."""

    @property
    def config(self) -> LogConfig:
        """The options as a checked configuration."""
        for name in ("group", "decision"):
            if not self.options.get(name):
                raise InputError(f'{name} is missing: name it in [columns], {name} = "...".')
        return LogConfig.of(self.options)


def read_config(path: Path, tables: Mapping[str, tuple[str, ...]] | None = None) -> Configured:
    """Read a configuration file.

    Args:
        path: the file.
        tables: the tables that are allowed besides [log] and [columns], with their entries; None:
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
            raise InputError(f"{path}: {name} is outside of a table: put it under [log].")
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
    """Return the log's files; names are relative to the folder of the configuration."""
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
            raise InputError(f"{path} has {name} in [{title}], which is not an option.{hint}")
        if isinstance(value, dict) and name not in ("groups", "bands"):
            raise InputError(f"{path}: {name} in [{title}] is a table: write a value.")


def written(log: str, options: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """Return a configuration as the text of a file.

    Args:
        log: the file, as seen from where the configuration will be.
        options: options of the log, and those of the audit that `LogConfig` does not have.
        notes: comments to write beside some of the options.
    """
    tables: dict[str, list[str]] = {"log": [f"file = {_toml(log)}"], "columns": [], "audit": []}
    for name, value in options.items():
        title = "columns" if name in OF_COLUMNS else "log" if name in OF_READING else "audit"
        note = f"  # {notes[name]}" if name in notes else ""
        tables[title].append(f"{name} = {_toml(value)}{note}")
    parts = [f"[{title}]\n" + "\n".join(lines) for title, lines in tables.items() if lines]
    start = f"# Review this file, then type `sellf audit` and its name.\nformat = {FORMAT}"
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
    # A JSON string is also a basic string of TOML, except for DEL.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
