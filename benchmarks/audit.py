"""An audit of Parquet logs against one DuckDB `group by` over the same columns, in the same run."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

import sellf
from benchmarks.report import Row
from benchmarks.timing import best_seconds

ROWS = 10_000_000
FILES = 10
"""The long log is this many times as long."""
COLUMNS: dict[str, Any] = {
    "group": "race",
    "decision": "approved",
    "outcome": "repaid",
    "propensity": "p",
    "score": "score",
}
MEMORY = """
import resource, sys, sellf
sellf.audit(sys.argv[1], group="race", decision="approved", outcome="repaid", propensity="p",
            score="score")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for part in range(FILES):
            write(Path(folder) / f"log-{part}.parquet")
        short, long = str(Path(folder) / "log-0.parquet"), str(Path(folder) / "log-*.parquet")
        seconds = best_seconds(
            {"group by": lambda: group_by(short), "audit": lambda: audit(short)}, rounds=5
        )
        whole = best_seconds({"audit": lambda: audit(long)}, rounds=2)["audit"]
        return [
            Row("audit, 10 million rows", seconds["audit"] / seconds["group by"],
                "times one group by", 6),
            Row("audit, 10 million rows, memory", memory(short), "GB", 1.5),
            Row("audit, 100 million rows", whole / seconds["audit"] / FILES,
                "times linear growth", 1.3),
            Row("audit, 100 million rows, memory", memory(long), "GB", 1.5),
        ]  # fmt: skip


def audit(path: str) -> None:
    sellf.audit(path, **COLUMNS)


def group_by(path: str) -> None:
    figures = ", ".join(
        f"avg({name}), var_samp({name})" for name in ("approved", "repaid", "p", "score")
    )
    duckdb.execute(f"select race, {figures} from '{path}' group by race").fetchall()


def memory(path: str) -> float:
    """Return the most memory that an audit in a process of its own had, in GB."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, path], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def write(path: Path) -> None:
    """Write a log of random decisions."""
    duckdb.sql(
        f"""
        copy (
            select if(r < 0.3, 'b', 'a') as race, cast(v < p as int) as approved, p,
                if(v < p, cast(u < 0.2 + 0.6 * x as double), null) as repaid,
                0.3 + 0.4 * x as score
            from (
                select *, 0.1 + 0.8 * x as p
                from (
                    select random() as r, random() as x, random() as v, random() as u
                    from range({ROWS})
                )
            )
        ) to '{path}' (format parquet)
        """
    )
