"""Figures: not empty, the same bytes each time, and honest about what they are."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("matplotlib")

from matplotlib.image import imread

from sellf.errors import InputError
from sellf.studies import figures, spec
from sellf.studies.plots import choose, learning, outcome, style, worlds
from sellf.studies.provenance import QUICK
from sellf.studies.records import Results

OF_RUNS = [name for name in spec.FIGURES if name != "worlds"]


def texts(figure):
    """Everything that is written in a figure."""
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in figure.findobj(Text)).replace("\n", " ")


@pytest.mark.parametrize("name", OF_RUNS)
def test_every_figure_shows_something_and_is_the_same_twice(ablation, results, tmp_path, name):
    study = results if name in ("deployment", "tradeoff", "timing") else ablation
    first = figures.write(study, tmp_path / "a", [name])
    again = figures.write(study, tmp_path / "b", [name])
    assert {path.suffix for path in first} == {".svg", ".png"}
    for path, other in zip(first, again, strict=True):
        assert path.read_bytes() == other.read_bytes()
        if path.suffix == ".svg":
            assert b"<dc:date>" not in path.read_bytes()
        else:
            pixels = imread(path)[..., :3]
            assert pixels.std() > 0.05
            # In greyscale too: more than paper and one ink.
            assert len(np.unique(np.round(pixels.mean(axis=2), 1))) > 3


def test_users_own_settings_of_matplotlib_change_nothing(results, tmp_path):
    import matplotlib as mpl

    plain, _ = figures.write(results, tmp_path / "a", ["timing"])
    with mpl.rc_context({"font.size": 31, "axes.facecolor": "red"}):
        changed, _ = figures.write(results, tmp_path / "b", ["timing"])
        assert mpl.rcParams["font.size"] == 31
    assert plain.read_bytes() == changed.read_bytes()


@pytest.mark.parametrize("quick", [True, False])
def test_every_figure_says_how_many_runs_are_behind_it_and_whether_it_is_quick(results, quick):
    study = replace(results, quick=quick)
    with style.drawing():
        for name in OF_RUNS:
            for _, figure in figures._draw(study, name):
                if figure is None:
                    continue
                said = texts(figure)
                assert (QUICK in said) == quick
                assert re.search(r"3 training seeds, 1,024 steps", said)
        assert (QUICK in texts(worlds.distributions(study, "lending", {}))) == quick


def test_the_worlds_need_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(worlds, "FEATURES", {"recidivism": worlds.FEATURES["recidivism"]})
    first = figures.write(Results("paper-main", False, []), tmp_path / "a", ["worlds"])
    again = figures.write(Results("paper-main", False, []), tmp_path / "b", ["worlds"])
    assert [path.name for path in first] == ["worlds-recidivism.svg", "worlds-recidivism.png"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]


def test_the_worlds_show_the_data():
    from sellf.envs.tables import fico

    with style.drawing():
        figure = worlds.distributions(Results("x", False, []), "lending", {})
    top, bottom = figure.axes[0], figure.axes[2]
    table = fico()
    order = [table.races.index("Black"), table.races.index("White")]
    heights = np.array([[bar.get_height() for bar in group] for group in top.containers])
    np.testing.assert_allclose(heights, table.p_class[order], atol=1e-5)
    rates = np.array([line.get_ydata() for line in bottom.get_lines()])
    np.testing.assert_allclose(rates, table.p_repay[order], atol=1e-5)


def test_curves_are_means_over_seeds(ablation):
    algorithm, groups = choose.by_setting(ablation.cells, "beta_renyi")
    assert algorithm == "sellf"
    assert list(groups) == [0.0, 0.1]
    records = groups[0.1]
    x, mean, _ = choose.learning_curve(records, [run.metrics["renyi"] for run in records])
    np.testing.assert_array_equal(x, [256, 512, 768, 1024])
    np.testing.assert_allclose(mean, np.mean([run.metrics["renyi"] for run in records], axis=0))


def test_all_else_is_held_as_it_was_selected(results):
    _, groups = choose.by_setting(results.cells, "beta_renyi")
    runs = [run for records in groups.values() for run in records]
    assert {run.spec.hyperparameters["beta_disparity"] for run in runs} == {5.0}
    assert {value: len(records) for value, records in groups.items()} == {0.0: 1, 0.1: 3}


def test_deployment_draws_the_mean_over_deployments_and_seeds(results):
    cells = results.cells[:2]
    with style.drawing():
        figure = outcome.deployment(results, cells)
    drawn = figure.axes[0].get_lines()[0].get_ydata()
    every = np.concatenate([run.evaluation.by_time["reward"] for run in cells[0].final])
    np.testing.assert_allclose(drawn, every.mean(axis=0), rtol=1e-5)


def test_runs_that_differ_in_omega_are_joined(results, cells):
    def at(omega, i):
        run = cells["each"][i].final[0]
        config = replace(run.spec.config, omega=omega)
        return replace(run, spec=replace(run.spec, config=config))

    runs = [at(omega, 3) for omega in (0.02, 0.05, 0.1)]
    swept = replace(cells["sellf"], chosen={"omega": 0.05}, grid=runs, final=runs[1:2])
    with style.drawing():
        figure = outcome.tradeoff(results, [cells["ppo"], swept])
    said = texts(figure)
    assert "sellf by omega" in said
    assert all(f" {omega} " in f" {said} " for omega in ("0.02", "0.05", "0.1"))


def test_panels_are_one_for_each_group(ablation):
    with style.drawing():
        figure = learning.weights(ablation, ablation.cells)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        f"{what}, {group}"
        for what in ("largest weight", "smallest acceptance before")
        for group in ("Black", "White")
    ]


def test_a_figure_that_the_runs_cannot_give_is_refused(results, tmp_path):
    only = replace(results, cells=results.cells[:1])
    with pytest.raises(InputError, match="label predictor"):
        figures.write(only, tmp_path, ["weights"])
    with pytest.raises(InputError, match="ablation-renyi"):
        figures.write(results, tmp_path, ["ablation-reny"])
    with pytest.raises(InputError, match="sellf study run"):
        figures.write(replace(results, cells=[]), tmp_path, ["timing"])
    assert list(tmp_path.iterdir()) == []


def test_a_deployment_shows_who_is_accepted_or_how_qualified_they_become(results):
    cells = [cell for cell in results.cells if cell.notion == "opportunity"]
    with style.drawing():
        figure = outcome.deployment(results, cells)
        later = outcome.deployment(results, [replace(c, notion="qualification") for c in cells])
    assert figure is not None
    assert later is not None
    _, _, groups = figure.axes
    drawn = np.concatenate([line.get_xdata() for line in groups.lines])
    for cell in cells:
        shares = np.mean([run.evaluation.acceptances for run in cell.final], axis=(0, 1))
        for share in shares:
            assert np.isclose(drawn, share).any()
    _, _, qualified = later.axes
    ends = [line.get_ydata()[-1] for line in qualified.lines]
    names = cells[0].final[0].evaluation.groups
    assert len(ends) == len(cells) * len(names)
    last = [run.evaluation.by_time["qualification"][:, -1, 0] for run in cells[0].final]
    assert np.isclose(ends, np.mean(last)).any()
    assert all(name in texts(later) for name in names)
