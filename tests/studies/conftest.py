"""Real runs, tiny ones, that the tests of tables and figures share."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest

STEPS = 1024
WORLD = {"population": 300, "window": 200}
SHORT = {"rollout": 256, "epochs": 2, "learning_rate": 1e-3}


def run(algorithm, configs, seeds):
    """Train on lending, and return the agents, configs by seeds, and the seconds of each."""
    import sellf

    begin = time.perf_counter()
    # One by one: other tests need the same program, and side by side they would need another.
    agents = [
        sellf.train(
            "lending",
            algorithm,
            steps=STEPS,
            seed=seed,
            world_settings=WORLD,
            progress=False,
            **SHORT | config,
        )
        for config in configs
        for seed in seeds
    ]
    return agents, (time.perf_counter() - begin) / len(agents)


def deploy(agents, seconds, notion="opportunity"):
    """Deploy agents, judged by a notion, and return their records."""
    import sellf
    from sellf.studies.records import Record

    names = [name for name in agents[0].history[0] if name != "iteration"]
    specs = [replace(agent.spec, notion=notion, deployments=3) for agent in agents]
    return [
        Record(
            spec,
            sellf.evaluate(replace(agent, spec=spec), deployments=3),
            {name: np.array([row[name] for row in agent.history]) for name in names},
            seconds,
        )
        for agent, spec in zip(agents, specs, strict=True)
    ]


@pytest.fixture(scope="session")
def cells(jax, tmp_path_factory):
    """PPO, by two notions (it looks at none), and a small grid of SELLF, three seeds each."""
    from sellf.studies.records import Cell

    os.environ["SELLF_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    learned = run("ppo", [{}], [0, 1, 2])
    ppo, other = deploy(*learned), deploy(*learned, "accuracy")
    grid = [{"beta_disparity": b, "beta_renyi": r} for b in (1.0, 5.0) for r in (0.0, 0.1)]
    sellf = deploy(*run("sellf", grid, [0, 1, 2]))
    del os.environ["SELLF_CACHE"]
    return {
        "ppo": Cell("lending", "opportunity", "ppo", ppo[:1], {}, ppo),
        "sellf": Cell("lending", "opportunity", "sellf", sellf[::3], grid[3], sellf[9:]),
        "accuracy": Cell("lending", "accuracy", "ppo", other[:1], {}, other),
        "each": [
            Cell("lending", "opportunity", "sellf", [], grid[i], sellf[3 * i : 3 * i + 3])
            for i in range(4)
        ],
    }


@pytest.fixture(scope="session")
def results(cells):
    from sellf.studies.records import Results

    return Results("paper-main", False, [cells["ppo"], cells["sellf"], cells["accuracy"]])


@pytest.fixture(scope="session")
def ablation(cells):
    """One cell for every configuration, as a study without selection has them."""
    from sellf.studies.records import Results

    return Results("ablation", True, cells["each"])
