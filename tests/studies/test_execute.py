"""A worker's runs, one after the other in one process."""

from dataclasses import replace

import pytest

pytest.importorskip("jax")

from sellf.studies import execute
from sellf.training.spec import resolve


def run(algorithm, seed):
    """Return a short run in a small population."""
    small = {"population": 60, "window": 60, "horizon": 64}
    brief = {"rollout": 64, "batch": 32, "epochs": 1}
    found = resolve(
        "lending",
        algorithm,
        "opportunity",
        seed=seed,
        steps=128,
        settings=brief,
        world_settings=small,
    )
    return replace(found, deployments=1)


def test_programs_are_released_and_a_run_is_the_same_afterwards(monkeypatch):
    monkeypatch.setattr(execute, "MOST_PROGRAMS", 1)
    monkeypatch.setattr(execute, "_prepared", set())
    first = execute.perform(run("ppo", 3))
    kept = set(execute._prepared)
    execute.perform(run("pocar", 3))
    assert len(execute._prepared) == 1
    assert execute._prepared != kept
    again = execute.perform(run("ppo", 3))
    assert again["agent.safetensors"] == first["agent.safetensors"]
    assert again["results.safetensors"] == first["results.safetensors"]
