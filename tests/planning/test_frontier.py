"""Frontiers: they never fall, say what they cost, and are there on the command line."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("jax")

import sellf
from sellf.cli import main
from sellf.errors import InputError
from sellf.planning import frontier as frontiers
from sellf.planning.cells import MOST_PROFILES
from sellf.planning.law import law_of
from tests.planning.laws import random_law


@pytest.fixture(scope="module")
def found():
    return sellf.frontier(random_law(seed=1), "opportunity", [0.1, 0.02], starts=0)


def test_rewards_never_fall_as_more_is_tolerated(found):
    assert [each.omega for each in found.plans] == [0.02, 0.1, None]
    rewards = np.array([each.reward for each in found.plans])
    assert (np.diff(rewards) >= -1e-6 * rewards[1:]).all()
    assert found.price[-1] == 0
    assert all(each.within for each in found.plans)


def test_between_plans_the_frontier_is_a_straight_line(found):
    first, second = found.plans[:2]
    middle = found.reward_at((first.largest + second.largest) / 2)
    assert middle == pytest.approx((first.reward + second.reward) / 2)
    assert found.reward_at(1.0) == pytest.approx(found.plans[-1].reward)


def test_it_prints_converts_and_draws_itself(found):
    assert "the largest reward of any policy" in str(found)
    assert list(found.to_frame("pandas").columns[:2]) == ["omega", "reward"]
    assert json.loads(json.dumps(found.summary()))["plans"][0]["omega"] == 0.02
    pytest.importorskip("matplotlib")
    (axis,) = found.plot().axes
    assert len(axis.lines[0].get_xdata()) == 3


def test_plans_over_cells_are_not_called_the_best_of_any_policy(found):
    last = replace(found.plans[-1], policy=np.zeros((1, 2, MOST_PROFILES + 1)))
    large = replace(found, plans=(*found.plans[:-1], last))
    assert "any policy" not in str(large)
    assert "others may earn more" in str(large)


@pytest.mark.slow
def test_without_omegas_some_below_what_comes_of_itself_are_taken():
    law = random_law(seed=1)
    found = sellf.frontier(law, starts=0)
    free = found.plans[-1].largest
    assert all(each.omega is None or each.omega < free for each in found.plans)


@pytest.mark.slow
def test_qualification_says_how_soon_and_at_what_price():
    law = random_law(seed=6, horizon=100)
    told = []
    found = sellf.frontier(law, "qualification", starts=0, progress=lambda *step: told.append(step))
    plans = len(found.plans) + 1 + len(found.soonest)
    assert told == [(done, plans) for done in range(1, plans + 1)]
    assert list(found.soonest) == [20, 40, 60, 80, 100]
    gaps = list(found.soonest.values())
    assert all(later <= sooner + 1e-3 for sooner, later in pairwise(gaps))
    assert found.plans[0].largest == pytest.approx(gaps[-1], abs=1e-3)
    assert found.price[0] >= 0
    assert "by decisions" in str(found)


@pytest.mark.parametrize(
    ("omegas", "sentence"),
    [([], "there are no omegas"), (0.1, "give a sequence"), ([0.1, -1], "omega is -1")],
)
def test_omegas_that_make_no_sense_are_refused(omegas, sentence):
    with pytest.raises(InputError, match=sentence):
        sellf.frontier(random_law(), "opportunity", omegas)


@pytest.fixture
def small_worlds(monkeypatch):
    """Have the command plan in a small law, whichever world it names."""
    monkeypatch.setattr(frontiers, "law_of", lambda world: law_of(random_law(seed=1)))


def test_the_command_prints_and_draws(small_worlds, capsys, tmp_path):
    picture = tmp_path / "frontier.svg"
    typed = ["frontier", "lending", "--omega", "0.1", "--starts", "0"]
    assert main([*typed, "--plot", str(picture)]) == 0
    assert "0.1" in capsys.readouterr().out
    assert picture.read_text().startswith("<?xml")
    assert main([*typed, "--segments", "2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["segments"] == 2
    assert [each["omega"] for each in shown["plans"]] == [0.1, None]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ([], "no world named"),
        (["lendin"], "did you mean 'lending'"),
        (["lending", "--notion", "oportunity"], "did you mean 'opportunity'"),
        (["lending", "--omega", "-0.1"], "omega is -0.1: it must be at least 0"),
        (["lending", "--plot", "frontier.txt"], "give a name that ends in .png"),
        (["lending", "--segments", "0"], "segments is 0"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence_with_exit_code_2(typed, sentence, capsys):
    assert main(["frontier", *typed]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_a_large_world_is_planned_in_by_cells():
    law = law_of("school")
    free = sellf.plan(law, "opportunity", None, starts=0)
    fair = sellf.plan(law, "opportunity", 0.05, starts=0, near=[free])
    assert free.reward > 1_247
    assert fair.reward > 1_241.6
    assert fair.largest <= 0.05 + 1e-6
