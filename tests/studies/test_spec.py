"""Study files: what they mean, and what is said of mistakes in them."""

import pytest

from sellf.algorithms import catalogue
from sellf.errors import InputError
from sellf.studies import plan, spec
from tests.studies.tiny import TEXT, study

GRIDS = {
    "ppo": 1,
    "pocar": 12,
    "pocar-oracle": 12,
    "elbert": 7,
    "focops": 12,
    "focops (imputed)": 12,
    "sellf": 12,
    "sellf-semi": 12,
    "sellf (increase)": 12,
    "ppo-lagrangian": 1,
    "pid-lagrangian": 1,
    "cup": 1,
    "sellf-direct": 1,
}


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """Studies name it; where it is not there yet, sellf stands in."""
    stand_in = catalogue.ALGORITHMS["sellf"]._replace(name="sellf-direct")
    if "sellf-direct" not in catalogue.ALGORITHMS:
        monkeypatch.setitem(catalogue.ALGORITHMS, "sellf-direct", stand_in)


@pytest.mark.parametrize("name", spec.builtin())
def test_every_built_in_study_can_be_read_and_planned(name):
    loaded = spec.load(name)
    assert loaded.name == name
    assert loaded.summary == spec.builtin()[name]
    assert all(group.first(loaded) for group in plan.groups(loaded))
    quick = spec.load(name, quick=True)
    assert quick.quick
    assert quick.steps < 10_000
    assert all(len(entry.grid) <= 2 for entry in quick.entries)


def test_paper_main_has_the_paper_s_grids_and_cells():
    main = spec.load("paper-main")
    assert {entry.name: len(entry.grid) for entry in main.entries} == GRIDS
    assert set(main.cells) == {
        ("lending", "opportunity"),
        ("recidivism", "accuracy"),
        ("school", "qualification"),
    }
    assert (main.steps, main.seeds, main.deployments) == (500_000, (0, 1, 2, 3, 4), 50)
    cells = set(main.cells) | set(spec.load("paper-extra").cells)
    assert len(cells) == 9
    # 91 configurations to select among in a cell, then four more seeds for each of the eight
    # selected, and five for the five algorithms that have nothing to select; nine more
    # configurations of the oracle in recidivism.
    total = sum(len(g.first(main)) + g.to_come(main) for g in plan.groups(main))
    assert total == 3 * (91 + 8 * 4 + 5 * 5) + 9


def test_worlds_times_notions_and_a_grid_s_product():
    text = TEXT.replace(
        'cells = [["lending", "opportunity"]]',
        'worlds = ["lending", "school"]\nnotions = ["accuracy", "opportunity"]',
    )
    made = study(text)
    assert len(made.cells) == 4
    grid = made.entries[1].grid
    assert len(grid) == 4
    assert {"beta_disparity": 5, "beta_renyi": 0.01} in grid


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("steps = 512", "stepz = 512", 5, "'steps'"),
        ('"lending"', '"lendin"', 3, "'lending'"),
        ('"opportunity"', '"oportunity"', 3, "'opportunity'"),
        ("[algorithms.sellf]", "[algorithms.self]", 10, "'sellf'"),
        ("beta_renyi =", "beta_reny =", 11, "'beta_renyi'"),
        ("grid =", "grit =", 11, "'grid'"),
        ("[0.01, 0.1]", "[]", 11, "the grid of beta_renyi is empty"),
        ("[0.01, 0.1]", '["much"]', 11, "give a number"),
        ("[0.01, 0.1]", "[-1]", 11, "0 or more"),
        ("seeds = 3", "seeds = []", 4, "give how many, or a list"),
        ("seeds = 3", "seeds = [1000000]", 4, "999999"),
        ("seeds = 3", "seeds = 2000000", 4, "seeds is 2000000: give how many"),
        ("steps = 512", "steps = 0", 5, "from 1 to"),
        ("steps = 512", 'steps = 512\ndraw = ["deploiment"]', 6, "'deployment'"),
        (
            "[algorithms.ppo]",
            "[world_settings.lending]\ngroups = 3\n[algorithms.ppo]",
            9,
            "groups is 3",
        ),
        (
            "[algorithms.ppo]",
            '[world_settings.lending]\nname = "x"\n[algorithms.ppo]',
            9,
            "name",
        ),
        ("steps = 512", 'steps = 512\nselect = "papr"', 6, "'paper'"),
        ("seeds = 3", 'seeds = 3\nworlds = ["school"]', 3, "not both"),
        (
            "[algorithms.ppo]",
            "[world_settings.lending]\nhorizn = 5\n[algorithms.ppo]",
            9,
            "horizon",
        ),
        ("steps = 512", "steps 512", 5, "not valid TOML"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_nearest_name(old, new, line, words):
    with pytest.raises(InputError) as error:
        study(TEXT.replace(old, new, 1))
    message = str(error.value)
    assert f"line {line}" in message
    assert words in message
    assert "tiny.toml" in message


def test_a_study_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'paper-main'"):
        spec.load("paper-mian")
    with pytest.raises(InputError, match="there is no study file"):
        spec.load("mine.toml")
