"""What is worth testing of a world, an algorithm and a notion of one's own."""

import numpy as np
import sellf_clinic

import sellf

FAST = {"steps": 1024, "rollout": 256, "progress": False}


def test_the_clinic_lifts_people_with_the_chance_that_it_says():
    from sellf.envs.table import successors

    world = sellf_clinic.clinic(recovery=0.7)
    moves, chances = successors(world)
    lifted = moves[:, 1, 1] != np.arange(world.profiles)[:, None]
    inside = lifted.any(axis=1)
    np.testing.assert_allclose(np.where(lifted, chances[:, 1, 1], 0).sum(axis=1)[inside], 0.7)


def test_a_higher_price_keeps_the_policy_closer_to_where_it_began():
    moved = []
    for price in (0.0, 100.0):
        agent = sellf.train("clinic", "ppo-kl", learning_rate=3e-3, price=price, **FAST)
        moved.append(abs(agent.by_profile()[0] - 0.5).mean())
    assert moved[1] < moved[0]


def test_the_notion_is_the_share_of_good_outcomes_among_the_accepted():
    rows = {"group": ["a", "a", "b", "b"], "action": [1, 1, 1, 1], "label": [1, 0, 1, 1]}
    assert sellf.disparity("hit-rate", **rows).value == 0.5
