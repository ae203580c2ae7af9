"""Diagnosis of CSV files that cannot be read, with the line in question."""

import csv
import itertools
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from sellf.logs.encodings import open_text

PATIENCE = 2_000_000
"""Most lines that are checked."""
LONGEST = 2_000_000
"""Most characters that a line may have; DuckDB does not read longer lines."""


def opened(path: Path) -> IO[Any]:
    """Open a text file in UTF-8, compressed or not."""
    return TextIOWrapper(open_text(path), newline="", encoding="utf-8-sig")


def first_line(path: Path, quote: str = '"') -> str:
    """Return the header of a file, at most as long as a line may be.

    It is the first line, and the following ones while a quoted name is open.
    """
    with opened(path) as file:
        line = file.readline(LONGEST)
        while line.count(quote) % 2 and len(line) < LONGEST and (more := file.readline(LONGEST)):
            line += more
        # If the quotes never close, the header is not one of several lines.
        return line if line.count(quote) % 2 == 0 else line.partition("\n")[0] + "\n"


def separator(line: str) -> str | None:
    """Return the separator of a header; None if it is not clear."""
    try:
        return csv.Sniffer().sniff(line, delimiters=",;\t|").delimiter
    except csv.Error:
        return None


def fault(path: Path, mark: str | None = None, quote: str = '"') -> str | None:
    """Return what is wrong with a file and how to correct it; None if no fault is found.

    Args:
        path: a file in UTF-8.
        mark: the separator; None: detected from the header.
        quote: the quote character.
    """
    mark = mark or separator(first_line(path, quote))
    if mark is None:
        return None
    seen = _Lines()
    with opened(path) as file:
        rows = csv.reader(seen.of(file), delimiter=mark, quotechar=quote, strict=True)
        began, columns = 1, 0
        try:
            for row in rows:
                columns = columns or len(row)
                if row and len(row) != columns:
                    return (
                        f"line {began} has {len(row)} values and the header {columns}. Correct "
                        f"that line; a value that holds {_say(mark)} needs double quotes around it."
                    )
                began = rows.line_num + 1
        except csv.Error:
            if seen.longest > LONGEST:
                return f"line {rows.line_num} has more than {LONGEST:,} characters."
            return (
                f"a double quote in line {began} is not closed, or not doubled within quotes. Put "
                'two ("") where a value holds one.'
            )
    if seen.longest > LONGEST:
        return f"a line has more than {LONGEST:,} characters."
    if len(seen.ends) > 1:
        return "it mixes different line endings. Save it again with one kind of line ending."
    return None


class _Lines:
    """The line endings of a file, and the length of its longest line."""

    def __init__(self) -> None:
        self.ends: set[str] = set()
        self.longest = 0

    def of(self, file: IO[Any]) -> Iterator[str]:
        """Yield the lines, split where they exceed the greatest length."""
        pieces = iter(lambda: file.readline(LONGEST + 1), "")
        for line in itertools.islice(pieces, PATIENCE):
            self.longest = max(self.longest, len(line))
            self.ends.add(line[len(line.rstrip("\r\n")) :] or "\n")
            yield line


def _say(mark: str) -> str:
    return "a tab" if mark == "\t" else mark
