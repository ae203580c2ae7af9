"""`sellf study`: list, run, status, table, figures, merge."""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sellf import files
from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.studies import spec
from sellf.studies.progress import describe, duration
from sellf.studies.spec import Study
from sellf.studies.store import merge, open_store
from sellf.text import name as name_of
from sellf.text import plain

ACTIONS = ("list", "run", "status", "table", "figures", "merge")
REASONS = 10
"""How many failed runs are named."""


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
    """Do what was typed after `sellf study`."""
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
    study = spec.load(name, quick)
    if action == "run":
        return _run(study, name, engine, address, workers, store)
    if action == "status":
        return _status(study, store, check)
    _write(action, study, name, store, out)
    return 0


def _list() -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, summary in spec.builtin().items():
        table.add_row(f"[bold]{name}[/bold]", summary)
    console = Console(highlight=False)
    console.print(table)
    console.print(
        "\n`sellf study run NAME` runs one, `sellf study run NAME --quick` a small version in "
        "minutes;\n`sellf study run FILE.toml` runs your own.",
        markup=False,
    )


def _run(
    study: Study,
    name: str,
    engine: str,
    address: str | None,
    workers: int | None,
    folder: Path | None,
) -> int:
    from sellf.studies import engines
    from sellf.studies.progress import Progress
    from sellf.studies.run import run

    store = open_store(folder, alone=study.alone)
    if study.alone and (workers or 1) > 1:
        raise InputError(f"{study.name} times runs one at a time: leave --workers out.")
    made = engines.make(engine, 1 if study.alone and workers is None else workers, address)
    typed = _typed(name, study, folder)
    print(
        f"{study.name}: runs are kept in {store.folder}. Stop with Ctrl-C whenever you like; the "
        f"same command goes on.\nIn another terminal: `sellf study status {typed}`.",
        file=sys.stderr,
    )
    tally = run(study, store, made, Progress(study))
    note = " (quick: a first look, its figures mean little)" if study.quick else ""
    print(
        f"{study.name}{note}: {len(tally.done)} of {tally.total} runs are done, {tally.fresh} of "
        f"them now; {len(tally.failed)} failed"
        + (f" ({len(tally.diverged)} diverged, and would again)." if tally.diverged else "."),
        file=sys.stderr,
    )
    if not tally.complete:
        print(
            f"Type `sellf study status {typed}` for the reasons; `sellf study run {typed}` tries "
            "again.",
            file=sys.stderr,
        )
        return 1
    print(f"Type `sellf study table {typed}` and `sellf study figures {typed}`.", file=sys.stderr)
    return 0


def _status(study: Study, folder: Path | None, check: bool) -> int:
    from sellf.studies.status import status

    store = open_store(folder, write=False, alone=study.alone)
    found = status(study, store, check)
    console = Console(highlight=False)
    quick = ", quick" if study.quick else ""
    table = Table(title=name_of(f"{study.name}{quick}: {store.folder}"), title_justify="left")
    for heading in ("world", "notion", "algorithm", "runs", "done", "running", "failed", "each"):
        right = heading not in ("world", "notion", "algorithm")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in found.rows:
        counts = (row.total, row.done, row.running or "", row.failed or "")
        each = "" if row.seconds is None else duration(row.seconds)
        table.add_row(row.world, row.notion, row.algorithm, *map(str, counts), each)
    console.print(table)
    total, done = (sum(getattr(row, name) for row in found.rows) for name in ("total", "done"))
    at_work = f"{found.workers} workers are at it" if found.workers else "nobody is at it now"
    console.print(f"{done} of {total} runs are done; {at_work}.")
    if done < total and found.seconds_left:
        left = duration(found.seconds_left / max(found.workers, 1))
        console.print(f"About {left} are left{'' if found.workers else ' for one worker'}.")
    for run, reason in list(found.failed.values())[:REASONS]:
        console.print(plain(f"failed: {describe(run)}: {reason}"), markup=False)
    if len(found.failed) > REASONS:
        console.print(f"and {len(found.failed) - REASONS} more failed.")
    for name in found.damaged:
        console.print(plain(f"damaged: {name}; `sellf study run` does it again."), markup=False)
    return 1 if found.damaged else 0


def _write(action: str, study: Study, name: str, folder: Path | None, out: Path | None) -> None:
    from sellf.studies.results import results

    store = open_store(folder, write=False, alone=study.alone)
    found = results(study, store)
    typed = _typed(name, study, folder)
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

        Console(highlight=False).print(tables.to_rich(found))
        written = tables.write(found, target)
    else:
        from sellf.studies import figures

        written = figures.write(found, target, list(study.draw))
    for path in written:
        print(path)


def _merge(other: str, folder: Path | None) -> None:
    store = open_store(folder)
    came, there, damaged = merge(store, other)
    print(f"{came} runs came into {store.folder}; {there} were there already.")
    for sentence in damaged:
        print(f"left out: {plain(sentence)}", file=sys.stderr)


def _typed(name: str, study: Study, folder: Path | None) -> str:
    """Return what to type after a command to mean the same study and store."""
    parts = [name, *(["--quick"] if study.quick else [])]
    return " ".join(parts + (["--store", str(folder)] if folder is not None else []))
