"""Decision logs made worse: cells, headers, separators, quotes, encodings, types."""

import csv
import gzip
import io
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.hostile.mutators import damage

Chance = random.Random
HEADER = ["race", "approved", "repaid", "p", "score", "day", "id"]
CELLS = (
    "", " ", "0", "1", "2", "-1", "1.0", "0.5", "1e308", "1e999", "NaN", "nan", "Infinity", "-inf",
    "null", "NULL", "None", "N/A", "true", "FALSE", "t", "yes", "a", " a", "A", "a,b", "a;b", "a|b",
    'say "hi"', '"', "'", "\\", "\\N", "line\nbreak", "cr\rhere", "tab\there", "\x00", "\x1b[2J",
    "é", "\u00a0", "\u202e", "\ufeff", "😀", "007", "7", "+1", "1_000", "1,5", "0x10", "\uff11",
    "2026-02-30", "2026-01-05", "31/12/2026", "9999-12-31", "0001-01-01", "24:00", "now",
    "../outside/canary.csv", "=1+1", "__proto__", "9" * 30, "x" * 3000, "<script>", "0.1.2",
    "1e-320",
)  # fmt: skip
NAMES = (
    "", " ", "race", "RACE", "race ", "approved", "p", "p.q", 'a"b', "a,b", "\x00", "é", "column0",
    "x" * 100_000, "filename", "rowid", "__index_level_0__", "race_1", "\n", "\ufeffrace",
)  # fmt: skip


@dataclass(frozen=True)
class Log:
    """A log as cells; all of them are text, as in a CSV file."""

    header: list[str]
    rows: list[list[str]]


def good(chance: Chance, people: int = 40) -> Log:
    """Return a log without a fault."""
    rows = []
    for i in range(people):
        p = chance.choice((0.25, 0.5, 0.75))
        accepted = chance.random() < p
        repaid = str(int(chance.random() < 0.6)) if accepted else ""
        day = f"2026-0{1 + i % 3}-{1 + i % 28:02}"
        group = "ab"[i % 2]
        rows.append(
            [group, str(int(accepted)), repaid, str(p), f"{chance.random():.3f}", day, f"n{i}"]
        )
    return Log(list(HEADER), rows)


def cells_on_purpose(chance: Chance, log: Log) -> Log:
    """Return a log in which cells, rows, columns or names are others."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        log = chance.choice(CHANGES)(chance, log)
    return log


def _cell(chance: Chance, log: Log) -> Log:
    rows = [list(row) for row in log.rows]
    if rows and log.header:
        row = chance.choice(rows)
        row[chance.randrange(len(row))] = chance.choice(CELLS)
    return replace(log, rows=rows)


def _column(chance: Chance, log: Log) -> Log:
    at, some = chance.randrange(len(log.header)), chance.sample(CELLS, 2)
    rows = [
        [*row[:at], chance.choice(some), *row[at + 1 :]] if chance.random() < 0.8 else row
        for row in log.rows
    ]
    return replace(log, rows=rows)


def _respelled(chance: Chance, log: Log) -> Log:
    """Return a log in which a column's values are written in another way."""
    at = chance.randrange(len(log.header))
    values = sorted({row[at] for row in log.rows})
    other = {value: chance.choice(CELLS) for value in values[:3]}
    rows = [[*row[:at], other.get(row[at], row[at]), *row[at + 1 :]] for row in log.rows]
    return replace(log, rows=rows)


def _spaces(chance: Chance, log: Log) -> Log:
    at, before = chance.randrange(len(log.header)), chance.choice((" ", "\t", "+", "0", "\u00a0"))
    rows = [
        [*row[:at], before + row[at], *row[at + 1 :]] if chance.random() < 0.3 else row
        for row in log.rows
    ]
    return replace(log, rows=rows)


def _fewer_rows(chance: Chance, log: Log) -> Log:
    kept = chance.choice((0, 1, 2, 5, 20))
    return replace(log, rows=chance.sample(log.rows, min(kept, len(log.rows))))


def _more_rows(chance: Chance, log: Log) -> Log:
    return replace(log, rows=log.rows * chance.choice((2, 10)))


def _name(chance: Chance, log: Log) -> Log:
    header = list(log.header)
    header[chance.randrange(len(header))] = chance.choice(NAMES)
    return replace(log, header=header)


def _without(chance: Chance, log: Log) -> Log:
    if len(log.header) < 2:
        return log
    at = chance.randrange(len(log.header))
    cut = [[*row[:at], *row[at + 1 :]] for row in (log.header, *log.rows)]
    return Log(cut[0], cut[1:])


def _again(chance: Chance, log: Log) -> Log:
    """Return a log with a column twice, or with very many."""
    at, times = chance.randrange(len(log.header)), chance.choice((1, 1, 1, 300))
    more = [[*row, *[row[at]] * times] for row in (log.header, *log.rows)]
    if chance.random() < 0.5:
        more[0] = [*log.header, *(f"more {i}" for i in range(times))]
    return Log(more[0], more[1:])


def _other_order(chance: Chance, log: Log) -> Log:
    order = chance.sample(range(len(log.header)), len(log.header))
    turned = [[row[i] for i in order] for row in (log.header, *log.rows)]
    return Log(turned[0], turned[1:])


CHANGES: tuple[Callable[[Chance, Log], Log], ...] = (
    _cell, _cell, _cell, _column, _respelled, _respelled, _spaces, _fewer_rows, _more_rows, _name,
    _without, _again, _other_order,
)  # fmt: skip


def written(chance: Chance, log: Log, separator: str) -> bytes:
    """Return a log as a CSV file of one of the usual kinds."""
    out = io.StringIO()
    quoting = chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    end = chance.choice(("\n", "\n", "\r\n"))
    writer = csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end)
    writer.writerow(log.header)
    writer.writerows(log.rows)
    text = out.getvalue()
    if chance.random() < 0.1:
        text = text.rstrip("\r\n")
    start = b"\xef\xbb\xbf" if chance.random() < 0.1 else b""
    return start + text.encode("utf-8", "surrogatepass")


def text_on_purpose(chance: Chance, content: bytes) -> bytes:
    """Return a CSV file that is none, or not quite."""
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: text.encode("utf-16"),
        lambda: text.encode("utf-16-le"),
        lambda: text.encode("utf-32"),
        lambda: text.replace("a", "é").encode("latin-1", "replace"),
        lambda: text.replace("a", "ä€").encode("cp1252", "replace"),
        lambda: _line(lines, at, lines[at] + '"'),
        lambda: _line(lines, at, '"' + lines[at]),
        lambda: _line(lines, at, lines[at].replace(",", '","')),
        lambda: _line(lines, at, lines[at] + ",more"),
        lambda: _line(lines, at, lines[at].rpartition(",")[0]),
        lambda: _line(lines, at, lines[at].replace(",", ";")),
        lambda: _line(lines, at, "# a remark"),
        lambda: _line(lines, at, ""),
        lambda: _line(lines, at, "\x00" * 10),
        lambda: _line(lines, at, "x" * 3_000_000),
        lambda: _line(lines, 0, "exported by a program\n" + lines[0]),
        lambda: _line(lines, 0, "\n\n" + lines[0]),
        lambda: "\n".join(lines[1:]).encode(),
        lambda: _line(lines, 0, ",".join(f"column {i}" for i in range(5000))),
        lambda: text.replace("\n", "\r").encode(),
        lambda: text.replace("\n", "\n\r").encode(),
        lambda: text.replace(",", chance.choice((";", "\t", "|", " ", "^", ":", ",,"))).encode(),
        lambda: text.replace("\n", "\x00\n", 3).encode(),
        lambda: b"PAR1" + content,
        lambda: gzip.compress(content),
        lambda: content + content,
        lambda: b"{" + content.replace(b"\n", b"}\n{"),
        lambda: b"\n" * 1000,
        lambda: b",,,,,\n" * 100,
        lambda: b'"' * 1001,
    )
    return chance.choice(ways)()


def _line(lines: list[str], at: int, other: str) -> bytes:
    return "\n".join([*lines[:at], other, *lines[at + 1 :]]).encode()


def gzip_on_purpose(chance: Chance, content: bytes) -> bytes:
    """Return a compressed file that is damaged, in several parts, or much larger than it looks."""
    packed = gzip.compress(content, mtime=0)
    half = len(content) // 2
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: packed,
        lambda: damage(chance, packed),
        lambda: packed[: chance.randrange(len(packed))],
        lambda: gzip.compress(content[:half]) + gzip.compress(content[half:]),
        lambda: packed + b"and more",
        lambda: gzip.compress(packed),
        lambda: gzip.compress(content + b"x" * 20_000_000),
        lambda: content,
        lambda: gzip.compress(b""),
    )
    return chance.choice(ways)()


def typed_columns(chance: Chance, log: Log) -> Any:
    """Return a log as an Arrow table whose columns are of types that fit them, mostly."""
    import pyarrow as pa

    columns = [
        _typed(chance, name, [row[at] for row in log.rows]) for at, name in enumerate(log.header)
    ]
    return pa.table(columns, names=log.header)


FITTING = {
    "race": ("string", "large", "dictionary"),
    "approved": ("string", "int64", "int8", "uint64", "bool", "float64", "dictionary"),
    "repaid": ("string", "int64", "int8", "uint64", "bool", "float64", "float32"),
    "p": ("string", "float64", "float32", "decimal"),
    "score": ("string", "float64", "float32", "decimal"),
    "day": ("string", "date", "time"),
    "id": ("string", "large", "dictionary", "null"),
}


def _typed(chance: Chance, name: str, values: list[str]) -> Any:
    import pyarrow as pa

    texts = [value or None for value in values]
    numbers = [_number(value) for value in texts]
    whole = [None if n is None or abs(n) > 100 or n != n else int(n) for n in numbers]
    text = pa.array(texts, pa.string())
    odd = chance.choice((float("nan"), float("inf"), 1e300))
    ways: dict[str, Callable[[], Any]] = {
        "string": lambda: text,
        "large": lambda: text.cast(pa.large_string()),
        "dictionary": text.dictionary_encode,
        "float64": lambda: pa.array(numbers, pa.float64()),
        "float32": lambda: pa.array(numbers, pa.float32()),
        "decimal": lambda: text.cast(pa.decimal128(10, 3)),
        "int64": lambda: pa.array(whole, pa.int64()),
        "int8": lambda: pa.array(whole, pa.int8()),
        "uint64": lambda: pa.array(whole, pa.uint64()),
        "bool": lambda: pa.array([None if n is None else n == 1 for n in numbers], pa.bool_()),
        "date": lambda: text.cast(pa.date32()),
        "time": lambda: text.cast(pa.timestamp("us", "UTC")),
        "null": lambda: pa.nulls(len(values)),
        "list": lambda: pa.array([[value] for value in texts]),
        "struct": lambda: pa.array([{"a": value} for value in texts]),
        "binary": lambda: pa.array([str(value).encode() for value in texts], pa.binary()),
        "odd": lambda: pa.array([odd if n is None else n for n in numbers], pa.float64()),
        "large numbers": lambda: pa.array([2**64 - 1 if n else 0 for n in numbers], pa.uint64()),
        "duration": lambda: pa.array([n or 0 for n in whole], pa.duration("s")),
    }
    some = FITTING.get(name, ("string",)) if chance.random() < 0.93 else tuple(ways)
    try:
        return ways[chance.choice(some)]()
    except (pa.ArrowException, OverflowError, ValueError):
        return text


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
