"""Stable-Baselines3's PPO on lending, and ours beside it in one report.

    pip install stable-baselines3 'sellf[train,report]'
    python examples/beside_stable_baselines3.py --steps 100000 --seeds 0 1 2 --out report.html

Trains Stable-Baselines3's PPO, unchanged, on the Gymnasium environment; trains `ppo` and
`sellf-direct` for as many steps; deploys all of them to the same populations.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO

import sellf
import sellf.envs.gymnasium  # makes the worlds known to Gymnasium
import sellf.report

RATE = 3e-4
"""The learning rate of all: the other library's default. Ours is the paper's, 1e-5, which is for
more steps."""


def trained(steps: int, seed: int) -> PPO:
    """Train with the library's own settings, save that rewards are not discounted."""
    env = gymnasium.make("sellf/Lending-v0", notion="opportunity")
    agent = PPO("MlpPolicy", env, learning_rate=RATE, gamma=1.0, seed=seed, device="cpu")
    return agent.learn(steps)


def chances(agent: PPO):
    """Return a function from observations to the probability of each action, as it was trained.

    Given to `sellf.evaluate`, the agent itself decides deterministically.
    """

    def of(observations: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            seen, _ = agent.policy.obs_to_tensor(observations)
            return agent.policy.get_distribution(seen).distribution.probs.numpy()

    return of


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--seeds", type=int, nargs="*", default=[0])
parser.add_argument("--runs", type=Path, default=Path("runs"))
parser.add_argument("--out", type=Path, default=Path("report.html"))
given = parser.parse_args()

torch.set_num_threads(1)
others = [trained(given.steps, seed) for seed in given.seeds]
folders = []
ours = {"ppo": {"learning_rate": RATE}, "sellf-direct": {"learning_rate": RATE, "omega": 0.05}}
for algorithm, settings in ours.items():
    for seed in given.seeds:
        folders.append(given.runs / f"{algorithm}-{seed}")
        sellf.train("lending", algorithm, steps=given.steps, seed=seed, out=folders[-1], **settings)

policies = {"SB3 PPO": [chances(agent) for agent in others], "SB3 PPO, deterministic": others}
for name, some in policies.items():
    for seed, policy in zip(given.seeds, some, strict=True):
        found = sellf.evaluate(policy, "lending", "opportunity")
        print(f"{name}, seed {seed}: {found.reward:,.1f}, {found.disparity:.3f}")
for folder in folders:
    found = sellf.evaluate(sellf.load(folder))
    print(f"{folder.name}: {found.reward:,.1f}, {found.disparity:.3f}")
given.out.write_text(sellf.report.runs(folders, policies=policies, out=given.out))
print(f"{given.out} compares them.")
