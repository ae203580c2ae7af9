"""The loop that runs studies: submit missing runs, store results and select configurations."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sellf import interrupts
from sellf.locks import Claims
from sellf.studies import heartbeat, plan
from sellf.studies.engines.base import Engine, Job, Outcome
from sellf.studies.engines.base import job as job_of
from sellf.studies.plan import Group
from sellf.studies.progress import Progress, Tally
from sellf.studies.results import Reader, chosen
from sellf.studies.spec import Study
from sellf.studies.store import CLAIMS, DamagedError, Store

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec

BEAT = 5.0
"""Seconds between heartbeats."""
PATIENCE = 0.5
"""Seconds between checks of runs that another process is doing."""


def run(
    studies: Study | Sequence[Study],
    store: Store,
    engine: Engine,
    progress: Progress | None = None,
) -> Tally:
    """Execute the missing runs of one or several studies; can be stopped and resumed at any time.

    A run that belongs to several studies is executed once.
    """
    studies = [studies] if isinstance(studies, Study) else list(studies)
    progress = progress or Progress("", shown=False)
    work = _Work(studies, store, engine, progress)
    try:
        with progress:
            work.begin()
            while work.open or work.elsewhere:
                interrupts.check()
                for outcome in engine.wait(1.0) if work.open else ():
                    work.take(outcome)
                    progress.took(outcome)
                work.look()
                work.beat()
    finally:
        engine.close()
        work.heartbeat.unlink(missing_ok=True)
        work.claims.close()
    return work.tally


class _Work:
    """The state of the loop."""

    def __init__(
        self, studies: list[Study], store: Store, engine: Engine, progress: Progress
    ) -> None:
        self.studies, self.store, self.engine, self.progress = studies, store, engine, progress
        self.reader = Reader(store, progress.message)
        self.tally = Tally()
        self.open: dict[str, Job] = {}
        """Jobs that were submitted and have not ended."""
        self.elsewhere: dict[str, Job] = {}
        """Jobs that another process is doing, or has just done."""
        self.lacking: list[tuple[Study, Group, set[str]]] = []
        """Groups without a selection yet, with the runs that they wait for."""
        self.heartbeat = heartbeat.path_of(store.folder)
        self.claims = Claims(store.folder / CLAIMS)
        engine.claim = self._claim
        self.beaten = self.looked = 0.0

    def begin(self) -> None:
        """Submit the runs that need no selection, and select in groups that are complete."""
        for study in self.studies:
            for group in plan.groups(study):
                names = {plan.key(run): run for run in group.first(study)}
                self._want(names)
                if group.selects(study):
                    self.tally.to_come += group.to_come(study)
                    self.lacking.append((study, group, set(names) & set(self.open)))
        self._select()
        self.beat(now=True)

    def _claim(self, job: Job) -> bool:
        """Claim a run that is about to start; return False if another process does or did it."""
        if not self.claims.claim(job.name):
            return False
        if self.store.has(job.name):
            self.claims.release(job.name)
            return False
        return True

    def take(self, outcome: Outcome) -> None:
        """Store an outcome, and proceed with the groups that waited for it."""
        name = outcome.job.name
        if outcome.kind == "elsewhere":
            self.elsewhere[name] = self.open.pop(name)
            return
        if outcome.files is not None:
            self.store.put(name, outcome.files)
            if self.reader.failed.pop(name, None) is not None:
                self.store.clear_failure(name)
            self.tally.fresh += 1
            self._done(name)
        else:
            self.store.fail(name, outcome.job.run, outcome.kind, outcome.reason)
            self.reader.failed[name] = {"kind": outcome.kind, "reason": outcome.reason}
            self._failed(name)
        del self.open[name]
        self.claims.release(name)
        self._settled(name)

    def _done(self, name: str) -> None:
        self.reader.done.add(name)
        self.tally.done.add(name)

    def _failed(self, name: str) -> None:
        self.tally.failed[name] = self.reader.failed[name]["reason"]
        if self.reader.diverged(name):
            self.tally.diverged.add(name)

    def _settled(self, name: str) -> None:
        """Proceed with the groups that waited for a run."""
        for *_, names in self.lacking:
            names.discard(name)
        self._select()

    def look(self) -> None:
        """Check the runs of other processes, and submit those that were left undone."""
        if not self.elsewhere or time.monotonic() - self.looked < PATIENCE:
            return
        if not self.open:
            time.sleep(PATIENCE)
        self.looked = time.monotonic()
        for name, job in list(self.elsewhere.items()):
            if self.store.has(name):
                self._done(name)
            elif not self.claims.claim(name):
                continue
            else:
                self.claims.release(name)
                why = self.store.why_failed(name)
                if why is None or why["kind"] != "diverged":
                    self.open[name] = self.elsewhere.pop(name)
                    self.engine.submit(job, soon=True)
                    continue
                self.reader.failed[name] = why
                self._failed(name)
            del self.elsewhere[name]
            self._settled(name)

    def _want(self, runs: dict[str, "RunSpec"], soon: bool = False) -> None:
        """Submit runs that are missing or damaged."""
        for name, one in runs.items():
            if name in self.tally.wanted:
                continue
            self.tally.wanted[name] = one
            if self._there(name):
                self.tally.done.add(name)
            elif self.reader.diverged(name):
                self._failed(name)
            else:
                self.open[name] = job = job_of(one, name)
                self.engine.submit(job, soon)

    def _there(self, name: str) -> bool:
        if name not in self.reader.done:
            return False
        try:
            self.store.check(name)
        except DamagedError as error:
            self.tally.damaged.append(name)
            self.progress.message(f"{error} It is repeated.")
            self.store.drop(name)
            self.reader.done.discard(name)
            return False
        return True

    def _select(self) -> None:
        """Select in every group whose grid has ended, and submit the runs that this adds."""
        ready = [(study, group) for study, group, names in self.lacking if not names]
        self.lacking = [waiting for waiting in self.lacking if waiting[-1]]
        for study, group in ready:
            self.tally.to_come -= group.to_come(study)
            index, _ = chosen(study, group, self.reader)
            if index is None:
                self.progress.message(
                    f"nothing is selected for {group.algorithm} on {group.world.name} "
                    f"({group.notion}): runs of its grid failed."
                )
            else:
                runs = group.runs(study, index, study.seeds)
                # Before the grids of other cells, so a stopped study has complete rows.
                self._want({plan.key(run): run for run in runs}, soon=True)

    def beat(self, now: bool = False) -> None:
        """Show the progress; periodically write a heartbeat for `sellf study status`."""
        running = self.engine.running()
        self.progress.update(self.tally, running, self.engine.workers)
        if now or time.monotonic() - self.beaten > BEAT:
            self.beaten = time.monotonic()
            names = [job.name for job in running]
            studies = [study.name for study in self.studies]
            beat = heartbeat.Heartbeat(studies, self.studies[0].quick, names, self.engine.workers)
            heartbeat.write(self.heartbeat, beat)
