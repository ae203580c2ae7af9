"""Status of a study, from the names in its store; only one run per algorithm is opened."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sellf.studies import heartbeat, plan
from sellf.studies.results import Reader, chosen
from sellf.studies.spec import Study
from sellf.studies.store import DamagedError, Store

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec


@dataclass(frozen=True)
class Row:
    """One algorithm in one cell."""

    world: str
    notion: str
    algorithm: str
    total: int
    done: int
    running: int
    failed: int
    diverged: int
    """Number of failed runs that diverged."""
    seconds: float | None
    """Training time of one run."""


@dataclass(frozen=True)
class Status:
    """The status of a study."""

    rows: list[Row]
    failed: dict[str, tuple["RunSpec", str]]
    """Failed runs by name, with the reason."""
    workers: int
    """Number of workers that are running."""
    damaged: list[str]
    """Damaged runs; empty unless they were checked."""

    @property
    def seconds_left(self) -> float | None:
        """Estimated time of the missing trainings in sequence; None without a finished run."""
        known = [row.seconds for row in self.rows if row.seconds is not None]
        if not known:
            return None
        mean = sum(known) / len(known)
        return sum(
            (row.total - row.done - row.diverged) * (row.seconds or mean) for row in self.rows
        )


def status(study: Study, store: Store, check: bool = False) -> Status:
    """Return the status of a study.

    Args:
        study: from `spec.load`, shrunk or not.
        store: from `store.open_store`.
        check: whether to read every run of the study and verify its checksums.
    """
    reader = Reader(store, lambda _: None)
    beats = [beat for beat in heartbeat.beats(store.folder) if study.name in beat.studies]
    beats = [beat for beat in beats if beat.quick == study.quick]
    running = {name for beat in beats for name in beat.running}
    rows, failed = [], {}
    damaged: list[str] = []
    for group in plan.groups(study):
        runs = {plan.key(run): run for run in group.first(study)}
        total = len(runs) + group.to_come(study)
        done = runs.keys() & reader.done
        # The final runs are known only once the grid is complete, and a few runs must be opened.
        settled = done | {name for name in runs if reader.diverged(name)}
        if group.selects(study) and len(settled) == len(runs):
            index, _ = chosen(study, group, reader)
            if index is not None:
                runs |= {plan.key(run): run for run in group.runs(study, index, study.seeds)}
                done = runs.keys() & reader.done
        if check:
            damaged += [name for name in done if _damaged(store, name)]
        lost = {name: run for name, run in runs.items() if name in reader.failed}
        failed |= {name: (run, reader.failed[name]["reason"]) for name, run in lost.items()}
        sample = next(iter(sorted(done)), None)
        rows.append(
            Row(
                group.world.name,
                group.notion,
                group.algorithm,
                total,
                len(done),
                len(runs.keys() & running),
                len(lost),
                sum(map(reader.diverged, lost)),
                None if sample is None else store.seconds(sample),
            )
        )
    return Status(rows, failed, sum(beat.workers for beat in beats), damaged)


def _damaged(store: Store, name: str) -> bool:
    try:
        store.check(name)
    except DamagedError:
        return True
    return False
