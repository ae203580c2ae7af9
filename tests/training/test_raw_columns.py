"""Agents decide about people given as raw columns, as a user's own table has them."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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


def changed(folder, **tables):
    """Rewrite the tables of a saved agent's world; None removes one."""
    where = folder / "world.safetensors"
    found = files.read_tensors(where) | tables
    kept = {name: table for name, table in found.items() if table is not None}
    where.write_bytes(files.tensors_to_bytes(kept))


def test_an_agent_saved_without_its_raw_columns_refuses_them(tmp_path):
    changed(untrained(world()).save(tmp_path / "agent"), raw=None)
    again = sellf.load(tmp_path / "agent")
    with pytest.raises(InputError, match="saved by an earlier version"):
        again.probability(PEOPLE, "sex")
    encoded = np.zeros((2, len(again.world.columns) - 2))
    assert again.probability(encoded, ["f", "m"]).shape == (2,)


GOOD = [["region", text, 0.0, 1.0] for text in ("a", "b", "c")]


@pytest.mark.parametrize(
    "content",
    [
        "[",
        "[" * 100_000,
        "{}",
        "[]",
        json.dumps([*GOOD, ["score", None, 1.0, 0.0], ["debts", None, 1.0, 1.0]]),
        json.dumps([*GOOD, ["score", None, 1.0, "1"], ["debts", None, 1.0, 1.0]]),
        json.dumps([*GOOD, [1, None, 1.0, 1.0], ["debts", None, 1.0, 1.0]]),
        json.dumps([*GOOD, ["score", None, float("inf"), 1.0], ["debts", None, 1.0, 1.0]]),
        json.dumps([*GOOD, ["score", 7, 1.0, 1.0], ["debts", None, 1.0, 1.0]]),
    ],
)
def test_damaged_raw_columns_are_refused(tmp_path, content):
    folder = untrained(world()).save(tmp_path / "agent")
    changed(folder, raw=np.frombuffer(content.encode(), np.uint8))
    with pytest.raises(InputError, match="raw column"):
        sellf.load(tmp_path / "agent")


def test_an_agent_in_another_world_keeps_its_scales():
    agent = untrained(world())
    richer = PEOPLE | {"score": [score + 100 for score in PEOPLE["score"]]}
    moved = agent.in_world(world(richer))
    assert moved.world.space.raw == agent.world.space.raw
    assert np.allclose(moved.probability(richer, "sex"), agent.probability(richer, "sex"))
    acceptance, _ = moved.by_profile()
    raw = agent.probability(richer, "sex")
    assert all(np.abs(acceptance - chance).min() < 1e-5 for chance in raw)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"region": ["north"] * 5 + ["east"]}, "region is 'east' at row 5: it is one of 'a = b'"),
        ({"score": ["high"] * 6}, "score must be numeric but holds 'high'"),
        ({"score": [np.inf] * 6}, "score is inf at row 0: give a finite number"),
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
        feature, category = space.raw[place][:2]
        column = inputs[:, place]
        if category is not None:
            raw[feature] = np.where(column == 1, category, raw.get(feature, ""))
        else:
            own = space.raw[place]
            raw[name] = column * own.deviation + own.mean
    assert 300 < raw["NU_NOTA_MT"].mean() < 700
    groups = [space.groups[i] for i in np.asarray(space.group[jnp.arange(0, 400, 40)])]
    encoded = inputs[:, : -len(space.groups)]
    assert np.allclose(agent.probability(raw, groups), agent.probability(encoded, groups))


def test_a_missing_value_of_an_arrow_dictionary_stays_missing():
    agent = untrained(world())
    for name in ("region", "score", "sex"):
        values = pa.array([None, *PEOPLE[name][1:]]).dictionary_encode()
        with pytest.raises(InputError, match=f"{name} is missing at row 0"):
            agent.probability(pa.table(PEOPLE | {name: values}), "sex")
        with pytest.raises(InputError, match=f"{name} is missing at row 0"):
            world(pa.table(PEOPLE | {name: values}))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_values_of_any_kind_are_refused(missing):
    agent = untrained(world())
    with pytest.raises(InputError, match="region is missing at row 0"):
        agent.probability(PEOPLE | {"region": [missing, *PEOPLE["region"][1:]]}, "sex")
    with pytest.raises(InputError, match="group is missing"):
        agent.probability(PEOPLE, [missing, *PEOPLE["sex"][1:]])


def test_columns_named_like_inputs_do_not_replace_the_raw_column():
    agent = untrained(world())
    more = {f"region = {name}": [0] * 6 for name in set(PEOPLE["region"])}
    assert (agent.probability(PEOPLE | more, "sex") == agent.probability(PEOPLE, "sex")).all()
    encoded = {name: values for name, values in (PEOPLE | more).items() if name != "region"}
    with pytest.raises(InputError, match="there is no column 'region'"):
        agent.probability(encoded, "sex")


def test_features_whose_names_look_like_categories_are_told_apart():
    people = {
        "g": ["f", "m"] * 6,
        "j": ["a = b", "c", "c"] * 4,
        "j = a": ["x", "y"] * 6,
        "j = c": [1.0, 2.0, 4.0] * 4,
    }
    agent = untrained(
        sellf.world_from_frame(
            people,
            group="g",
            numeric=["j = c"],
            categorical=["j", "j = a"],
            label=lambda x: np.full(len(x["g"]), 0.5),
            cost=0.4,
        )
    )
    acceptance, _ = agent.by_profile()
    raw = agent.probability(people, "g")
    assert len(set(raw.round(6).tolist())) == 6
    assert all(np.abs(acceptance - chance).min() < 1e-6 for chance in raw)
    with pytest.raises(InputError, match="there is no column 'j = c'"):
        agent.probability({name: people[name] for name in ("j", "j = a")}, people["g"])


@pytest.mark.parametrize("form", [float, str, np.int8, np.float32])
def test_whole_numbers_are_the_same_category_in_any_type(form):
    people = {"g": ["f", "m"] * 6, "kind": [1, 2, 3] * 4}
    agent = untrained(
        sellf.world_from_frame(
            people,
            group="g",
            categorical=["kind"],
            label=lambda x: x["kind"] / 4,
            cost=0.4,
        )
    )
    other = people | {"kind": [form(kind) for kind in people["kind"]]}
    assert (agent.probability(other, "g") == agent.probability(people, "g")).all()
    with pytest.raises(InputError, match="kind is True at row 0"):
        agent.probability(people | {"kind": [True] * 12}, "g")


@pytest.mark.parametrize(
    ("people", "group"),
    [
        (np.full((1, 5), np.nan), ["f"]),
        (np.full((1, 5), 1j), ["f"]),
        (np.ma.masked_array(np.zeros((1, 5)), [[True, False, False, False, False]]), ["f"]),
        (PEOPLE | {"region": np.ma.masked_array(PEOPLE["region"], [1, 0, 0, 0, 0, 0])}, "sex"),
        (PEOPLE | {"score": np.ma.masked_array(PEOPLE["score"], [1, 0, 0, 0, 0, 0])}, "sex"),
        ([{"score": 1}], ["f"]),
        ("abc", ["f"]),
        ([[1.0], [1.0, 2.0]], ["f", "f"]),
        (PEOPLE | {"score": [10**400] * 6}, "sex"),
        (PEOPLE | {"score": [1e41] * 6}, "sex"),
        (PEOPLE | {"score": np.full(6, np.datetime64("2020-01-01"))}, "sex"),
        (PEOPLE | {"score": [1j] * 6}, "sex"),
        (PEOPLE | {"region": [("north",)] * 6}, "sex"),
        (pd.concat([pd.DataFrame(PEOPLE)] * 2, axis=1), "sex"),
        (pd.DataFrame(PEOPLE).iloc[0], "f"),
        ({"score": [1.0], "debts": [1], "region": ["north"]}, "f"),
        ({}, ["f"]),
    ],
    ids=str,
)
def test_what_is_no_table_of_people_gets_a_sentence(people, group):
    with pytest.raises(InputError):
        untrained(world()).probability(people, group)


def test_nobody_and_other_arguments():
    agent = untrained(world())
    assert agent.probability(np.zeros((0, 5)), []).shape == (0,)
    arrow = {name: pa.array(values) for name, values in PEOPLE.items()}
    assert (agent.probability(arrow, "sex") == agent.probability(PEOPLE, "sex")).all()
    with pytest.raises(InputError, match="seed is -1"):
        agent.decide(PEOPLE, "sex", seed=-1)
    with pytest.raises(InputError, match="give a world"):
        agent.in_world("lending")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sex": [1, "1"] * 3}, "different values of one name"),
        ({"region": [1, "1", "x"] * 2}, "several types"),
        ({"score": [1e300, 2e300] * 3}, "too large to standardise"),
        ({"score": np.full(6, np.datetime64("2020-01-01"))}, "holds dates"),
    ],
)
def test_tables_that_would_be_ambiguous_make_no_world(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        world(PEOPLE | changes)


def test_classes_of_the_lending_world_are_given_by_name():
    agent = untrained(sellf.make_world("lending"))
    found = agent.probability({"score": ["0-10", "90-100"]}, ["Black", "White"])
    encoded = np.eye(10)[[0, 9]]
    assert np.allclose(found, agent.probability(encoded, ["Black", "White"]))
    with pytest.raises(InputError, match="score is 35 at row 0: it is one of '0-10', '10-20'"):
        agent.probability({"score": [35]}, ["Black"])
