"""Regret to the frontier: from tables of studies, against the line between two plans by hand."""

import json

import pytest


@pytest.fixture
def regret():
    pytest.importorskip("jax")
    import regret

    return regret


HEAD = "# study\nstudy,world,world_settings,notion,algorithm,seeds,steps,exact,reward\n"


@pytest.fixture
def results(tmp_path):
    """A frontier through (0.02, 1500) and (0.04, 1600), and two studies."""
    line = {"disparity": [0.02, 0.04], "reward": [1500.0, 1600.0]}
    (tmp_path / "frontiers.json").write_text(json.dumps({"lending, opportunity": line}))
    for study, rows in {
        "paper-main": "m,lending,{},opportunity,ppo,5,500,0.03,1500\n"
        "m,lending,{},opportunity,sellf,5,500,0.01,1400\n"
        'm,lending,"{""groups"": ""all""}",opportunity,cup,5,500,0.03,1500\n',
        "direct": "d,lending,{},opportunity,ppo,5,500,0.03,1000\n"
        "d,lending,{},accuracy,sellf-direct,5,500,0.03,1000\n",
    }.items():
        (tmp_path / study).mkdir()
        (tmp_path / study / "table.csv").write_text(HEAD + rows)
    return tmp_path


def test_it_is_the_distance_to_the_line_between_plans_from_the_first_study(regret, results):
    curves = regret.frontiers(results / "frontiers.json", compute=False)
    found = {(p.algorithm, p.notion): p for p in regret.points(results, curves)}
    assert found["ppo", "opportunity"].regret == pytest.approx(50)
    assert found["ppo", "opportunity"].study == "paper-main"
    assert found["sellf", "opportunity"].regret is None  # below what was planned for
    assert found["sellf-direct", "accuracy"].regret is None  # without a frontier
    assert len(found) == 3  # four races are another world


def test_what_is_missing_is_marked_in_table_and_figure(regret, results, capsys):
    pytest.importorskip("matplotlib")
    assert regret.main(["--results", str(results)]) == 0
    shown = capsys.readouterr()
    assert "| ppo | 50.0 (0.030) [1] | missing | missing |" in shown.out
    assert "Not run in school: ppo" in shown.out
    assert "lending, accuracy" in shown.err
    assert (results / "regret" / "regret.svg").stat().st_size > 1000
    assert (results / "regret" / "table.csv").read_text().count("\n") == 4
