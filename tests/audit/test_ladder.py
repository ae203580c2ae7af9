"""The ladder of beliefs: bounds as linear programs find them, and what holds when it is true."""

import numpy as np
import pytest
from scipy.optimize import linprog

import sellf
from sellf.audit import instrument
from sellf.audit.beliefs import NO_BETTER, NO_WORSE, NOTHING, ends, hidden_factors
from sellf.audit.saved import read
from sellf.errors import InputError
from sellf.fairness.notions import TABLE, Counts
from sellf.logs.person import Person
from sellf.report import audit as page
from tests.audit.logs import COLUMNS, lending, opportunity_gap

HIDING = ["qualification", "accuracy", "opportunity", "false-positive-rate"]
BARE = {"group": "race", "decision": "approved", "outcome": "repaid"}


def person(cells):
    """Return a group whose strata have so many accepted and good, accepted and bad, rejected."""
    columns = [[], [], []]
    for k, (good, bad, rejected) in enumerate(cells):
        n = good + bad + rejected
        columns[0] += [1] * (good + bad) + [0] * rejected
        columns[1] += [1] * good + [0] * (bad + rejected)
        columns[2] += [0.1 + 0.2 * k] * n
    a, ay, f = (np.array(column, dtype=float) for column in columns)
    return Person(a, ay, None, f)


def extreme(rate, cells, limits, sign):
    """Return the least or largest rate by linear programs: h is how many rejected are good.

    A rate part / whole is below t for some h if part - t whole is; t is found by bisection.
    """
    n = sum(map(sum, cells))
    a = sum(good + bad for good, bad, _ in cells)
    ay = sum(good for good, _, _ in cells)

    def objective(t):
        (c, p), (d, q) = (
            (side.people * n + side.accepted * a + side.accepted_positive * ay, side)
            for side in rate.sums
        )
        slope = p.rejected_positive - t * q.rejected_positive
        found = linprog([sign * slope] * len(cells), bounds=limits)
        return sign * (c - t * d) + found.fun

    low, high = 0.0, 1.0
    for _ in range(40):
        t = (low + high) / 2
        # sign 1: the least part - t whole is at most 0 above the least rate.
        if (objective(t) <= 0) == (sign == 1):
            high = t
        else:
            low = t
    return (low + high) / 2


def limits_of(belief, cells):
    """Return the range of good outcomes among the rejected of each stratum, from what is said."""
    found = []
    for good, bad, rejected in cells:
        m = good / (good + bad)
        if belief is NOTHING:
            found.append((0, rejected))
        elif belief is NO_BETTER:
            found.append((0, m * rejected))
        elif belief is NO_WORSE:
            found.append((m * rejected, rejected))
        else:
            # The odds of acceptance given the outcome, good / h or bad / (r - h), are within a
            # factor of 2 of those of all.
            odds = (good + bad) / rejected
            least = max(good / (2 * odds), rejected - 2 * bad / odds)
            most = min(2 * good / odds, rejected - bad / (2 * odds))
            found.append((least, most))
    return found


@pytest.mark.parametrize("belief", [NOTHING, NO_BETTER, NO_WORSE, hidden_factors(2.0)])
@pytest.mark.parametrize("notion", HIDING)
def test_ranges_under_a_belief_are_those_of_linear_programs(belief, notion):
    rng = np.random.default_rng(0)
    rate = TABLE[notion].alone
    for _ in range(3):
        cells = [tuple(rng.integers(60, 300, 3).tolist()) for _ in range(3)]
        found = ends(rate, person(cells), belief)
        limits = limits_of(belief, cells)
        assert found.low == pytest.approx(extreme(rate, cells, limits, 1), abs=1e-6)
        assert found.high == pytest.approx(extreme(rate, cells, limits, -1), abs=1e-6)


def test_examiners_bounds_are_those_of_a_linear_program():
    rng = np.random.default_rng(1)
    for _ in range(30):
        k = int(rng.integers(2, 6))
        n = rng.integers(50, 100, k).astype(float)
        accepted = np.floor(n * rng.random(k))
        positive = np.floor(accepted * rng.uniform(0.4, 0.7))
        cases = instrument.Cases(n, accepted, positive, np.zeros(k))
        # Variables: q and the hidden good outcomes of every examiner, as shares of the cases.
        equal = np.hstack([-np.ones((k, 1)), np.eye(k)])
        bounds = [(0, 1), *((0, (1 - a / m)) for a, m in zip(accepted, n, strict=True))]
        how = {"A_eq": equal, "b_eq": -positive / n, "bounds": bounds}
        cost = np.eye(k + 1)[0]
        least, most = linprog(cost, **how), linprog(-cost, **how)
        low, high = instrument.identified(cases)
        if low > high:
            assert least.status == 2  # infeasible
            continue
        assert (low, high) == pytest.approx((least.fun, -most.fun), abs=1e-8)
        both = instrument.interval(TABLE["qualification"].alone, cases, 0.05)
        assert both is not None
        assert both[0] <= low <= high <= both[1]


@pytest.mark.parametrize("notion", HIDING)
def test_rates_under_examiners_are_those_of_a_linear_program(notion):
    """With so many cases that chance hardly counts, the interval is the identified range."""
    rng = np.random.default_rng(2)
    rate = TABLE[notion].alone
    for _ in range(4):
        k, n = int(rng.integers(2, 5)), 4e9
        share = rng.uniform(0.3, 0.9, k)
        positive = np.floor(n * share * rng.uniform(0.55, 0.6))
        accepted = np.floor(n * share)
        cases = instrument.Cases(np.full(k, n), accepted, positive, np.zeros(k))
        hidden = [(0, 1 - a / n) for a in accepted]
        equal = np.hstack([-np.ones((k, 1)), np.eye(k)])
        how = {"A_eq": equal, "b_eq": -positive / n, "bounds": [(0, 1), *hidden]}
        least, most = linprog(np.eye(k + 1)[0], **how), linprog(-np.eye(k + 1)[0], **how)
        good = positive.sum() / (k * n)
        ends_ = []
        for q in (least.fun, -most.fun):
            counts = Counts(1.0, accepted.sum() / (k * n), good, q - good)
            ends_.append(rate.of.total(counts) / rate.among.total(counts))
        found = instrument.interval(rate, cases, 0.05)
        assert found == pytest.approx((min(ends_), max(ends_)), abs=1e-3)


def test_a_lenient_examiner_settles_what_nothing_else_does():
    rng = np.random.default_rng(2)
    n = 20_000
    race = rng.choice(["a", "b"], n)
    examiner = rng.integers(0, 4, n)
    good = rng.random(n) < np.where(race == "a", 0.8, 0.5)
    accepted = rng.random(n) < np.array([0.2, 0.4, 0.6, 0.97])[examiner] - 0.1 * ~good
    log = {"race": race, "approved": accepted.astype(int), "who": examiner}
    log["repaid"] = np.where(accepted, good, np.nan)
    found = sellf.audit(log, **BARE, notion="qualification", examiner="who", seed=0)
    rungs = {rung.belief: rung for rung in found.measures["ladder"].rungs}
    assert rungs["nothing"].verdict == "undetermined"
    assert rungs["examiners"].verdict == "unfair"
    assert rungs["examiners"].interval.low <= 0.3 <= rungs["examiners"].interval.high
    # Examiners whose cases differ contradict each other.
    log["repaid"] = np.where(accepted, np.where(examiner == 3, rng.random(n) < 0.05, 1.0), np.nan)
    found = sellf.audit(log, **BARE, notion="qualification", examiner="who", seed=0)
    rungs = {rung.belief: rung for rung in found.measures["ladder"].rungs}
    assert rungs["examiners"].contradicted
    assert rungs["examiners"].verdict == "undetermined"


def test_many_examiners_are_ranked_by_other_cases_than_those_used():
    rng = np.random.default_rng(3)
    examiner = rng.integers(0, 200, 6000)
    accepted = (rng.random(6000) < 0.5).astype(float)  # all are equally lenient
    place, usable = instrument.classes(examiner, accepted, 0)
    assert len(np.unique(place)) == instrument.CLASSES
    rates = [accepted[usable & (place == k)].mean() for k in range(instrument.CLASSES)]
    assert np.ptp(rates) < 0.12
    inside = [accepted[~usable & (place == k)].mean() for k in range(instrument.CLASSES)]
    assert np.ptp(inside) > 0.2  # the ranking's own cases would have made them differ


def test_the_truth_is_within_every_rung_whose_belief_is_true():
    """Decisions depend on x alone, so the rejected are like the accepted who look alike."""
    truth = opportunity_gap()
    held = dict.fromkeys(("nothing", "no better", "no worse", "hidden factors 1.1", "features"), 0)
    for seed in range(25):
        log = lending(3000, seed=seed)
        found = sellf.audit(log, **BARE, features="x", model="logistic", ladder=True, seed=0)
        for rung in found.measures["ladder"].rungs:
            if rung.belief in held:
                held[rung.belief] += rung.interval.low <= truth <= rung.interval.high
    assert min(held.values()) >= 21  # of 25 at 95 %: fewer has a chance of 1 in 5,000


def test_the_headline_names_the_weakest_belief_that_gives_a_verdict(tmp_path):
    found = sellf.audit(lending(4000), **COLUMNS, ladder=True, seed=0)
    ladder = found.measures["ladder"]
    weakest = ladder.weakest
    before = ladder.rungs[: ladder.rungs.index(weakest)]
    assert all(rung.verdict == "undetermined" for rung in before)
    assert weakest.says in str(found)
    path = tmp_path / "audit.json"
    path.write_text(found.to_json())
    assert read(path).to_dict() == found.to_dict()
    assert "The disparity under weaker and stronger beliefs" in page(found)
    assert len(ladder.plot().axes[0].get_yticklabels()) == len(ladder.rungs)
    assert list(ladder.to_frame()["belief"]) == [rung.belief for rung in ladder.rungs]


def test_a_notion_without_hidden_outcomes_needs_no_ladder():
    log = lending(400)
    assert not sellf.audit(log, **COLUMNS, notion="demographic", ladder=True).measures
    with pytest.raises(InputError, match=r"no column 'who' \(examiner\)"):
        sellf.audit(log, **COLUMNS, examiner="who")
