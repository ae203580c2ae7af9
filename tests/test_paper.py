"""The paper's claims on lending, at full length: what `docs/results/lending.md` says, checked."""

import numpy as np
import pytest

import sellf

pytestmark = pytest.mark.slow


def test_sellf_direct_keeps_within_omega_with_every_seed_and_earns_most_of_what_ppo_does():
    agents = sellf.train("lending", notion="opportunity", seeds=range(5), progress=False)
    results = [sellf.evaluate(agent) for agent in agents]
    assert max(r.disparity for r in results) <= 0.05
    assert np.mean([r.reward for r in results]) >= 1530
    assert all("The constraint is met" in agent.statement for agent in agents)


def test_sellf_direct_between_four_races():
    agents = sellf.train(
        "lending", notion="opportunity", seeds=range(5), progress=False,
        world_settings={"groups": "all"},
    )  # fmt: skip
    assert np.mean([sellf.evaluate(agent).disparity for agent in agents]) <= 0.06


def test_sellf_direct_says_when_a_constraint_is_out_of_reach_and_stays_sane():
    """In recidivism nobody's chance of a good label is above the cost: every acceptance loses."""
    agents = sellf.train("recidivism", notion="qualification", seeds=range(5), progress=False)
    nobody = agents[0].world.start
    for agent in agents:
        assert "out of reach" in agent.statement
        assert "ceiling" in agent.statement
        assert agent.history[-1]["multiplier"] == pytest.approx(agent.config["credit_limit"])
        result = sellf.evaluate(agent)
        assert result.acceptances.max() < 0.01
        assert result.reward >= nobody - 0.05
    # Long before lambda is at its ceiling, too.
    soon = sellf.train("recidivism", notion="qualification", steps=100_000, progress=False)
    assert sellf.evaluate(soon).reward >= nobody - 0.5
    free = sellf.train("recidivism", notion="qualification", floor=0.0, progress=False)
    assert sellf.evaluate(free).reward < nobody - 1


def test_the_floor_leaves_what_can_be_had_without_a_loss():
    """Where some are worth accepting, buying equality by accepting ends where losing begins."""
    world = sellf.make_world("recidivism", cost=0.75)
    dear = {"credit_limit": 5.0, "credit_rate": 0.25, "leveling": "both"}
    rewards = {
        floor: sellf.evaluate(
            sellf.train(world, notion="qualification", floor=floor, progress=False, **dear)
        ).reward
        for floor in (0.0, 1000.0)
    }
    assert rewards[0.0] < 950
    assert 1000 <= rewards[1000.0] < 1020


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
