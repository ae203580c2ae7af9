"""The worlds by name: their figures, their settings, and mistakes in them."""

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sellf
from sellf.envs import world as worlds
from sellf.envs.recidivism import smoothed
from sellf.envs.school import enem
from sellf.envs.school import model as school_model
from sellf.envs.space import observe
from sellf.envs.tables import compas
from sellf.envs.worlds import make_world
from sellf.errors import InputError

REAL_ROWS = Path(__file__).parents[3] / "shared" / "data" / "enem" / "enem_sp_2017_2023.csv"


def gap(world, seed=0):
    """Return the qualification gap of everyone who may arrive."""
    share = np.diff(np.asarray(world.arrivals.cumulative), prepend=0)
    profile = np.asarray(world.arrivals.profile)
    group, alpha = np.asarray(world.group)[profile], np.asarray(world.alpha)[profile]
    rate = np.bincount(group, share * alpha) / np.bincount(group, share)
    return rate.max() - rate.min()


@pytest.mark.parametrize(
    ("name", "inputs", "groups", "qualification"),
    [
        ("lending", 12, 2, 0.418),
        ("recidivism", 15, 2, 0.13),
        ("school", 121, 2, 0.148),
        ("school-continuous", 124, 2, 0.148),
    ],
)
def test_the_paper_s_worlds(name, inputs, groups, qualification):
    world = make_world(name)
    assert (world.inputs, len(world.groups)) == (inputs, groups)
    assert gap(world) == pytest.approx(qualification, abs=0.005)
    assert world.population == world.window == 4000
    seen = observe(world.space, jnp.arange(50))
    assert seen.shape == (50, inputs)
    # Each one-hot block, the group's among them, has exactly one 1.
    assert (seen[:, -groups:].sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("name", "settings", "groups"),
    [
        ("lending", {"groups": "all"}, ("Asian", "Black", "Hispanic", "White")),
        ("lending", {"groups": ["Hispanic", "Asian"]}, ("Asian", "Hispanic")),
        (
            "recidivism",
            {"groups": "race-sex"},
            (
                "African-American, Female",
                "African-American, Male",
                "Caucasian, Female",
                "Caucasian, Male",
            ),
        ),
    ],
)
def test_worlds_of_other_groups(name, settings, groups):
    world = make_world(name, **settings)
    assert world.groups == groups
    assert np.isfinite(np.asarray(world.alpha)).all()
    state = worlds.reset(world, jax.random.key(0))
    everyone = np.bincount(
        np.asarray(world.group)[np.asarray(state.profile)], minlength=len(groups)
    )
    assert (everyone > 0).all()


def test_populations_are_drawn_in_the_shares_of_the_figures():
    world = make_world("recidivism", population=200_000)
    state = worlds.reset(world, jax.random.key(0))
    n = compas().n.sum(axis=1).ravel()
    drawn = np.bincount(np.asarray(state.profile), minlength=80) / 200_000
    assert 0.5 * np.abs(drawn - n / n.sum()).sum() < 0.01
    other = worlds.reset(world, jax.random.key(1))
    assert (np.asarray(state.profile) != np.asarray(other.profile)).any()


def test_smoothing_leaves_full_cells_and_fills_empty_ones():
    n, good = np.zeros((1, 2, 2), int), np.zeros((1, 2, 2), int)
    n[0] = [[1000, 0], [10, 0]]
    good[0] = [[700, 0], [10, 0]]
    rate = smoothed(n, good)[0]
    group = 710 / 1010
    first = (710 + 5 * group) / 1015
    assert rate[0, 0] == pytest.approx((700 + 5 * first) / 1005)
    assert rate[1, 0] == pytest.approx((10 + 5 * first) / 15)
    assert rate[:, 1] == pytest.approx(group)


def microdata(path, state="SP", delimiter=";"):
    """A file such as INEP publishes, of 400 made-up applicants."""
    rng = np.random.default_rng(0)
    needed = ["SG_UF_PROVA", enem.RACE, *enem.FEATURES, enem.LANGUAGES, *enem.GRADES]
    with path.open("w", encoding="latin-1", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow([*needed, "NO_MUNICIPIO_PROVA"])
        for _ in range(400):
            answers = ["1" if f.startswith("TP") else "A" for f in enem.FEATURES]
            answers[0] = str(rng.integers(1, 15))
            answers[1] = rng.choice(["F", "M"])
            race = rng.integers(1, 4)
            grades = rng.normal(560 + 30 * (race == 1), 60, 4).round(1)
            writer.writerow([state, race, *answers, *grades, "São Paulo"])
    return path


def test_school_uses_the_real_rows_of_a_microdata_file(tmp_path):
    path = microdata(tmp_path / "MICRODADOS_ENEM_2020.csv")
    world = make_world("school", microdata=path)
    assert world.profiles == 4 * 400
    assert world.arrivals.profile.shape == (400,)
    assert world.groups == ("Black/brown", "white")
    continuous = make_world("school-continuous", microdata=str(path))
    numbers = np.asarray(continuous.encoding.numbers)
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(numbers.std(axis=0), 1, atol=1e-4)


@pytest.mark.parametrize("delimiter", [";", ","])
def test_school_takes_microdata_of_another_state(tmp_path, delimiter):
    path = microdata(tmp_path / "rj.csv", "RJ", delimiter)
    with pytest.raises(InputError, match="for another state type state='RJ'"):
        make_world("school", microdata=path)
    assert make_world("school", microdata=path, state="RJ").profiles == 4 * 400
    with pytest.raises(InputError, match="no file is named"):
        make_world("school", state="RJ")


@pytest.mark.skipif(not REAL_ROWS.exists(), reason="no real rows at hand")
def test_real_rows_separated_by_commas_load_whatever_their_state(tmp_path):
    text = REAL_ROWS.read_text(encoding="latin-1").replace(",SP,", ",MG,")
    (tmp_path / "mg.csv").write_text(text, encoding="latin-1")
    found = make_world("school", microdata=tmp_path / "mg.csv", state="MG")
    assert found.profiles == make_world("school", microdata=REAL_ROWS).profiles


@pytest.mark.skipif(not REAL_ROWS.exists(), reason="no real rows at hand")
def test_school_from_the_model_is_like_school_from_the_rows():
    rows = make_world("school", microdata=REAL_ROWS)
    model = make_world("school")
    assert gap(model) == pytest.approx(gap(rows), abs=0.02)
    assert school_model.load().law.shift > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_world("lendng"), "world is 'lendng': did you mean 'lending'"),
        (lambda: make_world("lending", microdata="x.csv"), "lending has no setting 'microdata'"),
        (lambda: make_world("lending", groups=["Black", "Blue"]), "two or more of 'Asian'"),
        (lambda: make_world("lending", groups="Black"), "two or more of 'Asian'"),
        (lambda: make_world("recidivism", groups="sex"), "groups is 'sex'"),
        (lambda: make_world("lending", population=1), "population is 1"),
        (lambda: make_world("lending", groups="all", population=3), "there are 4 groups"),
        (lambda: make_world("lending", cost=-1), "cost is -1"),
        (lambda: make_world("lending", horizon=0.5), "horizon is 0.5"),
        (lambda: make_world("school", microdata="no/such/file.csv"), "no/such/file.csv"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(sellf.errors.InputError, match=message):
        call()


def test_tables_that_make_no_sense_are_refused_when_a_world_is_built():
    from sellf.envs.build import Features, Rules, build

    good = {
        "groups": ["a", "b"],
        "group": np.array([0, 1]),
        "alpha": np.array([0.5, 0.5]),
        "moves": np.zeros((2, 2, 2), int) + np.arange(2)[:, None, None],
        "share": np.array([0.5, 0.5]),
        "features": Features(np.arange(2), np.eye(2), ["x", "y"]),
    }
    rules = Rules(cost=0.5, horizon=10, population=10)
    assert build("fine", rules, **good).profiles == 2
    for changes, message in [
        ({"alpha": np.array([0.5, 1.5])}, "chance of a good label is 1.5"),
        ({"alpha": np.array([0.5, np.nan])}, "chance of a good label is nan"),
        ({"share": np.array([0.5, 0.6])}, "shares of newcomers sum to 1.1"),
        ({"share": np.array([1.0, 0.0])}, r"nobody arrives of the groups \['b'\]"),
        ({"moves": good["moves"] + 5}, "leaves the feature space"),
        ({"moves": 1 - good["moves"]}, "changes a person's group"),
    ]:
        with pytest.raises(ValueError, match=message):
            build("bad", rules, **{**good, **changes})
