"""The Cortes bound: the published figures, and what the two-sided form needs."""

import numpy as np
import pytest

import sellf


@pytest.mark.parametrize(("n", "value"), [(1e3, 1.258), (1e4, 0.593), (1e5, 0.273), (1e6, 0.123)])
def test_cortes_bound_at_the_paper_s_settings(n, value):
    assert sellf.cortes(n, d2=2, pdim=11, delta=0.05) == pytest.approx(value, abs=5e-4)


def test_cortes_bound_shrinks_with_people_and_grows_with_divergence_and_complexity():
    n = np.array([1e3, 1e4, 1e5])
    assert np.all(np.diff(sellf.cortes(n, 2.0, 11, 0.05)) < 0)
    assert np.all(np.diff(sellf.cortes(1e4, np.array([1.0, 2.0, 4.0]), 11, 0.05)) > 0)
    assert np.all(np.diff(sellf.cortes(1e4, 2.0, np.array([2, 11, 129]), 0.05)) > 0)
    assert sellf.cortes(5, 2.0, 11, 0.05) == np.inf


def test_two_sided_bound_splits_delta_over_sides_and_groups_and_doubles_the_range():
    one_sided = sellf.cortes(1e5, 2.0, 11, 0.05 / 6)
    two_sided = sellf.cortes_two_sided(1e5, 2.0, 11, 0.05, groups=3)
    assert two_sided == pytest.approx(2 * one_sided)
    shifted = sellf.cortes_two_sided(1e5, 2.0, 11, 0.05, groups=3, mean_weight=1.25)
    assert shifted == pytest.approx(two_sided + 0.25)


def test_two_sided_bound_holds_over_repeated_samples():
    """Thresholds on a line (pseudo-dimension 1), the worst of them, in every one of 300 samples."""
    rng = np.random.default_rng(0)
    n = 4000
    thresholds = np.linspace(0, 1, 51)
    for _ in range(300):
        # Accepted people have density 2x on [0, 1], the rejected 2(1 - x) truncated to x > 0.2.
        x = np.sqrt(0.04 + 0.96 * rng.random(n))
        accepted, rejected = 2 * x / 0.96, 2 * (1 - x) / 0.64
        weights = rejected / accepted
        error = np.sign(x[None, :] - thresholds[:, None])  # in [-1, 1]
        estimate = np.mean(weights * error, axis=1)
        above = np.clip((1 - np.maximum(thresholds, 0.2)) ** 2 / 0.64, 0, 1)
        truth = above - (1 - above)
        bound = sellf.cortes_two_sided(
            n, np.mean(weights**2), 1, 0.05, groups=1, mean_weight=np.mean(weights)
        )
        assert np.all(np.abs(truth - estimate) <= bound)


@pytest.mark.parametrize("delta", [0, 1.5, -0.1, float("nan")])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match="delta is"):
        sellf.cortes(100, 2.0, 11, delta)
