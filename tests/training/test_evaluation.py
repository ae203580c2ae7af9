"""Deployments: one program for all of them, and nothing imputed where nothing is predicted."""

import json
from dataclasses import replace
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import sellf
from sellf.cli import main
from sellf.report import compare, run_data
from sellf.studies import run_files
from sellf.training import evaluation, loop

SHORT = {"steps": 1024, "rollout": 256, "epochs": 2, "progress": False}
SMALL = {"population": 300, "window": 200}
"""As in other tests, so that what these compiled is found on disk."""


@pytest.fixture(scope="module")
def folder(jax, tmp_path_factory):
    """Return a folder with a run of FOCOPS, which by default predicts no labels."""
    parent = tmp_path_factory.mktemp("runs")
    sellf.train("lending", "focops", world_settings=SMALL, out=parent / "focops", **SHORT)
    return parent / "focops"


def test_without_a_predictor_nothing_is_imputed(folder, capsys):
    assert main(["evaluate", str(folder), "--deployments", "2", "--json"]) == 0
    out, told = capsys.readouterr()
    figures = json.loads(out)
    assert figures["disparity_imputed"] is None
    assert figures["disparity_accepted"] is not None
    # Said before anything is compiled; the answer alone is on standard output.
    assert "Deploying focops to new populations of lending" in told
    found = sellf.evaluate(sellf.load(folder), deployments=2)
    assert not found.imputes
    assert np.isnan(found.by_time["disparity_imputed"]).all()
    assert [line.get_label() for line in found.plot().axes[1].get_lines()] == [
        "true", "true, exact", "accepted only",
    ]  # fmt: skip


def rejecting():
    """Return an agent that accepts nobody."""
    agent = sellf.train("lending", "ppo", world_settings=SMALL, **SHORT)
    # The policy's last bias, of two networks with one output each.
    parameters = np.zeros_like(np.asarray(agent.parameters))
    parameters[-2] = -50
    # PPO looks at no notion; of a notion of its own it would be another program.
    spec = replace(agent.spec, notion="accuracy")
    return replace(agent, spec=spec, parameters=jnp.asarray(parameters))


def test_of_an_agent_that_accepts_nobody_the_accepted_only_disparity_is_not_defined():
    agent = rejecting()
    found = sellf.evaluate(agent, deployments=2)
    assert found.acceptances.max() == 0
    assert np.isnan(found.disparities["accepted"]).all()
    figures = found.summary()
    assert figures["disparity_accepted"] is None
    assert figures["disparity"] > 0
    assert json.loads(json.dumps(figures, allow_nan=False))["disparity_accepted"] is None
    kept = run_files.flat({}, found)
    again = run_files.unflat(kept, agent.spec, list(found.groups))[1]
    assert np.isnan(again.disparities["accepted"]).all()


def test_a_disparity_that_is_not_defined_is_null_in_the_metrics(tmp_path, monkeypatch):
    plain = loop._plain
    unknown = {"disparity_accepted": np.float32("nan")}
    monkeypatch.setattr(loop, "_plain", lambda m: plain(dict(m) | unknown))
    out = tmp_path / "run"
    agent = sellf.train("lending", "ppo", world_settings=SMALL, out=out, **SHORT)
    assert agent.history[0]["disparity_accepted"] is None
    lines = (out / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["disparity_accepted"] is None
    again = sellf.load(out)
    assert again.history == agent.history
    assert agent.plot() is not None
    column = run_data.columns_of(again.history)["disparity_accepted"]
    assert np.isnan(column).all()


def test_a_report_of_default_focops_has_no_imputed_column(folder):
    runs = run_data.from_folders([folder])
    configurations = compare.configurations_of(runs)
    assert "imputed" not in compare.summary(configurations).columns
    assert "predictions filled in" not in " ".join(compare.answer(configurations))


def test_an_old_store_s_imputed_figure_of_no_predictor_is_not_believed(folder):
    agent = sellf.load(folder)
    found = sellf.evaluate(agent, deployments=2)
    arrays = run_files.flat({}, found) | {"disparities.imputed": np.zeros(2)}
    assert not run_files.unflat(arrays, agent.spec, list(found.groups))[1].imputes


def test_one_program_serves_every_algorithm_and_number_of_deployments(folder):
    agents = [sellf.load(folder), sellf.train("lending", "sellf", world_settings=SMALL, **SHORT)]
    evaluation.program.cache_clear()
    for agent in agents:
        for deployments in (1, 2, 5):
            assert sellf.evaluate(agent, deployments=deployments).deployments == deployments
    assert evaluation.program("opportunity")._cache_size() == 1


def test_compiled_deployments_are_kept_on_disk(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(evaluation, "use_cache", lambda: asked.append(1))
    sellf.evaluate(sellf.load(folder), deployments=1)
    assert asked


def test_deployments_draw_nothing_that_a_training_with_their_seed_drew(jax):
    def data(keys):
        return {tuple(key) for key in np.asarray(jax.random.key_data(keys)).tolist()}

    root = jax.random.key(7)
    drawn = data(jax.random.split(root, 50)) | data(root[None])
    assert not drawn & data(evaluation.deployment_keys(7, 50))
    assert data(evaluation.deployment_keys(7, 3)) < data(evaluation.deployment_keys(7, 50))


def test_a_training_says_that_it_compiles_before_it_does(capsys, monkeypatch):
    def program(*_, **__):
        raise SystemExit(capsys.readouterr().err)

    monkeypatch.setattr(loop, "program", program)
    with pytest.raises(SystemExit, match="ppo on lending: 4 iterations, compiling"):
        sellf.train("lending", "ppo", **SHORT | {"progress": True})


def test_the_table_calls_a_standard_deviation_that(folder):
    from rich.console import Console

    from sellf.cli.train import summary_table

    found = sellf.evaluate(sellf.load(folder), deployments=2)
    console = Console(width=120, record=True, file=SimpleNamespace(write=str, flush=str))
    console.print(summary_table({"focops": found}))
    shown = console.export_text()
    assert "±" not in shown
    assert "in brackets: standard deviation over deployments" in shown
