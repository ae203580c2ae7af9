"""Draw the picture at the top of the README, from the runs of a study in a store.

sellf study run paper-main && python tools/effect_picture.py
"""

from pathlib import Path

import numpy as np

from sellf import files
from sellf.studies import spec
from sellf.studies.plots import style
from sellf.studies.records import Cell
from sellf.studies.results import results
from sellf.studies.store import open_store

TARGET = Path(__file__).resolve().parents[1] / "docs" / "assets" / "effect.png"
OMEGA = 0.05


def mean(cell: Cell, what: str) -> np.ndarray:
    """Return a figure over deployment, averaged over seeds and deployments."""
    return np.mean([run.evaluation.by_time[what].mean(axis=0) for run in cell.final], axis=0)


def main() -> None:
    """Draw it."""
    found = results(spec.load("paper-main"), open_store(write=False))
    cells = {
        c.algorithm: c for c in found.cells if (c.world, c.notion) == ("lending", "opportunity")
    }
    ppo, ours = cells["ppo"], cells["sellf-direct"]
    time = ppo.final[0].evaluation.by_time["time"]
    with style.drawing():
        figure = style.new(9.5, 3.5)
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.25, 1.25, 1))
        for axes, cell, title in (
            (left, ppo, "Profit alone (PPO)"),
            (middle, ours, "sellf-direct, omega = 0.05"),
        ):
            true, naive = mean(cell, "disparity"), mean(cell, "disparity_accepted")
            axes.plot(time, true, color="#D55E00", label="true disparity")
            axes.plot(time, naive, color="#555555", linestyle="--", label="seen among the accepted")
            axes.axhline(OMEGA, color="black", linewidth=0.8, linestyle=":")
            axes.set(title=title, ylim=(-0.02, 0.5), xlabel="decisions")
            style.plain_ticks(axes)
            level = f"the truth: {np.mean(true):.2f}"
            axes.text(time[-1], max(true.max(), OMEGA) + 0.015, level, ha="right", color="#B34700")
            axes.text(time[0], OMEGA + 0.008, "tolerated", fontsize=8)
        left.text(
            time[len(time) // 2], 0.012, "what most tools report: 0", ha="center", color="#333333"
        )
        left.set_ylabel("disparity of opportunity,\nBlack and White applicants", fontsize=9)
        names = ["PPO", "sellf\n-direct"]
        gains = [float(np.mean([r.evaluation.reward for r in c.final])) - 1000 for c in (ppo, ours)]
        bars = right.bar(names, gains, color=["#555555", "#0072B2"], width=0.6)
        right.bar_label(bars, [f"+{gain:,.0f}" for gain in gains], padding=2)
        right.set(title="What the lender earns", ylim=(0, max(gains) * 1.2))
        right.grid(visible=False, axis="x")
        content = style.to_bytes(figure, "png")
    files.write(TARGET, content)
    print(TARGET)


if __name__ == "__main__":
    main()
