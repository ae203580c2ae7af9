"""Text files that are not UTF-8: detection by byte order mark, and conversion to UTF-8."""

import atexit
import codecs
import gzip
import os
import tempfile
from pathlib import Path
from typing import IO

from sellf import interrupts, leftovers
from sellf.errors import InputError

PIECE = 2**22
"""Bytes that are converted at a time."""
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte order marks, and the encoding of each."""
TRIED = ("cp1252", "latin-1")
_made: list[Path] = []


def open_text(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if necessary."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # pyright: ignore[reportReturnType]


def marked(path: Path) -> str | None:
    """Return the encoding given by a file's byte order mark; None if it has none."""
    with open_text(path) as file:
        return MARKS.get(file.read(2))


def as_utf8(path: Path, encoding: str | None) -> Path:
    """Return a file with the same text in UTF-8: the file itself, or a temporary copy.

    Args:
        path: the file, possibly compressed.
        encoding: its encoding; None: the one given by its byte order mark, or else UTF-8.
    """
    encoding = encoding or marked(path)
    if encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii"):
        return path
    folder = Path(tempfile.gettempdir())
    leftovers.sweep(folder)
    prefix, _ = leftovers.affixes(path.name)
    handle, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=".tmp")
    if not _made:
        atexit.register(_remove)
        interrupts.before_leaving.append(_remove)
    _made.append(Path(name))
    decoder = codecs.getincrementaldecoder(encoding)()
    with open_text(path) as source, os.fdopen(handle, "wb") as copy:
        try:
            while piece := source.read(PIECE):
                copy.write(decoder.decode(piece).encode())
            copy.write(decoder.decode(b"", final=True).encode())
        except UnicodeError as error:
            Path(name).unlink()
            raise InputError(
                f"{path.name} is not text in {encoding} ({error.__class__.__name__}): "
                "type another --encoding, for example cp1252, latin-1 or utf-16."
            ) from None
    return Path(name)


def _remove() -> None:
    for path in _made:
        path.unlink(missing_ok=True)


def not_utf8(path: Path) -> str:
    """Return the message for a file that is not UTF-8, with the options to type."""
    return (
        f"{path.name} is not text in UTF-8: type --encoding cp1252 if it was written on Windows, "
        "--encoding latin-1 or utf-16 otherwise; or save it as UTF-8."
    )
