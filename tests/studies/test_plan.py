"""Names of runs: the same run has the same name, in whatever study and process."""

from dataclasses import replace

import pytest

from sellf.errors import InputError
from sellf.studies import plan, spec
from sellf.training.spec import WorldSpec, from_json
from tests.studies.tiny import TEXT, study

PLAIN = {
    "world": "lending",
    "world_settings": {},
    "notion": "opportunity",
    "algorithm": "ppo",
    "settings": {"learning_rate": 1e-05, "batch": 64},
    "seed": 0,
    "steps": 512,
    "deployments": 2,
}
RUN = from_json(PLAIN)


def test_a_run_s_name_is_what_it_always_was():
    # Were it to change, every store would be done anew: then FORMAT has to change as well.
    assert plan.key_of(PLAIN) == "66f20e8b8c347a95e5622e32f80ebc96"
    assert plan.key(RUN) == "c582c0cd87b024e127eae64c8ff84c34"


def test_everything_that_numbers_depend_on_is_in_the_name():
    changes = {
        "world": "school",
        "world_settings": {"population": 10},
        "notion": "accuracy",
        "algorithm": "pocar",
        "settings": {"learning_rate": 2e-5},
        "seed": 1,
        "steps": 513,
        "deployments": 3,
    }
    assert set(changes) == set(PLAIN)
    names = {plan.key(from_json(PLAIN | {name: v})) for name, v in changes.items()}
    assert len(names | {plan.key(RUN)}) == len(changes) + 1
    again = from_json(PLAIN | {"settings": {"batch": 64, "learning_rate": 0.00001}})
    assert plan.key(again) == plan.key(RUN)
    assert from_json(RUN.to_json()) == RUN


def test_a_program_is_shared_by_seeds_and_floats_and_nothing_else():
    same = replace(RUN, seed=4, config=replace(RUN.config, learning_rate=0.1))
    assert plan.program(same) == plan.program(RUN)
    for other in (
        replace(RUN, notion="accuracy"),
        replace(RUN, steps=1024),
        replace(RUN, config=replace(RUN.config, batch=32)),
        replace(RUN, world=WorldSpec("lending", {"population": 10})),
    ):
        assert plan.program(other) != plan.program(RUN)


def test_whole_numbers_in_a_grid_name_the_same_runs_as_floats():
    floats = study(TEXT.replace("[1, 5]", "[1.0, 5.0]"))
    names = [
        [plan.key(run) for group in plan.groups(made) for run in group.first(made)]
        for made in (study(), floats)
    ]
    assert names[0] == names[1]
    assert len(set(names[0])) == 3 + 4


def test_without_selection_every_configuration_is_trained_with_every_seed():
    made = study('select = "all"\n' + TEXT)
    groups = plan.groups(made)
    assert [len(group.first(made)) for group in groups] == [3, 12]
    assert not any(group.to_come(made) for group in groups)


ROWS = """
cells = [["lending", "opportunity"], ["recidivism", "accuracy"]]
seeds = 2
steps = 512

[algorithms.focops]

[algorithms."focops (imputed)"]
algorithm = "focops"
settings = { cost = "imputed" }

[algorithms.pocar-oracle]
grid = { beta_disparity = [1, 2] }
more_in.recidivism = { beta_disparity = [20, 50, 100] }
"""


def test_an_algorithm_may_have_several_rows_and_a_world_a_grid_of_its_own():
    made = spec.parse(ROWS, "rows.toml")
    found = {(group.world.name, group.algorithm): group for group in plan.groups(made)}
    both = [found["lending", name] for name in ("focops", "focops (imputed)")]
    assert [group.view for group in both] == ["accepted", "imputed"]
    assert {run.algorithm.name for group in both for run in group.first(made)} == {"focops"}
    keys = {plan.key(run) for group in both for run in group.first(made)}
    assert len(keys) == 4
    weights = {
        world: [one["beta_disparity"] for one in found[world, "pocar-oracle"].varied]
        for world in ("lending", "recidivism")
    }
    assert weights == {"lending": [1, 2], "recidivism": [1, 2, 20, 50, 100]}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('algorithm = "focops"', 'algorithm = "fokops"', "did you mean 'focops'"),
        ("more_in.recidivism", "more_in.recidivsm", "did you mean 'recidivism'"),
        ("[20, 50, 100]", "20", "give a list of values"),
        ('"focops (imputed)"', '"focops [imputed]"', "is no name for a row"),
    ],
)
def test_mistakes_in_rows_are_told_with_their_line(old, new, words):
    with pytest.raises(InputError, match=r"rows\.toml, line") as error:
        spec.parse(ROWS.replace(old, new), "rows.toml")
    assert words in str(error.value)
