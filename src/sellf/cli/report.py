"""`sellf report`: one HTML file."""

import sys
from pathlib import Path

from sellf import files, interrupts, report
from sellf.cli.showing import waiting
from sellf.errors import InputError


def write(paths: list[Path], out: Path, *, quick: bool = False, store: Path | None = None) -> None:
    """Write the report of an audit's JSON, of run folders or of a study, and say where it is."""
    if not paths:
        raise InputError(
            "name what to report: type `sellf report runs/first -o report.html`, or "
            "`sellf audit ... --json > audit.json` and then `sellf report audit.json`; a study by "
            "its name: `sellf report paper-main`."
        )
    files.check_output(out, report.inputs(paths, store))
    kind = f"report of {'runs' if any(path.is_dir() for path in paths) else 'files'}"
    with waiting("writing the report", kind, float(len(paths))):
        text = report.of_paths(paths, out, _to_stderr, quick=quick, store=store)
    interrupts.check()  # Ctrl-C may have come while a library was imported, which swallows it
    files.write(out, text.encode())
    print(f"The report is in {out}: open it in a browser.", file=sys.stderr)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)
