"""Drift: the label law and newcomers by period, and training that goes on."""

import shutil

import numpy as np
import pytest

import sellf
from sellf.cli import main

SMALL = {"population": 100, "window": 100, "horizon": 300}
FAST = {"steps": 512, "rollout": 256, "progress": False}


def lending(period, **drift):
    return sellf.make_world("lending", **SMALL, drift=drift, period=period)


def log_odds(alpha):
    alpha = np.asarray(alpha, float)
    return np.log(alpha) - np.log1p(-alpha)


def test_the_label_law_moves_by_the_period_in_log_odds():
    plain = sellf.make_world("lending", **SMALL)
    for period in (0, 1, 4):
        world = lending(period, label={"Black": -0.25})
        moved = log_odds(world.alpha) - log_odds(plain.alpha)
        black = np.asarray(world.group) == world.groups.index("Black")
        np.testing.assert_allclose(moved[black], -0.25 * period, atol=1e-3)
        np.testing.assert_allclose(moved[~black], 0, atol=1e-3)
    scheduled = lending(1, label=[0.0, 0.5, -1.0])
    np.testing.assert_allclose(log_odds(scheduled.alpha) - log_odds(plain.alpha), 0.5, atol=1e-3)
    later = lending(9, label=[0.0, 0.5, -1.0])
    np.testing.assert_allclose(log_odds(later.alpha) - log_odds(plain.alpha), -1.0, atol=1e-3)


def test_newcomers_move_between_groups():
    world = lending(2, arrivals={"White": np.log(2) / 2})
    share = np.diff(np.asarray(world.arrivals.cumulative), prepend=0)
    white = np.asarray(world.group)[np.asarray(world.arrivals.profile)] == 1
    assert share[white].sum() == pytest.approx(2 / 3, abs=1e-5)
    assert share.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"drift": 3}, "say what changes"),
        ({"drift": {"labels": 1}}, "did you mean 'label'"),
        ({"drift": {"label": "much"}}, "give a number"),
        ({"drift": {"label": {"Green": 1.0}}}, "group of drift label"),
        ({"drift": {"label": float("nan")}}, "give a number"),
        ({"drift": {"label": 1.0}, "period": -1}, "period is"),
        ({"period": 1}, "period is given without drift"),
    ],
)
def test_what_is_no_drift_is_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        sellf.make_world("lending", **settings)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift") / "first"
    sellf.train("lending", "sellf", world_settings=SMALL, out=folder, **FAST)
    return folder


@pytest.fixture
def first(run):
    return sellf.load(run)


def test_training_goes_on_from_an_agent_and_resumes_to_the_same(
    run, first, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "first")
    drift = '{"label": {"Black": -0.5}}'
    words = ["--set", *(f"{name}={value}" for name, value in SMALL.items()), f"drift={drift}"]
    command = ["train", "lending", "sellf", *words, "period=2", "--steps", "512", "--out", "second"]
    assert main([*command, "--continue-from", "first", "--quiet"]) == 0
    second = sellf.load("second")
    assert second.spec.origin == first.fingerprint
    assert second.world.alpha[0] != first.world.alpha[0]
    settings = {**SMALL, "drift": {"label": {"Black": -0.5}}, "period": 2}
    again = sellf.train("lending", "sellf", world_settings=settings, continue_from=first, **FAST)
    np.testing.assert_array_equal(second.parameters, again.parameters)
    anew = sellf.train("lending", "sellf", world_settings=settings, **FAST)
    assert abs(anew.parameters - again.parameters).max() > 0
    moved, apart = (np.abs(agent.parameters - first.parameters).mean() for agent in (again, anew))
    assert moved != apart
    # Stopped before its first iteration was kept, it still goes on from the agent.
    for name in ("agent.safetensors", "metrics.jsonl"):
        (tmp_path / "second" / name).unlink()
    from sellf.training import loop, run_folder

    run = run_folder.open_run(tmp_path / "second")
    run.checkpoint.unlink()
    with pytest.raises(ValueError, match="before the agent to continue from was stored"):
        loop.resume("second", progress=False)


def test_an_agent_of_another_algorithm_or_world_is_not_gone_on_from(first):
    with pytest.raises(ValueError, match="name the same algorithm"):
        sellf.train("lending", "sellf-relu", world_settings=SMALL, continue_from=first)
    with pytest.raises(ValueError, match="it cannot decide there"):
        sellf.train("lending", "sellf", world_settings={"groups": "all"}, continue_from=first)
    with pytest.raises(ValueError, match="one run"):
        sellf.train("lending", "sellf", world_settings=SMALL, continue_from=first, seeds=[0, 1])
