"""Where runs are kept: one folder a run, whole or not there, with checksums.

    store.json           the versions that all its runs were made with
    runs/NAME/           config.json, agent.safetensors, results.safetensors, sha256sums; a run that
                         came in an archive has no agent
    failed/NAME.json     why a run could not be done
    active/              who is working on the store now
    tmp/                 folders that are being written
    claims               empty; its bytes are locked by whoever is at a run

A folder appears in `runs` by being renamed, so its being there says that it was written to the
end; status looks at names only. Files are not forced to the disk one by one: should the machine
itself go down, a file may be cut off, and the checksums, looked at whenever results are read, tell.
"""

import errno
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sellf import files, leftovers
from sellf._version import SAME_NUMBERS, __version__
from sellf.errors import InputError
from sellf.studies import heartbeat
from sellf.studies.plan import FORMAT
from sellf.studies.records import Record
from sellf.studies.run_files import (
    SUMS,
    DamagedError,
    compare,
    read_record,
    read_sums,
    sealed,
)

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec

PARTS = {"runs", "failed", "active", "tmp", "frontiers"}
CLAIMS = "claims"
STALE = 3600.0
"""Seconds after which a folder that is being written is taken for left behind."""


class FullError(InputError):
    """The disk is full."""


LONGEST = 1e8
"""Seconds; what claims to have trained for longer is not believed."""


@dataclass(frozen=True)
class Store:
    """A folder of runs."""

    folder: Path

    def done(self) -> set[str]:
        """Return the names of all runs that are there."""
        return set(_names(self.folder / "runs"))

    def path(self, name: str) -> Path:
        """Return the folder of a run."""
        return self.folder / "runs" / name

    def has(self, name: str) -> bool:
        """Return whether a run is there now."""
        return os.path.isdir(f"{self.folder}/runs/{name}")  # noqa: PTH112

    def put(self, name: str, contents: dict[str, bytes]) -> None:
        """Keep a run; if it came in meanwhile, it is the same one and stays."""
        beside = self._beside(name)
        try:
            os.mkdir(beside)  # noqa: PTH102
            for file, content in contents.items():
                _write(f"{beside}/{file}", content)
            try:
                os.rename(beside, f"{self.folder}/runs/{name}")  # noqa: PTH104
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                shutil.rmtree(beside)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full" if full else f"cannot write to {self.folder}: {error}"
            raise FullError(
                f"{reason}. Every run that was finished is kept: make room, then type the same "
                "command again; it does only what is missing."
            ) from None
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise

    def _beside(self, name: str) -> str:
        """Return where to put together a run, or what to call one that is being removed."""
        prefix, suffix = leftovers.affixes(name)
        return f"{self.folder}/tmp/{prefix}{time.time_ns()}{suffix}"

    def read(self, name: str) -> Record:
        """Return a run, all of its files checked."""
        return read_record(name, self.contents(name))

    def seconds(self, name: str) -> float | None:
        """Return what a run's training took, unchecked; nothing if that cannot be read."""
        try:
            found = float(files.parse_json(_read(self.path(name) / "config.json"))["seconds"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return found if 0 <= found <= LONGEST else None

    def check(self, name: str) -> None:
        """Refuse a run that is not as it was written."""
        self.contents(name)

    def drop(self, name: str) -> None:
        """Take a run out."""
        gone = Path(self._beside(name))
        with suppress(FileNotFoundError):  # another process was faster
            self.path(name).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def contents(self, name: str) -> dict[str, bytes]:
        """Return the files of a run; refuse it if they are not as they were written."""
        folder = self.path(name)
        try:
            sums = read_sums(_read(folder / SUMS))
            contents = {file: _read(folder / file) for file in sums}
        except (FileNotFoundError, ValueError) as error:
            raise DamagedError(f"run {name} is damaged ({error}).") from None
        except OSError as error:
            # Too many open files, say: it may well be whole, and must not be dropped for this.
            raise InputError(f"cannot read run {name}: {error}.") from None
        compare(name, contents, sums)
        return contents

    def fail(self, name: str, run: "RunSpec", kind: str, reason: str) -> None:
        """Record why a run could not be done."""
        content = {"kind": kind, "reason": reason, "run": run.to_json()}
        files.write(self.folder / "failed" / f"{name}.json", json.dumps(content).encode())

    def failed(self) -> dict[str, dict[str, Any]]:
        """Return what failed, by name, and why: `kind` is "diverged", "refused" or "died"."""
        names = (file.removesuffix(".json") for file in _names(self.folder / "failed"))
        found = {name: self.why_failed(name) for name in names}
        return {name: why for name, why in found.items() if why is not None}

    def why_failed(self, name: str) -> dict[str, Any] | None:
        """Return why a run could not be done, if that is on record."""
        try:
            path = self.folder / "failed" / f"{name}.json"
            why = files.parse_json(files.read(path, files.LARGEST_TEXT))
            right = all(isinstance(why[word], str) for word in ("kind", "reason"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return why if right else None

    def clear_failure(self, name: str) -> None:
        """Remove the record of a failure."""
        (self.folder / "failed" / f"{name}.json").unlink(missing_ok=True)


def open_store(
    folder: str | Path | None = None, write: bool = True, *, alone: bool = False
) -> Store:
    """Open a store: the folder given, else $SELLF_STORE, else `sellf-store` here.

    To write to, it is made if it is not there, and its runs must be of this version. Runs that are
    done one at a time (`alone`), to be timed, are kept beside: done with others around them they
    would be the same in everything but their seconds.
    """
    path = location(folder, alone=alone)
    mark = path / "store.json"
    if not mark.is_file():
        # Another process may be about to make it, or was killed at that.
        there = {name for name in _names(path) if not leftovers.of(name, mark.name)}
        if path.exists() and (not path.is_dir() or there - PARTS - {CLAIMS}):
            raise InputError(f"{path} is no store, and not empty: give another folder to --store.")
        if write:
            try:
                for part in PARTS:
                    (path / part).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make the store {path}: {error.strerror}.") from None
            files.write(mark, json.dumps({"format": FORMAT, **versions()}).encode())
            _sweep(path)
        return Store(path)
    content = files.read_json(mark, FORMAT, {"sellf": str, "jax": str}, sealed=False)
    if write:
        same_versions(path, content)
        try:
            for part in PARTS:
                (path / part).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to the store {path}: {error.strerror}.") from None
        _sweep(path)
    return Store(path)


def location(folder: str | Path | None = None, *, alone: bool = False) -> Path:
    """Return which folder a store is: as `open_store` takes it."""
    path = Path(folder or os.environ.get("SELLF_STORE") or "sellf-store")
    if not alone:
        return path
    path = path.resolve()
    return path.with_name(f"{path.name}-alone")


def merge(into: Store, other: str | Path) -> tuple[int, int, list[str]]:
    """Copy runs from another store; return how many came, how many were there, and what is bad."""
    source = open_store(other, write=False)
    if not (source.folder / "store.json").is_file():
        raise InputError(f"{other} is no store.")
    same_versions(
        source.folder,
        files.read_json(
            source.folder / "store.json", FORMAT, {"sellf": str, "jax": str}, sealed=False
        ),
    )
    here, there = into.done(), source.done()
    damaged = []
    for name in sorted(there - here):
        try:
            if source.path(name).is_symlink():
                raise DamagedError(f"{source.path(name)} is a link, and is not followed.")
            contents = source.contents(name)
            read_record(name, contents)
        except DamagedError as error:
            damaged.append(str(error))
            continue
        into.put(name, sealed(contents))
        into.clear_failure(name)
    return len(there - here) - len(damaged), len(there & here), damaged


def versions() -> dict[str, str]:
    """Return the versions that a run's numbers depend on."""
    from importlib.metadata import version

    return {"sellf": __version__, "jax": version("jax")}


def _read(path: Path) -> bytes:
    """Return a run's file: no link, device or pipe, which could hold anything."""
    try:
        return files.read(path, follow=False)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path.name} is a link; runs have files of their own") from None
        raise


def same_versions(path: Path, content: dict[str, Any]) -> None:
    """Refuse runs of versions whose numbers may differ from ours."""
    ours = versions()
    if content["sellf"] not in SAME_NUMBERS or content["jax"] != ours["jax"]:
        raise InputError(
            f"{path} holds runs of sellf {content['sellf']} and JAX {content['jax']}; this is "
            f"sellf {ours['sellf']} and JAX {ours['jax']}, whose numbers may differ: use those "
            "versions, or give another folder to --store."
        )


def _write(path: str, content: bytes) -> None:
    """Write a file with as few calls as there can be: a store may have a hundred thousand."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
    finally:
        os.close(handle)


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except FileNotFoundError:
        return


def _sweep(store: Path) -> None:
    """Remove what processes that were killed left behind."""
    heartbeat.sweep(store)
    for folder in (store, *(store / part for part in PARTS - {"runs"})):
        leftovers.sweep(folder)
    for name in _names(store / "tmp"):
        left = store / "tmp" / name
        try:
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
