"""`sellf report`: one HTML file."""

import sys
from pathlib import Path

from sellf import files, report
from sellf.errors import InputError


def write(paths: list[Path], out: Path) -> None:
    """Write the report of an audit's JSON or of run folders, and say where it is."""
    if not paths:
        raise InputError(
            "name what to report: type `sellf report runs/first -o report.html`, or "
            "`sellf audit ... --json > audit.json` and then `sellf report audit.json`."
        )
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent} for -o {out}: make it first.")
    text = report.of_paths(paths, out, lambda line: print(line, file=sys.stderr))
    files.write(out, text.encode())
    print(f"The report is in {out}: open it in a browser.", file=sys.stderr)
