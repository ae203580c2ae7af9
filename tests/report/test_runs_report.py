"""Reports of runs: the figures are those of `sellf evaluate`, seeds are pooled, names are text."""

import json
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sellf import files
from sellf.cli import main
from sellf.report.page import LARGEST
from sellf.training.spec import from_folder
from tests.report.pages import HOSTILE, Reader

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def runs(folder):
    from sellf.report.run_data import from_folders

    return from_folders([folder])


def test_an_agent_prints_itself_in_80_columns(folder):
    import sellf

    for name in ("ppo-0", "sellf-1"):
        agent = sellf.load(folder / name)
        printed = str(agent)
        assert max(map(len, printed.splitlines())) < 80
        assert f"{agent.algorithm} on lending, opportunity, seed {agent.seed}" in printed
        assert "1,024 steps" in printed
        assert "rollout = 256" in printed
        assert repr(agent) == f"<Agent: {agent.algorithm} on lending, opportunity, seed {name[-1]}>"


def test_one_program_deploys_all_algorithms_as_each_would_be_alone(folder, runs):
    import sellf
    from sellf.training.evaluation import evaluate, evaluate_all

    agents = [sellf.load(folder / name) for name in ("ppo-0", "sellf-0")]
    for agent, found in zip(agents, evaluate_all(agents, 2, seed=5), strict=True):
        alone = evaluate(agent, deployments=2, seed=5)
        np.testing.assert_allclose(found.rewards, alone.rewards, rtol=1e-5)
        for view in ("true", "exact", "imputed", "accepted"):
            np.testing.assert_allclose(
                found.disparities[view], alone.disparities[view], rtol=1e-4, atol=1e-6
            )


def test_a_runs_report_shows_all_there_is_to_see(folder, tmp_path, capsys):
    out = tmp_path / "run.html"
    assert main(["report", str(folder / "sellf-0"), "-o", str(out)]) == 0
    assert str(out) in capsys.readouterr().err
    page = Reader(out.read_text())
    titles = [caption for caption in page.tables if caption.startswith("Figures of")]
    for words in (
        "Reward over deployment",
        "True disparity in opportunity over deployment",
        "True, imputed and naive disparity",
        "Acceptance under sellf",
        "Qualification under sellf",
        "Whom sellf accepts",
        "Reward of each rollout during training",
        "The disparity as sellf saw it during training",
    ):
        assert any(words in title for title in titles), words
    series = {
        row["series"][1] for row in page.tables["Figures of “True, imputed and naive disparity”"]
    }
    assert series == {"true", "true, exact", "imputed", "accepted only"}


def test_the_numbers_are_those_of_the_evaluations(runs):
    from sellf.report.compare import report

    page = Reader(report(runs, "sellf report runs"))
    table = next(rows for name, rows in page.tables.items() if name.startswith("Results of"))
    by_name = {row[" "][1]: row for row in table}
    assert set(by_name) == {"ppo", "sellf"}
    seeds = [run.evaluation for run in runs if run.spec.algorithm.name == "sellf"]
    rewards = [one.rewards.mean() for one in seeds]
    gaps = [one.disparities["true"].mean() for one in seeds]
    row = by_name["sellf"]
    assert row["runs"][1] == "2"
    assert float(row["reward"][0]) == pytest.approx(np.mean(rewards), rel=1e-6)
    # Half of the t interval over two seeds, as in a study's tables.
    low, high = stats.t.interval(0.95, 1, np.mean(rewards), stats.sem(rewards))
    assert float(row["± reward"][0]) == pytest.approx((high - low) / 2, rel=1e-4)
    assert float(row["true disparity"][0]) == pytest.approx(np.mean(gaps), rel=1e-6)
    assert by_name["ppo"]["imputed"][0] is None  # it imputes nothing
    curve = [
        row for row in page.tables["Figures of “Reward over deployment”"]
        if row["series"][1] == "sellf"
    ]  # fmt: skip
    paths = np.stack([one.by_time["reward"].mean(axis=0) for one in seeds])
    assert float(curve[-1]["resource"][0]) == pytest.approx(paths[:, -1].mean(), rel=1e-6)
    assert float(curve[-1]["high"][0]) == pytest.approx(
        paths[:, -1].mean() + stats.t.ppf(0.975, 1) * stats.sem(paths[:, -1]), rel=1e-6
    )


def test_the_policys_picture_is_the_policy(folder, runs):
    import sellf

    agent = sellf.load(folder / "sellf-0")
    run = next(run for run in runs if run.spec.algorithm.name == "sellf" and run.spec.seed == 0)
    for i, group in enumerate(agent.world.groups):
        chance = agent.probability(np.eye(10), [group] * 10)
        np.testing.assert_allclose(run.policy.chance[i], chance, rtol=1e-4)
    assert run.policy.axis == "score"
    assert run.policy.classes[0] == "0-10"


def test_people_of_a_world_without_a_score_are_told_apart_by_their_chances(jax):
    from sellf.envs.worlds import make_world
    from sellf.report.run_data import classes_of, policy_picture

    world = make_world("recidivism")
    axis, names, _ = classes_of(world)
    assert axis == "priors"
    accept = np.asarray(world.alpha)
    found = policy_picture(world, accept).chance
    group, priors = np.asarray(world.group), np.asarray(world.encoding.changing)
    share = np.zeros(world.profiles)
    share[np.asarray(world.arrivals.profile)] = np.diff(world.arrivals.cumulative, prepend=0)
    mine = (group == 1) & (priors == 2)
    expected = (share * accept)[mine].sum() / share[mine].sum()
    assert found[1, 2] == pytest.approx(expected, rel=1e-4)
    assert len(names) == found.shape[1]
    changed = world.encoding._replace(changes=2 * world.encoding.changes)
    import equinox as eqx

    other = eqx.tree_at(lambda w: w.encoding, world, changed)
    axis, names, member = classes_of(other)
    assert axis == "true chance of a good outcome"
    assert (
        np.array(names)[member][0]
        == f"{int(accept[0] * 10) / 10:g}-{int(accept[0] * 10 + 1) / 10:g}"
    )


def test_unfinished_runs_are_named_and_show_their_learning_only(folder, runs):
    from sellf.report.compare import report

    waiting = [run for run in runs if run.evaluation is None]
    assert [Path(run.name).name for run in waiting] == ["unfinished"]
    text = report(waiting, "sellf report x")
    page = Reader(text)
    assert "is not fully trained yet" in text
    assert f"sellf train --resume {waiting[0].name}" in text
    assert any("during training" in caption for caption in page.tables)
    assert not any("over deployment" in caption for caption in page.tables)


def test_the_bounds_terms_are_drawn_where_they_were_measured(runs):
    from sellf.report.compare import report

    run = next(run for run in runs if run.spec.algorithm.name == "sellf")
    length = len(run.metrics["reward"])
    measured = {
        "error": np.stack([np.linspace(-0.2, 0, length), np.linspace(0.1, 0.3, length)], axis=1),
        "divergence": np.full((length, 2), 4.0),
    }
    bare = {name: column for name, column in run.metrics.items() if name not in measured}
    without = Reader(report([replace(run, metrics=bare)], "sellf report x"))
    page = Reader(report([replace(run, metrics=run.metrics | measured)], "sellf report x"))
    captions = {caption for caption in page.tables if caption not in without.tables}
    assert len(captions) == 2
    error = page.tables["Figures of “Weighted error on the accepted, sellf”"]
    assert float(error[0]["error"][0]) == pytest.approx(0.2)
    root = page.tables["Figures of “Root of the Renyi divergence, sellf”"]
    assert {float(row["divergence"][0]) for row in root} == {2.0}


def test_names_of_groups_and_folders_are_text(runs):
    from sellf.report.compare import report

    def renamed(run):
        evaluation = run.evaluation and replace(run.evaluation, groups=(HOSTILE[0], HOSTILE[1]))
        return replace(run, evaluation=evaluation, name=HOSTILE[2])

    plain = Reader(report([replace(d, name="a") for d in runs], "sellf report x"))
    page = Reader(report(list(map(renamed, runs)), "sellf report x"))
    assert page.tags == plain.tags
    assert len(page.scripts) == 3


def test_runs_that_differ_in_settings_are_told_apart(runs):
    from sellf.report.configurations import configurations_of
    from sellf.training.spec import WorldSpec

    sellf = [run for run in runs if run.spec.algorithm.name == "sellf"]
    other = [
        replace(d, spec=replace(d.spec, config=replace(d.spec.config, beta_renyi=0.5)))
        for d in sellf
    ]
    names = [one.name for one in configurations_of([*runs, *other])]
    assert names == ["ppo", "sellf (beta_renyi 0.01)", "sellf (beta_renyi 0.5)"]
    other_world = WorldSpec("recidivism")
    worlds = [replace(run, spec=replace(run.spec, world=other_world)) for run in sellf]
    from sellf.report.compare import page

    assert page([*sellf, *worlds], "x").answer == "2 comparisons."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name what to report"),
        (["nowhere"], "there is no nowhere"),
        (["."], "holds no run"),
    ],
)
def test_paths_that_hold_nothing_are_answered_in_a_sentence(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def many(folder, target, count):
    """Make many runs out of a few."""
    sources = [folder / name for name in ("ppo-0", "sellf-0", "sellf-1")]
    for i in range(count):
        run = target / f"run-{i:03}"
        shutil.copytree(sources[i % 3], run)
        config = json.loads((run / "config.json").read_text())
        config = config | {"seed": i}
        (run / "config.json").write_bytes(files.sealed_json(config))
        path = run / "agent.safetensors"
        notes = files.notes(path) | {"run": from_folder(run, config).digest}
        path.write_bytes(files.tensors_to_bytes(files.read_tensors(path), **notes))


def test_thirty_runs_make_one_small_report(folder, tmp_path):
    from sellf import report

    many(folder, tmp_path, 30)
    text = report.runs([tmp_path])
    page = Reader(text)
    assert len(text.encode()) < LARGEST
    assert len(page.tables["Every run"]) == 30


@pytest.mark.slow
def test_a_report_of_a_hundred_runs_takes_less_than_ten_seconds(folder, tmp_path):
    (tmp_path / "runs").mkdir()
    many(folder, tmp_path / "runs", 100)
    command = [sys.executable, "-m", "sellf", "report", "runs", "-o", "report.html"]
    import os

    environment = {**os.environ, "XLA_FLAGS": "", "SELLF_CACHE": str(tmp_path / "cache")}
    taken = []
    for _ in range(2):  # the first time its program is compiled
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # Of the processor: what else the machine does is not ours to answer for.
    assert taken[1] < 10, taken


def test_policies_from_elsewhere_are_compared_on_the_same_populations(folder):
    import sellf
    from sellf import report

    def upper(observations):
        return observations[:, 5:10].any(axis=1)

    def half(observations):
        return np.full(len(observations), 0.5)

    policies = {"upper <half>": [upper, upper], "coin": half}
    html = report.runs([folder / "ppo-0"], policies=policies)
    page = Reader(html)
    table = next(rows for name, rows in page.tables.items() if name.startswith("Results of"))
    by_name = {row[" "][1]: row for row in table}
    assert list(by_name) == ["ppo", "upper <half>", "coin"]
    assert [by_name[name]["runs"][1] for name in by_name] == ["1", "2", "1"]
    world = sellf.load(folder / "ppo-0").world
    for name, policy in (("upper <half>", upper), ("coin", half)):
        alone = sellf.evaluate(policy, world, "opportunity", deployments=10)
        assert float(by_name[name]["reward"][0]) == pytest.approx(alone.reward, rel=1e-6)
        assert float(by_name[name]["true disparity"][0]) == pytest.approx(alone.disparity)
    assert "upper <half>" not in html  # a name is text
    assert "trained elsewhere" in html
    every = page.tables["Every run"]
    assert [row["steps"][1] for row in every][1:] == [every[1]["steps"][1]] * 3 != ["0"] * 3
    assert any("Whom upper" in title for title in page.tables)


def test_policies_from_elsewhere_need_finished_runs_of_one_task(folder):
    from sellf import report
    from sellf.errors import InputError

    with pytest.raises(InputError, match="of 0 worlds and notions"):
        report.runs([folder / "unfinished"], policies={"coin": lambda x: np.ones(len(x))})
