"""Rules forecast from sums, against every row by itself; and policies that accept some by lot."""

from dataclasses import replace

import numpy as np
import pytest

import sellf
from sellf.fairness.notions import define
from sellf.offline.advantage import Outlook
from sellf.offline.bins import binned
from sellf.offline.encoding import Encoding, Feature, learn_encoding
from sellf.offline.models import Linear
from sellf.offline.policy import LearnedPolicy
from sellf.offline.segments import segments


@pytest.fixture(scope="module")
def outlook():
    rng = np.random.default_rng(1)
    codes = rng.integers(2, size=500)
    score = rng.random(500)
    return Outlook(
        label=score,
        score=score,
        group=np.eye(2)[codes],
        square=score * 4,
        furthest=np.full(500, 3.0),
        weak=np.zeros(500),
        codes=codes,
        cost=0.4,
        rate=define("opportunity").alone,
    )


@pytest.mark.parametrize("notion", ["opportunity", "demographic", "accuracy", "predictive-parity"])
def test_sums_forecast_what_rows_come_to(outlook, notion):
    outlook = replace(outlook, rate=define(notion).alone)
    margin = np.random.default_rng(2).normal(size=500)
    thresholds = np.array([-1.0, 0.0, 0.5])
    by_bin = np.array([0.0, 0.2, 0.7, 1.0])
    chance = by_bin[(margin[:, None] > thresholds).sum(axis=1)]
    found = binned(outlook, margin, thresholds).forecast(by_bin[None], 1000, 0.05)
    utility, _ = outlook.utilities(chance)
    assert found.disparity[0] == pytest.approx(np.ptp(utility))
    assert found.reward[0] == pytest.approx(outlook.reward(chance))
    assert found.bound[0] > found.disparity[0]


def test_more_people_make_the_forecast_bound_smaller(outlook):
    sums = binned(outlook, outlook.score, np.array([0.3]))
    few, many = (sums.forecast(np.array([[0.0, 1.0]]), n, 0.05).bound[0] for n in (500, 50_000))
    assert many < few


def test_people_of_whom_nothing_is_known_widen_the_forecast(outlook):
    margin, rule = outlook.score, np.array([[0.0, 1.0]])
    weak = np.zeros(500)
    weak[(margin < 0.3) & (outlook.codes == 0)] = 1.0
    bounds = [
        binned(replace(outlook, weak=known), margin, np.array([0.3])).forecast(rule, 500, 0.05)
        for known in (np.zeros(500), weak)
    ]
    # The rejected of one group: all of their outcomes bad raises its utility to 1, all good lowers.
    own = outlook.codes == 0
    chance = (margin > 0.3) * 1.0
    utility = (chance * margin)[own].sum() / margin[own].sum()
    raised = utility * (weak * margin)[own].sum() / margin[own].sum()
    lowered = utility * (weak * (1 - margin))[own].sum() / margin[own].sum()
    added = float(bounds[1].bound[0] - bounds[0].bound[0])
    assert added == pytest.approx(max(raised, lowered))


@pytest.fixture
def lottery():
    encoding = Encoding((Feature("x"),))
    model = Linear(np.array([1.0, 0.0, 0.0]))
    return LearnedPolicy("logistic", encoding, model, 2.5, band=1.0, within=0.3)


def test_whoever_is_just_below_the_mark_is_accepted_by_lot(lottery, tmp_path):
    people = {"x": np.array([0.0, 1.0, 2.0, 3.0])}
    assert lottery.probability(people).tolist() == [0.0, 0.0, 0.3, 1.0]
    read = sellf.load_policy(lottery.save(tmp_path / "policy"))
    assert read.probability(people).tolist() == [0.0, 0.0, 0.3, 1.0]
    assert "30% of those just below its mark, at random" in str(read)


def test_a_scorecard_says_who_takes_part_in_the_lottery():
    point = np.log(2) / 20
    encoding = Encoding((Feature("x", edges=(1.0, 2.0)),))
    model = Linear(np.array([5 * point, 4 * point, 0.0, 0.0]))
    card = LearnedPolicy("scorecard", encoding, model, 8.5 * point, band=4 * point, within=0.5)
    assert card.pass_mark == 9
    assert card.marks()[1] == "of those with +5 to +8, 50% are accepted at random"
    assert card.probability({"x": np.array([0.0, 1.0, 2.0])}).tolist() == [0.0, 0.5, 1.0]


def test_segments_say_who_is_accepted_now_and_then():
    size = 100
    columns = {"job": np.repeat(["a", "b"], size), "income": np.linspace(0, 1000, 2 * size)}
    codes = np.tile([0, 1], size)
    now, new = np.full(2 * size, 0.5), np.repeat([0.2, 0.9], size)
    found = segments(columns, codes, ["B", "W"], now, new)
    own = {(one.feature, one.value, one.group): one for one in found}
    assert own["job", "a", "B"].change == pytest.approx(-0.3)
    assert own["job", "b", "W"].change == pytest.approx(0.4)
    assert own["job", "b", "W"].people == size // 2
    assert own["income", "750 or more", "B"].proposed == pytest.approx(0.9)
    assert sum(one.people for one in found if one.feature == "income") == 2 * size


def test_a_scorecard_cuts_counts_that_are_mostly_nought():
    counts = np.array([0.0] * 95 + [1.0, 2.0, 2.0, 3.0, 5.0])
    encoding = learn_encoding({"offences": counts, "year": np.full(100, 2014.0)}, bins=True)
    assert encoding.features[0].edges == (1.0,)
    model = Linear(np.array([-1.0, 0.0, 0.0, 0.0, 0.0]))
    rows = LearnedPolicy("scorecard", encoding, model, -0.5).points()
    assert rows == [("offences", "below 1", 0), ("offences", "1 or more", -29)]
