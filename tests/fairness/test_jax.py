"""The same functions run on JAX arrays, compiled and vectorised, and give the same numbers."""

import numpy as np
import pytest

import sellf
from sellf.fairness import (
    NOTIONS,
    bias_bound,
    bias_shares,
    define,
    gap,
    group_mean,
    imputation_bias,
    utility,
)


@pytest.fixture
def jnp(jax):
    return jax.numpy


def random_counts(seed, shape):
    rng = np.random.default_rng(seed)
    people = rng.integers(0, 60, shape)
    accepted = rng.binomial(people, 0.5)
    positive = rng.binomial(accepted, 0.4)
    hidden = rng.binomial(people - accepted, 0.3)
    return sellf.Counts(people, accepted, positive, hidden)


def to_jax(jnp, counts, dtype):
    return sellf.Counts(*(jnp.asarray(field, dtype) for field in counts))


@pytest.mark.parametrize("kind", ["int32", "float32"])
@pytest.mark.parametrize("view", ["true", "accepted"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_utility_and_spread_agree_with_numpy_under_jit_and_vmap(jax, jnp, notion, view, kind):
    counts = random_counts(0, (50, 4))
    see = (lambda c: c.accepted_only()) if view == "accepted" else (lambda c: c)

    def measure(c):
        means = [rate.utility(see(c)) for rate in define(notion).rates]
        return means, gap(notion, see(c))

    means, apart = jax.jit(jax.vmap(measure))(to_jax(jnp, counts, kind))
    expected_means, expected_gap = measure(counts)
    np.testing.assert_allclose(means, expected_means, rtol=1e-6)
    np.testing.assert_allclose(apart, expected_gap, rtol=1e-5, atol=1e-6)


def test_gradients_stay_finite_where_a_group_is_empty(jax, jnp):
    counts = sellf.Counts(*(jnp.asarray(x) for x in np.array([[4.0, 0], [2, 0], [1, 0], [1, 0]])))

    def mean(hidden):
        means = utility("opportunity", counts._replace(rejected_positive=hidden))
        return jnp.nansum(means)

    gradient = jax.grad(mean)(counts.rejected_positive)
    np.testing.assert_allclose(gradient, [-0.25, 0.0])


@pytest.mark.parametrize(
    "notion", ["qualification", "accuracy", "opportunity", "false-positive-rate"]
)
def test_terms_of_the_decomposition_agree_with_numpy(jax, jnp, notion):
    true = random_counts(1, (3,))
    true = sellf.Counts(*(field + 0.0 for field in true))
    imputed = true._replace(rejected_positive=true.rejected_positive * 0.5)
    terms = imputation_bias(notion, to_jax(jnp, true, "float32"), to_jax(jnp, imputed, "float32"))
    expected = imputation_bias(notion, true, imputed)
    for name, values in vars(expected).items():
        np.testing.assert_allclose(getattr(terms, name), values, rtol=1e-5, atol=1e-6)


def test_weights_and_bounds_agree_with_numpy_under_jit(jax, jnp):
    rng = np.random.default_rng(2)
    policies, group = rng.random((5, 40)), rng.integers(0, 3, 40)
    values = rng.random(40)

    def everything(policies, group, values):
        before, current = sellf.accepted_by_any(policies), policies[-1]
        rate = group_mean(1 - current, group, 3)
        weights = sellf.importance_weights(
            current, before, acceptance_rate=group_mean(before, group, 3)[group],
            rejection_rate=rate[group],
        )  # fmt: skip
        d2 = sellf.renyi_population(current, before, group, 3)
        bound = sellf.cortes_two_sided(1000.0, d2, 11.0, 0.05, groups=3)
        shares = bias_shares(
            "opportunity", rejection_rate=rate, error_bound=bound, imputed_positive_rate=rate
        )
        return {
            "pool": sellf.accepted_in_pool(policies),
            "weights": weights,
            "d2": d2,
            "mean": sellf.self_normalised_mean(values, weights),
            "group mean": group_mean(values, group, 3, weights),
            "size": sellf.effective_sample_size(weights),
            "renyi": sellf.renyi(weights),
            "bound": bound,
            "bias": bias_bound(shares),
        }

    compiled = jax.jit(everything)(
        jnp.asarray(policies, "float32"),
        jnp.asarray(group, "int32"),
        jnp.asarray(values, "float32"),
    )
    for name, expected in everything(policies, group, values).items():
        np.testing.assert_allclose(compiled[name], expected, rtol=2e-4, err_msg=name)
