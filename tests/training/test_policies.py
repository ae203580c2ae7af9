"""Any policy is evaluated as an agent is: functions, classifiers, other libraries' models."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import sellf

WORLD = {"population": 200, "window": 200, "horizon": 400}


@pytest.fixture(scope="module")
def world():
    return sellf.make_world("lending", **WORLD)


@pytest.fixture(scope="module")
def agent(world):
    return sellf.train(world, "ppo", steps=512, rollout=512, learning_rate=1e-2, progress=False)


def evaluated(policy, world, **options):
    return sellf.evaluate(policy, world, deployments=2, **options)


def chances_of(agent):
    groups = agent.world.groups

    def policy(observations):
        features, member = observations[:, : -len(groups)], observations[:, -len(groups) :]
        accept = agent.probability(features, np.array(groups)[member.argmax(axis=1)])
        return np.stack([1 - accept, accept], axis=1)

    return policy


def test_a_function_that_decides_like_an_agent_comes_to_the_same(world, agent):
    ours, theirs = evaluated(agent, None), evaluated(chances_of(agent), world)
    np.testing.assert_array_equal(ours.rewards, theirs.rewards)
    for view in ("true", "accepted", "exact"):
        np.testing.assert_allclose(ours.disparities[view], theirs.disparities[view], atol=1e-6)
    assert np.isnan(theirs.disparities["imputed"]).all()
    column = evaluated(lambda x: chances_of(agent)(x)[:, 1], world)
    np.testing.assert_array_equal(ours.rewards, column.rewards)


def test_the_reward_of_a_threshold_is_the_one_expected(world):
    """Nobody is accepted, or everybody: the acceptance is known, and the reward of nobody."""
    nobody = evaluated(lambda x: np.zeros(len(x), int), world)
    assert (nobody.rewards == world.start).all()
    assert (nobody.acceptances == 0).all()
    everybody = evaluated(lambda x: np.ones(len(x), bool), world)
    assert (everybody.acceptances == 1).all()


class Model:
    """As Stable-Baselines3 has it: actions and a state, drawn unless asked not to."""

    def predict(self, observation, state=None, deterministic=False):
        assert observation.dtype == np.float32
        assert observation.shape[1] == 12
        if not deterministic:
            return np.random.default_rng().integers(0, 2, len(observation)), None
        return (observation[:, 5:10].sum(axis=1) > 0).astype(np.int64), None


def test_models_with_predict_and_classifiers_decide_as_they_say(world):
    result = evaluated(Model(), world)
    by_hand = evaluated(lambda x: (x[:, 5:10].sum(axis=1) > 0).astype(int), world)
    np.testing.assert_array_equal(result.rewards, by_hand.rewards)
    rows = pd.DataFrame(np.eye(12), columns=list(world.columns))
    fitted = LogisticRegression().fit(rows, np.arange(12) % 2)
    named = evaluated(fitted, world)
    plain = LogisticRegression().fit(np.eye(12), np.arange(12) % 2)
    by_hand = evaluated(lambda x: plain.predict_proba(x), world)
    np.testing.assert_array_equal(named.rewards, by_hand.rewards)


def test_an_agent_is_evaluated_in_another_world_and_by_another_notion(agent):
    other = sellf.make_world("lending", **WORLD, cost=0.5)
    moved = evaluated(agent, other, notion="accuracy")
    assert moved.notion == "accuracy"
    assert moved.reward != evaluated(agent, None).reward
    four = sellf.make_world("lending", groups="all", **WORLD)
    with pytest.raises(ValueError, match="it cannot decide there"):
        evaluated(agent, four)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (lambda x: np.full(len(x), 2), "return one of 0 .reject., 1 .accept."),
        (lambda x: np.ones(3), r"returns shape \(3,\)"),
        (lambda x: np.ones((len(x), 3)) / 3, "or their probabilities with shape"),
        (lambda x: np.full((len(x), 2), 0.6), r"sum to 1\.2"),
        (lambda x: np.full(len(x), np.nan), "sum to nan"),
        (lambda x: np.full(len(x), 1.5), r"smallest -0\.5"),
        (lambda x: ["accept"] * len(x), "return 20 actions"),
        (lambda x: np.random.default_rng().integers(0, 2, len(x)), "called twice"),
        (None, "policy is None"),
        ("ppo", "policy is 'ppo'"),
    ],
)
def test_what_is_no_policy_is_refused(policy, says, world):
    with pytest.raises(ValueError, match=says):
        evaluated(policy, world)


def test_a_policy_without_a_world_and_a_number_in_its_place_are_refused(world, agent):
    with pytest.raises(ValueError, match="world='lending'"):
        sellf.evaluate(Model())
    with pytest.raises(ValueError, match="deployments=5"):
        sellf.evaluate(agent, 5)
    names = LogisticRegression().fit(pd.DataFrame({"income": [0.0, 1.0]}), [0, 1])
    with pytest.raises(ValueError, match=r"fit it on world\.columns"):
        evaluated(names, world)
