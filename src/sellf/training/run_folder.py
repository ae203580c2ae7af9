"""A run's folder: `config.json`, `metrics.jsonl`, `checkpoint.safetensors`, `agent.safetensors`."""

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
"""Iterations between checkpoints."""


@dataclass
class Run:
    """A run folder that training writes to."""

    folder: Path
    spec: RunSpec
    logs: tuple[str, ...] = ()
    """Where it is logged to, of the logs that have a name."""
    pending: list[bytes] = field(default_factory=list)
    """Metrics since the last checkpoint."""
    rows: int = 0
    """How many were written ..."""
    total: Any = field(default_factory=lambda: metrics.digest([]))
    """... and their checksum."""

    @property
    def checkpoint(self) -> Path:
        """Where the last checkpoint is, if there is one."""
        return self.folder / "checkpoint.safetensors"

    def record(self, iteration: int, row: dict[str, Any], state: Any, last: bool) -> None:
        """Keep an iteration's metrics; every so often, write the metrics and then a checkpoint."""
        self.pending.append(metrics.line(row))
        if last or (iteration + 1) % CHECKPOINT_EVERY == 0:
            self.save(state)

    def save(self, state: Any) -> None:
        """Write the metrics, and then the checkpoint that they lead up to.

        In this order a run that is killed has the metrics of every iteration that its checkpoint
        knows, and maybe of a few more, which going on writes again.
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
                "to go on from the last checkpoint."
            ) from None
        self.rows += len(self.pending)
        self.total.update(b"".join(self.pending))
        self.pending.clear()
        note = metrics.note(self.rows, self.total)
        files.write(self.checkpoint, _to_bytes(state, metrics=note, run=self.spec.digest))

    def begin(self, state: Any) -> None:
        """Write a checkpoint before the first iteration, of what no seed can make again."""
        note = metrics.note(self.rows, self.total)
        files.write(self.checkpoint, _to_bytes(state, metrics=note, run=self.spec.digest))

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes out while this one trains."""
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
            raise InputError(f"{path} is of another run than config.json describes. {files.AGAIN}")
        done = int(state.iteration)
        written = self.folder / "metrics.jsonl"
        rows = metrics.read(written, self.spec.iterations)[:done]
        if len(rows) < done:
            raise InputError(
                f"{written} holds {len(rows)} iterations, and the checkpoint {done}: restore it "
                "from a copy, or train anew into another folder."
            )
        files.write(written, b"".join(map(metrics.line, rows)))
        self.rows, self.total = done, metrics.digest(rows)
        return state, rows

    def finish(self, agent: Agent) -> None:
        """Write the trained agent, with what the metrics are."""
        note = metrics.note(self.rows, self.total)
        for name, content in agent.tensors(metrics=note).items():
            files.write(self.folder / name, content)


def create(folder: Path, spec: RunSpec, logs: Sequence[Any] = ()) -> Run:
    """Make a new run folder; `logs` that are functions are not kept."""
    if folder.exists():
        raise InputError(
            f"{folder} exists: type `sellf train --resume {folder}` to go on with it, or choose "
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
    """Open a run folder to go on with it."""
    needed = NEEDED | {"sellf": str, "jax": str, "steps": int}
    config = files.read_json(folder / "config.json", FORMAT, needed)
    if config["sellf"] not in SAME_NUMBERS or config["jax"] != jax.__version__:
        raise InputError(
            f"{folder} was begun with sellf {config['sellf']} and JAX {config['jax']}; this is "
            f"sellf {__version__} and JAX {jax.__version__}, which may go on differently: use "
            "those versions, or train anew."
        )
    return Run(folder, from_folder(folder, config), config.get("log", ()))


def free(parent: Path, name: str) -> Path:
    """Return a folder that does not exist yet."""
    number, folder = 2, parent / name
    while folder.exists():
        folder, number = parent / f"{name}-{number}", number + 1
    return folder


def _git_revision() -> str | None:
    """Return the revision of the folder that one works in, if it is under git."""
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
            raise InputError(f"{path} does not belong to this run, or is damaged: train anew.")
        key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        fresh = jnp.asarray(array)
        restored.append(jax.random.wrap_key_data(fresh) if key else fresh)
    return jax.tree.unflatten(structure, restored)
