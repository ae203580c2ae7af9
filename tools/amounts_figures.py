"""The table and the picture of lending with amounts: docs/worlds.md.

    python tools/amounts_figures.py --out docs/assets/amounts.svg --store amounts.json

Trains `sellf-direct`, and `sellf` with several settings, with five seeds each, deploys them, and
plans the best policies of two and of three actions under the same constraint. What is done already
is read from the store.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import sellf
from sellf.planning.law import Law, law_of

OMEGA = 0.05
SEEDS = range(5)
ALGORITHMS: dict[str, dict[str, Any]] = {
    "sellf-direct": {"omega": OMEGA},
    "sellf": {"omega": OMEGA},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "omega = 0.025": {"omega": OMEGA / 2},
    "beta_increase = 5": {"omega": OMEGA, "beta_increase": 5.0},
    "beta_renyi = 0.1": {"omega": OMEGA, "beta_renyi": 0.1},
    "beta_disparity = 5": {"omega": OMEGA, "beta_disparity": 5.0},
}
"""Other settings of `sellf`, judged by the same tolerance."""
PLANS = {"reject, small, large": (0, 1, 2), "reject, small": (0, 1), "reject, large": (0, 2)}


def main() -> None:
    """Do what is missing, then print the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--only", nargs="*", default=[], help="some agents, 'sellf-direct 0'")
    given = parser.parse_args()
    done = json.loads(given.store.read_text()) if given.store.is_file() else {}
    wanted = ALGORITHMS | {f"sellf, {name}": settings for name, settings in VARIANTS.items()}
    for label, settings in wanted.items():
        for seed in SEEDS:
            name = f"{label} {seed}"
            if name in done or (given.only and name not in given.only):
                continue
            done[name] = trained(label.partition(",")[0], settings, seed, given.steps)
            given.store.write_text(json.dumps(done, indent=1))
            print(name, done[name]["reward"], done[name]["disparity"], flush=True)
    if given.only:
        return
    for name, actions in PLANS.items():
        if name not in done:
            found = sellf.plan(of_actions(law_of("lending-amounts"), actions), "opportunity", OMEGA)
            done[name] = {"reward": found.reward, "disparity": float(found.disparity.max())}
            given.store.write_text(json.dumps(done, indent=1))
    print(table(done))
    draw(done).savefig(given.out)


def trained(algorithm: str, settings: dict[str, Any], seed: int, steps: int) -> dict[str, Any]:
    """Train and deploy one agent."""
    agent = sellf.train(
        "lending-amounts", algorithm, steps=steps, seed=seed, progress=False, **settings
    )
    found = sellf.evaluate(agent, deployments=20, seed=1)
    log_odds, _ = agent.tables()
    logs = np.concatenate([np.zeros((1, log_odds.shape[1])), log_odds])
    chance = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
    return found.summary() | {"chance": chance.tolist()}


def of_actions(law: Law, kept: tuple[int, ...]) -> Law:
    """Return the law with some of its actions only."""
    return replace(
        law,
        actions=tuple(law.actions[a] for a in kept),
        favourable=tuple(law.favourable[a] for a in kept),
        transition=tuple(law.transition[a] for a in kept),
        gain=law.gain[list(kept)],
    )


def table(done: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    lines = ["| policy | reward | true disparity |", "| --- | --- | --- |"]
    for name in PLANS:
        found = done[name]
        lines.append(f"| plan: {name} | {found['reward']:,.1f} | {found['disparity']:.3f} |")
    for label in ALGORITHMS:
        for seed, found in of(done, label).items():
            reward, gap = found["reward"], found["disparity"]
            lines.append(f"| {label}, seed {seed} | {reward:,.1f} | {gap:.3f} |")
    lines += [
        "",
        "| settings of sellf | within omega | reward | true disparity | imputed |",
        "| --- | --- | --- | --- | --- |",
    ]
    for label in ("sellf", *(f"sellf, {name}" for name in VARIANTS)):
        own = list(of(done, label).values())
        if not own:
            continue
        gaps = [found["disparity"] for found in own]
        lines.append(
            f"| {label.partition(', ')[2] or 'default'} | {sum(gap <= OMEGA for gap in gaps)} of "
            f"{len(gaps)} | {np.mean([found['reward'] for found in own]):,.1f} | "
            f"{np.mean(gaps):.3f} ({min(gaps):.3f} to {max(gaps):.3f}) | "
            f"{np.mean([found['disparity_imputed'] for found in own]):.3f} |"
        )
    return "\n".join(lines)


def of(done: dict[str, Any], label: str) -> dict[str, dict[str, Any]]:
    """Return what an algorithm with its settings came to, by seed."""
    parts = {name: name.rpartition(" ") for name in done}
    return {parts[name][2]: found for name, found in done.items() if parts[name][0] == label}


def draw(done: dict[str, Any]) -> Any:
    """Draw the chances of the three actions by group and score, of the first agent."""
    import matplotlib.pyplot as plt

    chance = np.mean(
        [v["chance"] for k, v in done.items() if k.startswith("sellf-direct ")], axis=0
    )
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
    for group, axis in enumerate(axes):
        own = chance[:, group * 10 : group * 10 + 10]
        axis.stackplot(
            range(10),
            own,
            labels=("reject", "small loan", "large loan"),
            colors=("#BBBBBB", "#56B4E9", "#0072B2"),
        )
        axis.set(xlabel="score class", title=("Black", "White")[group], xlim=(0, 9), ylim=(0, 1))
    axes[0].set_ylabel("chance (mean of 5 seeds)")
    axes[1].legend(loc="lower left", fontsize=8)
    return figure


if __name__ == "__main__":
    main()
