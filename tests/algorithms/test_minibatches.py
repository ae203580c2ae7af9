"""A gradient step over a minibatch's different profiles is the step over everyone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sellf.algorithms import catalogue, networks, trainer
from sellf.algorithms.adam import Learner
from sellf.envs.worlds import make_world


def test_the_profiles_of_a_minibatch_are_listed_once_and_counted():
    rng = np.random.default_rng(0)
    for _ in range(50):
        profile = rng.integers(0, 30, 24)
        listed, number = trainer.distinct(jnp.asarray(profile), 30, 16)
        there = np.unique(profile)
        assert int(number) == len(there)
        first = there[:16]
        np.testing.assert_array_equal(listed, [*first, *[30] * (16 - len(first))])


def _improved(world, profile, profiles_listed, monkeypatch):
    """Return the parameters after one iteration's steps, with or without listing profiles."""
    algorithm, config = catalogue.resolve(
        "elbert", {"rollout": 128, "batch": 64, "epochs": 1}, "accuracy"
    )
    rng = np.random.default_rng(1)
    space, critics = world.space, 5
    action = jnp.asarray(rng.integers(0, 2, 128), jnp.int32)
    decisions = trainer.Decisions(
        profile=jnp.asarray(profile, jnp.int32),
        group=space.group[jnp.asarray(profile)],
        action=action,
        before=jnp.zeros((128, 1)),
        log_probability=jnp.full(128, jnp.log(0.5)),
        target=jnp.asarray(rng.normal(size=(128, critics)), jnp.float32),
        columns={"advantages": jnp.asarray(rng.normal(size=(128, critics)), jnp.float32)},
    )
    figures = {"supply": jnp.asarray([3.0, 5.0]), "demand": jnp.asarray([6.0, 7.0])}
    start = networks.init(algorithm.stacks(space), space.inputs, jax.random.key(0))
    if not profiles_listed:
        monkeypatch.setattr(networks.Stack, "wide", False)
    learner, loss = trainer.improve(
        algorithm, space, config, Learner.new(start), decisions, figures, jax.random.key(2)
    )
    monkeypatch.undo()
    return np.asarray(learner.parameters - start), float(loss)


def test_steps_over_the_profiles_of_a_minibatch_are_those_over_everyone(monkeypatch):
    """Few different profiles, and more than are listed: then all are gone through."""
    world = make_world("recidivism", population=200, window=100)
    rng = np.random.default_rng(0)
    some, many = rng.integers(0, 20, 128), np.arange(128) % world.profiles
    for profile in (some, many):
        listed, loss = _improved(world, profile, True, monkeypatch)
        everyone, expected = _improved(world, profile, False, monkeypatch)
        assert abs(loss - expected) < 1e-4
        assert np.abs(everyone).max() > 1e-6
        # Adam's first steps are as long where the gradient is next to 0, so a few may differ.
        assert np.mean(np.abs(listed - everyone) < 2e-6) > 0.995


@pytest.mark.slow
def test_a_rollout_in_a_large_world_asks_the_policy_s_own_network(monkeypatch):
    world = make_world("lending", population=200, window=100)
    algorithm, config = catalogue.resolve(
        "elbert", {"rollout": 128, "batch": 64, "epochs": 1}, "accuracy"
    )
    problem = trainer.simulated(world, "accuracy", 1)
    state = trainer.init(algorithm, problem, config, jax.random.key(0))
    expected, _ = trainer.iterate(algorithm, problem, config, state)
    monkeypatch.setattr(type(world.space), "small", False)
    got, _ = trainer.iterate(algorithm, problem, config, state)
    assert eqx.tree_equal(got.source, expected.source)
    np.testing.assert_allclose(
        got.learner.parameters, expected.learner.parameters, rtol=1e-3, atol=2e-6
    )
