"""Run folders: `config.json`, `metrics.jsonl`, `checkpoint.safetensors`, `agent.safetensors`."""

import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sellf import files, leftovers, locks
from sellf._version import SAME_NUMBERS, __version__
from sellf.errors import InputError
from sellf.training import metrics
from sellf.training.agent import Agent
from sellf.training.spec import FORMAT, NEEDED, RunSpec, from_folder

CHECKPOINT_EVERY = 25
"""Number of iterations between checkpoints."""


@dataclass
class Run:
    """A run folder that training writes to."""

    folder: Path
    spec: RunSpec
    logs: tuple[str, ...] = ()
    """Names of the trackers that the run is logged to."""
    pending: list[bytes] = field(default_factory=list)
    """Metrics since the last checkpoint."""
    rows: int = 0
    """Number of rows of metrics written so far."""
    total: Any = field(default_factory=lambda: metrics.digest([]))
    """Checksum of the rows written so far."""

    @property
    def checkpoint(self) -> Path:
        """Path of the last checkpoint, which may not exist yet."""
        return self.folder / "checkpoint.safetensors"

    def record(self, iteration: int, row: dict[str, Any], state: Any, last: bool) -> None:
        """Record the metrics of an iteration; save them and a checkpoint periodically."""
        self.pending.append(metrics.line(row))
        if last or (iteration + 1) % CHECKPOINT_EVERY == 0:
            self.save(state)

    def save(self, state: Any) -> None:
        """Write the metrics, then the checkpoint that they lead up to.

        In this order, a killed run has the metrics of every iteration up to its checkpoint, and
        possibly of a few more, which are written again when the run is resumed.
        """
        if not self.pending:
            return
        path = self.folder / "metrics.jsonl"
        try:
            with path.open("ab") as file:
                file.write(b"".join(self.pending))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(
                f"cannot write {path}: {error.strerror}. Type `sellf train --resume {self.folder}` "
                "to continue from the last checkpoint."
            ) from None
        self.rows += len(self.pending)
        self.total.update(b"".join(self.pending))
        self.pending.clear()
        note = metrics.note(self.rows, self.total)
        files.write(self.checkpoint, _to_bytes(state, metrics=note, run=self.spec.digest))

    def begin(self, state: Any) -> None:
        """Write a checkpoint before the first iteration, of a state that no seed reproduces."""
        note = metrics.note(self.rows, self.total)
        files.write(self.checkpoint, _to_bytes(state, metrics=note, run=self.spec.digest))

    def alone(self) -> AbstractContextManager[None]:
        """Lock the folder against other processes while this one trains."""
        return locks.only_one(
            self.folder,
            f"another process is training in {self.folder}: wait until it has ended, or stop it; "
            f"then type `sellf train --resume {self.folder}`.",
        )

    def restore(self, state: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Return the state of the last checkpoint and the metrics up to it."""
        leftovers.sweep(self.folder)
        path = self.checkpoint
        if not path.exists():
            files.write(self.folder / "metrics.jsonl", b"")
            return state, []
        state = _from_arrays(state, files.read_tensors(path), path)
        if files.notes(path).get("run") != self.spec.digest:
            raise InputError(f"{path} belongs to another run than config.json. {files.AGAIN}")
        done = int(state.iteration)
        written = self.folder / "metrics.jsonl"
        rows = metrics.read(written, self.spec.iterations)[:done]
        if len(rows) < done:
            raise InputError(
                f"{written} contains {len(rows)} iterations, but the checkpoint {done}: restore it "
                "from a copy, or train again into another folder."
            )
        files.write(written, b"".join(map(metrics.line, rows)))
        self.rows, self.total = done, metrics.digest(rows)
        return state, rows

    def finish(self, agent: Agent) -> None:
        """Write the trained agent, with a checksum of the metrics."""
        note = metrics.note(self.rows, self.total)
        for name, content in agent.tensors(metrics=note).items():
            files.write(self.folder / name, content)


def create(folder: Path, spec: RunSpec, logs: Sequence[Any] = ()) -> Run:
    """Create a new run folder; `logs` that are functions are not stored."""
    if folder.exists():
        raise InputError(
            f"{folder} exists: type `sellf train --resume {folder}` to resume it, or choose "
            "another name."
        )
    named = [choice for choice in logs if isinstance(choice, str)]
    content = {
        "format": FORMAT,
        "sellf": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "git": _git_revision(),
        **spec.to_config(),
        "log": named,
    }
    contents = {"config.json": files.sealed_json(content), "metrics.jsonl": b""}
    files.write_folder(folder, contents | spec.world_files())
    return Run(folder, spec, tuple(named))


def open_run(folder: Path) -> Run:
    """Open a run folder to resume the run."""
    needed = NEEDED | {"sellf": str, "jax": str, "steps": int}
    config = files.read_json(folder / "config.json", FORMAT, needed)
    if config["sellf"] not in SAME_NUMBERS or config["jax"] != jax.__version__:
        raise InputError(
            f"{folder} was started with sellf {config['sellf']} and JAX {config['jax']}; this is "
            f"sellf {__version__} and JAX {jax.__version__}, whose numbers may differ: use the "
            "former versions, or train again."
        )
    return Run(folder, from_folder(folder, config), config.get("log", ()))


def free(parent: Path, name: str) -> Path:
    """Return a folder that does not exist yet."""
    number, folder = 2, parent / name
    while folder.exists():
        folder, number = parent / f"{name}-{number}", number + 1
    return folder


def _git_revision() -> str | None:
    """Return the git revision of the working directory, if there is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _to_bytes(state: Any, **notes: str) -> bytes:
    leaves = jax.tree.leaves(state)
    arrays = {f"{i:04d}": _raw(leaf) for i, leaf in enumerate(leaves)}
    return files.tensors_to_bytes(arrays, **notes)


def _raw(leaf: jax.Array) -> np.ndarray:
    key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if key else leaf)


def _from_arrays(like: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    leaves, structure = jax.tree.flatten(like)
    fits = len(arrays) == len(leaves)
    restored = []
    for i, leaf in enumerate(leaves):
        array, raw = arrays.get(f"{i:04d}"), _raw(leaf)
        if not fits or array is None or (array.shape, array.dtype) != (raw.shape, raw.dtype):
            raise InputError(f"{path} does not belong to this run, or is damaged: train again.")
        key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        fresh = jnp.asarray(array)
        restored.append(jax.random.wrap_key_data(fresh) if key else fresh)
    return jax.tree.unflatten(structure, restored)
