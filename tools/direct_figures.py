"""Exact reward, disparity and regret of sellf-direct, with other settings than its defaults.

    python tools/direct_figures.py --seeds 3
    python tools/direct_figures.py --seeds 5 --set sharpen=0.1
    python tools/direct_figures.py --world recidivism --notion accuracy --set sharpen=0.1

Figures are of the expected population under the true law. Regret needs the frontier of the world
and notion in docs/results/frontiers.json (`python tools/regret.py --frontiers`).
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import sellf
from plan_figures import exact, favoured
from regret import RESULTS, frontiers
from sellf.planning.law import law_of


def main(arguments: list[str] | None = None) -> int:
    """Train with each seed, and print a line for it; then one for all."""
    parser = argparse.ArgumentParser(description="Figures of sellf-direct.")
    parser.add_argument("--world", default="lending")
    parser.add_argument("--notion", default="opportunity")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--omega", type=float, default=0.05)
    parser.add_argument("--set", nargs="*", default=[], help="settings that are numbers: name=1")
    parser.add_argument("--frontiers", type=Path, default=RESULTS / "frontiers.json")
    options = parser.parse_args(arguments)
    curve = frontiers(options.frontiers, compute=False).get((options.world, options.notion))
    settings: dict[str, Any] = {
        name: float(value) for name, value in (each.split("=") for each in options.set)
    }
    law, rows = law_of(options.world), []
    print("| seed | reward | mean disparity | largest | regret |\n| --- | --- | --- | --- | --- |")
    for seed in range(options.seeds):
        agent = sellf.train(
            options.world, "sellf-direct", notion=options.notion, seed=seed, omega=options.omega,
            progress=False, **settings,
        )  # fmt: skip
        found = exact(law, options.notion, favoured(agent))
        best = None if curve is None else curve.reward_at(found["disparity_mean"])
        regret = np.nan if best is None else best - found["reward"]
        rows.append([found["reward"], found["disparity_mean"], found["disparity"], regret])
        print(_line(str(seed), rows[-1]), flush=True)
    means, largest = np.mean(rows, axis=0), max(row[2] for row in rows)
    print(_line("mean (largest of all)", [means[0], means[1], largest, means[3]]))
    return 0


def _line(name: str, row: list[float]) -> str:
    return f"| {name} | {row[0]:,.1f} | {row[1]:.4f} | {row[2]:.4f} | {row[3]:.1f} |"


if __name__ == "__main__":
    sys.exit(main())
