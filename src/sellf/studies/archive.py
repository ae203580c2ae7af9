"""Export of a study's finished runs to one small file, to continue on another machine.

The file is a tar archive compressed with xz. It contains `store.json`, which names versions and
runs, and the configuration and the results of every run with their checksums. Agents are left out,
time series are averaged over deployments, and training metrics are kept only if the study draws
them: 2 KB per run instead of 200. Tables, figures and selection read such a run like any other.
"""

import io
import json
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sellf import files
from sellf.errors import InputError
from sellf.studies import plan, run_files, store
from sellf.studies.plan import FORMAT
from sellf.studies.results import results
from sellf.studies.run_files import DamagedError
from sellf.studies.spec import Study
from sellf.studies.statistics import mean_over
from sellf.studies.store import Store

SUFFIX = ".tar.xz"
LEARNING = {"ablation-disparity", "ablation-renyi", "bound-terms", "weights"}
"""Figures that are drawn from training metrics."""
MARK = "store.json"
MOST_FILE, MOST_ALL = 64 * 2**20, 4 * 2**30
"""Largest size in bytes of one file, and of all files, of an archive."""


def export(study: Study, kept: Store, path: Path) -> int:
    """Write a study's runs in a store to a file; return the number of runs."""
    found = results(study, kept)
    specs = [run.spec for cell in found.cells for run in (*cell.grid, *cell.final)]
    names = sorted({plan.key(spec) for spec in specs})
    if not names:
        raise InputError(f"{kept.folder} has no run of {study.name}: there is nothing to export.")
    metrics = bool(LEARNING & set(study.draw))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        mark = {"format": FORMAT, **store.versions(), "runs": names}
        _add(archive, MARK, json.dumps(mark).encode())
        for name in names:
            for file, content in compact(kept.contents(name), metrics).items():
                _add(archive, f"runs/{name}/{file}", content)
    files.write(path, buffer.getvalue())
    return len(names)


def compact(contents: dict[str, bytes], metrics: bool) -> dict[str, bytes]:
    """Return a run's files without the agent and with only the results that tables need."""
    from safetensors.numpy import load

    small = {}
    for name, values in load(contents["results.safetensors"]).items():
        if name.startswith("metrics.") and not metrics:
            continue
        if name.startswith("by_time.") and values.ndim > 1:
            values = mean_over(values)[None]
        single = values.dtype == np.float64
        small[name] = values.astype(np.float32) if single else np.asarray(values)
    own = {
        name: contents[name] for name in contents if name in ("config.json", "world.safetensors")
    }
    return run_files.sealed({**own, "results.safetensors": files.tensors_to_bytes(small)})


def merge(into: Store, path: Path) -> tuple[int, int, list[str]]:
    """Import runs from an archive; return the numbers of new and known runs, and the damage."""
    here, came, there = into.done(), 0, 0
    damaged: list[str] = []
    for name, contents in _runs(path):
        if name in here:
            there += 1
            continue
        try:
            run_files.check_whole(name, contents)
        except DamagedError as error:
            damaged.append(str(error))
            continue
        into.put(name, contents)
        into.clear_failure(name)
        came += 1
    return came, there, damaged


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _foreign(path: Path, name: str) -> InputError:
    return InputError(
        f"{path} is no archive of runs: it contains {name[:60]!r}. Give a file written by `sellf "
        "study export`."
    )


def _runs(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield an archive's runs without unpacking to disk or using its names as paths."""
    runs: dict[str, dict[str, bytes]] = {}
    listed: list[str] = []
    total = 0
    try:
        with tarfile.open(path, "r:xz") as archive:
            for entry in archive:
                parts = entry.name.split("/")
                total += entry.size
                if not entry.isreg() or entry.size > MOST_FILE or total > MOST_ALL:
                    raise _foreign(path, entry.name)
                reader = archive.extractfile(entry)
                content = b"" if reader is None else reader.read()
                if parts == [MARK]:
                    mark = files.parse_json(content)
                    store.same_versions(path, mark)
                    listed = list(mark["runs"])
                elif len(parts) == 3 and parts[0] == "runs" and run_files.is_name(parts[1]):
                    runs.setdefault(parts[1], {})[parts[2]] = content
                else:
                    raise _foreign(path, entry.name)
    except InputError:
        raise
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no archive of runs, or it is damaged: {error}.") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    # From a truncated archive, tarfile may return the first entries without an error.
    if not listed or sorted(runs) != listed:
        raise InputError(f"{path} is damaged: it does not contain the runs that it lists.")
    yield from runs.items()
