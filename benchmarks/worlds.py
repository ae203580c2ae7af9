"""Compiled worlds under a 64-64 network policy, against Gymnasium stepped from Python."""

from functools import partial
from time import perf_counter

import gymnasium
import jax
import numpy as np

from benchmarks.report import Row
from benchmarks.timing import best_seconds
from sellf.algorithms import networks
from sellf.algorithms.networks import Stack
from sellf.compiling import compiled
from sellf.envs import world as worlds
from sellf.envs.gymnasium import WorldEnv
from sellf.envs.rollout import rollout
from sellf.envs.space import by_profile
from sellf.envs.worlds import WORLDS, make_world

STEPS = 2048
STACKS = (Stack(critics=0),)


def rows() -> list[Row]:
    result: list[Row] = []
    for name in (name for name in WORLDS if name != "admission"):  # see benchmarks.functions
        speeds = {count: _compiled(name, count) for count in (1, 8, 64)}
        stepped = _stepped(name)
        for count, speed in speeds.items():
            result.append(Row(f"{name}: {count} populations", speed / 1e6, "million decisions/s"))
        result.append(Row(f"{name}: Gymnasium from Python", stepped / 1e6, "million decisions/s"))
        least = {"lending": 20, "school": 8}.get(name)
        result.append(
            Row(f"{name}: 64 populations / Gymnasium", speeds[64] / stepped, "times", least, True)
        )
    cartpole, ours = _one_step()
    result.append(Row("a Gymnasium step / CartPole-v1's", ours / cartpole, "times", 10))
    return result


def _parameters(inputs: int) -> jax.Array:
    return networks.init(STACKS, inputs, jax.random.key(0))


def _compiled(name: str, count: int) -> float:
    world = make_world(name)
    parameters = _parameters(world.inputs)

    def run(parameters: jax.Array, key: jax.Array, state: worlds.State) -> worlds.State:
        def value(x: jax.Array) -> jax.Array:
            layers = networks.unflatten(STACKS, world.inputs, parameters)
            return networks.forward(STACKS, layers, x)

        policy = networks.policy(world.space, by_profile(world.space, value))
        return rollout(world, key, state, STEPS, policy)[0]

    everyone = compiled(jax.vmap(run, in_axes=(None, 0, 0)))
    keys = jax.random.split(jax.random.key(1), count)
    states = jax.vmap(partial(worlds.reset, world))(keys)

    def once() -> None:
        jax.block_until_ready(everyone(parameters, keys, states))

    return count * STEPS / best_seconds({"run": once}, rounds=5)["run"]


def _stepped(name: str, steps: int = 3000) -> float:
    """Step the Gymnasium environment with the same network in NumPy."""
    env = WorldEnv(name)
    inputs = env.machine.world.inputs
    layers = networks.unflatten(STACKS, inputs, _parameters(inputs))[0]
    w1, b1, w2, b2, w3, b3 = (np.asarray(leaf)[0] for leaf in layers)
    rng = np.random.default_rng(0)

    def play() -> None:
        observation, _ = env.reset(seed=0)
        for _ in range(steps):
            hidden = np.tanh(observation @ w1 + b1[0])
            logit = (np.tanh(hidden @ w2 + b2[0]) @ w3 + b3[0])[0]
            action = int(rng.random() < 1 / (1 + np.exp(-logit)))
            observation, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                observation, _ = env.reset()

    return steps / best_seconds({"play": play}, rounds=3)["play"]


def _one_step(steps: int = 5000) -> tuple[float, float]:
    """Return the seconds of a step of CartPole-v1 and of lending, as `gymnasium.make` has them."""
    result = []
    for name in ("CartPole-v1", "sellf/Lending-v0"):
        env = gymnasium.make(name)
        env.reset(seed=0)
        best = float("inf")
        for _ in range(5):
            start = perf_counter()
            for i in range(steps):
                _, _, terminated, truncated, _ = env.step(i % 2)
                if terminated or truncated:
                    env.reset()
            best = min(best, (perf_counter() - start) / steps)
        result.append(best)
    return result[0], result[1]
