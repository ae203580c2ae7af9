"""`sellf study`: list, run, status, frontier, table, figures, export, merge."""

import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sellf import files
from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.studies import collection, spec
from sellf.studies.collection import Collection
from sellf.studies.progress import Tally, describe, duration
from sellf.studies.spec import Study
from sellf.studies.store import Store, merge, open_store
from sellf.text import name as name_of
from sellf.text import plain

ACTIONS = ("list", "run", "status", "frontier", "table", "figures", "export", "merge")
REASONS = 10
"""The number of failed runs that are listed."""


def act(
    action: str,
    name: str | None,
    *,
    engine: str,
    address: str | None,
    workers: int | None,
    store: Path | None,
    quick: bool,
    check: bool,
    out: Path | None,
) -> int:
    """Run an action of `sellf study` and return the exit code."""
    one_of("action", action, ACTIONS)
    if action == "list":
        _list()
        return 0
    if name is None:
        wanted = "STORE" if action == "merge" else "NAME"
        raise InputError(f"type `sellf study {action} {wanted}`; `sellf study list` has the names.")
    if action == "merge":
        _merge(name, store)
        return 0
    several = collection.load(name, quick)
    studies = [spec.load(name, quick)] if several is None else list(several.studies)
    if action == "run":
        code = _run(studies, _Typed(name, quick, store), engine, address, workers)
        if several is None or code:
            return code
        _write_all(several, _Typed(name, quick, store), out)
        return 0
    if action == "status":
        if several is not None:
            return _status_of_all(several, store, check)
        return _status(studies[0], store, check)
    if action == "frontier":
        _frontier(studies, store)
        return 0
    if action == "export":
        _export(studies, store, out)
        return 0
    for study in studies:
        target = None if out is None or several is None else out / study.name
        _write(action, study, _Typed(name, quick, store), target or out)
    return 0


def _frontier(studies: list[Study], folder: Path | None) -> None:
    """Compute the frontiers that are missing, one for each world and notion."""
    from sellf.studies import frontiers, plan

    for study in studies:
        store = open_store(folder, alone=study.alone)
        found = frontiers.compute(store, plan.groups(study), lambda text: print(text, flush=True))
        print(f"{study.name}: {len(found)} in {store.folder / frontiers.FOLDER}")


class _Typed(NamedTuple):
    """The arguments that name a study and its store."""

    name: str
    quick: bool
    store: Path | None

    def __str__(self) -> str:
        parts = [self.name, *(["--quick"] if self.quick else [])]
        return " ".join(parts + (["--store", str(self.store)] if self.store is not None else []))


def _list() -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, summary in (collection.summaries() | spec.builtin()).items():
        table.add_row(f"[bold]{name}[/bold]", summary)
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "\n`sellf study run NAME` runs one, `sellf study run NAME --quick` a small version in "
        "minutes;\n`sellf study run FILE.toml` runs your own.",
        markup=False,
    )


def _run(
    studies: list[Study], typed: _Typed, engine: str, address: str | None, workers: int | None
) -> int:
    """Run what is missing: all studies together, except those that measure run times."""
    if len(studies) == 1 and studies[0].alone and (workers or 1) > 1:
        raise InputError(f"{typed.name} times runs one at a time: leave --workers out.")
    parts = [[study for study in studies if not study.alone]]
    parts += [[study] for study in studies if study.alone]
    complete = True
    for part in filter(None, parts):
        alone = part[0].alone
        store = open_store(typed.store, alone=alone)
        title = part[0].title if len(part) == 1 else typed.name + " (quick)" * typed.quick
        print(
            f"{title}: runs are stored in {store.folder}. Stop with Ctrl-C whenever you like; the "
            f"same command resumes.\nIn another terminal: `sellf study status {typed}`.",
            file=sys.stderr,
        )
        tally = _run_together(part, title, store, engine, 1 if alone else workers, address)
        complete = complete and tally.complete
    if not complete:
        print(
            f"Type `sellf study status {typed}` for the reasons; `sellf study run {typed}` tries "
            "again.",
            file=sys.stderr,
        )
        return 1
    print(f"Type `sellf study table {typed}` and `sellf study figures {typed}`.", file=sys.stderr)
    return 0


def _run_together(
    studies: list[Study],
    title: str,
    store: Store,
    engine: str,
    workers: int | None,
    address: str | None,
) -> Tally:
    from sellf.studies import engines
    from sellf.studies.progress import Progress
    from sellf.studies.run import run

    tally = run(studies, store, engines.make(engine, workers, address), Progress(title))
    note = ": a first look, its figures mean little" if studies[0].quick else ""
    print(
        f"{title}{note}: {len(tally.done)} of {tally.total} runs are done, {tally.fresh} of "
        f"them now; {len(tally.failed)} failed"
        + (f" ({len(tally.diverged)} diverged, as they would again)." if tally.diverged else "."),
        file=sys.stderr,
    )
    return tally


def _status_of_all(several: Collection, folder: Path | None, check: bool) -> int:
    """Print the progress of each study of a collection."""
    from sellf.studies.status import status

    table = Table(title=name_of(several.title), title_justify="left")
    for heading in ("study", "runs", "done", "running", "failed", "left for one worker"):
        table.add_column(heading, justify="left" if heading == "study" else "right", no_wrap=True)
    damaged = 0
    for study in several.studies:
        found = status(study, open_store(folder, write=False, alone=study.alone), check)
        total, done, running, failed = (
            sum(getattr(row, name) for row in found.rows)
            for name in ("total", "done", "running", "failed")
        )
        left = duration(found.seconds_left) if found.seconds_left else ""
        counts = (str(total), str(done), str(running or ""), str(failed or ""))
        table.add_row(study.name, *counts, left)
        damaged += len(found.damaged)
    console = Console(highlight=False)
    console.print(table)
    console.print("Runs that several studies share are done once.")
    if damaged:
        console.print(f"{damaged} runs are damaged; `sellf study run` repeats them.")
    return 1 if damaged else 0


def _status(study: Study, folder: Path | None, check: bool) -> int:
    from sellf.studies.status import status

    store = open_store(folder, write=False, alone=study.alone)
    found = status(study, store, check)
    console = Console(highlight=False)
    quick = ", quick" if study.quick else ""
    table = Table(title=name_of(f"{study.name}{quick}: {store.folder}"), title_justify="left")
    for heading in ("algorithm", "runs", "done", "running", "failed", "each"):
        right = heading != "algorithm"
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    task = ""
    for row in found.rows:
        if task != (task := f"{row.world}, {row.notion}"):
            # A row of its own instead of two columns, which do not fit into 80 characters.
            table.add_section()
            table.add_row(f"[bold]{escape(task)}[/bold]")
        counts = (row.total, row.done, row.running or "", row.failed or "")
        each = "" if row.seconds is None else duration(row.seconds)
        table.add_row(f"  {escape(row.algorithm)}", *map(str, counts), each)
    console.print(table)
    total, done = (sum(getattr(row, name) for row in found.rows) for name in ("total", "done"))
    at_work = f"{found.workers} workers are running" if found.workers else "no worker is running"
    console.print(f"{done} of {total} runs are done; {at_work}.")
    if done < total and found.seconds_left:
        left = duration(found.seconds_left / max(found.workers, 1))
        console.print(f"About {left} are left{'' if found.workers else ' for one worker'}.")
    for run, reason in list(found.failed.values())[:REASONS]:
        console.print(plain(f"failed: {describe(run)}: {reason}"), markup=False)
    if len(found.failed) > REASONS:
        console.print(f"and {len(found.failed) - REASONS} more failed.")
    for name in found.damaged:
        console.print(plain(f"damaged: {name}; `sellf study run` repeats it."), markup=False)
    return 1 if found.damaged else 0


def _write_all(several: Collection, typed: _Typed, out: Path | None) -> None:
    """Write the tables and figures of each study, and one report of all studies."""
    from sellf import report

    folder = out or Path("results") / (several.name + "-quick" * typed.quick)
    for study in several.studies:
        for action in ("table", "figures"):
            _write(action, study, typed, folder / study.name, shown=False)
    page = folder / "report.html"
    text = report.stored_study(typed.name, quick=typed.quick, store=typed.store, out=page)
    files.write(page, text.encode())
    print(page)


def _write(
    action: str, study: Study, typed: _Typed, out: Path | None, *, shown: bool = True
) -> None:
    from sellf.studies.results import results

    store = open_store(typed.store, write=False, alone=study.alone)
    found = results(study, store)
    if not any(cell.final for cell in found.cells):
        raise InputError(f"no run of {study.name} is final yet: type `sellf study run {typed}`.")
    target = out or Path("results") / (study.name + ("-quick" if study.quick else ""))
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write into {target}: {error.strerror}.") from None
    files.check_output(target / "table.md", [store.folder], "--out")
    if action == "table":
        from sellf.studies import tables

        if shown:
            Console(highlight=False).print(tables.to_rich(found))
        written = tables.write(found, target)
    else:
        from sellf.studies import figures

        written = figures.write(found, target, list(study.draw))
    for path in written:
        print(path)


def _export(studies: list[Study], folder: Path | None, out: Path | None) -> None:
    from sellf.studies import archive

    for study in studies:
        store = open_store(folder, write=False, alone=study.alone)
        own = f"{study.name}{'-quick' * study.quick}{archive.SUFFIX}"
        target = out or Path(own)
        if len(studies) > 1 or target.is_dir():
            target = target / own
            target.parent.mkdir(parents=True, exist_ok=True)
        files.check_output(target, [store.folder], "--out")
        number = archive.export(study, store, target)
        print(f"{target}: {number} runs. `sellf study merge {target}` adds them to a store.")


def _merge(other: str, folder: Path | None) -> None:
    store = open_store(folder)
    if Path(other).is_file():
        from sellf.studies import archive

        came, there, damaged = archive.merge(store, Path(other))
    else:
        came, there, damaged = merge(store, other)
    print(f"{came} runs were added to {store.folder}; {there} were already there.")
    for sentence in damaged:
        print(f"left out: {plain(sentence)}", file=sys.stderr)
