"""The interface of engines, which take jobs and return run folders as bytes, or a reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sellf.studies import plan

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec

RETRIES = 2
"""Number of retries of a run whose worker died."""

ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment variables of a worker. XLA takes NPROC as the number of cores; with several cores it
splits wide products (ELBERT's) among them, which changes the last bits of their sums."""


@dataclass(frozen=True)
class Job:
    """A run to execute."""

    name: str
    program: str
    run: "RunSpec"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job: its files, or why there are none."""

    job: Job
    files: dict[str, bytes] | None = None
    kind: str = ""
    """Why there are no files: "diverged" (and would again), "refused", "died", or "elsewhere" if
    another process does the run."""
    reason: str = ""


def anything(job: Job) -> bool:
    """Accept every job, where no other process works on the store."""
    return True


class Engine(Protocol):
    """Executes jobs."""

    claim: Callable[[Job], bool]
    """Called before a job starts; if it returns False, the outcome is "elsewhere"."""

    @property
    def workers(self) -> int:
        """Number of jobs executed at a time."""
        ...

    def submit(self, job: Job, soon: bool = False) -> None:
        """Add a job to the queue; with `soon`, at its front."""
        ...

    def wait(self, seconds: float) -> list[Outcome]:
        """Wait for jobs to end and return their outcomes."""
        ...

    def running(self) -> list[Job]:
        """Return the jobs that are running."""
        ...

    def close(self) -> None:
        """Stop all jobs."""
        ...


def job(run: "RunSpec", name: str) -> Job:
    """Return the job of a run."""
    return Job(name, plan.program(run), run)
