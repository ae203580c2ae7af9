"""What an engine is: it takes jobs, and gives back folders as bytes, or a reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sellf.studies import plan

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec

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
    run: "RunSpec"


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


def job(run: "RunSpec", name: str) -> Job:
    """Return the job of a run."""
    return Job(name, plan.program(run), run)
