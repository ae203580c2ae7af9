"""Logging of a training to experiment trackers and functions, without risk to the run."""

import copy
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from sellf import files
from sellf._version import __version__
from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.training.spec import RunSpec
from sellf.training.trackers import (
    About,
    LogWarning,
    MLflow,
    Status,
    TensorBoard,
    Tracker,
    WeightsAndBiases,
)

Row = dict[str, Any]
Choice = str | Callable[[int, Row], Any]

TRACKERS: dict[str, tuple[str, type[Tracker]]] = {
    "tensorboard": ("tensorboardX", TensorBoard),
    "wandb": ("wandb", WeightsAndBiases),
    "mlflow": ("mlflow", MLflow),
}
"""By name, which is also that of the extra: the required package, and the tracker class."""

IDENTITIES = "loggers.json"
"""File in a run's folder from which trackers identify their run."""


def chosen(log: Choice | Iterable[Choice] | None) -> tuple[Choice, ...]:
    """Return the requested logs, each the name of an installed tracker or a function."""
    if log is None:
        return ()
    alone = isinstance(log, str) or callable(log) or not isinstance(log, Iterable)
    listed: list[Any] = [log] if alone else [*log]  # pyright: ignore[reportGeneralTypeIssues]
    for choice in listed:
        if callable(choice):
            continue
        one_of("log", choice, tuple(TRACKERS))
        package, _ = TRACKERS[choice]
        if find_spec(package) is None:
            raise InputError(
                f"log is {choice!r}, which needs the package {package}: type "
                f"`pip install 'sellf[{choice}]'`."
            )
    return tuple(choice for i, choice in enumerate(listed) if choice not in listed[:i])


def titles(specs: Sequence[RunSpec]) -> list[str]:
    """Return names of runs trained together: their numbers and the settings that differ."""
    all_settings = [{"seed": spec.seed, **spec.hyperparameters} for spec in specs]
    differing = [
        name
        for name, value in all_settings[0].items()
        if any(other[name] != value for other in all_settings)
    ]
    return [
        file_name("-".join([str(i), *(f"{name}={own[name]}" for name in differing)]))
        for i, own in enumerate(all_settings)
    ]


def file_name(text: str) -> str:
    """Return a text that is valid as a file name."""
    return "".join(c if c.isalnum() or c in "-_.=+, " else "_" for c in text)[:150]


class Log:
    """The logs of one run, as a context manager.

    A tracker that fails is disabled with one warning; the figures are in the run's `metrics.jsonl`
    as well. Exceptions of the caller's own function are not caught.
    """

    def __init__(
        self,
        spec: RunSpec,
        logs: Sequence[Choice],
        folder: Path,
        *,
        history: Sequence[Row] = (),
        kept: bool = False,
        shown: bool = False,
        batch: str | None = None,
        index: int | None = None,
    ) -> None:
        """Prepare to log a run.

        Args:
            spec: the run.
            logs: trackers and functions that the run is logged to.
            folder: folder for files of trackers; its name is that of the run.
            history: the rows of earlier sessions.
            kept: whether the folder is a run folder, which can be resumed.
            shown: whether trackers may write to the terminal.
            batch: common name of runs that are trained together.
            index: number of this run among them, passed to functions as `row["run"]`.
        """
        self.spec, self.folder, self.history = spec, folder, list(history)
        self.groups = spec.world.make().groups
        self.kept, self.shown, self.batch, self.index = kept, shown, batch, index
        self.functions = [choice for choice in logs if callable(choice)]
        self.names = [choice for choice in logs if isinstance(choice, str)]
        self.trackers: dict[str, Tracker] = {}

    def __enter__(self) -> Self:
        known = self._identities()
        for name in self.names:
            self._guarded(name, self._open, name, _texts(known.get(name)))
        found = {name: t.identity for name, t in self.trackers.items() if t.identity}
        if self.kept and found:
            self._guarded("", self._keep, known | found)
        return self

    def _open(self, name: str, known: dict[str, str] | None) -> None:
        tracker = TRACKERS[name][1](
            About(
                self.folder.name,
                self.batch,
                self.folder,
                _settings(self.spec),
                self._decisions(len(self.history) - 1),
                known,
                self.shown,
            )
        )
        self.trackers[name] = tracker
        for i, row in enumerate(self.history):
            if self._decisions(i) > tracker.last:
                self._hand_over(tracker, i, row)

    def log(self, iteration: int, row: Row) -> None:
        """Log the figures of an iteration."""
        self.history.append(row)
        for name, tracker in list(self.trackers.items()):
            if self._decisions(iteration) > tracker.last:
                self._guarded(name, self._hand_over, tracker, iteration, row)
        for function in self.functions:
            # A copy, so a function cannot change the run's metrics.
            number = {} if self.index is None else {"run": self.index}
            function(iteration, number | copy.deepcopy(row))

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        status: Status = "finished" if kind is None else "stopped" if stopped else "failed"
        summary = self._summary() if kind is None and self.trackers else {}
        decisions = self._decisions(len(self.history) - 1)
        for name, tracker in list(self.trackers.items()):
            self._guarded(name, tracker.close, decisions, summary, status)

    def _hand_over(self, tracker: Tracker, iteration: int, row: Row) -> None:
        figures = _figures(row, self.groups)
        if figures:
            tracker.log(self._decisions(iteration), figures)

    def _summary(self) -> dict[str, float]:
        """Return the mean of each figure over the last tenth of the training."""
        rows = [_figures(row, self.groups) for row in self.history]
        rows = [row for row in rows[-max(1, len(rows) // 10) :] if row]
        known: dict[str, list[float]] = {}
        for row in rows:
            for name, value in row.items():
                known.setdefault(name, []).append(value)
        return {f"final/{name}": sum(values) / len(values) for name, values in known.items()}

    def _decisions(self, iteration: int) -> int:
        return (iteration + 1) * self.spec.config.rollout

    def _guarded(self, name: str, call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as error:
            self.trackers.pop(name, None)
            what = f"the log to {name}" if name else f"writing {IDENTITIES}"
            why = next(iter(str(error).strip().splitlines()), "")
            warnings.warn(
                f"{what} of {self.folder.name} failed and is disabled from here on; the training "
                f"continues. ({type(error).__name__}: {why})",
                LogWarning,
                stacklevel=3,
            )

    def _identities(self) -> dict[str, Any]:
        try:
            found = files.parse_json(files.read(self.folder / IDENTITIES, files.LARGEST_TEXT))
        except (OSError, ValueError):
            return {}
        return found if self.kept and isinstance(found, dict) else {}

    def _keep(self, identities: dict[str, Any]) -> None:
        files.write(self.folder / IDENTITIES, json.dumps(identities, indent=2).encode())


def _texts(identity: Any) -> dict[str, str] | None:
    """Return the identity that a tracker stored for a run, if it is valid."""
    if not isinstance(identity, dict) or not identity:
        return None
    return {key: value for key, value in identity.items() if isinstance(value, str)}


def _settings(spec: RunSpec) -> dict[str, bool | int | float | str]:
    """Return all resolved settings as a flat mapping, for trackers' hyperparameters."""
    import jax

    named = {
        "world": spec.world.name,
        "algorithm": spec.algorithm.name,
        "notion": spec.notion,
        "seed": spec.seed,
        "steps": spec.steps,
        **spec.hyperparameters,
        **{f"world.{name}": value for name, value in spec.world.settings.items()},
        "sellf": __version__,
        "jax": jax.__version__,
    }
    simple = bool | int | float | str
    return {k: v if isinstance(v, simple) else str(v) for k, v in named.items()}


def _figures(row: Row, groups: Sequence[str]) -> dict[str, float]:
    """Return a row as single numbers; a list becomes one number per group."""
    figures: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, list):
            names = groups if len(value) == len(groups) else range(len(value))
            figures |= {f"{name}/{part}": float(v) for part, v in zip(names, value, strict=True)}
        elif name != "iteration" and value is not None:
            figures[name] = float(value)
    return figures
