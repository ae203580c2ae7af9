"""The report of a study: its tables, its trade-offs, and what was selected."""

from dataclasses import replace

import numpy as np
import pytest

from sellf import report
from sellf.report.page import LARGEST
from sellf.studies import summary
from tests.report.pages import Reader

pytest.importorskip("jax")


def test_a_study_shows_tables_trade_offs_and_what_was_selected(results):
    text = report.study(results)
    page = Reader(text)
    assert len(text.encode()) < LARGEST
    table = page.tables["Opportunity: true disparity and reward of the selected settings"]
    by_name = {row["algorithm"][1]: row for row in table}
    for cell in results.cells[:2]:
        gaps = [record.evaluation.disparity for record in cell.final]
        row = by_name[cell.algorithm]
        assert float(row["disparity"][0]) == pytest.approx(np.mean(gaps), rel=1e-6)
    selected = page.tables["Selected hyperparameters"]
    assert [row["beta_disparity"][1] for row in selected] == ["10.0", "—"] * 2
    assert [row["tried"][1] for row in selected] == ["2", "1", "2", "1"]
    trade = page.tables["Figures of “Disparity against reward: lending, opportunity”"]
    kinds = {row["series"][1] for row in trade}
    assert kinds >= {"sellf: tried", "ppo: tried", "sellf", "ppo", "Pareto front"}
    assert "first &lt;look&gt;" in text


def test_the_best_cells_are_marked(results):
    text = report.study(results)
    start = text.index("Opportunity: true disparity and reward")
    table = text[text.index("<tbody>", start) : text.index("</tbody>", start)]
    # The same cells as in the study's own tables: rewards are equal to the digit that is shown.
    rows = [row for row in summary.rows(results) if row.cell.notion == "opportunity"]
    assert sorted(row.best_disparity for row in rows) == [False, True]
    for row in rows:
        name = f"<bdi>{row.cell.algorithm}</bdi>"
        cells = next(line for line in table.split("<tr>") if name in line).split("<td")
        assert ("best" in cells[1], "best" in cells[3]) == (row.best_disparity, row.best_reward)


def test_a_study_that_was_shrunk_says_so_at_the_top(results):
    text = report.study(results)
    assert "A first look only" in text[: text.index("<main>")]
    full = report.study(replace(results, quick=False))
    assert "first look only" not in full[: full.index("<main>")]


def test_a_study_under_way_names_what_is_missing(results):
    waiting = replace(results.cells[0], final=[], grid=[])
    text = report.study(replace(results, cells=[waiting, *results.cells[1:]]))
    assert "Not finished" in text
    nothing = report.study(replace(results, cells=[waiting]))
    Reader(nothing)
    assert "Nothing is finished yet" in nothing


def test_no_point_of_the_pareto_front_is_beaten():
    from sellf.studies.statistics import pareto

    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.integers(0, 6, (8, 2)).astype(float)
        front = pareto(points[:, 0].tolist(), points[:, 1].tolist())

        def beaten(i, points=points):
            better = (points[:, 0] <= points[i, 0]) & (points[:, 1] >= points[i, 1])
            return (better & (points != points[i]).any(axis=1)).any()

        slow = {tuple(points[i]) for i in range(8) if not beaten(i)}
        assert {tuple(points[i]) for i in front} == slow
        assert len(front) == len(slow)


def test_a_large_study_stays_small(results):
    base = results.cells[:2]
    algorithms = ("ppo", "pocar", "pocar-oracle", "elbert", "focops", "sellf", "sellf-semi")
    cells = [
        replace(
            base[0], world=world, notion=notion, algorithm=algorithm,
            grid=[*base[0].grid] * 6, final=[*base[0].final] * 5,
        )
        for world in ("lending", "recidivism", "school", "school-continuous")
        for notion in ("opportunity", "accuracy", "qualification")
        for algorithm in algorithms
    ]  # fmt: skip
    text = report.study(replace(results, cells=cells))
    assert len(text.encode()) < LARGEST
    assert text.count("<figure ") == 12 * 4


def test_the_command_reports_a_study_by_its_name_or_file(results, tmp_path, monkeypatch, capsys):
    from sellf.cli import main
    from sellf.studies.run import run
    from sellf.studies.spec import load
    from sellf.studies.store import open_store
    from tests.studies.tiny import TEXT, FakeEngine, Outcome, folder

    deployed = results.cells[0].final[0].evaluation
    engine = FakeEngine(lambda job: Outcome(job, folder(job.run, deployed)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SELLF_STORE", raising=False)
    (tmp_path / "mine.toml").write_text(TEXT)
    assert main(["report", "mine.toml"]) == 2
    assert "sellf study run mine.toml" in capsys.readouterr().err
    run(load("mine.toml"), open_store(tmp_path / "store"), engine)
    assert main(["report", "mine.toml", "--store", "store", "-o", "page.html"]) == 0
    text = (tmp_path / "page.html").read_text()
    Reader(text)
    assert "sellf study run mine.toml --store store" in text
    assert "sellf report mine.toml --store store -o page.html" in text
    capsys.readouterr()
    assert main(["report", "paper-main", "--quick", "--store", "store"]) == 2
    assert "sellf study run paper-main --quick --store store" in capsys.readouterr().err
    assert main(["report", ".", "--quick"]) == 2
    assert "for the report of a study" in capsys.readouterr().err


def test_a_study_that_selects_nothing_shows_every_configuration(results):
    one = results.cells[0]
    cells = [
        replace(one, chosen={"omega": omega}, grid=one.final[:1], final=[one.final[i]] * 2)
        for i, omega in enumerate((0.05, 0.2))
    ]
    text = report.study(replace(results, cells=cells))
    page = Reader(text)
    table = page.tables["Opportunity: true disparity and reward of the selected settings"]
    names = ["sellf (omega 0.05)", "sellf (omega 0.2)"]
    assert [row["algorithm"][1] for row in table] == names
    gaps = [cell.final[0].evaluation.disparity for cell in cells]
    assert [float(row["disparity"][0]) for row in table] == pytest.approx(gaps, rel=1e-6)
    trade = page.tables["Figures of “Disparity against reward: lending, opportunity”"]
    assert {row["series"][1] for row in trade} == {*names, "Pareto front"}
    assert "none was selected" in text
    assert "What was run" in text
