"""The provenance of tables and figures: runs, versions and machine."""

import os
import platform
import shlex
from pathlib import Path

from sellf._version import __version__
from sellf.studies.records import Cell, Results
from sellf.studies.summary import records_of

QUICK = "QUICK LOOK: shrunk to a few minutes; these are not results."


def facts(results: Results) -> dict[str, str]:
    """Return facts about the origin of tables by name, with a note first for quick studies."""
    import jax

    quick = {"note": QUICK} if results.quick else {}
    return quick | {
        "study": results.study,
        "command": command(results),
        "runs": extent(results.cells),
        "versions": (
            f"sellf {__version__}, Python {platform.python_version()}, JAX {jax.__version__}"
        ),
        "machine": f"{processor()}, {os.cpu_count()} cores (where this was written)",
    }


def command(results: Results) -> str:
    """Return the command that reproduces the results."""
    named = results.source or results.study
    return f"sellf study run {shlex.quote(named)}{' --quick' if results.quick else ''}"


def extent(cells: list[Cell]) -> str:
    """Return the number of seeds, steps and deployments of some cells, in words."""
    runs = records_of(cells)
    seeds = [len({run.spec.seed for run in cell.final}) for cell in cells if cell.final]
    parts = [
        f"{_range(seeds or [0], 'training seed')}",
        _range([run.spec.steps for run in runs] or [0], "step"),
        _range([run.spec.deployments for run in runs] or [0], "deployment"),
    ]
    return ", ".join(parts)


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(named), platform.processor() or platform.machine())


def _range(numbers: list[int], what: str) -> str:
    low, high = min(numbers), max(numbers)
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{number} {what}{'' if high == 1 else 's'}"
