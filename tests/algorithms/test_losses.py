"""Each loss alone, against NumPy written from the formula, or against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sellf.algorithms import losses
from sellf.algorithms.advantages import gae, regularised, standardised, unit_range
from sellf.algorithms.elbert import squared_bias
from sellf.algorithms.focops import FOCOPS, dual
from sellf.envs.policy import Categorical, chance_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def f32(x):
    return jnp.asarray(x, jnp.float32)


def decided(logit):
    """Return decisions of two actions, from the logit of the second."""
    return Categorical(f32(logit)[None])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_log_probability_entropy_and_divergence_of_a_decision(rng):
    new, old = rng.normal(size=(2, 50)) * 3
    action = (rng.random(50) < 0.5).astype(np.int32)
    p, q = sigmoid(new), sigmoid(old)
    chosen = np.where(action, p, 1 - p)
    np.testing.assert_allclose(
        decided(new).log_probability(jnp.asarray(action)), np.log(chosen), rtol=1e-4
    )
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    np.testing.assert_allclose(decided(new).entropy(), entropy, rtol=1e-4, atol=1e-6)
    kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    np.testing.assert_allclose(decided(new).divergence(decided(old)), kl, rtol=1e-3, atol=1e-5)


def test_extreme_logits_stay_finite():
    logit = f32([-200.0, 200.0])
    action = jnp.asarray([1, 0])
    assert np.isfinite(np.asarray(decided(logit).log_probability(action))).all()
    slope = jax.grad(lambda x: decided(x).entropy().sum())(logit)
    assert np.isfinite(np.asarray(slope)).all()


def test_a_decision_among_several_actions_is_a_softmax(rng):
    new, old = (Categorical(f32(rng.normal(size=(3, 50)) * 2)) for _ in range(2))

    def softmax(one):
        odds = np.exp(np.concatenate([np.zeros((1, 50)), one.log_odds]))
        return odds / odds.sum(axis=0)

    p, q = softmax(new), softmax(old)
    np.testing.assert_allclose(new.probabilities(), p, rtol=1e-5)
    some = (False, True, False, True)
    np.testing.assert_allclose(new.chance(some), p[1] + p[3], rtol=1e-5)
    np.testing.assert_allclose(chance_of(some, new.at_least()), p[1] + p[3], atol=1e-6)
    action = rng.integers(0, 4, 50)
    chosen = p[action, np.arange(50)]
    found = new.log_probability(jnp.asarray(action, jnp.int32))
    np.testing.assert_allclose(found, np.log(chosen), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(new.entropy(), -(p * np.log(p)).sum(axis=0), rtol=1e-4)
    kl = (p * np.log(p / q)).sum(axis=0)
    np.testing.assert_allclose(new.divergence(old), kl, rtol=1e-3, atol=1e-5)
    # The share of each action among many draws is its probability.
    luck = (np.arange(10_000) + 0.5) / 10_000
    one = Categorical(jnp.repeat(new.log_odds[:, :1], 10_000, axis=1))
    share = np.bincount(one.sample(f32(luck)), minlength=4) / 10_000
    np.testing.assert_allclose(share, p[:, 0], atol=2e-4)
    # Where others are too unlikely, the first is certain.
    cut = new.or_first((False, True, True, True), 0.5)
    sure = p[0] > 0.5
    np.testing.assert_allclose(cut.probabilities()[0], np.where(sure, 1, p[0]), rtol=1e-5)


def test_ppo_loss_is_that_of_stable_baselines3(rng):
    """policy_loss = -min(A ratio, A clamp(ratio, 1 - c, 1 + c)).mean(), as in its ppo.py."""
    log_ratio, advantage = rng.normal(size=(2, 64)) * 0.3
    ratio = np.exp(log_ratio)
    first, second = advantage * ratio, advantage * np.clip(ratio, 0.8, 1.2)
    expected = -np.minimum(first, second).mean()
    got = losses.clipped_surrogate(f32(log_ratio), f32(advantage), f32(0.2))
    assert float(got) == pytest.approx(expected, rel=1e-5)
    normal = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)
    np.testing.assert_allclose(standardised(f32(advantage)), normal, rtol=1e-4, atol=1e-6)
    value, target = rng.normal(size=(2, 64))
    mse = np.mean((value - target) ** 2)
    assert float(losses.squared_error(f32(value), f32(target))) == pytest.approx(mse, rel=1e-5)


def test_the_clip_stops_the_gradient_where_the_policy_has_gone_far_enough():
    slope = jax.grad(
        lambda x: losses.clipped_surrogate(f32([x]), f32([1.0]), f32(0.2))  # noqa: RUF100
    )
    assert float(slope(0.5)) == 0
    assert float(slope(0.1)) < 0
    assert float(slope(-0.5)) < 0


def test_gae_of_an_episode_worked_by_hand():
    """Five steps: the third terminates, the fifth is cut off by the end of the rollout."""
    reward = np.array([1.0, 0.0, 2.0, 1.0, 1.0])
    value = np.array([0.5, 1.0, 1.5, 2.0, 0.0])
    following = np.array([1.0, 1.5, 9.0, 0.0, 3.0])  # 9: must not count, the episode is over
    gamma, lam = 0.9, 0.5
    d4 = 1 + 0.9 * 3 - 0
    d3 = 1 + 0.9 * 0 - 2
    d2 = 2 - 1.5
    d1 = 0 + 0.9 * 1.5 - 1
    d0 = 1 + 0.9 * 1 - 0.5
    a3 = d3 + 0.45 * d4
    a1 = d1 + 0.45 * d2
    expected = [d0 + 0.45 * a1, a1, d2, a3, d4]
    terminated = jnp.asarray([False, False, True, False, False])
    none = jnp.zeros(5, jnp.bool_)
    columns = [f32(x)[:, None] for x in (reward, value, following)]
    got = gae(*columns, terminated, none, f32([gamma]), f32(lam))
    np.testing.assert_allclose(got[:, 0], expected, rtol=1e-6)
    # Truncated instead: what would have followed counts, what came after the reset does not.
    d2 = 2 + 0.9 * 9 - 1.5
    a1 = d1 + 0.45 * d2
    got = gae(*columns, none, terminated, f32([gamma]), f32(lam))
    np.testing.assert_allclose(got[:, 0], [d0 + 0.45 * a1, a1, d2, a3, d4], rtol=1e-6)


def test_penalties_are_scaled_to_the_range_of_the_minibatch(rng):
    advantage, one, two = rng.normal(size=(3, 32))
    penalties = np.stack([one, two], axis=1)

    def scaled(x):
        return (x - x.min()) / (x.max() - x.min())

    total = scaled(advantage) + 5 * scaled(one) + 2 * scaled(two)
    expected = (total - total.mean()) / total.std(ddof=1)
    got = regularised(f32(advantage), f32(penalties), f32([5, 2]), "minmax")
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    plain = advantage + penalties @ [5, 2]
    expected = (plain - plain.mean()) / plain.std(ddof=1)
    got = regularised(f32(advantage), f32(penalties), f32([5, 2]), "none")
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert (np.asarray(unit_range(f32([3.0, 3.0]))) == 0).all()


def test_renyi_penalty_by_hand(rng):
    chance, before = rng.random(40), rng.uniform(0.1, 1, 40)
    group, scale = rng.integers(0, 3, 40), np.array([0.5, 2.0, 1.0])
    term = (1 - chance) ** 2 / before
    means = np.array([term[group == g].mean() for g in range(3)])
    got = losses.renyi_penalty(f32(chance), f32(before), jnp.asarray(group), f32(scale))
    assert float(got) == pytest.approx((scale * means).sum() / scale.sum(), rel=1e-5)
    absent = losses.renyi_penalty(f32(chance), f32(before), jnp.zeros(40, jnp.int32), f32(scale))
    assert np.isfinite(float(absent))


def test_the_predictor_s_loss_weighs_people_within_their_group(rng):
    logit, weight = rng.normal(size=50), rng.random(50)
    label, group = rng.random(50) < 0.5, rng.integers(0, 2, 50)
    each = -np.where(label, np.log(sigmoid(logit)), np.log(1 - sigmoid(logit)))
    expected = sum((weight * each)[group == g].sum() / weight[group == g].sum() for g in range(2))
    arguments = f32(logit), jnp.asarray(label), f32(weight), jnp.asarray(group)
    got = losses.weighted_cross_entropy(*arguments, 2)
    assert float(got) == pytest.approx(expected, rel=1e-5)
    # A third group of nobody adds nothing.
    assert float(losses.weighted_cross_entropy(*arguments, 3)) == pytest.approx(expected, rel=1e-5)


def test_focops_by_hand_and_its_dual_follows_the_constraint(rng):
    kl, log_ratio, advantage, cost = rng.random((4, 30)) * 0.04
    gain = np.exp(log_ratio) * (advantage - 0.7 * cost) / 1.5
    expected = np.where(kl <= 0.02, kl - gain, 0).mean()
    arguments = [f32(x) for x in (kl, log_ratio, advantage, cost, 0.7, 1.5, 0.02)]
    assert float(losses.focops(*arguments)) == pytest.approx(expected, rel=1e-4)
    config = FOCOPS(limit=10.0, nu_rate=0.01, nu_max=2.0)
    # nu goes up the gradient of the Lagrangian nu (J - limit), found by finite differences.
    lagrangian = lambda nu, j: nu * (j - 10.0)  # noqa: E731
    slope = (lagrangian(1 + 1e-4, 14.0) - lagrangian(1 - 1e-4, 14.0)) / 2e-4
    assert float(dual(f32(1.0), f32(14.0), config)) == pytest.approx(1 + 0.01 * slope, rel=1e-5)
    assert float(dual(f32(0.01), f32(0.0), config)) == 0
    assert float(dual(f32(1.99), f32(1e6), config)) == 2


def test_elbert_s_chain_rule_is_the_finite_difference_of_the_squared_bias(rng):
    for _ in range(20):
        supply, demand = rng.uniform(1, 5, (2, 3)).astype(np.float32)
        change_s, change_d = rng.normal(size=(2, 3))
        slopes = jax.grad(squared_bias, argnums=(0, 1))(jnp.asarray(supply), jnp.asarray(demand))
        along = float(slopes[0] @ f32(change_s) + slopes[1] @ f32(change_d))

        def bias(h, s=supply, d=demand, cs=change_s, cd=change_d):
            rate = (s.astype(float) + h * cs) / (d.astype(float) + h * cd)
            return (rate.max() - rate.min()) ** 2

        assert along == pytest.approx((bias(1e-5) - bias(-1e-5)) / 2e-5, rel=1e-2, abs=1e-3)


def test_adam_takes_the_steps_of_optax(rng):
    import optax

    from sellf.algorithms.adam import Learner, at_most

    parameters = f32(rng.normal(size=40))
    learner = Learner.new(parameters)
    theirs = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3, eps=1e-5))
    state = theirs.init(parameters)
    for size in (0.01, 1.0, 5.0, 0.1):
        gradient = f32(size * rng.normal(size=40))
        learner = learner.step(at_most(gradient, 0.5), 1e-3, 1e-5)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            update, state = theirs.update(gradient, state)
        parameters = optax.apply_updates(parameters, update)
        np.testing.assert_allclose(learner.parameters, parameters, rtol=1e-5, atol=1e-7)


def test_networks_start_orthogonal_and_run_as_numpy_would(rng):
    from sellf.algorithms import networks
    from sellf.algorithms.networks import Stack

    stacks = (Stack(critics=1), Stack(policies=0, critics=2, hidden=(8, 4), activation="relu"))
    flat = networks.init(stacks, 5, jax.random.key(0))
    assert flat.shape == (networks.size(stacks, 5),)
    layers = networks.unflatten(stacks, 5, flat)
    np.testing.assert_array_equal(networks.flatten(layers), flat)
    first = np.asarray(layers[0][0][0])
    np.testing.assert_allclose(first @ first.T, 2 * np.eye(5), atol=1e-5)
    x = rng.normal(size=(7, 5)).astype(np.float32)
    got = np.asarray(networks.run(stacks, flat, jnp.asarray(x)))
    expected = []
    for own, act, scales in zip(
        layers, (np.tanh, lambda h: np.maximum(h, 0)), ((2, 1), (1, 1)), strict=True
    ):
        w1, b1, w2, b2, w3, b3 = map(np.asarray, own)
        for n, scale in enumerate(scales):
            hidden = act(act(x @ w1[n] + b1[n]) @ w2[n] + b2[n])
            expected.append(scale * (hidden @ w3[n] + b3[n])[:, 0])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
