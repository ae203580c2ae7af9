"""Each loss alone, against NumPy written from the formula, or against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sellf.algorithms import losses
from sellf.algorithms.advantages import gae, regularised, standardised, unit_range
from sellf.algorithms.elbert import squared_bias
from sellf.algorithms.focops import FOCOPS, dual


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def f32(x):
    return jnp.asarray(x, jnp.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_log_probability_entropy_and_divergence_of_a_decision(rng):
    new, old = rng.normal(size=(2, 50)) * 3
    action = rng.random(50) < 0.5
    p, q = sigmoid(new), sigmoid(old)
    chosen = np.where(action, p, 1 - p)
    np.testing.assert_allclose(
        losses.log_probability(f32(new), jnp.asarray(action)), np.log(chosen), rtol=1e-4
    )
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    np.testing.assert_allclose(losses.entropy(f32(new)), entropy, rtol=1e-4, atol=1e-6)
    kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    np.testing.assert_allclose(losses.divergence(f32(new), f32(old)), kl, rtol=1e-3, atol=1e-5)


def test_extreme_logits_stay_finite():
    logit = f32([-200.0, 200.0])
    action = jnp.asarray([True, False])
    assert np.isfinite(np.asarray(losses.log_probability(logit, action))).all()
    assert np.isfinite(np.asarray(jax.grad(lambda x: losses.entropy(x).sum())(logit))).all()


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
