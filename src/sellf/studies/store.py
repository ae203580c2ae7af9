"""The store of runs: one folder per run, written atomically, with checksums.

    store.json           the versions that all its runs were made with
    runs/NAME/           config.json, agent.safetensors, results.safetensors, sha256sums; a run that
                         was imported from an archive has no agent
    failed/NAME.json     why a run failed
    active/              the processes that are working on the store now
    tmp/                 folders that are being written
    claims               empty; the process that does a run holds a lock on a byte of it

A folder is renamed into `runs` once it is complete, so every run in `runs` was written to the end,
and status needs the names only. Files are not synced to disk one by one: after a crash of the
machine a file may be truncated, which the checksums, verified whenever results are read, detect.
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
"""Seconds after which an incomplete folder is considered abandoned."""


class FullError(InputError):
    """The disk is full."""


LONGEST = 1e8
"""Longest plausible training time in seconds."""


@dataclass(frozen=True)
class Store:
    """A store of runs in a folder."""

    folder: Path

    def done(self) -> set[str]:
        """Return the names of all runs in the store."""
        return set(_names(self.folder / "runs"))

    def path(self, name: str) -> Path:
        """Return the folder of a run."""
        return self.folder / "runs" / name

    def has(self, name: str) -> bool:
        """Return whether the store has a run now."""
        return os.path.isdir(f"{self.folder}/runs/{name}")  # noqa: PTH112

    def put(self, name: str, contents: dict[str, bytes]) -> None:
        """Store a run; if it was stored in the meantime, the existing copy is kept."""
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
                f"{reason}. All finished runs are kept: free some space, then type the same "
                "command again; only missing runs are done."
            ) from None
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise

    def _beside(self, name: str) -> str:
        """Return a temporary path for a run that is being written or removed."""
        prefix, suffix = leftovers.affixes(name)
        return f"{self.folder}/tmp/{prefix}{time.time_ns()}{suffix}"

    def read(self, name: str) -> Record:
        """Return a run after checking all its files."""
        return read_record(name, self.contents(name))

    def seconds(self, name: str) -> float | None:
        """Return the training time of a run, unchecked; None if it cannot be read."""
        try:
            found = float(files.parse_json(_read(self.path(name) / "config.json"))["seconds"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return found if 0 <= found <= LONGEST else None

    def check(self, name: str) -> None:
        """Raise an error if a run's files are not as they were written."""
        self.contents(name)

    def drop(self, name: str) -> None:
        """Remove a run."""
        gone = Path(self._beside(name))
        with suppress(FileNotFoundError):  # another process was faster
            self.path(name).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def contents(self, name: str) -> dict[str, bytes]:
        """Return the files of a run; raise an error if they are not as they were written."""
        folder = self.path(name)
        try:
            sums = read_sums(_read(folder / SUMS))
            contents = {file: _read(folder / file) for file in sums}
        except (FileNotFoundError, ValueError) as error:
            raise DamagedError(f"run {name} is damaged ({error}).") from None
        except OSError as error:
            # For example too many open files: the run may be intact and must not be dropped.
            raise InputError(f"cannot read run {name}: {error}.") from None
        compare(name, contents, sums)
        return contents

    def fail(self, name: str, run: "RunSpec", kind: str, reason: str) -> None:
        """Record why a run failed."""
        content = {"kind": kind, "reason": reason, "run": run.to_json()}
        files.write(self.folder / "failed" / f"{name}.json", json.dumps(content).encode())

    def failed(self) -> dict[str, dict[str, Any]]:
        """Return failed runs by name, with reason and kind ("diverged", "refused" or "died")."""
        names = (file.removesuffix(".json") for file in _names(self.folder / "failed"))
        found = {name: self.why_failed(name) for name in names}
        return {name: why for name, why in found.items() if why is not None}

    def why_failed(self, name: str) -> dict[str, Any] | None:
        """Return why a run failed; None if there is no valid record."""
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
    """Open a store: the given folder, or $SELLF_STORE, or `sellf-store` in the working directory.

    For writing, a missing store is created, and existing runs must be of this version. Runs that
    are timed one at a time (`alone`) are kept in a separate store: runs done next to others would
    have the same results, but other training times.
    """
    path = location(folder, alone=alone)
    mark = path / "store.json"
    if not mark.is_file():
        # Another process may be creating the store, or was killed while doing so.
        there = {name for name in _names(path) if not leftovers.of(name, mark.name)}
        if path.exists() and (not path.is_dir() or there - PARTS - {CLAIMS}):
            raise InputError(f"{path} is no store, and not empty: give another folder to --store.")
        if write:
            try:
                for part in PARTS:
                    (path / part).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot create the store {path}: {error.strerror}.") from None
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
    """Return the folder of a store, with arguments as for `open_store`."""
    path = Path(folder or os.environ.get("SELLF_STORE") or "sellf-store")
    if not alone:
        return path
    path = path.resolve()
    return path.with_name(f"{path.name}-alone")


def merge(into: Store, other: str | Path) -> tuple[int, int, list[str]]:
    """Copy runs from another store; return the numbers of new and known runs, and the damage."""
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
                raise DamagedError(f"{source.path(name)} is a link, which is not followed.")
            contents = source.contents(name)
            read_record(name, contents)
        except DamagedError as error:
            damaged.append(str(error))
            continue
        into.put(name, sealed(contents))
        into.clear_failure(name)
    return len(there - here) - len(damaged), len(there & here), damaged


def versions() -> dict[str, str]:
    """Return the versions that the results of a run depend on."""
    from importlib.metadata import version

    return {"sellf": __version__, "jax": version("jax")}


def _read(path: Path) -> bytes:
    """Read a file of a run; links, devices and pipes are refused."""
    try:
        return files.read(path, follow=False)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path.name} is a link; runs consist of regular files") from None
        raise


def same_versions(path: Path, content: dict[str, Any]) -> None:
    """Refuse runs of versions whose results may differ from those of this version."""
    ours = versions()
    if content["sellf"] not in SAME_NUMBERS or content["jax"] != ours["jax"]:
        raise InputError(
            f"{path} holds runs of sellf {content['sellf']} and JAX {content['jax']}; this is "
            f"sellf {ours['sellf']} and JAX {ours['jax']}, whose numbers may differ: use the "
            "former versions, or give another folder to --store."
        )


def _write(path: str, content: bytes) -> None:
    """Write a file with few system calls, since a store may have a hundred thousand files."""
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
    """Remove files left behind by killed processes."""
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
