"""Run the benchmarks named on the command line, or all: `python -m benchmarks fairness`."""

import importlib
import os
import platform
import sys

# One core, also for NumPy's products: ratios then mean the same on every machine.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

BENCHMARKS = {
    "fairness": "10 million rows, 2 groups",
    "worlds": "decisions under a 64-64 network policy",
    "functions": "continuous people, written as functions",
    "training": "500,000 steps of the paper, and what they cost",
    "rivals": "PPO on lending against other libraries (its own environment: make bench-rivals)",
    "audit": "10 and 100 million rows of Parquet, 2 groups",
    "peers": "policies from lending logs: fairlearn, reject inference and sellf.improve",
    "estimated": "propensities estimated from 4 features for 4 and 20 million rows of Parquet",
}


def main() -> int:
    names = sys.argv[1:] or [name for name in BENCHMARKS if name not in ("rivals", "peers")]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}: there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print(f"Python {platform.python_version()}, {platform.machine()}")
    for name in names:
        print(f"\n{name}: {BENCHMARKS[name]}")
        for row in importlib.import_module(f"benchmarks.{name}").rows():
            print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
