"""Engines for this machine: in this process, or in worker processes pinned to cores."""

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from sellf.studies.engines import frames
from sellf.studies.engines.base import ONE_THREAD, RETRIES, Job, Outcome, anything

WORKER = "sellf.studies.engines.worker"
TAIL = 400
"""Number of characters kept of a dead worker's last error output."""


class HereEngine:
    """Executes jobs in this process, one after the other."""

    def __init__(self) -> None:
        """Set the environment for one thread, which works only before JAX has started."""
        os.environ.update(ONE_THREAD)
        self.claim: Callable[[Job], bool] = anything
        self.workers = 1
        self.jobs: deque[Job] = deque()

    def submit(self, job: Job, soon: bool = False) -> None:
        """Add a job to the queue; with `soon`, at its front."""
        (self.jobs.appendleft if soon else self.jobs.append)(job)

    def wait(self, seconds: float) -> list[Outcome]:
        """Execute the next job."""
        if not self.jobs:
            return []
        from sellf.studies.engines.task import attempt

        job = self.jobs[0]
        if not self.claim(job):
            return [Outcome(self.jobs.popleft(), kind="elsewhere")]
        message, files = attempt(job.run.to_json())
        self.jobs.popleft()
        return [Outcome(job, files or None, **message)]

    def running(self) -> list[Job]:
        """Return the job that is next."""
        return list(self.jobs)[:1]

    def close(self) -> None:
        """Discard the remaining jobs."""
        self.jobs.clear()


class LocalEngine:
    """Executes jobs in worker processes, each managed by a thread."""

    def __init__(self, workers: int | None = None) -> None:
        """Start the threads; their processes start with the first job.

        Args:
            workers: number of worker processes; by default the number of cores.
        """
        cores = usable_cores()
        self.claim: Callable[[Job], bool] = anything
        self.workers = workers or len(cores)
        self.outcomes: queue.Queue[Outcome] = queue.Queue()
        self.jobs: dict[str, deque[Job]] = {}
        self.current: dict[int, Job] = {}
        self.change = threading.Condition()
        self.closed = False
        self.processes: dict[int, _Process] = {}
        self.threads = [
            threading.Thread(
                target=self._serve,
                # With spare cores the system places workers better, for example next to another
                # study.
                args=(i, cores[i] if self.workers == len(cores) else -1),
                daemon=True,
            )
            for i in range(self.workers)
        ]
        for thread in self.threads:
            thread.start()

    def submit(self, job: Job, soon: bool = False) -> None:
        """Add a job to the queue; with `soon`, its program is the next that a worker takes."""
        with self.change:
            self.jobs.setdefault(job.program, deque()).append(job)
            if soon:
                self.jobs = {job.program: self.jobs.pop(job.program), **self.jobs}
            self.change.notify()

    def wait(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of jobs that have ended."""
        found = []
        try:
            found.append(self.outcomes.get(timeout=seconds))
            while True:
                found.append(self.outcomes.get_nowait())
        except queue.Empty:
            return found

    def running(self) -> list[Job]:
        """Return the jobs that are running."""
        with self.change:
            return list(self.current.values())

    def close(self) -> None:
        """Stop the workers, whatever they are doing."""
        with self.change:
            self.closed = True
            self.jobs.clear()
            self.change.notify_all()
            for process in self.processes.values():
                process.stop()
        # Each thread closes the pipes of its own process, which it may be reading from.
        for thread in self.threads:
            thread.join()

    def _serve(self, number: int, core: int) -> None:
        """Manage one worker: give it jobs, and restart it when it dies."""
        last = ""
        while (job := self._take(number, last)) is not None:
            outcome = None
            if self.claim(job):
                last = job.program
                for _ in range(1 + RETRIES):
                    outcome = self._try(number, core, job)
                    if self.closed or outcome.kind != "died":
                        break
            else:
                outcome = Outcome(job, kind="elsewhere")
            with self.change:
                del self.current[number]
                if outcome is not None and not self.closed:
                    self.outcomes.put(outcome)
        with self.change:
            process = self.processes.pop(number, None)
        if process is not None:
            process.end()

    def _try(self, number: int, core: int, job: Job) -> Outcome:
        process = self.processes.get(number)
        if process is None:
            with self.change:
                if self.closed:
                    return Outcome(job, kind="died", reason="stopped")
                try:
                    process = self.processes[number] = _Process(core)
                except OSError as error:
                    return Outcome(job, kind="died", reason=f"no worker could be started: {error}")
        answer = process.ask(job.run.to_json())
        if answer is None:
            with self.change:
                self.processes.pop(number, None)
            return Outcome(job, kind="died", reason=process.last_words())
        message, files = answer
        return Outcome(job, files or None, **message)

    def _take(self, number: int, last: str) -> Job | None:
        """Wait for a job, preferably of this worker's program, else of one no other worker has."""
        with self.change:
            while not self.jobs and not self.closed:
                self.change.wait()
            if self.closed:
                return None
            taken = {job.program for job in self.current.values()}
            free = [program for program in self.jobs if program not in taken]
            program = last if last in self.jobs else next(iter(free or self.jobs))
            job = self.current[number] = self.jobs[program].popleft()
            if not self.jobs[program]:
                del self.jobs[program]
            return job


class _Process:
    """A worker process and the pipes to it."""

    def __init__(self, core: int) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                # The parent's id is passed on, since the parent may end before the worker asks.
                [sys.executable, "-m", WORKER, str(core), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env=os.environ | ONE_THREAD,
                # Ctrl-C goes to the parent only, which ends its workers itself.
                start_new_session=True,
            )
        except OSError:
            self.errors.close()
            raise

    def ask(self, message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """Return a worker's answer; None if it died."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            frames.send(_binary(self.process.stdin), message)
            return frames.receive(_binary(self.process.stdout))
        except (OSError, ValueError):  # it died, or was ended and its pipes are closed
            return None

    def last_words(self) -> str:
        """Return how a worker ended, with its last error output."""
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip()[-TAIL:]
        self.end()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"the worker died ({how})" + (f": {said}" if said else "")

    def stop(self) -> None:
        """Kill the process, which ends a pending `ask` without an answer."""
        self.process.kill()

    def end(self) -> None:
        """Kill the process and close its pipes."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream is not None:
                # Unsent data cannot be delivered any more.
                with suppress(OSError):
                    stream.close()


def _binary(stream: Any) -> BinaryIO:
    return stream


def usable_cores() -> list[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
