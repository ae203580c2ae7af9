"""The coverage study finds what is wrong, and only that; what it takes for the truth is true."""

import numpy as np
import pytest

from coverage_study.cells import OTHERS
from coverage_study.cells import STUDIED as NOTIONS


def test_there_are_enough_cells_with_the_sizes_that_were_once_missed():
    from coverage_study.cells import catalogue

    cells = catalogue()
    assert len(cells) >= 400
    assert [cell.number for cell in cells] == list(range(len(cells)))
    assert {(907, 1380), (497, 1000), (497, 497), (5000, 5000)} <= {cell.sizes for cell in cells}
    assert len({cell.sizes for cell in cells if cell.kind == "random sizes"}) == 200
    assert {len(cell.sizes) for cell in cells} == {2, 3, 6, 30}
    assert min(min(cell.sizes) for cell in cells) == 30
    assert max(max(cell.sizes) for cell in cells) == 40_000


@pytest.mark.parametrize("law", ["wide", "low", "halves", "rule 10%", "no overlap"])
def test_the_truth_is_that_of_many_people(law):
    from coverage_study.cells import Cell
    from coverage_study.worlds import draw, truths, world

    # Outcomes of the rejected are in the log only where the audit may trust them.
    cell = Cell(
        "", (400_000, 400_000), rates=(0.1, 0.7), law=law, knowledge="trusted", score="none"
    )
    groups = world(cell)
    log = draw(cell, groups, np.random.default_rng(0))
    for group in (0, 1):
        mine = log["group"] == group
        a, y = log["accepted"][mine], log["outcome"][mine]
        seen = [y.mean(), (a == y).mean(), a[y == 1].mean(), a.mean()]
        seen += [y[a == 1].mean(), a[y == 0].mean()]
        for notion, value in zip((*NOTIONS, *OTHERS[:2]), seen, strict=True):
            assert truths(groups)[notion][group] == pytest.approx(value, abs=0.01), notion


class Told:
    """An audit that says what it is told to."""

    warnings = ()

    def __init__(self, low, high, omega, verdict, groups):
        from sellf.audit.interval import Interval

        self.difference = self.signed = Interval(low, low, high)
        self.omega, self.verdict = omega, verdict
        self.by_group = {name: Interval(*ends) for name, ends in enumerate(groups)}


def test_each_way_of_being_wrong_is_counted():
    from coverage_study.cells import Cell
    from coverage_study.measure import Tally
    from coverage_study.worlds import world

    cell = Cell("", (10, 10), law="constant", shares=(0.1, 0.3), knowledge="decisions")
    tally = Tally(cell, "demographic", world(cell))
    low, high = tally.tolerance(1), tally.tolerance(0)
    assert low < tally.counts.truth < high
    right, wrong = [(0, 0, 1), (0, 0, 1)], [(0, 0, 1), (0.4, 0.4, 1)]
    tally.add([Told(0.1, 0.3, low, "undetermined", right)], judged=True)
    tally.add([Told(0.0, 0.19, low, "fair", right)], judged=True)
    tally.add([Told(0.21, 0.3, high, "unfair", wrong)], judged=True)
    tally.add([Told(0.0, 0.3, low, "fair", right)], judged=True)
    found = tally.done()
    assert (found.logs, found.above, found.below, found.missed) == (4, 1, 1, 2)
    assert (found.groups_missed, found.worst_group) == (1, 1)
    assert (found.judged, found.wrong_verdicts, found.contradictions) == (4, 3, 1)


def test_more_logs_of_a_cell_add_up_to_what_all_of_them_say():
    from coverage_study.cells import catalogue
    from coverage_study.measure import Counts, measure

    cell = next(cell for cell in catalogue() if cell.kind == "other notions")
    whole = [Counts(**row) for row in measure(cell, most=6, least=6)]
    first = [Counts(**row) for row in measure(cell, most=2, least=2)]
    more = [Counts(**row) for row in measure(cell, first=2, most=6, least=6)]
    assert [counts.notion for counts in whole] == list(OTHERS)
    for one, two, all_of_them in zip(first, more, whole, strict=True):
        added = one.plus(two)
        assert added.width == pytest.approx(all_of_them.width)
        added.width = all_of_them.width
        assert added == all_of_them


def test_every_rate_of_a_notion_has_to_hold():
    from coverage_study.cells import Cell
    from coverage_study.measure import Tally
    from coverage_study.worlds import world

    cell = Cell("", (10, 10), law="constant", shares=(0.1, 0.3), score="none")
    tally = Tally(cell, "equalized-odds", world(cell))
    assert tally.counts.truth == pytest.approx(0.2)
    right, wrong = [(0, 0, 1), (0, 0, 1)], [(0, 0, 1), (0.4, 0.4, 1)]
    for opportunity, other in ((right, right), (wrong, right), (right, wrong)):
        told = Told(0.1, 0.3, 0.2, "undetermined", right)
        told.parts = {
            "opportunity": Told(0.1, 0.3, 0.2, "undetermined", opportunity),
            "false-positive-rate": Told(0.1, 0.3, 0.2, "undetermined", other),
        }
        tally.add([told], judged=True)
    assert tally.done().by_group == [0, 2]


def test_holm_and_the_exact_test():
    from coverage_study.report import at_least, holm

    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert at_least(0, 100) == 1
    assert at_least(1, 10) == pytest.approx(1 - 0.95**10)


def test_a_run_that_was_ended_goes_on_and_says_the_same(tmp_path):
    import measure_coverage
    from coverage_study.store import NAME

    how = ["--cells", "26:28", "--logs", "4", "--least", "4", "--workers", "1"]
    for name in ("ended", "whole"):
        folder = tmp_path / name
        runs = ["--runs", str(folder / "runs")]
        assert measure_coverage.main([str(folder), *how, *runs]) == 0
        kept = folder / "runs" / NAME
        if name == "ended":
            first, second = kept.read_text().splitlines()
            kept.write_text(first + "\n" + second[:40])
            assert measure_coverage.main([str(folder), *how, *runs]) == 0
            assert kept.read_text().startswith(first)
    pages = [(tmp_path / name / "coverage.csv").read_text() for name in ("ended", "whole")]
    assert pages[0] == pages[1]
    assert len(pages[0].splitlines()) == 3


@pytest.mark.parametrize("logs", [12, 60, 400, 2000])
def test_what_a_test_would_find_is_found_with_the_chance_that_is_said(logs):
    from scipy.stats import binom

    from coverage_study.report import at_least, detectable

    level = 0.05 / 1900
    share = detectable(logs, level)
    too_many = np.array([at_least(misses, logs) <= level for misses in range(logs + 1)])
    found = binom.pmf(np.arange(logs + 1), logs, share)[too_many].sum()
    assert found == pytest.approx(0.8, abs=1e-6)
    assert detectable(3, level) == 1.0


def test_what_is_not_measured_again_keeps_its_figures(tmp_path):
    """By cell and notion; where nothing changed, what has more logs counts."""
    from coverage_study.cells import catalogue
    from coverage_study.measure import Counts
    from coverage_study.report import write
    from coverage_study.store import from_table, joined

    cells = catalogue()[:3]
    done = {
        cell.number: [
            Counts(cell.number, notion, 0.1, logs=40, above=1, judged=9, by_group=[0, 2], width=0.3)
            for notion in cell.notions
        ]
        for cell in cells
    }
    write(tmp_path, cells, done, "a command")
    before = from_table(tmp_path / "coverage.csv", cells)
    assert before[1]["accuracy"] == done[1][1].__class__(
        **{**vars(done[1][1]), "by_group": [2], "efficient": None}
    )
    again = {1: [Counts(1, notion, 0.1, logs=10) for notion in cells[1].notions]}
    both = joined(again, before, {"demographic"}, {1, 2})
    assert sorted(both) == [0, 1, 2]
    logs = {one.notion: one.logs for one in both[1]}
    assert logs == {"qualification": 10, "accuracy": 10, "opportunity": 10, "demographic": 40}
    assert {one.logs for number in (0, 2) for one in both[number]} == {40}
    # What changed and was not measured again is in the table alone, and said to be of before.
    older = {(one.cell, one.notion) for some in both.values() for one in some if one.earlier}
    assert older == {(2, notion) for notion in ("qualification", "accuracy", "opportunity")}
    write(tmp_path, cells, both, "a command")
    assert "3 lines, a notion of a cell each, were not measured again" in (
        tmp_path / "coverage.md"
    ).read_text("utf-8")
    kept = from_table(tmp_path / "coverage.csv", cells)
    assert {(n, one.notion) for n in kept for one in kept[n].values() if one.earlier} == older
