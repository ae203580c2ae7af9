"""Logs in databases: DuckDB's own files, SQLite files, and PostgreSQL or MySQL servers.

Either a table or a query is read. A query can read this database and nothing else: it is a single
SELECT, run without access to files and networks.
"""

import contextlib
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from sellf.errors import InputError
from sellf.fairness.checks import sorted_names
from sellf.logs.engine import plain
from sellf.logs.limits import Limits
from sellf.logs.names import short
from sellf.logs.workbook import table_of

SERVERS = {"postgresql": "postgres", "postgres": "postgres", "mysql": "mysql"}
"""Schemes of addresses, and DuckDB's extension for each."""
MOST_LISTED = 12
LONGEST = 1_000_000
"""Largest value in SQLite, in bytes: a view can generate values of any size."""
LARGEST = 2**31
"""Most characters that are loaded into memory from SQLite."""
PIECE = 256
"""Rows that are fetched at a time."""
_SELECTED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION,
             getattr(sqlite3, "SQLITE_RECURSIVE", 33))  # fmt: skip
"""Actions that a query may perform in SQLite."""


def is_server(log: Any) -> bool:
    """Return whether a log was given as the address of a database server."""
    return isinstance(log, str) and log.partition("://")[0].lower() in SERVERS and "://" in log


def without_password(address: str) -> str:
    """Return an address for display, with the password masked."""
    parts = urlsplit(address)
    if parts.password is None:
        return address
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{host}"))


def without_bar(connection: Any) -> None:
    """Turn off DuckDB's progress bar, which would be mixed with the printed text."""
    import duckdb

    # In a notebook without ipywidgets DuckDB refuses this setting, and draws no bar.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("set enable_progress_bar = false")


def open_server(address: str, table: str | None, query: str | None) -> Any:
    """Return a DuckDB relation over a table or query of a PostgreSQL or MySQL server."""
    import duckdb

    kind = SERVERS[address.partition("://")[0].lower()]
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    without_bar(connection)
    try:
        connection.load_extension(kind)
    except duckdb.Error:
        install = f"import duckdb; duckdb.connect().install_extension('{kind}')"
        raise InputError(
            f"reading {kind} servers needs DuckDB's extension {kind!r}, which is not installed: "
            f'type `{Path(sys.executable).name} -c "{install}"` once, while online; '
            "or export the table to a Parquet or CSV file."
        ) from None
    shown = without_password(address)
    try:
        quoted = address.replace("'", "''")
        connection.execute(f"attach '{quoted}' as log (type {kind}, read_only)")
        connection.execute("use log")
        connection.execute("set enable_external_access = false")
    except duckdb.Error as error:
        said = plain(error).replace(address, shown)
        raise InputError(f"{shown} cannot be opened: {said}") from None
    return _selected(connection, shown, table, query)


def open_duckdb(path: Path, table: str | None, query: str | None) -> Any:
    """Return a DuckDB relation over a table or query of a DuckDB file."""
    import duckdb

    safe: dict[str, Any] = {
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "memory_limit": "2GB",  # a view can ask for any amount
    }
    quoted = str(path.absolute()).replace("'", "''")
    try:
        # Attached, not connected to: a process that has connected to a file before sees the earlier
        # content of the file for as long as any part of that connection exists.
        connection = duckdb.connect(config=safe)
        without_bar(connection)
        connection.execute(f"attach '{quoted}' as log (type duckdb, read_only)")
        connection.execute("use log")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
    except duckdb.Error as error:
        raise InputError(f"{path.name} cannot be opened: {plain(error)}") from None
    return _selected(connection, path.name, table, query)


def _selected(connection: Any, shown: str, table: str | None, query: str | None) -> Any:
    import duckdb

    try:
        if query is not None:
            statements = duckdb.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InputError(ONE_SELECT.format(query=short(query)))
            return connection.sql(statements[0].query)
        found = [row[0] for row in connection.execute("show tables").fetchall()]
        name = _only_table(found, shown, table)
        quoted = name.replace('"', '""')
        return connection.sql(f'select * from "{quoted}"')
    except duckdb.Error as error:
        raise InputError(f"{shown} cannot be read: {plain(error)}") from None


ONE_SELECT = (
    "--query is {query}: give one SELECT of tables of this database, for example "
    '--query "select * from loans where year = 2025".'
)


def _only_table(found: list[str], shown: str, table: str | None) -> str:
    if table is None and len(found) == 1:
        return found[0]
    if table in found:
        return str(table)
    listed = ", ".join(sorted_names(found)[:MOST_LISTED]) or "no table"
    told = "has several tables" if table is None else f"has no table {table!r}"
    told = told if found else "has no table"
    raise InputError(f"{shown} {told}: it has {listed}; type --table with the name of one.")


def open_sqlite(path: Path, table: str | None, query: str | None, limits: Limits) -> Any:
    """Return a table or query of a SQLite file, as an Arrow table.

    Args:
        path: the file.
        table: the name of the table; None: the only one.
        query: a query to use instead.
        limits: the largest number of rows that are loaded into memory.
    """
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        connection = sqlite3.connect(address, uri=True)
        try:
            connection.execute("pragma query_only = on")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            listed = "select name from sqlite_master where type in ('table', 'view')"
            found = [
                row[0] for row in connection.execute(listed) if not row[0].startswith("sqlite_")
            ]
            connection.set_authorizer(_authorized)
            if query is None:
                name = _only_table(found, path.name, table)
                quoted = name.replace('"', '""')
                query = f'select * from "{quoted}"'
            return _rows(connection.execute(query), path, limits)
        finally:
            connection.close()
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
        if re.search("not authorized|one statement", str(error)):
            raise InputError(ONE_SELECT.format(query=short(query))) from None
        raise InputError(f"{path.name} cannot be read: {plain(error)}.") from None


def _authorized(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_OK if action in _SELECTED else sqlite3.SQLITE_DENY


def _rows(cursor: sqlite3.Cursor, path: Path, limits: Limits) -> Any:
    if cursor.description is None:
        raise InputError(ONE_SELECT.format(query="nothing"))
    names = [column[0] for column in cursor.description]
    rows: list[tuple[Any, ...]] = []
    size = 0
    while len(rows) <= limits.in_memory and (more := cursor.fetchmany(PIECE)):
        rows += more
        size += sum(len(v) for row in more for v in row if isinstance(v, str | bytes))
        if size > LARGEST:
            raise InputError(
                f"{path.name} holds more than {LARGEST:,} characters: select some columns or rows "
                "with --query."
            )
    if len(rows) > limits.in_memory:
        raise InputError(
            f"{path.name} has more than {limits.in_memory:,} rows, the most that are read from a "
            "SQLite file: select some with --query, or export the table to a Parquet or CSV file."
        )
    return table_of(names, zip(*rows, strict=True) if rows else [()] * len(names))
