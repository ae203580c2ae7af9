"""Print how wide intervals are, as multiples of the efficient normal interval's width.

    python tools/widths.py                     # up to 5,000,000 people a group; minutes, 6 GB
    python tools/widths.py --most 100000       # seconds

The efficient interval is what AIPW with the true score and the known propensities has in the limit;
it holds in 95 % of long logs, ours at every length. Where propensities are known one can do better
than AIPW: in brackets is the multiple of the efficiency bound with known propensities, which no
regular estimate beats in the limit. Demographic parity is taken from the decisions alone, and has
no such figure. The audit is given a score that knows half (`--score true`: the true one).
Propensities run from 0.1 to 0.95 (wide) or from 0.02 to 0.92, most of them small (extreme).
"""

import argparse
import sys
from time import perf_counter
from typing import Any

import numpy as np

from coverage_study.cells import STUDIED as NOTIONS
from coverage_study.cells import Cell, Law, Score
from coverage_study.measure import audit, signed_width
from coverage_study.report import markdown
from coverage_study.worlds import draw, efficient_width, world
from sellf.fairness.notions import Notion

SIZES = (1_000, 10_000, 100_000, 1_000_000, 5_000_000)
ANYTIME_AT = 100_000


def standard(size: int, law: Law = "wide", score: Score = "rough") -> Cell:
    """Return the cell of two groups that widths are measured in."""
    return Cell("widths", (size, size), rates=(0.475, 0.505), law=law, score=score, number=size)


def logs_at(size: int) -> int:
    """Return how many logs give the mean width to about one per cent."""
    return max(1, min(20, 200_000 // size))


def ratios(cell: Cell, logs: int, *, bound: bool = False, **options: Any) -> dict[Notion, float]:
    """Return the mean width over the efficient one, by notion.

    Args:
        cell: which logs.
        logs: how many.
        bound: over the efficiency bound with known propensities, instead of AIPW's width.
        options: of the audit.
    """
    groups, widths = world(cell), mean_widths(cell, logs, **options)
    return {
        notion: width / efficient_width(notion, groups, cell.sizes, bound=bound)
        for notion, width in widths.items()
    }


def mean_widths(cell: Cell, logs: int, **options: Any) -> dict[Notion, float]:
    """Return the mean width by notion."""
    groups = world(cell)
    widths: dict[Notion, list[float]] = {notion: [] for notion in NOTIONS}
    for log in range(logs):
        columns = draw(cell, groups, np.random.default_rng([14, cell.number, log]))
        for notion, found in audit(cell, columns, 0.05, seed=log, **options).items():
            widths[notion].append(signed_width(found))
    return {notion: float(np.mean(found)) for notion, found in widths.items()}


def described(cell: Cell, notion: Notion, width: float) -> str:
    """Return the width as a multiple of both efficient ones."""
    groups = world(cell)
    usual, least = (
        width / efficient_width(notion, groups, cell.sizes, bound=bound) for bound in (False, True)
    )
    return f"{usual:.2f}" if notion == "demographic" else f"{usual:.2f} ({least:.2f})"


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How wide intervals are.")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="people a group, at most")
    parser.add_argument("--score", choices=("true", "rough"), default="rough")
    options = parser.parse_args(arguments)
    most = options.most
    rows: list[list[str]] = []
    laws: tuple[Law, ...] = ("wide", "extreme")
    for law in laws:
        for size in (size for size in SIZES if size <= most):
            for anytime in (False, True) if size == ANYTIME_AT else (False,):
                start, logs = perf_counter(), logs_at(size)
                cell = standard(size, law, options.score)
                found = mean_widths(cell, logs, anytime=anytime)
                each = (perf_counter() - start) / logs
                kind = "anytime" if anytime else "fixed"
                ours = [described(cell, notion, found[notion]) for notion in NOTIONS]
                rows.append([law, f"{size:,}", kind, *ours, str(logs), f"{each:.2f}"])
                print(f"{law}, {size:,}, {kind}: {', '.join(ours)}", file=sys.stderr, flush=True)
    heads = ["propensities", "people a group", "interval", *NOTIONS, "logs", "seconds a log"]
    print(markdown(heads, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
