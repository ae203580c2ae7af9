"""Experiment trackers: TensorBoard, Weights & Biases and MLflow, each imported when used.

The x axis of all is the number of decisions so far. The attribute `last` of a tracker is the number
of decisions that it already has figures of, so a resumed run neither repeats nor omits a point.
"""

import os
import re
import struct
import time
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

Status = Literal["finished", "stopped", "failed"]

FLUSH_SECONDS = 1.0
"""Maximum time for which figures are buffered, since writing takes longer than an iteration."""


class LogWarning(RuntimeWarning):
    """Warns that a log failed or was started again; the training continues."""


@dataclass(frozen=True)
class About:
    """Information about a run that a tracker receives before its figures."""

    name: str
    batch: str | None
    """Common name of runs that are trained together."""
    folder: Path
    """Folder for files; created by the tracker if needed."""
    settings: dict[str, bool | int | float | str]
    begun: int
    """Number of decisions before this session."""
    known: dict[str, str] | None
    """The `identity` that the tracker stored for this run in an earlier session, if any.

    It is read from the run's folder, which may come from somebody else. It only identifies a run on
    the server that this machine is configured for, and never determines the server itself, which
    would receive credentials.
    """
    shown: bool
    """Whether the tracker may write to the terminal."""


class Tracker(Protocol):
    """Receives the figures of one run."""

    identity: dict[str, str] | None
    """Identifies the run when it is resumed."""
    last: int
    """Number of decisions whose figures are already logged."""

    def __init__(self, about: About) -> None:
        """Start or resume the log of a run."""

    def log(self, decisions: int, figures: dict[str, float]) -> None:
        """Add the figures of an iteration."""

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Write all figures; the summary is empty unless the training is finished."""


class TensorBoard:
    """Event files in the run's folder, written without TensorFlow and without a thread.

    The queue of tensorboardX would block forever once its thread has failed on a full disk.
    """

    identity: dict[str, str] | None = None

    def __init__(self, about: About) -> None:
        """Open a new event file next to those of earlier sessions."""
        self.events = import_module("tensorboardX.proto.event_pb2")
        self.summaries = import_module("tensorboardX.proto.summary_pb2")
        files = import_module("tensorboardX.event_file_writer")
        folder = about.folder / "tensorboard"
        folder.mkdir(parents=True, exist_ok=True)
        written = min(max(self._steps(folder), default=0), about.begun)
        # The last point is written again, which removes a summary that may follow it.
        self.last = max(written - 1, 0)
        # Files are named by the second and read in alphabetical order: a number separates sessions
        # of the same second and keeps their order.
        sitting = len(list(folder.iterdir()))
        self.writer = files.EventsWriter(str(folder / "events"), f".{sitting:04d}")
        self.flushed = 0.0
        hparams = import_module("tensorboardX.summary").hparams
        metrics = dict.fromkeys(("final/reward", "final/disparity_true"), 0.0)
        experiment, start, self.end = hparams(about.settings, metrics)
        if written:
            session = self.events.SessionLog(status=self.events.SessionLog.START)
            self._write(written, session_log=session)
        else:
            self._write(0, summary=experiment)
            self._write(0, summary=start)
        self.writer.flush()

    def log(self, decisions: int, figures: dict[str, float]) -> None:
        """Add one event; write to disk periodically."""
        values = [
            self.summaries.Summary.Value(tag=_plain(name), simple_value=value)
            for name, value in figures.items()
        ]
        self._write(decisions, summary=self.summaries.Summary(value=values))
        if time.monotonic() - self.flushed > FLUSH_SECONDS:
            self.writer.flush()
            self.flushed = time.monotonic()

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Add the summary for the HParams tab."""
        if summary:
            self.log(decisions, summary)
            self._write(decisions, summary=self.end)
        self.writer.close()

    def _write(self, step: int, **content: Any) -> None:
        self.writer.write_event(self.events.Event(step=step, wall_time=time.time(), **content))

    def _steps(self, folder: Path) -> Iterator[int]:
        """Yield the decisions of every point in earlier files, up to a truncated record."""
        for path in folder.glob("events*"):
            content, at = path.read_bytes(), 0
            while at + 12 <= len(content):
                # A record: its length (8 bytes), a checksum (4), the event, a checksum (4).
                (length,) = struct.unpack_from("<Q", content, at)
                if at + 16 + length > len(content):
                    break
                yield self.events.Event.FromString(content[at + 12 : at + 12 + length]).step
                at += 16 + length


class WeightsAndBiases:
    """A run in the project `sellf`, or in WANDB_PROJECT; WANDB_MODE=offline needs no account."""

    def __init__(self, about: About) -> None:
        """Start a run, or resume the one with the same id."""
        wandb = import_module("wandb")
        about.folder.mkdir(parents=True, exist_ok=True)
        project = os.environ.get("WANDB_PROJECT") or "sellf"
        known = _found_again(about, "project", project, "WANDB_PROJECT")
        identity = {"id": known["id"] if known else uuid.uuid4().hex[:8], "project": project}
        self.identity: dict[str, str] | None = identity
        self.run = wandb.init(
            **identity,
            name=about.name,
            group=about.batch,
            dir=str(about.folder),
            config=about.settings,
            resume="allow",
            # Allows several runs side by side, and leaves an open run of the caller as it is.
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=not about.shown),
        )
        if self.run.resumed:
            self.last = self.run.starting_step - 1
        else:
            # Offline, it is unknown what earlier sessions wrote; everything is assumed.
            self.last = about.begun if known else 0

    def log(self, decisions: int, figures: dict[str, float]) -> None:
        """Log the figures, which are sent in the background."""
        self.run.log(figures, step=decisions)

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Add the summary and wait until everything is sent."""
        self.run.summary.update(summary)
        self.run.finish(exit_code={"finished": 0, "stopped": 255, "failed": 1}[status])


class MLflow:
    """A run in the experiment `sellf`, or in MLFLOW_EXPERIMENT_NAME, in MLflow's store."""

    def __init__(self, about: About) -> None:
        """Start a run, or resume the one with the stored id."""
        tracking = import_module("mlflow.tracking")
        self.entities = import_module("mlflow.entities")
        self.client = tracking.MlflowClient()
        uri = self.client.tracking_uri
        known = _found_again(about, "uri", uri, "MLFLOW_TRACKING_URI")
        self.pending: list[Any] = []
        self.sent = 0.0
        self.last = 0
        if known:
            self.id = known["run"]
            history = self.client.get_metric_history(self.id, "reward")
            self.last = max((point.step for point in history), default=0)
            self.client.update_run(self.id, status="RUNNING")
        else:
            self.id = self._begin(about)
        self.identity: dict[str, str] | None = {"uri": uri, "run": self.id}

    def _begin(self, about: About) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "sellf"
        found = self.client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else self.client.create_experiment(name)
        tags = {"batch": about.batch} if about.batch else {}
        run = self.client.create_run(experiment, tags=tags, run_name=about.name).info.run_id
        values = [self.entities.Param(_plain(k), str(v)) for k, v in about.settings.items()]
        self.client.log_batch(run, params=values)
        return run

    def log(self, decisions: int, figures: dict[str, float]) -> None:
        """Buffer the figures and send them periodically, as each request is a transaction."""
        now = int(time.time() * 1000)
        self.pending += [
            self.entities.Metric(_plain(name), value, now, decisions)
            for name, value in figures.items()
        ]
        if time.monotonic() - self.sent > FLUSH_SECONDS:
            self._send()

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Send the remaining figures and set the final status."""
        self.log(decisions, summary)
        self._send()
        ended = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}[status]
        self.client.set_terminated(self.id, ended)

    def _send(self) -> None:
        # MLflow accepts at most 1,000 figures per request.
        for at in range(0, len(self.pending), 1000):
            self.client.log_batch(self.id, metrics=self.pending[at : at + 1000])
        self.pending.clear()
        self.sent = time.monotonic()


def _found_again(about: About, where: str, configured: str, variable: str) -> dict[str, str] | None:
    """Return the stored identity of the run, if it belongs to the configured destination."""
    known = about.known
    if known is None or known.get(where) == configured:
        return known
    # Without a user name and a password, which may precede an address.
    stored = known.get(where, "").rpartition("@")[2]
    warnings.warn(
        f"{about.name} was logged to {stored!r}, but another {where} is configured here: all its "
        f"figures go to a new log there. Set {variable} before the command to continue the old "
        "one.",
        LogWarning,
        stacklevel=2,
    )
    return None


def _plain(name: str) -> str:
    """Return a name with characters that both TensorBoard and MLflow allow."""
    return re.sub(r"[^\w./ -]", "_", name)
