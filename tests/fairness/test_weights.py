"""Weights turn the accepted into the rejected: checked on populations that can be enumerated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sellf
from sellf.fairness import group_mean


@pytest.fixture
def population():
    rng = np.random.default_rng(0)
    n = 400
    group = rng.integers(0, 3, n)
    policies = rng.beta(1, 3, (5, n))
    return rng, group, policies


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_acceptance_by_any_is_one_minus_the_chance_that_all_reject(chances):
    policies = np.array(chances)[:, None]
    expected = 1 - np.prod(1 - policies, axis=0)
    assert sellf.accepted_by_any(policies) == pytest.approx(expected, abs=1e-12)


def test_acceptance_by_any_keeps_tiny_chances_apart_from_zero():
    assert sellf.accepted_by_any(np.full((10, 1), 1e-20))[0] == pytest.approx(1e-19)


def test_balance_is_the_chance_in_a_pool_where_each_person_met_one_policy():
    rng = np.random.default_rng(1)
    policies, decisions = np.array([[0.1], [0.6], [0.9]]), np.array([100.0, 200.0, 700.0])
    chosen = rng.choice(3, 200_000, p=decisions / decisions.sum())
    accepted = rng.random(200_000) < policies[chosen, 0]
    assert sellf.accepted_in_pool(policies, decisions)[0] == pytest.approx(
        accepted.mean(), abs=0.005
    )
    assert sellf.accepted_in_pool(policies)[0] == pytest.approx(policies.mean())


@pytest.mark.parametrize("density", [sellf.accepted_by_any, sellf.accepted_in_pool])
def test_weighted_means_over_the_accepted_are_means_over_the_rejected(population, density):
    rng, group, policies = population
    before, current = density(policies), policies[-1]
    value = rng.random(len(group))
    for i in range(3):
        mine = group == i
        p, pi, f = before[mine], current[mine], value[mine]
        accepted, rejected = p / p.sum(), (1 - pi) / (1 - pi).sum()  # D_A and D_R, enumerated
        weights = sellf.importance_weights(
            pi, p, acceptance_rate=p.mean(), rejection_rate=(1 - pi).mean()
        )
        assert weights == pytest.approx(rejected / accepted)
        assert np.sum(accepted * weights * f) == pytest.approx(np.sum(rejected * f))
        divergence = sellf.renyi_population(current, before, group, 3)[i]
        assert divergence == pytest.approx(np.sum(accepted * weights**2))
        assert divergence >= 1


def test_renyi_of_a_sample_of_accepted_people_estimates_that_of_the_population(population):
    rng, _, policies = population
    before, current = sellf.accepted_by_any(policies), policies[-1]
    sample = rng.choice(len(before), 200_000, p=before / before.sum())
    weights = sellf.importance_weights(
        current[sample],
        before[sample],
        acceptance_rate=before.mean(),
        rejection_rate=(1 - current).mean(),
    )
    everyone = np.zeros(len(before), dtype=int)
    truth = sellf.renyi_population(current, before, everyone, 1)[0]
    assert sellf.renyi(weights) == pytest.approx(truth, rel=0.02)


def test_a_self_normalised_mean_ignores_the_scale_of_the_weights():
    values, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    assert sellf.self_normalised_mean(values, weights) == pytest.approx(11 / 4)
    assert sellf.self_normalised_mean(values, 7 * weights) == pytest.approx(11 / 4)
    assert np.isnan(sellf.self_normalised_mean(values, 0 * weights))


def test_effective_sample_size_counts_equal_weights_fully_and_one_large_one_once():
    assert sellf.effective_sample_size(np.full(50, 3.0)) == pytest.approx(50)
    assert sellf.effective_sample_size(np.array([1e9, 1.0, 1.0])) == pytest.approx(1)
    assert sellf.effective_sample_size(np.zeros(3)) == 0


def test_group_means_leave_an_empty_group_undefined():
    means = group_mean(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 2]), 3)
    assert means == pytest.approx([2.0, np.nan, 5.0], nan_ok=True)


def test_where_overlap_fails_weights_and_divergence_are_infinite():
    policy, before = np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 0.0])
    weights = sellf.importance_weights(policy, before, acceptance_rate=0.5, rejection_rate=0.5)
    assert weights.tolist() == [np.inf, 1.0, 0.0]
    nobody = np.zeros(3, dtype=int)
    assert sellf.renyi_population(policy, before, nobody, 1)[0] == np.inf
    assert sellf.renyi_population(np.zeros(3), np.zeros(3), nobody, 1)[0] == np.inf
    assert sellf.renyi_population(np.ones(3), np.ones(3), nobody, 1)[0] == 1.0
