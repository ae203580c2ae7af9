"""Reports: one self-contained HTML file for an audit, for runs, or for a study."""

import shlex
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sellf.errors import InputError

if TYPE_CHECKING:
    from sellf.audit.result import Audit, Audits
    from sellf.studies.records import Results


def audit(result: "Audit | Audits") -> str:
    """Return the report of an audit of one or several notions, as one HTML file."""
    check()
    from sellf.report.audits import report

    return report(result)


def runs(
    folders: Sequence[str | Path],
    *,
    out: str | Path = "report.html",
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Return the report of one run, or the comparison of several, as one HTML file.

    Args:
        folders: of runs, or folders that hold runs.
        out: where it will be written; it is part of the command that the report names.
        say: is told what takes long.
    """
    check()
    if find_spec("jax") is None:
        raise InputError("a report of runs needs JAX: type `pip install 'sellf[train]'`.")
    from sellf.report.compare import report
    from sellf.report.deeds import from_folders

    words = ["sellf", "report", *map(str, folders), "-o", str(out)]
    return report(from_folders([Path(folder) for folder in folders], say), shlex.join(words))


def study(results: "Results", command: str = "") -> str:
    """Return the report of a study as one HTML file; `command` is what to type to get it again."""
    check()
    from sellf.report.studies import report

    return report(results, command)


def of_paths(paths: Sequence[Path], out: Path, say: Callable[[str], None] = lambda _: None) -> str:
    """Return the report of what paths hold: the JSON of an audit, or the folders of runs.

    Args:
        paths: one file, or any number of folders.
        out: where it will be written.
        say: is told what takes long.
    """
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise InputError(f"there is no {missing[0]}: name the folder of a run, or an audit's JSON.")
    saved = [path for path in paths if path.is_file()]
    if not saved:
        return runs(paths, out=out, say=say)
    if len(paths) > 1:
        raise InputError(
            f"{saved[0]} is a file: a report is of one audit, or of any number of run folders."
        )
    from sellf.audit.saved import read

    return audit(read(saved[0]))


def check() -> None:
    """Refuse to begin what cannot be finished: a report needs Jinja2."""
    if find_spec("jinja2") is None:
        raise InputError("a report needs Jinja2: type `pip install 'sellf[report]'`.")


__all__ = ["audit", "check", "of_paths", "runs", "study"]
