"""How fast training is: against the bare matrix products, alone, batched, and started warm."""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.report import Row
from benchmarks.timing import best_seconds
from sellf.algorithms import catalogue, trainer
from sellf.compiling import compiled
from sellf.envs.worlds import make_world

ITERATIONS = 245
RUNS = 12


def rows() -> list[Row]:
    seconds = {name: _iteration("lending", name) for name in ("ppo", "sellf", "sellf-direct")}
    floor = _floor(12)
    result = [
        Row("ppo on lending", 2048 / seconds["ppo"] / 1000, "thousand steps/s"),
        Row("ppo on lending, 500,000 steps", seconds["ppo"] * ITERATIONS, "s"),
        Row("sellf / ppo (lending)", seconds["sellf"] / seconds["ppo"], "times", 1.6),
        Row(
            "sellf-direct / sellf (lending)",
            seconds["sellf-direct"] / seconds["sellf"],
            "times",
            1.2,
        ),
        Row("ppo iteration / bare products (lending)", seconds["ppo"] / floor, "times", 3.5),
    ]
    school = _iteration("school", "ppo")
    result.append(Row("ppo iteration / bare products (school)", school / _floor(121), "times", 3.5))
    both = [_iteration("school", name) for name in ("sellf-direct", "sellf")]
    result.append(Row("sellf-direct / sellf (school)", both[0] / both[1], "times", 1.2))
    batch = _iteration("lending", "sellf", runs=RUNS)
    result.append(
        Row(
            f"{RUNS} sellf runs in one batch / one by one",
            batch / (RUNS * seconds["sellf"]),
            "core-seconds",
            0.6,
        )
    )
    with tempfile.TemporaryDirectory() as cache:
        cold, memory = _start(cache)
        warm, _ = _start(cache)
    result += [
        Row("first iterations, cold cache", cold, "s", 25),
        Row("first iterations, warm cache", warm, "s", 4),
        Row("memory of a sellf run, compiling included", memory / 1e9, "GB", 1.2),
    ]
    return result


def _iteration(world: str, name: str, runs: int = 1) -> float:
    """Return the seconds of one iteration (of all runs together)."""
    hooks, config = catalogue.resolve(name, {}, "opportunity")
    task = trainer.simulated(make_world(world), "opportunity", ITERATIONS)
    config = jax.tree.map(lambda leaf: jnp.full((runs,), leaf, jnp.float32), config)
    keys = jax.random.split(jax.random.key(0), runs)
    one: Any = partial(trainer.iterate, hooks)
    start: Any = partial(trainer.init, hooks)
    if runs > 1:
        one, start = (jax.vmap(f, in_axes=(None, 0, 0)) for f in (one, start))
    else:
        config, keys = jax.tree.map(lambda leaf: leaf[0], (config, keys))
    iterate = compiled(one)
    state, _ = iterate(task, config, compiled(start)(task, config, keys))

    def once() -> None:
        jax.block_until_ready(iterate(task, config, state))

    return best_seconds({"iteration": once}, rounds=8 if runs == 1 else 3)["iteration"]


def _floor(inputs: int) -> float:
    """Return the seconds of an iteration's forward and backward matrix products alone, in NumPy."""
    rng = np.random.default_rng(0)
    sizes = (inputs, 64, 64, 1)
    weights = [rng.random(pair, dtype=np.float32) for pair in pairwise(sizes)]
    x = [rng.random((64, size), dtype=np.float32) for size in sizes]

    def products() -> None:
        for _ in range(2):  # actor and critic
            for i, w in enumerate(weights):
                _ = x[i] @ w
            for i in reversed(range(3)):
                _ = x[i].T @ x[i + 1]
                if i:
                    _ = x[i + 1] @ weights[i].T

    def iteration() -> None:
        for _ in range(320):
            products()

    return best_seconds({"floor": iteration})["floor"]


def _start(cache: str) -> tuple[float, float]:
    """Return the seconds until a new process has trained one iteration, and its peak memory."""
    # The kernel's own mark: a resource usage would count this parent's memory in, too.
    code = (
        "import sellf; sellf.train('lending', 'sellf', steps=2048 * 3, progress=False); "
        "lines = open('/proc/self/status').read().splitlines(); "
        "print(next(int(x.split()[1]) * 1024 for x in lines if x.startswith('VmHWM')))"
    )
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SELLF_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - begin, float(done.stdout)
