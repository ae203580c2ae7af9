"""How far a study is, from the names in its store: no run is opened, except one per algorithm."""

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
    """Of those that failed, how many cannot be trained."""
    seconds: float | None
    """What one training took."""


@dataclass(frozen=True)
class Status:
    """How far a study is."""

    rows: list[Row]
    failed: dict[str, tuple["RunSpec", str]]
    """Runs that failed, by name, and why."""
    workers: int
    """How many are at work now."""
    damaged: list[str]
    """Found by checking, if that was asked for."""

    @property
    def seconds_left(self) -> float | None:
        """How long the missing trainings take one after the other, if there is one to judge by."""
        known = [row.seconds for row in self.rows if row.seconds is not None]
        if not known:
            return None
        mean = sum(known) / len(known)
        return sum(
            (row.total - row.done - row.diverged) * (row.seconds or mean) for row in self.rows
        )


def status(study: Study, store: Store, check: bool = False) -> Status:
    """Return how far a study is.

    Args:
        study: from `spec.load`, shrunk or not.
        store: from `store.open_store`.
        check: read every run of the study, to see that it is as it was written.
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
        # Which runs are final is known only once the grid is there; then a few have to be opened.
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
