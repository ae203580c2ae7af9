"""The paper's claims on lending, at full length: what `docs/results/lending.md` says, checked."""

import numpy as np
import pytest

import sellf

pytestmark = pytest.mark.slow


def deployed(algorithm, **settings):
    agents = sellf.train(
        "lending", algorithm, notion="opportunity", seeds=range(5), progress=False, **settings
    )
    results = [sellf.evaluate(agent) for agent in agents]
    return np.mean([r.reward for r in results]), np.mean([r.disparity for r in results])


def test_ppo_earns_most_and_is_unfair():
    reward, gap = deployed("ppo")
    assert 1600 <= reward <= 1660
    assert 0.30 <= gap <= 0.44


def test_sellf_is_fair_without_hidden_labels():
    reward, gap = deployed("sellf", beta_disparity=10.0, beta_renyi=0.01)
    assert gap <= 0.06
    assert reward >= 1050


def test_pocar_with_an_oracle_is_fair_somewhere_on_its_grid():
    grid = [
        {"beta_disparity": b1, "beta_increase": b2}
        for b1 in (1.0, 2.0, 5.0, 10.0)
        for b2 in (1.0, 2.0, 5.0)
    ]
    agents = sellf.train(
        "lending", "pocar-oracle", notion="opportunity", configs=grid, progress=False
    )
    assert min(sellf.evaluate(agent).disparity for agent in agents) <= 0.06
