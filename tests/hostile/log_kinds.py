"""Decision logs in files of every kind: read, or refused in a sentence, and the same as in memory.

What is read has to make sense: figures within 0 and 1, a verdict that follows from them, every row
of the file counted. The same cells give the same answer from a CSV file as from memory, and the
same columns from a Parquet file as from an Arrow table, or both are refused.
"""

import csv
import gzip
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sellf.audit.verdict import decide
from sellf.errors import InputError
from sellf.logs import files
from sellf.logs.limits import Limits
from sellf.logs.names import say
from tests.hostile import log_mutators as logs
from tests.hostile import mutators
from tests.hostile.kinds import Chance, Kind, command


class DiffersError(AssertionError):
    """The same rows say something else in memory, or rows of the file are left out."""


BASE = {"group": "race", "decision": "approved"}
LABELLED = BASE | {"outcome": "repaid"}
OPTIONS: tuple[dict[str, Any], ...] = (
    BASE | {"notion": "demographic"},
    BASE | {"notion": "demographic"},
    BASE | {"notion": "demographic", "time": "day", "by": "month"},
    BASE | {"notion": "demographic", "person": "id"},
    BASE | {"notion": "demographic", "accepted_value": "1"},
    BASE | {"notion": "demographic", "group": ["race", "day"]},
    LABELLED | {"notion": "qualification", "propensity": "p"},
    LABELLED | {"notion": "opportunity", "propensity": "p"},
    LABELLED | {"notion": "accuracy", "propensity": "p", "score": "score"},
    LABELLED | {"notion": "opportunity"},
    LABELLED
    | {"notion": "opportunity", "propensity": "p", "decided_on": "day", "matures_after": "30d"},
)
TEXTS = ("log.csv", "log.tsv", "log.txt", "log.csv.gz")
NUMERALS = ("007", "+1", "1_000", "0x10", "NaN", "nan", "\ufeffrace")
"""What a CSV file says in its own way: other numerals, no number, the mark of UTF-8."""
CASE = "case.json"
"""Which options an input is read with, and whether its cells can be compared."""
STAYS = 0.25
"""How many of the logs are added up by the engine, as very long ones are."""


def good_text(folder: Path) -> Path:
    chance = Chance(0)
    put(folder, "log.csv", logs.written(chance, logs.good(chance), ","), OPTIONS[0])
    return folder / "log"


def good_parquet(folder: Path) -> Path:
    chance = Chance(0)
    put(folder, "log.parquet", _parquet(logs.typed_columns(chance, logs.good(chance))), OPTIONS[0])
    return folder / "log"


def worse_text(chance: Chance, folder: Path) -> bool:
    """Write another log as text, with a fault or two."""
    separator = chance.choice((",", ",", ",", ";", "\t", "|"))
    name, options = chance.choice(TEXTS), chance.choice(OPTIONS)
    log, act = logs.good(chance), chance.random()
    if act < 0.5:
        log = logs.cells_on_purpose(chance, log)
        content = logs.written(chance, log, separator)
        packed = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
        put(folder.parent, name, packed, options, log, stays=chance.random() < STAYS)
        return True
    content = logs.written(chance, log, "," if act < 0.75 else separator)
    content = (logs.text_on_purpose if act < 0.75 else mutators.damage)(chance, content)
    if name.endswith(".gz"):
        content = logs.gzip_on_purpose(chance, content)
    if chance.random() < 0.03:
        name = chance.choice(("log.parquet", "log.csv.csv", "log[1].csv", "l*g.csv", "log.csv.bz2"))
    put(folder.parent, name, content, options, stays=chance.random() < STAYS)
    return True


def worse_parquet(chance: Chance, folder: Path) -> bool:
    """Write another log as Parquet, damaged or with columns of odd types."""
    log, options = logs.good(chance), chance.choice(OPTIONS)
    if chance.random() < 0.6:
        log = logs.cells_on_purpose(chance, log)
    content = _parquet(logs.typed_columns(chance, log))
    compare = chance.random() < 0.6
    if not compare:
        content = mutators.damage(chance, content)
    stays = chance.random() < STAYS
    put(folder.parent, "log.parquet", content, options, compare=compare, stays=stays)
    return True


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, compression="snappy", store_schema=False)
    return out.getvalue()


def put(
    folder: Path,
    name: str,
    content: bytes,
    options: dict[str, Any],
    log: logs.Log | None = None,
    compare: bool = False,
    stays: bool = False,
) -> None:
    """Leave a log in a folder, alone there, and how to read it."""
    inner = folder / "log"
    inner.mkdir(exist_ok=True)
    for path in inner.iterdir():
        path.unlink()
    (inner / name).write_bytes(content)
    cells = None if log is None else [log.header, *log.rows]
    case = {"name": name, "options": options, "cells": cells, "compare": compare, "stays": stays}
    (folder / CASE).write_text(json.dumps(case))


@cache
def _connection(usual: Callable[[], Any]) -> Any:
    connection = usual()
    connection.execute("set threads = 1")
    return connection


@contextmanager
def one_connection() -> Iterator[None]:
    """Open DuckDB once, which takes longer than reading a small file."""
    usual = files._connect
    files._connect = lambda: _connection(usual)
    try:
        yield
    finally:
        files._connect = usual


@one_connection()
def use_log(folder: Path) -> Any:
    """Audit the log, and compare with what the same rows say in memory."""
    import sellf

    case = json.loads((folder / CASE).read_text())
    path, options = folder / "log" / case["name"], case["options"]
    answer, refusal = None, None
    try:
        # Logs that stay are added up by DuckDB.
        limits = Limits(in_memory=0) if case["stays"] else Limits()
        found = sellf.audit(str(path), seed=1, limits=limits, **options)
        answer = _answer(found)
        _check_rows(path, found)
    except InputError as error:
        refusal = error
        _check_sentence(str(error))
    other = _in_memory(path, case)
    if other is not None:
        try:
            again = _answer(sellf.audit(other, seed=1, **options))
        except InputError as error:
            again = f"refused: {error}"
        if not _same(answer if refusal is None else f"refused: {refusal}", again):
            raise DiffersError(
                f"from the file: {answer or refusal}\nin memory: {again}"[:2000]
            ) from None
    if refusal is not None:
        raise refusal
    return "whatever it says"


@one_connection()
def use_typed(folder: Path) -> Any:
    """Type the command that audits the log."""
    case = json.loads((folder / CASE).read_text())
    typed = ["audit", str(folder / "log" / case["name"]), "--seed", "1", "--json"]
    for name, value in case["options"].items():
        for one in value if isinstance(value, list) else [value]:
            typed += [f"--{name.replace('_', '-')}", one]
    json.loads(command(*typed, "--html", str(folder / "page.html")))
    return "whatever it says"


def _numeral(cell: str) -> bool:
    """Return whether a cell of a CSV file is a number or day with another name than its letters."""
    if re.match(r"0\d{4,}-\d", cell):
        return True
    try:
        number = float(cell)
    except ValueError:
        return cell in NUMERALS
    return cell in NUMERALS or not math.isfinite(number) or abs(number) >= 2**53


def _in_memory(path: Path, case: dict[str, Any]) -> Any:
    """Return the same rows without a file, where there is a way to say so."""
    if case["stays"] and "person" in case["options"]:
        return None  # needs the rows in memory
    if case["compare"]:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(path).read()
    if case["cells"] is None:
        return None
    header, *rows = case["cells"]
    found = {cell for row in (header, *rows) for cell in row}
    if any("\r" in cell or "\0" in cell for cell in found) or any(map(_numeral, found)):
        return None  # no CSV file can hold the one, and numbers are numbers however written
    if len(set(header)) < len(header):
        return None  # a mapping cannot have a name twice
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


def _same(from_file: Any, in_memory: Any) -> bool:
    """Return whether both say the same, or are both refused."""
    refused = isinstance(from_file, str), isinstance(in_memory, str)
    if refused == (True, False):
        # An engine does not read numbers and dates out of words; and what has quotes and line ends
        # in odd places may well be no CSV file.
        words = " holds " in from_file and " values: " in from_file
        return words or " cannot be read: " in from_file
    return all(refused) or from_file == in_memory


def _answer(found: Any) -> Any:
    """Return what an audit says; refuse what makes no sense."""
    low, value, high = found.difference
    if not all(map(math.isfinite, (low, value, high))) or not 0 <= low <= value <= high <= 1:
        raise AssertionError(f"an interval that is none: {found.difference}")
    if found.void is None and found.verdict not in (decide(found.difference, 0.05), "undetermined"):
        raise AssertionError(f"{found.verdict} does not follow from {found.difference}")
    json.loads(found.to_json())
    _check_sentence(str(found))
    people = sorted((say(name), group.people) for name, group in found.by_group.items())
    return found.verdict, round(low, 9), round(value, 9), round(high, 9), people


def _check_sentence(text: str) -> None:
    if not text.strip() or len(text) > 20_000:
        raise AssertionError(f"a sentence of {len(text)} letters")


def _check_rows(path: Path, found: Any) -> None:
    """Refuse an answer about fewer rows than the file has."""
    if not path.name.endswith((".csv", ".tsv", ".txt", ".gz")):
        return
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = content.decode("utf-16" if wide else "utf-8-sig", "replace")
    header = text.splitlines()[0]
    separator = max(",;\t|", key=header.count)
    csv.field_size_limit(10_000_000)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    # A quote that is never closed may be one, or a letter.
    counts = {sum(map(bool, reader)) - 1, sum(map(bool, text.splitlines())) - 1}
    if found.origin.rows not in counts:
        raise DiffersError(f"{found.origin.rows} rows are told of, there are {counts}")


LOGS = {
    "log (text)": Kind(good_text, use_log, worse_text, 13, replaces=True),
    "log (Parquet)": Kind(good_parquet, use_log, worse_parquet, 7, replaces=True),
    "log (typed)": Kind(good_text, use_typed, worse_text, 2, ("page.html",), replaces=True),
}
