"""One RunSpec from entry to file: what is resolved once, stored, and read again."""

import json
from dataclasses import replace

import pytest

import sellf
from sellf.errors import InputError
from sellf.training.spec import from_folder, from_json, resolve

SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
SMALL = {"population": 200, "window": 100}


def spec(algorithm, world="lending", **settings):
    return resolve(world, algorithm, "opportunity", seed=3, steps=512, settings=settings,
                   world_settings={})  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "settings", "predicts"),
    [
        ("ppo", {}, False),
        ("sellf", {}, True),
        # By its settings' names it looked as if it had a predictor.
        ("focops", {}, False),
        ("focops", {"cost": "imputed"}, True),
    ],
)
def test_whether_labels_are_predicted_is_a_fact_of_the_resolved_algorithm(
    algorithm, settings, predicts
):
    found = spec(algorithm, **settings)
    assert found.has_predictor is predicts
    assert found.to_config()["has_predictor"] is predicts
    again = from_json(json.loads(json.dumps(found.to_json())))
    assert (again.identity, again.has_predictor) == (found.identity, predicts)


def test_only_what_was_changed_is_changed():
    assert spec("sellf").changed == {}
    assert spec("sellf", beta_renyi=1, batch=32).changed == {"beta_renyi": 1.0, "batch": 32}


def test_what_a_folder_does_not_say_is_taken_as_it_was_before(tmp_path):
    agent = sellf.train("lending", "focops", world_settings=SMALL, out=tmp_path / "run", **SHORT)
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    assert config["has_predictor"] is False
    for name in ("has_predictor", "view", "steps", "sha256"):
        config.pop(name)
    found = from_folder(tmp_path / "run", config)
    assert found.config == agent.spec.config
    assert found.world.settings == SMALL
    assert found.steps == 0


def test_a_world_of_one_s_own_is_kept_and_one_by_name_made_when_needed():
    made = sellf.make_world("lending", population=100)
    own = spec("ppo", replace(made, name="mine"))
    assert own.world.make().name == "mine"
    assert list(own.world_files()) == ["world.safetensors"]
    assert spec("ppo").world_files() == {}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seeds": 3}, r"seeds is 3: give a list, for example seeds=range\(3\)"),
        ({"seeds": []}, "seeds is empty"),
        ({"configs": {"omega": 0.1}}, "configs is {'omega': 0.1}: give a list"),
        ({"configs": 5}, "configs is 5: give a list"),
        ({"configs": []}, "configs is empty"),
    ],
)
def test_seeds_and_configs_that_are_no_lists_are_answered_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        sellf.train("lending", "ppo", **arguments)
