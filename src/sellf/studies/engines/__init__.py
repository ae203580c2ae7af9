"""Engines: where runs are done. They take jobs, and give back folders as bytes, or a reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.studies import plan
from sellf.studies.records import RunSpec

ENGINES = ("local", "ray")
RETRIES = 2
"""How often a run is tried again whose worker died."""

ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Of a worker's environment. XLA takes NPROC for the number of cores; where it has several, it
splits wide products (ELBERT's) among them, and their sums end in other bits."""


@dataclass(frozen=True)
class Job:
    """A run to be done."""

    name: str
    program: str
    run: RunSpec


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    job: Job
    files: dict[str, bytes] | None = None
    kind: str = ""
    """Why there are no files: "diverged" (and would again), "refused", "died", or "elsewhere", if
    another process has it."""
    reason: str = ""


def anything(job: Job) -> bool:
    """Claim a job where nobody else could."""
    return True


class Engine(Protocol):
    """What does jobs."""

    claim: Callable[[Job], bool]
    """Asked before a job begins; if it says no, the outcome is "elsewhere"."""

    @property
    def workers(self) -> int:
        """How many at a time."""
        ...

    def submit(self, job: Job, soon: bool = False) -> None:
        """Take a job; `soon`: before those that were there already."""
        ...

    def wait(self, seconds: float) -> list[Outcome]:
        """Return what has come to an end, after waiting for something to do so."""
        ...

    def running(self) -> list[Job]:
        """Return what is under way."""
        ...

    def close(self) -> None:
        """Stop everything."""
        ...


def job(run: RunSpec, name: str) -> Job:
    """Return the job of a run."""
    return Job(name, plan.program(run), run)


def make(engine: str, workers: int | None = None, address: str | None = None) -> Engine:
    """Return an engine by name.

    Args:
        engine: "local" or "ray".
        workers: how many runs at a time; 0 does them in this process (local).
        address: of a Ray cluster, or "auto"; without, one is started for the purpose.
    """
    one_of("engine", engine, ENGINES)
    if workers is not None and workers < 0:
        raise InputError(f"workers is {workers}: give 0 or more.")
    if engine == "ray":
        from sellf.studies.engines.ray import RayEngine

        return RayEngine(address, workers)
    if address is not None:
        raise InputError("--address is Ray's: type --engine ray as well.")
    from sellf.studies.engines.local import HereEngine, LocalEngine

    return HereEngine() if workers == 0 else LocalEngine(workers)
