"""Small trainings that several tests report on."""

from dataclasses import replace

import pytest

SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "learning_rate": 1e-2, "progress": False}
SMALL = {"population": 300, "window": 200}


@pytest.fixture(scope="session")
def folder(jax, tmp_path_factory):
    """Return a folder with two runs of sellf and one of ppo, and one that is not finished."""
    from sellf.training import loop

    folder = tmp_path_factory.mktemp("runs")
    for algorithm, seed in (("ppo", 0), ("sellf", 0), ("sellf", 1)):
        out = folder / f"{algorithm}-{seed}"
        loop.train("lending", algorithm, seed=seed, world_settings=SMALL, out=out, **SHORT)
    unfinished = folder / "unfinished"
    unfinished.mkdir()
    for name in ("config.json", "metrics.jsonl"):
        (unfinished / name).write_bytes((folder / "ppo-0" / name).read_bytes())
    return folder


@pytest.fixture(scope="session")
def results(folder):
    """Return a study of two algorithms, with a grid for one of them."""
    import sellf
    from sellf.report.run_data import columns_of
    from sellf.studies.records import Cell, Record, Results
    from sellf.training.evaluation import evaluate_all

    def record(name, **settings):
        agent = sellf.load(folder / name)
        config = replace(agent.spec.config, **settings)
        spec = replace(agent.spec, config=config, deployments=2)
        return Record(spec, evaluate_all([agent], 2)[0], columns_of(agent.history), 1.5)

    tried = [record("sellf-0"), record("sellf-1", beta_disparity=3.0)]
    final = [record("sellf-0"), record("sellf-1")]
    ppo = record("ppo-0")
    cells = [
        Cell("lending", "opportunity", "sellf", tried, {"beta_disparity": 10.0}, final),
        Cell("lending", "opportunity", "ppo", [ppo], {}, [ppo]),
    ]
    accuracy = [replace(cell, notion="accuracy") for cell in cells]
    return Results("first <look>", True, [*cells, *accuracy])
