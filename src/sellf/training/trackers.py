"""Programs that show trainings: TensorBoard, Weights & Biases, MLflow, each imported when used.

The x axis of all is the number of decisions so far. A tracker says in `last` of how many decisions
it has figures already, so that a run that goes on neither repeats nor leaves out a point.
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
"""Figures are kept back for at most this long: writing costs more than an iteration."""


class LogWarning(RuntimeWarning):
    """A log has failed or begins anew; the training goes on."""


@dataclass(frozen=True)
class About:
    """What a tracker is told of a run before its figures come."""

    name: str
    batch: str | None
    """What runs that are trained together are called."""
    folder: Path
    """For files; made by who needs it."""
    settings: dict[str, bool | int | float | str]
    begun: int
    """Decisions before this sitting."""
    known: dict[str, str] | None
    """What the tracker said in `identity`, if it has seen the run before.

    It comes from the run's folder, which may be somebody else's: it finds a run again where this
    machine logs to anyway, and never says where that is. Credentials would go there too.
    """
    shown: bool
    """Whether the tracker may write to the terminal."""


class Tracker(Protocol):
    """Takes the figures of one run."""

    identity: dict[str, str] | None
    """What finds the run again."""
    last: int
    """Figures of this many decisions are there already."""

    def __init__(self, about: About) -> None:
        """Begin, or go on with, the log of a run."""

    def log(self, decisions: int, figures: dict[str, float]) -> None:
        """Add the figures of an iteration."""

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Write everything down; the summary is empty unless the training is finished."""


class TensorBoard:
    """Event files in the run's folder, written without TensorFlow and without a thread.

    tensorboardX's own queue would wait for ever once its thread has met a full disk.
    """

    identity: dict[str, str] | None = None

    def __init__(self, about: About) -> None:
        """Open a new event file beside those of earlier sittings."""
        self.events = import_module("tensorboardX.proto.event_pb2")
        self.summaries = import_module("tensorboardX.proto.summary_pb2")
        files = import_module("tensorboardX.event_file_writer")
        folder = about.folder / "tensorboard"
        folder.mkdir(parents=True, exist_ok=True)
        written = min(max(self._steps(folder), default=0), about.begun)
        # The last point is written again: with it goes a summary that may stand beside it.
        self.last = max(written - 1, 0)
        # Files are named by the second and read in the order of names: a number keeps sittings
        # of the same second apart, and in their order.
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
        """Add one event; to disk every so often."""
        values = [
            self.summaries.Summary.Value(tag=_plain(name), simple_value=value)
            for name, value in figures.items()
        ]
        self._write(decisions, summary=self.summaries.Summary(value=values))
        if time.monotonic() - self.flushed > FLUSH_SECONDS:
            self.writer.flush()
            self.flushed = time.monotonic()

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Add the summary, where the HParams tab finds it."""
        if summary:
            self.log(decisions, summary)
            self._write(decisions, summary=self.end)
        self.writer.close()

    def _write(self, step: int, **content: Any) -> None:
        self.writer.write_event(self.events.Event(step=step, wall_time=time.time(), **content))

    def _steps(self, folder: Path) -> Iterator[int]:
        """Yield the decisions of every point in earlier files; one that was cut off ends a file."""
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
    """A run of the project `sellf`, or of WANDB_PROJECT; WANDB_MODE=offline needs no account."""

    def __init__(self, about: About) -> None:
        """Begin a run, or resume the one with the same id."""
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
            # Many runs side by side, and whatever run the caller has open stays as it is.
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=not about.shown),
        )
        if self.run.resumed:
            self.last = self.run.starting_step - 1
        else:
            # Offline, nobody knows what earlier sittings wrote: everything, one hopes.
            self.last = about.begun if known else 0

    def log(self, decisions: int, figures: dict[str, float]) -> None:
        """Hand the figures over; they are sent in the background."""
        self.run.log(figures, step=decisions)

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Add the summary and wait until all is sent."""
        self.run.summary.update(summary)
        self.run.finish(exit_code={"finished": 0, "stopped": 255, "failed": 1}[status])


class MLflow:
    """A run of the experiment `sellf`, or of MLFLOW_EXPERIMENT_NAME, in MLflow's store."""

    def __init__(self, about: About) -> None:
        """Begin a run, or go on with the one that has the stored id."""
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
        """Keep the figures; send them every so often, as each sending is a transaction."""
        now = int(time.time() * 1000)
        self.pending += [
            self.entities.Metric(_plain(name), value, now, decisions)
            for name, value in figures.items()
        ]
        if time.monotonic() - self.sent > FLUSH_SECONDS:
            self._send()

    def close(self, decisions: int, summary: dict[str, float], status: Status) -> None:
        """Send the rest and say how it ended."""
        self.log(decisions, summary)
        self._send()
        ended = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}[status]
        self.client.set_terminated(self.id, ended)

    def _send(self) -> None:
        # MLflow takes at most 1,000 figures at once.
        for at in range(0, len(self.pending), 1000):
            self.client.log_batch(self.id, metrics=self.pending[at : at + 1000])
        self.pending.clear()
        self.sent = time.monotonic()


def _found_again(about: About, where: str, configured: str, variable: str) -> dict[str, str] | None:
    """Return what finds the run again, if it was logged to where this machine logs to."""
    known = about.known
    if known is None or known.get(where) == configured:
        return known
    # Without what may stand before an address: a name and a password.
    stored = known.get(where, "").rpartition("@")[2]
    warnings.warn(
        f"{about.name} was logged to {stored!r}, and here one logs to another {where}: all its "
        f"figures go there, into a new log. Set {variable} before the command to go on with the "
        "old one.",
        LogWarning,
        stacklevel=2,
    )
    return None


def _plain(name: str) -> str:
    """Return a name in the letters that TensorBoard and MLflow both allow."""
    return re.sub(r"[^\w./ -]", "_", name)
