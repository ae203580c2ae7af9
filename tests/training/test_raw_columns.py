"""Agents decide about people given as raw columns, as a user's own table has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sellf
from sellf import files
from sellf.algorithms import networks
from sellf.envs.space import observe
from sellf.errors import InputError
from sellf.training.agent import Agent
from sellf.training.spec import resolve

PEOPLE = {
    "sex": ["f", "m", "f", "m", "m", "f"],
    "score": [310.0, 420.0, 550.0, 610.0, 700.0, 820.0],
    "region": ["north", "south", "north", "a = b", "a = b", "south"],
    "debts": [3, 0, 1, 2, 5, 0],
}


def world(people=PEOPLE, **changes):
    """Return a world with two numbers, one of which changes, and categories."""
    settings = {
        "group": "sex",
        "numeric": ["score", "debts"],
        "categorical": ["region"],
        "label": lambda x: np.clip(x["score"] / 1000 - x["debts"] / 50, 0, 1),
        "transition": lambda x, accepted, positive: (
            {"debts": np.minimum(x["debts"] + 1, 6)} if accepted and not positive else None
        ),
        "cost": 0.5,
    }
    return sellf.world_from_frame(people, **(settings | changes))


def untrained(where, algorithm="sellf", seed=0):
    """Return an agent whose networks have random weights, large enough to tell people apart."""
    spec = resolve(
        where, algorithm, "opportunity", seed=0, steps=2048, settings={}, world_settings={}
    )
    space = spec.world.make().space
    size = networks.size(spec.algorithm.stacks(space), space.inputs)
    weights = 0.3 * jax.random.normal(jax.random.key(seed), (size,))
    predictor = networks.size((spec.algorithm.predictor,), space.inputs)
    return Agent(spec, weights, 0.3 * jax.random.normal(jax.random.key(seed + 1), (predictor,)))


def slow(people):
    """Return the network inputs of PEOPLE's world, computed one person at a time."""
    means = {name: np.mean(PEOPLE[name]) for name in ("score", "debts")}
    stds = {name: np.std(PEOPLE[name]) for name in ("score", "debts")}
    rows = []
    for i in range(len(people["score"])):
        own = {f"region = {r}": float(people["region"][i] == r) for r in set(PEOPLE["region"])}
        own |= {n: (people[n][i] - means[n]) / stds[n] for n in means}
        rows.append(own)
    return rows


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_raw_columns_are_encoded_as_the_networks_receive_them(frame):
    agent = untrained(world())
    inputs = agent.world.columns[:-2]
    expected = np.array([[row[name] for name in inputs] for row in slow(PEOPLE)])
    for call in (agent.probability, agent.predict_label):
        raw = call(frame(PEOPLE), "sex")
        assert np.allclose(raw, call(expected, PEOPLE["sex"]), atol=1e-6)
        assert np.ptp(raw) > 0.01
    assert (
        agent.decide(frame(PEOPLE), "sex", seed=1) == agent.decide(expected, PEOPLE["sex"], seed=1)
    ).all()


def test_raw_columns_give_what_the_world_itself_gives_its_profiles():
    agent = untrained(world())
    space = agent.world.space
    everyone = np.asarray(observe(space, jnp.arange(space.profiles)))
    acceptance, _ = agent.by_profile()
    raw = agent.probability(PEOPLE, "sex")
    for row, chance in zip(slow(PEOPLE), raw, strict=True):
        own = [row[name] for name in space.columns[:-2]]
        same = np.abs(everyone[:, :-2] - own).max(axis=1) < 1e-5
        assert same.any()
        assert np.abs(acceptance[same] - chance).min() < 1e-5


def test_more_columns_and_another_order_change_nothing():
    agent = untrained(world())
    shuffled = {"note": ["x"] * 6} | {name: PEOPLE[name] for name in reversed(PEOPLE)}
    assert (agent.probability(shuffled, "sex") == agent.probability(PEOPLE, PEOPLE["sex"])).all()


def test_a_saved_agent_takes_the_same_raw_columns(tmp_path):
    agent = untrained(world())
    again = sellf.load(agent.save(tmp_path / "agent"))
    assert (again.probability(PEOPLE, "sex") == agent.probability(PEOPLE, "sex")).all()


def test_an_agent_saved_without_scales_refuses_raw_numbers(tmp_path):
    where = untrained(world()).save(tmp_path / "agent") / "world.safetensors"
    tables = files.read_tensors(where)
    del tables["scales"]
    where.write_bytes(files.tensors_to_bytes(tables))
    again = sellf.load(tmp_path / "agent")
    with pytest.raises(InputError, match="saved by an earlier version"):
        again.probability(PEOPLE, "sex")
    encoded = np.zeros((2, len(again.world.columns) - 2))
    assert again.probability(encoded, ["f", "m"]).shape == (2,)


@pytest.mark.parametrize("scales", [np.zeros((7, 2)), np.ones((2, 2)), np.ones((7, 2), int)])
def test_damaged_scales_are_refused(tmp_path, scales):
    where = untrained(world()).save(tmp_path / "agent") / "world.safetensors"
    tables = files.read_tensors(where) | {"scales": scales}
    where.write_bytes(files.tensors_to_bytes(tables))
    with pytest.raises(InputError, match="scales"):
        sellf.load(tmp_path / "agent")


def test_an_agent_in_another_world_keeps_its_scales():
    agent = untrained(world())
    richer = PEOPLE | {"score": [score + 100 for score in PEOPLE["score"]]}
    moved = agent.in_world(world(richer))
    assert moved.world.space.scales == agent.world.space.scales
    assert np.allclose(moved.probability(richer, "sex"), agent.probability(richer, "sex"))
    acceptance, _ = moved.by_profile()
    raw = agent.probability(richer, "sex")
    assert all(np.abs(acceptance - chance).min() < 1e-5 for chance in raw)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"region": ["north"] * 5 + ["east"]}, "region is 'east' at row 5: it is one of 'a = b'"),
        ({"score": ["high"] * 6}, "score must be numeric but holds 'high'"),
        ({"score": [np.inf] * 6}, "score is not finite at row 0"),
        ({"score": [1.0, None, 1.0, 1.0, 1.0, 1.0]}, "score is missing at row 1"),
        ({"sex": ["f"] * 5 + ["x"]}, "group is 'x': it is one of f, m"),
        ({"debts": [1, 2]}, "differ in length"),
    ],
)
def test_wrong_values_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        untrained(world()).probability(PEOPLE | changes, "sex")


@pytest.mark.parametrize("absent", ["score", "region"])
def test_a_missing_column_is_named(absent):
    people = {name: values for name, values in PEOPLE.items() if name != absent}
    with pytest.raises(InputError, match=f"there is no column '{absent}'"):
        untrained(world()).probability(people, "sex")


def test_grades_of_the_school_are_given_as_grades():
    agent = untrained(sellf.make_world("school-continuous"))
    space = agent.world.space
    inputs = np.asarray(observe(space, jnp.arange(0, 400, 40)))
    raw = {}
    for place, name in enumerate(space.columns[: -len(space.groups)]):
        feature, is_category, category = name.partition(" = ")
        column = inputs[:, place]
        if is_category:
            raw[feature] = np.where(column == 1, category, raw.get(feature, ""))
        else:
            mean, deviation = space.scales[place]
            raw[name] = column * deviation + mean
    assert 300 < raw["NU_NOTA_MT"].mean() < 700
    groups = [space.groups[i] for i in np.asarray(space.group[jnp.arange(0, 400, 40)])]
    encoded = inputs[:, : -len(space.groups)]
    assert np.allclose(agent.probability(raw, groups), agent.probability(encoded, groups))
