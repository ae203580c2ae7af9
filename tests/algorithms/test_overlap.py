"""What is said of overlap during learning, against slow NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

import sellf
from sellf.algorithms import predictor as predictors
from sellf.algorithms.algorithm import Deciding, Task
from sellf.algorithms.catalogue import resolve
from sellf.envs.policy import Categorical
from tests.algorithms.rollouts import seen_of

GROUPS = 2


def test_weights_acceptance_and_divergence_of_each_group():
    rng = np.random.default_rng(0)
    chance, before = rng.uniform(0.01, 0.99, (2, 500)).astype(np.float32)
    group = rng.integers(0, GROUPS, 500).astype(np.int32)
    found = predictors.overlap(*map(jnp.asarray, (chance, before, group)), GROUPS)
    for g in range(GROUPS):
        people = [i for i in range(500) if group[i] == g]
        a = sum(float(before[i]) for i in people) / len(people)
        r = sum(1 - float(chance[i]) for i in people) / len(people)
        w = [a / r * (1 - float(chance[i])) / float(before[i]) for i in people]
        # E over the accepted is E over everyone, each counted by P / a.
        d2 = sum(float(before[i]) / a * w[k] ** 2 for k, i in enumerate(people)) / len(people)
        np.testing.assert_allclose(found["largest_weight"][g], max(w), rtol=1e-4)
        np.testing.assert_allclose(found["smallest_acceptance"][g], min(before[people]))
        np.testing.assert_allclose(found["divergence"][g], d2, rtol=1e-4)


def test_a_group_that_nobody_came_from_and_one_that_is_all_accepted_stay_finite():
    chance, before = jnp.full(4, 0.5), jnp.full(4, 1e-6)
    found = predictors.overlap(chance, before, jnp.zeros(4, jnp.int32), 3)
    sure = predictors.overlap(jnp.ones(4), jnp.ones(4), jnp.zeros(4, jnp.int32), 1)
    for figures in (found, sure):
        assert all(np.isfinite(np.asarray(value)).all() for value in figures.values())
    np.testing.assert_allclose(found["largest_weight"], [1, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(found["smallest_acceptance"], [1e-6, 1, 1], rtol=1e-5)
    np.testing.assert_allclose(found["divergence"], [1, 1, 1], rtol=1e-5)
    assert float(sure["largest_weight"][0]) == 0


def test_the_error_is_the_weighted_mean_of_prediction_minus_label_over_accepted_people():
    world = sellf.make_world("lending", population=300, window=200)
    hooks, config = resolve("sellf", {"predictor_rate": 0.05}, "opportunity")
    task = Task(world.space, "opportunity", 3, hooks.stacks(world.space)[0].actor, 300, 1000)
    keys = jax.random.split(jax.random.key(0), 2)
    predictor = predictors.start(hooks.predictor, task, config, keys[0])
    slope = jnp.linspace(-2.0, 2.0, world.profiles)
    rng = np.random.default_rng(0)
    people = rng.integers(0, world.profiles, 400)
    action = rng.random(400) < 1 / (1 + np.exp(-np.asarray(slope)))[people]
    positive = action & (rng.random(400) < np.asarray(world.alpha)[people])
    seen = seen_of(world.space, people, people, action, positive)
    deciding = Deciding(lambda p: Categorical(slope[p][None]), jnp.zeros(1))
    # Compiled as a whole: operation by operation it takes ten times as long.
    learn = jax.jit(
        lambda predictor, seen, key: predictors.learn(
            hooks.predictor, task, config, predictor, seen, deciding, key
        )
    )
    after, _, figures = learn(predictor, seen, keys[1])

    accepted = np.flatnonzero(action)
    profile, label = people[accepted], positive[accepted]
    drawn = np.asarray(
        jax.random.randint(jax.random.split(keys[1])[1], (25, 64), 0, len(accepted))
    ).ravel()
    phi = np.asarray(predictors.chances(hooks.predictor, task, after)(jnp.asarray(profile)))
    # The first iteration knows one policy only, so P is pi itself.
    pi = 1 / (1 + np.exp(-np.asarray(slope)))[profile]
    member = np.asarray(world.group)[profile]
    for g in range(GROUPS):
        mine = [i for i in drawn if member[i] == g]
        w = np.array([(1 - pi[i]) / pi[i] for i in mine])
        miss = np.array([phi[i] - label[i] for i in mine])
        np.testing.assert_allclose(figures["error"][g], (w * miss).sum() / w.sum(), atol=1e-4)
    assert abs(float(figures["error"][0])) > 1e-3
