"""Logs in files: CSV and Parquet, through DuckDB, which reads them piece by piece."""

import contextlib
import csv
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from sellf.audit.engine import plain
from sellf.errors import InputError

READERS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
SETTINGS = (
    "enable_external_file_cache = false",  # each file is read two or three times at most
    "memory_limit = '1GB'",  # sums need little, and what does not fit goes to the disk
    f"temp_directory = '{tempfile.gettempdir()}'",
)


def open_file(path: Path) -> tuple[Any, list[str]]:
    """Return a DuckDB relation over a file, and the column names as the file has them."""
    if importlib.util.find_spec("duckdb") is None:
        raise InputError("reading files needs DuckDB: type `pip install 'sellf[audit]'`.")
    import duckdb

    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = READERS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise InputError(
            f"{path.name} is not a kind of file that can be read: give a .parquet or .csv file."
        )
    if path.is_dir():
        raise InputError(f"{path} is a folder: give one file, or '{path}/*{path.suffix}'.")
    pattern = "*" in path.name
    found = sorted(path.parent.glob(path.name)) if pattern else [path]
    if not found or not found[0].is_file():
        raise InputError(f"there is no file {path}.")
    if found[0].stat().st_size == 0:
        raise InputError(f"{found[0].name} is empty: give a log with a header and rows.")
    connection = duckdb.connect()
    for setting in SETTINGS:
        connection.execute(f"set {setting}")
    # A bar would get in between what is printed. In a notebook without ipywidgets DuckDB refuses
    # to hear of bars at all, and then shows none.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("set enable_progress_bar = false")
    try:
        if kind == "parquet":
            relation = connection.read_parquet(str(path))
            return relation, list(relation.columns)
        header = _header(found[0])
        # Types are guessed from the first rows of all; a later value that does not fit is an error
        # that names its line.
        relation = connection.read_csv(str(path), header=True, sample_size=200_000)
        # DuckDB makes repeated names different; whoever asks for one should be told.
        columns = header if len(header) == len(relation.columns) else list(relation.columns)
    except duckdb.Error as error:
        raise InputError(f"{path.name} cannot be read: {plain(error)}") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path.name} is not text in UTF-8: save it as UTF-8, or as Parquet."
        ) from None
    return relation, columns


def _header(path: Path) -> list[str]:
    if path.suffix.lower() == ".gz":
        return []
    with path.open(newline="", encoding="utf-8-sig") as file:
        line = file.readline()
    try:
        dialect = csv.Sniffer().sniff(line, delimiters=",;\t|")
    except csv.Error:
        return [line.strip()]
    return next(csv.reader([line], dialect))
