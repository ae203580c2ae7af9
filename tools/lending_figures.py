"""Train on lending (equality of opportunity) with several seeds and write docs/results/lending.md.

python tools/lending_figures.py            # some minutes on one core
"""

import platform
from pathlib import Path
from typing import Any

import jax
import numpy as np

import sellf

ROOT = Path(__file__).resolve().parents[1]
SEEDS = range(5)
PAPER = {
    "ppo": "1,625, 0.38",
    "pocar": "1,627, 0.37",
    "focops": "1,627, 0.41",
    "sellf": "1,246, 0.03",
    "sellf-semi": "1,326, 0.05",
    "sellf-relu": "1,264, 0.04",
}
SETTINGS: dict[str, dict[str, Any]] = {"sellf-semi": {}, "sellf-relu": {}, "sellf": {}}
ORACLE = [
    {"beta_disparity": b1, "beta_increase": b2}
    for b1 in (1.0, 2.0, 5.0, 10.0)
    for b2 in (1.0, 2.0, 5.0)
]


def main() -> None:
    """Train, deploy and write."""
    lines = [
        "# Lending, equality of opportunity",
        "",
        f"500,000 steps, seeds 0 to {len(SEEDS) - 1}, 10 deployments each; made by "
        "`python tools/lending_figures.py` with "
        f"sellf {sellf.__version__}, JAX {jax.__version__}, Python {platform.python_version()} on "
        f"{platform.machine()}. Settings are the defaults (SELLF: beta_1 = 10, beta_2 = 0.01). The "
        "paper's figures are of one training, after choosing the best of a grid.",
        "",
        "| algorithm | reward, mean (each seed) | true disparity, mean (each seed) | exact | "
        "the paper |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, paper in PAPER.items():
        agents = sellf.train(
            "lending", name, notion="opportunity", seeds=SEEDS, **SETTINGS.get(name, {})
        )
        results = [sellf.evaluate(agent) for agent in agents]
        reward, gap = (
            np.array([getattr(r, key) for r in results]) for key in ("reward", "disparity")
        )
        exact = np.mean([r.summary()["disparity_exact"] for r in results])
        each = ", ".join(f"{x:,.0f}" for x in reward), ", ".join(f"{x:.3f}" for x in gap)
        lines.append(
            f"| {name} | {reward.mean():,.0f} ({each[0]}) | {gap.mean():.3f} ({each[1]}) | "
            f"{exact:.3f} | {paper} |"
        )
        print(lines[-1], flush=True)
    lines += ["", "`pocar-oracle` over the paper's grid, seed 0 (the paper: 1,157, 0.05):", ""]
    lines += ["| beta_1 | beta_2 | reward | true disparity |", "| --- | --- | --- | --- |"]
    agents = sellf.train("lending", "pocar-oracle", notion="opportunity", configs=ORACLE)
    for config, agent in zip(ORACLE, agents, strict=True):
        result = sellf.evaluate(agent)
        betas = " | ".join(f"{beta:g}" for beta in config.values())
        lines.append(f"| {betas} | {result.reward:,.0f} | {result.disparity:.3f} |")
        print(lines[-1], flush=True)
    (ROOT / "docs" / "results" / "lending.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
