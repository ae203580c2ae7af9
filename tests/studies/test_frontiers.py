"""Frontiers in studies: computed once, kept with the runs, shown in tables, figures and reports."""

import json

import numpy as np
import pytest

import sellf
from sellf.errors import InputError
from sellf.report.studies import report
from sellf.studies import frontiers, plan, tables
from sellf.studies.results import results as results_of
from sellf.studies.store import open_store
from sellf.studies.summary import rows

from . import tiny
from .tiny import study


def fill(store):
    """Put every run of the study into a store: better ones with more disparity."""
    for group in plan.groups(study()):
        for i in range(len(group.varied)):
            for run in group.runs(study(), i, study().seeds):
                found = tiny.evaluation(1_500.0 + 10 * i, 0.04 + 0.05 * i)
                store.put(plan.key(run), tiny.folder(run, found))


@pytest.fixture(scope="module")
def curve():
    """The frontier of lending, with nothing searched but what suggests itself."""
    before, frontiers.STARTS = frontiers.STARTS, 0
    (group, *_) = plan.groups(study())
    yield frontiers.computed(group.world, "opportunity")
    frontiers.STARTS = before


@pytest.fixture
def known(tmp_path, curve, monkeypatch):
    store = open_store(tmp_path / "store")
    fill(store)
    calls = []
    monkeypatch.setattr(frontiers, "computed", lambda world, notion: calls.append(notion) or curve)
    frontiers.compute(store, plan.groups(study()), lambda text: None)
    return store, calls


def test_the_curve_is_that_of_the_planner_by_the_mean_over_time(curve):
    best = sellf.plan("lending", "opportunity", 0.05, starts=0)
    assert curve.reward_at(best.mean) == pytest.approx(best.reward, abs=2)
    assert curve.reward_at(0.9) == pytest.approx(1661.0, abs=0.1)
    assert curve.reward_at(-0.1) is None
    assert (np.diff(curve.disparity) >= 0).all()
    assert (np.diff(curve.reward) >= 0).all()


def test_a_frontier_is_computed_once(known):
    store, calls = known
    assert calls == ["opportunity"]
    frontiers.compute(store, plan.groups(study()), lambda text: None)
    assert calls == ["opportunity"]


def test_regret_is_what_the_frontier_earns_more_at_the_exact_disparity(known, curve):
    found = results_of(study(), known[0])
    for row in rows(found):
        assert row.regret == pytest.approx(curve.reward_at(row.exact.mean) - row.reward.mean)
        assert f"| {row.regret:,.1f} |" in tables.markdown(found)
    assert [line["regret"] for line in tables.cells(found)] == [row.regret for row in rows(found)]
    assert "frontier: the best plans in the true law" in report(found)


def test_without_a_frontier_there_is_no_regret(tmp_path):
    store = open_store(tmp_path / "store")
    fill(store)
    assert {row.regret for row in rows(results_of(study(), store))} == {None}


def test_a_damaged_frontier_is_told_of(known):
    store, _ = known
    (path,) = (store.folder / frontiers.FOLDER).iterdir()
    content = json.loads(path.read_text())
    content["reward"] = content["reward"][1:]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="damaged"):
        results_of(study(), store)
