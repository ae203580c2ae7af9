"""A world of one's own, from a table and two functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sellf
from sellf.envs import transitions
from sellf.envs import world as worlds
from sellf.envs.policy import of_chances
from sellf.envs.rollout import rollout
from sellf.envs.space import observe


def table(rows=200):
    rng = np.random.default_rng(0)
    return {
        "sex": rng.choice(["f", "m"], rows),
        "region": rng.choice(["north", "south", "west"], rows),
        "score": rng.integers(300, 851, rows) // 50 * 50,
        "age": rng.integers(20, 60, rows).astype(float),
    }


def repays(x):
    return np.clip((x["score"] - 200) / 700, 0, 1)


def lends(x, accepted, positive):
    if not accepted:
        return None
    return {"score": np.clip(x["score"] + (50 if positive else -50), 300, 850)}


SETTINGS = {
    "group": "sex",
    "categorical": ["region"],
    "numeric": ["score", "age"],
    "label": repays,
    "transition": lends,
    "cost": 0.6,
}


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame])
def test_a_world_from_a_table_runs_end_to_end(kind):
    world = sellf.world_from_frame(kind(table()), **SETTINGS, population=500)
    assert world.groups == ("f", "m")
    assert world.columns == (
        "region = north",
        "region = south",
        "region = west",
        "age",
        "score",
        "group = f",
        "group = m",
    )
    policy = of_chances(lambda p: world.alpha[p])

    @jax.jit
    def deployed(key, again):
        state, steps = rollout(world, again, worlds.reset(world, key), 1000, policy)
        return steps, worlds.exact_disparity(world, state, policy, "opportunity")

    steps, gap = deployed(jax.random.key(0), jax.random.key(1))
    assert np.isfinite(np.asarray(steps.reward)).all()
    assert float(steps.reward.sum()) != 0
    assert 0 < float(gap) < 0.3


def test_moves_are_the_transition_applied_to_every_kind_of_person():
    world = sellf.world_from_frame(table(), **SETTINGS)
    numbers = np.asarray(observe(world.space, jnp.arange(world.profiles)))
    score = numbers[:, world.columns.index("score")]
    step = np.unique(np.diff(np.unique(score)).round(4))
    assert len(step) == 1  # scores are evenly spaced, none left out
    moves, alpha = np.asarray(world.moves), np.asarray(world.alpha)
    np.testing.assert_array_equal(moves[:, 0], np.arange(world.profiles)[:, None].repeat(2, 1))
    up, down = score[moves[:, 1, 1]] - score, score[moves[:, 1, 0]] - score
    assert set(np.unique(np.round(up / step[0]))) == {0, 1}
    assert set(np.unique(np.round(down / step[0]))) == {-1, 0}
    others = [i for i, name in enumerate(world.columns) if name != "score"]
    for a in (0, 1):
        np.testing.assert_array_equal(numbers[moves[:, 1, a]][:, others], numbers[:, others])
    np.testing.assert_allclose(np.diff(alpha[np.argsort(score)]) >= -1e-6, True)


def test_a_classifier_may_be_the_label_law():
    from sklearn.linear_model import LogisticRegression

    frame = pd.DataFrame(table())
    label = (np.random.default_rng(1).random(len(frame)) < repays(frame)).astype(int)
    model = LogisticRegression(max_iter=1000).fit(frame[["score", "age"]], label)
    world = sellf.world_from_frame(frame, **{**SETTINGS, "label": model})
    first = np.asarray(world.arrivals.profile)
    seen = frame[["sex", "region", "score", "age"]].drop_duplicates()
    expected = model.predict_proba(seen[["score", "age"]])[:, 1]
    np.testing.assert_allclose(np.asarray(world.alpha)[first], expected, rtol=1e-5)


def test_a_column_may_be_the_label_law_where_nobody_changes():
    frame = {**table(), "p": np.full(200, 0.25)}
    world = sellf.world_from_frame(frame, **{**SETTINGS, "label": "p", "transition": None})
    np.testing.assert_allclose(world.alpha, 0.25)
    with pytest.raises(ValueError, match="give a function of the columns or a classifier"):
        sellf.world_from_frame(frame, **{**SETTINGS, "label": "p"})


def test_gymnasium_takes_a_world_of_one_s_own():
    from sellf.envs.gymnasium import WorldEnv

    env = WorldEnv(sellf.world_from_frame(table(), **SETTINGS, population=50))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.step(1)[4]["label"] in (0.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": "gender"}, "there is no column 'gender'"),
        ({"numeric": ["scoer"]}, "there is no column 'scoer': did you mean 'score'"),
        ({"numeric": [], "categorical": []}, "there are no features"),
        ({"numeric": ["score", "region"]}, "'region' is named twice"),
        ({"categorical": [], "numeric": ["region"]}, "name it in categorical"),
        ({"label": lambda x: x["score"]}, "chance of a good label is"),
        ({"label": lambda x: 0.5}, r"label gives shape \(\)"),
        ({"label": 3}, "label is 3: give a column's name"),
        ({"cost": 0}, "cost is 0"),
        ({"population": 1}, "population is 1"),
        ({"transition": lambda x, a, y: {"sex": x["sex"]}}, "group stays what it is"),
        ({"transition": lambda x, a, y: {"income": x["score"]}}, "'income', which is no feature"),
        ({"transition": lambda x, a, y: {"score": 3}}, r"returns score with shape \(\)"),
        ({"transition": lambda x, a, y: 3}, "return a dict of the columns that change"),
        (
            {"transition": lambda x, a, y: {"region": np.full(len(x["region"]), "moon")}},
            "leaves the feature space: region becomes 'moon'",
        ),
        (
            {"transition": lambda x, a, y: {"age": x["age"] * np.nan}},
            "leaves the feature space: age is not finite",
        ),
        (
            {"transition": lambda x, a, y: {"age": x["age"] + 1}},
            "more than 5,000 different people: keep what changes within bounds",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_mistakes_are_named_when_the_world_is_made(changes, message, monkeypatch):
    monkeypatch.setattr(transitions, "MOST_PROFILES", 5_000)  # not half a million, for speed
    with pytest.raises(ValueError, match=message):
        sellf.world_from_frame(table(), **{**SETTINGS, **changes})


def test_missing_values_and_one_group_are_named():
    frame = table()
    frame["age"] = frame["age"].copy()
    frame["age"][7] = np.nan
    with pytest.raises(ValueError, match="age is missing at row 7"):
        sellf.world_from_frame(frame, **SETTINGS)
    with pytest.raises(ValueError, match="sex has one value only"):
        sellf.world_from_frame({**table(), "sex": ["f"] * 200}, **SETTINGS)
    with pytest.raises(ValueError, match="3 is not a table of people"):
        sellf.world_from_frame(3, **SETTINGS)
