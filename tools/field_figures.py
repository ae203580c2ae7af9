"""`ppo` and `sellf-direct` in attention and admission: the table and the picture in docs/worlds.md.

    python tools/field_figures.py --store field.json --out docs/assets/field.svg

Trains both with five seeds in both worlds and deploys them. What is done already is read from the
store.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import sellf

OMEGA, SEEDS, DEPLOYMENTS = 0.05, range(5), 10
WORLDS = {"attention": 200_000, "admission": 100_000}
"""How many decisions are learned from."""
RATES = {"attention": 5e-5, "admission": 1e-4}
"""Of learning: larger than the default of 1e-5, which is for 500,000 decisions."""
ALGORITHMS: dict[str, dict[str, Any]] = {"ppo": {}, "sellf-direct": {"omega": OMEGA}}
COLOURS = {"ppo": "#D55E00", "sellf-direct": "#0072B2"}


def main() -> None:
    """Do what is missing, then print the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    given = parser.parse_args()
    done = json.loads(given.store.read_text()) if given.store.is_file() else {}
    for world in given.worlds:
        for algorithm in ALGORITHMS:
            for seed in given.seeds:
                name = f"{world} {algorithm} {seed}"
                if name not in done:
                    done[name] = trained(world, algorithm, seed)
                    given.store.write_text(json.dumps(done, indent=1))
                    print(name, done[name]["reward"], done[name]["disparity"], flush=True)
    print(table(done))
    if given.out is not None:
        draw(done).savefig(given.out)


def trained(world: str, algorithm: str, seed: int) -> dict[str, Any]:
    """Train and deploy one agent."""
    agent = sellf.train(
        world,
        algorithm,
        steps=WORLDS[world],
        seed=seed,
        learning_rate=RATES[world],
        progress=False,
        **ALGORITHMS[algorithm],
    )
    found = sellf.evaluate(agent, deployments=DEPLOYMENTS, seed=1)
    return found.summary() | {
        "time": found.by_time["time"].tolist(),
        "disparity_by_time": found.by_time["disparity"].mean(axis=0).tolist(),
    }


def of(done: dict[str, Any], world: str, algorithm: str) -> list[dict[str, Any]]:
    """Return what the seeds of an algorithm in a world came to."""
    return [found for name, found in done.items() if name.startswith(f"{world} {algorithm} ")]


def table(done: dict[str, Any]) -> str:
    """Return means over the seeds, with the smallest and the largest disparity, in Markdown."""
    lines = [
        "| world | algorithm | reward | true disparity | within omega | accepted, by group |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for world in WORLDS:
        for algorithm in ALGORITHMS:
            own = of(done, world, algorithm)
            if not own:
                continue
            gaps = [found["disparity"] for found in own]
            shares = [
                f"{group} {np.mean([found['acceptance'][group] for found in own]):.2f}"
                for group in own[0]["acceptance"]
            ]
            lines.append(
                f"| {world} | {algorithm} | {np.mean([found['reward'] for found in own]):,.0f} | "
                f"{np.mean(gaps):.3f} ({min(gaps):.3f} to {max(gaps):.3f}) | "
                f"{sum(gap <= OMEGA for gap in gaps)} of {len(gaps)} | {', '.join(shares)} |"
            )
    return "\n".join(lines)


def draw(done: dict[str, Any]) -> Any:
    """Draw the disparity of each seed over deployment."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axis, world in zip(axes, WORLDS, strict=True):
        for algorithm, colour in COLOURS.items():
            own = of(done, world, algorithm)
            if not own:
                continue
            lines = np.array([found["disparity_by_time"] for found in own])
            axis.plot(own[0]["time"], lines.T, color=colour, alpha=0.35, lw=1)
            axis.plot(own[0]["time"], lines.mean(axis=0), color=colour, lw=2.5, label=algorithm)
        axis.axhline(OMEGA, color="black", ls=":", lw=1, label="omega")
        axis.set(xlabel="decisions", title=world, ylim=(0, None))
    axes[0].set_ylabel("true opportunity disparity")
    axes[1].legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    main()
