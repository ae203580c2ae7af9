"""An engine for a Ray cluster, either an existing one or one that is started temporarily.

A task contains everything that a worker needs, including this version of sellf, and returns the
run's folder as bytes. Machines therefore need Python and JAX, but no shared file system.
"""

import json
import os
import socket
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sellf import interrupts
from sellf.errors import InputError
from sellf.studies.engines.base import ONE_THREAD, RETRIES, Job, Outcome, anything
from sellf.studies.engines.local import usable_cores

PATIENCE = 3.0
"""Timeout in seconds for a cluster to answer."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
"""Opening of an HTTP/2 client, the protocol of Ray: the connection preface and empty settings."""
AHEAD = 2
"""Number of jobs submitted to Ray per core, such that no core is idle."""


class RayEngine:
    """Executes jobs as Ray tasks of one core each."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Connect to a cluster, or start one.

        Args:
            address: HOST:PORT of a cluster, ray://HOST:PORT, or "auto"; None starts one.
            workers: number of jobs at a time; by default the cluster's number of cores.
        """
        # Ray reports usage statistics by default.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address not in (None, "auto"):
            _reachable(address)
            if _is_here(address) and _has_token():
                # As Ray does for "auto": a cluster on this machine may receive its token.
                os.environ.setdefault("RAY_AUTH_MODE", "token")
        if address is None or _loopback_only(address):
            # Ray replaces 127.0.0.1 by this machine's other address, unless clusters of several
            # machines are disabled before its import (on Linux too, despite the variable's name).
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        try:
            import ray
        except ImportError:
            raise InputError("--engine ray needs Ray: type `pip install 'sellf[ray]'`.") from None
        self.ray: Any = ray
        self.claim: Callable[[Job], bool] = anything
        self.limit = workers or None
        self.mine = not ray.is_initialized()
        if self.mine:
            with warnings.catch_warnings():
                # JAX warns of forks; Ray's forks execute another program at once and are harmless.
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
                _connect(ray, address, workers)
            interrupts.keep()  # Ray ends its process on SIGTERM without a message
        self.jobs: deque[Job] = deque()
        self.open: dict[Any, Job] = {}
        self.tried: dict[str, int] = {}
        # Ray's own retries are off: deaths are counted here, as for local workers.
        self.attempt = ray.remote(num_cpus=1, max_retries=0)(_attempt)

    @property
    def workers(self) -> int:
        """Number of jobs at a time, with the current nodes."""
        cores = int(self.ray.cluster_resources().get("CPU", 1))
        return max(1, min(cores, self.limit or cores))

    def submit(self, job: Job, soon: bool = False) -> None:
        """Add a job to the queue; with `soon`, at its front."""
        (self.jobs.appendleft if soon else self.jobs.append)(job)

    def wait(self, seconds: float) -> list[Outcome]:
        """Submit jobs to Ray and return the outcomes of those that have ended."""
        room = self.workers if self.limit else self.workers * AHEAD
        others: list[Outcome] = []
        while self.jobs and len(self.open) < room:
            job = self.jobs.popleft()
            if not self.claim(job):
                others.append(Outcome(job, kind="elsewhere"))
                continue
            self.open[self.attempt.remote(json.dumps(job.run.to_json()))] = job
        if others or not self.open:
            return others
        ready, _ = self.ray.wait(list(self.open), timeout=seconds)
        outcomes = [self._finish(reference) for reference in ready]
        return [outcome for outcome in outcomes if outcome is not None]

    def _finish(self, reference: Any) -> Outcome | None:
        """Return the outcome of a task; None if it is retried."""
        job = self.open.pop(reference)
        try:
            message, files = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            message, files = {"kind": "died", "reason": f"the worker died: {reason}"}, {}
        if message.get("kind") == "died":
            self.tried[job.name] = self.tried.get(job.name, 0) + 1
            if self.tried[job.name] <= RETRIES:
                self.jobs.appendleft(job)
                return None
        return Outcome(job, files or None, **message)

    def running(self) -> list[Job]:
        """Return the jobs that are running."""
        return list(self.open.values())[: self.workers]

    def close(self) -> None:
        """Cancel the tasks and disconnect from the cluster."""
        for reference in self.open:
            self.ray.cancel(reference, force=True)
        self.open.clear()
        self.jobs.clear()
        if self.mine:
            self.ray.shutdown()


def _attempt(run: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Execute a run on a node."""
    from sellf.studies.engines.task import attempt

    return attempt(json.loads(run))


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    common = {
        "logging_level": "ERROR",
        "log_to_driver": False,
        "runtime_env": {
            "py_modules": [str(Path(__file__).parents[2])],
            "env_vars": ONE_THREAD | _passed_on(address is None),
        },
    }
    if address is None:
        ray.init(
            address="local",
            num_cpus=workers or len(usable_cores()),
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            **common,
        )
        return
    try:
        ray.init(address=address, **common)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        hint = (
            " If the cluster requires a token, the default of Ray, put it into ~/.ray/auth_token "
            "and type RAY_AUTH_MODE=token before the command."
        )
        hint = "" if "RAY_AUTH_MODE" in os.environ else hint
        raise InputError(
            f"no Ray cluster answers at {address} ({reason}): start one with `ray start --head`, "
            f"or leave --address out.{hint}"
        ) from None


def _passed_on(here: bool) -> dict[str, str]:
    """Return environment variables for workers; those of this machine only if they run here."""
    names = ["JAX_PLATFORMS", "XLA_FLAGS", *(["SELLF_CACHE"] if here else [])]
    return {name: os.environ[name] for name in names if name in os.environ}


def _has_token() -> bool:
    """Return whether a token for Ray clusters exists where Ray looks for it."""
    named = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ)
    return bool(named) or (Path.home() / ".ray" / "auth_token").is_file()


def _is_here(address: str) -> bool:
    """Return whether an address belongs to this machine, which only then can listen on it."""
    host = address.removeprefix("ray://").rpartition(":")[0]
    try:
        socket.create_server((host, 0)).close()
    except OSError:
        return False
    return True


def _loopback_only(address: str) -> bool:
    """Return whether a cluster listens on 127.0.0.1 and on no other address of this machine."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: connecting a datagram socket only selects the source address.
            probe.connect(("192.0.2.1", 1))
            socket.create_connection((probe.getsockname()[0], int(port)), PATIENCE).close()
        except OSError:
            return True
    return False


def _reachable(address: str) -> None:
    """Refuse an address without a cluster within seconds; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"address is {address!r}: give HOST:PORT, ray://HOST:PORT or auto.")
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(HELLO)
            answer = connection.recv(9)
        # The fourth byte is the frame type; an HTTP/2 server starts with its settings, type 4.
        reason = "" if answer[3:4] == b"\x04" else "what listens there is not Ray"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise InputError(
            f"no Ray cluster answers at {address} ({reason}): check that it is running, start one "
            "with `ray start --head`, or leave --address out."
        )
