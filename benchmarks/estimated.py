"""Propensities estimated for long Parquet logs: seconds of the processor, and memory."""

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks.report import Row

LENGTHS = (4_000_000, 20_000_000)
AUDIT = """
import resource, sys, sellf
sellf.audit(sys.argv[1], group="race", decision="approved", outcome="repaid", seed=1,
            features=["score", "income", "age", "branch"], notion="qualification")
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20)
"""


def rows() -> list[Row]:
    found = []
    for length in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.parquet"
            write(path, length)
            seconds, memory = measured(path)
        name = f"estimated propensities, {length // 1_000_000} million rows"
        # Three minutes on two cores are at most six of the processor.
        found.append(Row(name, seconds, "s of one core", 360))
        found.append(Row(f"{name}, memory", memory, "GB", 3))
    return found


def measured(path: Path) -> tuple[float, float]:
    """Return seconds of the processor and GB of an audit in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, str(path)], capture_output=True, text=True, check=True
    )
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def write(path: Path, length: int) -> None:
    """Write a log whose decisions depend on two numbers, and in which no two rows are equal."""
    duckdb.sql(
        f"""
        copy (
            select if(r < 0.3, 'b', 'a') as race, cast(v < p as int) as approved,
                if(v < p, cast(u < 0.2 + 0.5 * x + if(age > 40, 0.1, 0) as double), null) as repaid,
                x as score, income, age, branch
            from (
                select *, 0.1 + 0.5 * x + 0.3 * income as p
                from (
                    select random() as r, random() as x, random() as v, random() as u,
                        random() as income, 18 + cast(50 * random() as int) as age,
                        ['north', 'south', 'east', 'west'][1 + cast(floor(4 * random()) as int)]
                            as branch
                    from range({length})
                )
            )
        ) to '{path}' (format parquet)
        """
    )
