"""Logs in files; CSV and Parquet files are read in chunks by DuckDB."""

import csv
import glob
import gzip
import importlib.util
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sellf.errors import InputError
from sellf.logs import csv_faults
from sellf.logs.config import Reading
from sellf.logs.databases import is_server, open_duckdb, open_sqlite, without_bar
from sellf.logs.encodings import as_utf8, not_utf8
from sellf.logs.engine import plain
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.names import short
from sellf.logs.workbook import read_sheet

READERS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".xlsx", ".xlsm"), "xlsx"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "sqlite"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
}
KINDS = ["BIGINT", "DOUBLE", "TIME", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR"]
"""Types of values in a CSV file. There are no Booleans, so that yes, no, t and f stay strings."""
PIECE = 2**22
"""Bytes that are decompressed at a time."""
MOST_NAMED = 3
"""Most files that a message names."""


def are_files(log: Any) -> bool:
    """Return whether a log was given as a path, a pattern, or a list of paths."""
    if isinstance(log, list | tuple):
        return bool(log) and all(isinstance(path, str | Path) for path in log)
    return isinstance(log, str | Path) and not is_server(log)


def named_files(log: Any) -> list[Path]:
    """Return the files given by a path, a pattern with * or a list of paths.

    A file of exactly that name has precedence; only if there is none is * a wildcard. No other
    character is a wildcard.
    """
    if isinstance(log, list | tuple):
        return [path for one in log for path in named_files(one)]
    path = Path(log)
    if path.is_dir():
        raise InputError(f"{path} is a folder: give one file, or several as '{path}/*.csv'.")
    pattern = "*" in str(path) and not path.exists()
    if not pattern:
        _kind(path)
    literal = glob.escape(str(path)).replace("[*]", "*")
    found = [Path(name) for name in sorted(glob.glob(literal))] if pattern else [path]  # noqa: PTH207
    found = [one for one in found if not (pattern and one.is_dir())]
    if not found or not found[0].exists():
        raise InputError(f"there is no file {path}.")
    for one in found:
        _kind(one)
        if not one.is_file():
            raise InputError(f"{one} is not a regular file: copy its content into one.")
    return found


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = READERS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise InputError(
            f"{path.name} is not a kind of file that can be read: give a .csv, .csv.gz, .parquet, "
            ".xlsx, .sqlite or .duckdb file."
        )
    return kind


def listed(paths: list[Path]) -> str:
    """Return the names of some files for a message."""
    names = ", ".join(path.name for path in paths[:MOST_NAMED])
    return names + (", ..." if len(paths) > MOST_NAMED else "")


ONLY_FOR = {
    "sheet": ("xlsx",),
    "table": ("sqlite", "duckdb"),
    "query": ("sqlite", "duckdb"),
    **dict.fromkeys(("encoding", "separator", "quote", "decimal"), ("csv",)),
}
"""Options that apply to some kinds of files only."""


def open_files(
    paths: list[Path], reading: Reading, limits: Limits = DEFAULT
) -> tuple[Any, list[str]]:
    """Return a DuckDB relation or an Arrow table over files, and their original column names.

    Args:
        paths: the files.
        reading: how they are read.
        limits: the largest number of rows that are loaded into memory, for some kinds of files.
    """
    kinds = sorted({_kind(path) for path in paths})
    if len(kinds) > 1:
        raise InputError(f"{listed(paths)} are of several kinds: give CSV or Parquet files only.")
    for option, allowed in ONLY_FOR.items():
        if getattr(reading, option) is not None and kinds[0] not in allowed:
            raise InputError(f"{paths[0].name} has no {option}: leave --{option} out.")
    if kinds[0] in ("parquet", "csv"):
        return _open_flat(paths, reading)
    if len(paths) > 1:
        raise InputError(f"{listed(paths)}: give one file of this kind, or CSV or Parquet files.")
    if paths[0].stat().st_size == 0:
        raise InputError(f"{paths[0].name} is empty: give a log with a header and rows.")
    if kinds[0] == "xlsx":
        found = read_sheet(paths[0], reading.sheet)
    elif kinds[0] == "sqlite":
        found = open_sqlite(paths[0], reading.table, reading.query, limits)
    else:
        found = open_duckdb(paths[0], reading.table, reading.query)
    return found, list(getattr(found, "column_names", None) or found.columns)


def _open_flat(paths: list[Path], reading: Reading) -> tuple[Any, list[str]]:
    """Return a DuckDB relation over CSV or Parquet files, and their original column names."""
    if importlib.util.find_spec("duckdb") is None:
        raise InputError("reading files needs DuckDB: type `pip install 'sellf[audit]'`.")
    import duckdb

    for path in paths:
        if path.stat().st_size == 0:
            raise InputError(f"{path.name} is empty: give a log with a header and rows.")
    texts: list[Path] = []
    try:
        connection = _connect()
        if _kind(paths[0]) == "parquet":
            names = [_literal(connection, path) for path in paths]
            relation = connection.read_parquet(names, hive_partitioning=False)
            columns = _parquet_names(connection, names[0])
            return relation, columns if len(columns) == len(relation.columns) else relation.columns
        for path in paths:
            _check_packed(path)
        texts = [as_utf8(path, reading.encoding) for path in paths]
        header = _common_header(paths, texts, reading)
        relation = _read_csv(connection, texts, reading)
        if len(header) > 1 == len(relation.columns):
            # If lines differ in their number of values, DuckDB reads each line as one value.
            odd = "its lines differ in their number of values."
            raise InputError(_what_is_odd(paths, texts, reading, odd))
        # DuckDB renames repeated columns; a request for one of them has to be refused.
        columns = header if len(header) == len(relation.columns) else list(relation.columns)
    except duckdb.Error as error:
        raise InputError(_what_is_odd(paths, texts, reading, plain(error))) from None
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{listed(paths)} cannot be read: {said}.") from None
    except UnicodeDecodeError:
        raise InputError(not_utf8(paths[0])) from None
    return relation, columns


def _read_csv(connection: Any, texts: list[Path], reading: Reading) -> Any:
    header = csv_faults.first_line(texts[0], reading.quote or '"').rstrip("\r\n")
    # DuckDB does not detect the separator if a name in the header has a line break.
    found = csv_faults.separator(header) if "\n" in header else None
    asked: dict[str, Any] = {
        "delimiter": reading.separator or found,
        "decimal": reading.decimal,
        # As strings, so that a column of numbers in which NA means missing is numeric.
        "na_values": ["", *reading.missing_value] if reading.missing_value else None,
    }
    # Types are inferred from the first rows; a later value that does not fit is an error that
    # names its line. Several files may have their columns in different orders.
    return connection.read_csv(
        [_literal(connection, path) for path in texts],
        header=True,
        sample_size=200_000,
        auto_type_candidates=KINDS,
        # Not detected: if ' is taken for a quote, the rows between two of them are swallowed.
        quotechar=reading.quote or '"',
        escapechar=reading.quote or '"',
        hive_partitioning=False,
        union_by_name=len(texts) > 1,
        **{name: value for name, value in asked.items() if value is not None},
    )


def without_copies(relation: Any, names: list[str], wanted: Iterable[str]) -> list[str]:
    """Return the column names; among identical columns of one name, only the first keeps it.

    Args:
        relation: from `open_files`.
        names: the names of its columns in the files.
        wanted: the names that are used; others are not examined.
    """
    import duckdb

    called = list(relation.columns) if isinstance(relation, duckdb.DuckDBPyRelation) else []
    made = list(names)
    for name in dict.fromkeys(wanted):
        first, *others = [place for place, own in enumerate(names) if own == name] or [0]
        if not others or len(called) != len(names):
            continue
        one = _quoted(called[first])
        tests = [f"{one} is distinct from {_quoted(called[place])}" for place in others]
        try:
            # The types must be equal too: for DuckDB, '1' and true are equal.
            differs = len({str(relation.types[place]) for place in (first, *others)}) > 1 or bool(
                relation.filter(" or ".join(tests)).limit(1).fetchall()
            )
        except duckdb.Error:  # types that cannot be compared
            differs = True
        if not differs:
            for place in others:
                made[place] = called[place]
    return made


def with_own_names(relation: Any, names: list[str], wanted: Iterable[str]) -> Any:
    """Return a relation whose columns have their original names.

    DuckDB does not distinguish `race` from `RACE`, and renames the second. Of names that differ
    only in case, the one that is used is kept.

    Args:
        relation: from `open_files`.
        names: the names of its columns in the files.
        wanted: the names that are used.
    """
    import duckdb

    called = list(relation.columns)
    if called == names:
        return relation
    places: dict[str, int] = {}
    for place in sorted(range(len(names)), key=lambda place: names[place] not in set(wanted)):
        folded = names[place].lower()
        if folded in places and names[place] in wanted:
            raise InputError(
                f"{names[places[folded]]!r} and {names[place]!r} differ only in case, and column "
                "names of a file are not case-sensitive: rename one of them."
            )
        if names[place]:
            places.setdefault(folded, place)
    try:
        return relation.project(
            ", ".join(
                f"{_quoted(called[i])} as {_quoted(names[i])}" for i in sorted(places.values())
            )
        )
    except duckdb.Error as error:
        raise InputError(f"the columns' names cannot be used: {plain(error)}") from None


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _parquet_names(connection: Any, pattern: str) -> list[str]:
    """Return the column names of a Parquet file, including repeated ones."""
    query = "select name, num_children from parquet_schema($1)"
    (_, count), *elements = connection.execute(query, [pattern]).fetchall()
    names, at = [], 0
    while at < len(elements) and len(names) < (count or 0):
        names.append(elements[at][0])
        at = _after(elements, at)
    return names


def _after(elements: list[tuple[str, int | None]], at: int) -> int:
    """Return where the next column begins; nested elements follow their column."""
    left = 1
    while left and at < len(elements):
        left += (elements[at][1] or 0) - 1
        at += 1
    return at


def _check_packed(path: Path) -> None:
    """Refuse a compressed file whose checksum is wrong: DuckDB does not check it."""
    if path.suffix.lower() == ".gz":
        with gzip.open(path, "rb") as file:
            while file.read(PIECE):
                pass


def _connect() -> Any:
    import duckdb

    # Not as SQL, in which a quote in the folder's name would end the string.
    connection = duckdb.connect(
        config={
            "enable_external_file_cache": False,  # each file is read two or three times at most
            "memory_limit": "1GB",  # sums need little; DuckDB spills the rest to disk
            "temp_directory": tempfile.gettempdir(),
        }
    )
    without_bar(connection)
    return connection


def _literal(connection: Any, path: Path) -> str:
    """Return a pattern that DuckDB expands to this file and no other."""
    # Absolute, since DuckDB takes ~ for the home folder and letters before : for a protocol.
    name = str(path.absolute())
    pattern = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
    found = connection.execute("select file from glob($1)", [pattern]).fetchall()
    if found != [(name,)]:
        raise InputError(
            f"{path} cannot be read under this name: rename it, without backslashes and brackets."
        )
    return pattern


def _common_header(paths: list[Path], texts: list[Path], reading: Reading) -> list[str]:
    first = _header(texts[0], reading)
    for path, text in zip(paths[1:], texts[1:], strict=True):
        other = _header(text, reading)
        if sorted(other) != sorted(first):
            lacks = [name for name in first if name not in other]
            more = [name for name in other if name not in first]
            difference = (
                f"lacks {short(lacks[0])}" if lacks else f"also has {short((more or other)[0])}"
            )
            raise InputError(
                f"{path.name} has other columns than {paths[0].name}: it {difference}. Give files "
                "with the same header."
            )
    return first


def _header(path: Path, reading: Reading) -> list[str]:
    quote = reading.quote or '"'
    line = csv_faults.first_line(path, quote)
    mark = reading.separator or csv_faults.separator(line)
    if mark is None:
        return [line.strip()]
    try:
        return next(csv.reader(line.splitlines(keepends=True), delimiter=mark, quotechar=quote))
    except csv.Error as error:
        raise InputError(
            f"{path.name} has a first line that cannot be read: {error}. Give a file that begins "
            "with the names of its columns."
        ) from None


def _what_is_odd(paths: list[Path], texts: list[Path], reading: Reading, said: str) -> str:
    """Return a message for files that cannot be read; the engine's own if no fault is found."""
    for path, text in zip(paths, texts, strict=False):
        try:
            found = csv_faults.fault(text, reading.separator, reading.quote or '"')
        except UnicodeDecodeError:
            return not_utf8(path)
        except (OSError, EOFError, zlib.error):
            continue
        if found is not None:
            return f"{path.name} cannot be read: {found}"
    return f"{listed(paths)} cannot be read: {said}"
