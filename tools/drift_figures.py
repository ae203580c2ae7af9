"""A frozen and a retrained agent under drift: the table and the picture in docs/worlds.md.

    python tools/drift_figures.py --store drift.json --out docs/assets/drift.svg

In lending the log-odds of repayment of one group fall by 0.3 in every period. `sellf-direct` is
trained once; then one copy stays as it is, and another goes on for 100,000 decisions in every
period. What is done already is read from the store.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import sellf

DRIFT = {"label": {"Black": -0.3}}
PERIODS, SEEDS, OMEGA = 6, range(5), 0.05
FIRST, MORE = 500_000, 100_000


def main() -> None:
    """Do the seeds that are missing, then print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    given = parser.parse_args()
    done = json.loads(given.store.read_text()) if given.store.is_file() else {}
    for seed in given.seeds:
        if str(seed) not in done:
            done[str(seed)] = lived(seed)
            given.store.write_text(json.dumps(done, indent=1))
    print(table(done))
    if given.out is not None:
        draw(done).savefig(given.out)


def lived(seed: int) -> dict[str, list[float]]:
    """Return the true disparity and the reward of both agents, by period."""
    frozen = going = sellf.train("lending", steps=FIRST, seed=seed, omega=OMEGA, progress=False)
    found: dict[str, list[float]] = {}
    for period in range(PERIODS):
        settings = {"drift": DRIFT, "period": period}
        world = sellf.make_world("lending", **settings)
        if period:
            going = sellf.train(
                "lending",
                steps=MORE,
                seed=seed + 100 * period,
                world_settings=settings,
                continue_from=going,
                progress=False,
            )
        for name, agent in (("frozen", frozen), ("retrained", going)):
            result = sellf.evaluate(agent, world, deployments=10, seed=1)
            found.setdefault(f"{name} disparity", []).append(result.disparity)
            found.setdefault(f"{name} reward", []).append(result.reward)
    return found


def table(done: dict[str, Any]) -> str:
    """Return means over the seeds, with the smallest and the largest, in Markdown."""
    lines = [
        "| period | disparity: frozen | retrained | reward: frozen | retrained |",
        "| --- | --- | --- | --- | --- |",
    ]
    for period in range(PERIODS):
        cells = []
        for name in ("frozen disparity", "retrained disparity"):
            own = [seed[name][period] for seed in done.values()]
            cells.append(f"{np.mean(own):.3f} ({min(own):.3f} to {max(own):.3f})")
        for name in ("frozen reward", "retrained reward"):
            cells.append(f"{np.mean([seed[name][period] for seed in done.values()]):,.0f}")
        lines.append(f"| {period} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(done: dict[str, Any]) -> Any:
    """Draw the disparity of each seed over the periods."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for name, colour in (("frozen", "#D55E00"), ("retrained", "#0072B2")):
        each = np.array([seed[f"{name} disparity"] for seed in done.values()])
        axis.plot(each.T, color=colour, alpha=0.35, lw=1)
        axis.plot(each.mean(axis=0), color=colour, lw=2.5, label=f"{name} (mean of {len(each)})")
    axis.axhline(OMEGA, color="black", ls=":", lw=1, label="omega")
    axis.set(xlabel="period", ylabel="true opportunity disparity", ylim=(0, None))
    axis.legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    main()
