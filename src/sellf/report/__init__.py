"""Reports: one self-contained HTML file for an audit, for runs, or for a study."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sellf.errors import InputError
from sellf.files import RUN

if TYPE_CHECKING:
    from sellf.audit.result import Audit, Audits
    from sellf.audit.terms import Words
    from sellf.offline.improve import Improvement
    from sellf.offline.result import WhatIf
    from sellf.studies.records import Results


def audit(result: "Audit | Audits", words: "Words | None" = None) -> str:
    """Return the report of an audit of one or several notions, as one HTML file.

    Args:
        result: the audit.
        words: the words for accepted and for a good outcome.
    """
    check()
    from sellf.report.audits import report

    return report(result, words)


def audit_as(result: "Audit | Audits", kind: str, words: "Words | None" = None) -> bytes:
    """Return the report of an audit as a file: "html", "xlsx", or "pdf" for a one-page summary.

    Args:
        result: the audit.
        kind: the kind of file.
        words: the words for accepted and for a good outcome.
    """
    check()
    from sellf.report.audits import page
    from sellf.report.page import render
    from sellf.report.pdf import pdf
    from sellf.report.workbook import workbook

    made = page(result) if words is None else words.page(page(result))
    return {"html": lambda: render(made).encode(), "xlsx": lambda: workbook(made),
            "pdf": lambda: pdf(made)}[kind]()  # fmt: skip


def policy(result: "WhatIf | Improvement") -> str:
    """Return the report of `sellf.whatif` or `sellf.improve`, as one HTML file."""
    check()
    from sellf.offline.improve import Improvement
    from sellf.report.page import render
    from sellf.report.policies import improve_page, whatif_page

    if isinstance(result, Improvement):
        return render(improve_page(result))
    return render(whatif_page(result))


def runs(
    folders: Sequence[str | Path],
    *,
    policies: Mapping[str, Any] | None = None,
    out: str | Path = "report.html",
    notify: Callable[[str], None] = lambda _: None,
) -> str:
    """Return the report of one run, or the comparison of several, as one HTML file.

    Args:
        folders: the folders of runs, or folders that contain several runs.
        policies: other policies to compare with the runs, by name: anything that `sellf.evaluate`
            takes, or a list of policies that differ in their seed. They are deployed to the same
            populations as the runs, which have to be of one world and notion.
        out: where the report will be written; it is part of the command that the report names.
        notify: called with a message before steps that take long.
    """
    check()
    _check_training()
    from sellf.report.compare import report
    from sellf.report.run_data import from_folders

    command = shlex.join(["sellf", "report", *map(str, folders), "-o", str(out)])
    if policies:
        named = ", ".join(f"{name!r}: ..." for name in policies)
        command = f"sellf.report.runs({[*map(str, folders)]}, policies={{{named}}})"
    return report(from_folders([Path(folder) for folder in folders], notify, policies), command)


def study(results: "Results", command: str = "") -> str:
    """Return the report of a study as one HTML file; `command` is what to type to repeat it."""
    check()
    from sellf.report.studies import report

    return report(results, command)


def stored_study(
    name: str | Path,
    *,
    quick: bool = False,
    store: str | Path | None = None,
    out: str | Path = "report.html",
) -> str:
    """Return the report of a study from the runs in a store, as one HTML file.

    Args:
        name: the name of a built-in study or collection ("paper"), or a TOML file.
        quick: report the reduced version of the study.
        store: the folder of runs (default: $SELLF_STORE, else sellf-store).
        out: where the report will be written; it is part of the command that the report names.
    """
    check()
    from sellf.studies import collection, spec
    from sellf.studies.results import results
    from sellf.studies.store import open_store

    several = collection.load(str(name), quick)
    studies = [spec.load(str(name), quick)] if several is None else several.studies
    found = [results(one, open_store(store, write=False, alone=one.alone)) for one in studies]
    options = [*(["--quick"] if quick else []), *(["--store", str(store)] if store else [])]
    run, told = (
        shlex.join(["sellf", *words, *options, *more])
        for words, more in (
            (("study", "run", str(name)), ()),
            (("report", str(name)), ("-o", str(out))),
        )
    )
    if not any(cell.grid or cell.final for one in found for cell in one.cells):
        raise InputError(f"no run of {name} is done yet: type `{run}`.")
    if several is None:
        return study(found[0], f"{run}\n{told}")
    from sellf.report.studies import report_of_all

    return report_of_all(several, found, f"{run}\n{told}")


def of_paths(
    paths: Sequence[Path],
    out: Path,
    notify: Callable[[str], None] = lambda _: None,
    *,
    quick: bool = False,
    store: Path | None = None,
) -> str:
    """Return the report of some paths: an audit's JSON, folders of runs, a study, or an index.

    Args:
        paths: one file, the name of one study, or any number of folders; several files, or
            files and folders, for an index of them all.
        out: where the report will be written.
        notify: called with a message before steps that take long.
        quick: (study) report its reduced version.
        store: (study) the folder of runs.
    """
    if len(paths) == 1 and _names_study(paths[0]):
        return stored_study(paths[0], quick=quick, store=store, out=out)
    if quick or store is not None:
        raise InputError("--quick and --store are for the report of a study: name one.")
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise InputError(
            f"there is no {missing[0]}: name the folder of a run, an audit's JSON, or a study "
            "(`sellf study list` has the names)."
        )
    saved = [path for path in paths if path.is_file()]
    if not saved:
        return runs(paths, out=out, notify=notify)
    if len(paths) > 1:
        return index(paths, out=out, notify=notify)
    from sellf.audit.saved import read

    return audit(read(saved[0]))


def index(
    paths: Sequence[str | Path],
    *,
    out: str | Path = "index.html",
    notify: Callable[[str], None] = lambda _: None,
) -> str:
    """Return an index of audits and runs as one HTML file: a line for each, and its details.

    Args:
        paths: files that `sellf audit --json` wrote, and folders of runs, in any number.
        out: where the index will be written; it is part of the command that the index names.
        notify: called with a message before steps that take long.
    """
    check()
    from sellf.audit.saved import read
    from sellf.report.overview import report, saved

    found = [Path(path) for path in paths]
    files = [path for path in found if path.is_file()]
    folders = [path for path in found if not path.is_file()]
    audits = [one for path in files for one in saved(path, read(path))]
    trained = []
    if folders:
        _check_training()
        from sellf.report.run_data import from_folders

        trained = from_folders(folders, notify)
    words = ["sellf", "report", *map(str, paths), "-o", str(out)]
    return report(audits, trained, shlex.join(words))


def inputs(paths: Sequence[Path], store: Path | None = None) -> list[Path]:
    """Return the files and folders from which the report of these paths is made."""
    runs = [run for path in paths if path.is_dir() for run in (path, *path.iterdir())]
    read = [path for path in paths if path.is_file()]
    read += [run / name for run in runs for name in RUN]
    if any(map(_names_study, paths)):
        from sellf.studies.store import location

        read.append(location(store))
    return read


def _names_study(path: Path) -> bool:
    if path.suffix == ".toml":
        return True
    if path.exists() or path.name != str(path):
        return False
    from sellf.studies.collection import summaries
    from sellf.studies.spec import builtin

    return str(path) in builtin() | summaries()


def check() -> None:
    """Refuse to start if Jinja2, which a report needs, is not installed."""
    if find_spec("jinja2") is None:
        raise InputError("a report needs Jinja2: type `pip install 'sellf[report]'`.")


def _check_training() -> None:
    if find_spec("jax") is None:
        raise InputError("a report of runs needs JAX: type `pip install 'sellf[train]'`.")


__all__ = [
    "audit",
    "check",
    "index",
    "inputs",
    "of_paths",
    "policy",
    "runs",
    "stored_study",
    "study",
]
