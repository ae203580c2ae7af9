"""Figures from sums agree with figures from rows."""

import numpy as np
import pytest

from sellf.audit import bernstein, normal
from sellf.audit.bernstein import CONSTANTS, moments
from sellf.audit.estimate import views
from sellf.audit.scores import Person
from sellf.audit.sums import add_up
from sellf.fairness.notions import NOTIONS

N = 5000


def people(predicted=True, weak=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(N)
    p = np.where(x < weak, 0.0, 0.05 + 0.9 * x)
    accepted = (rng.random(N) < p) * 1.0
    positive = accepted * (rng.random(N) < 0.2 + 0.6 * x)
    return Person(accepted, positive, p, 0.1 + 0.8 * x if predicted else None)


def group_sums(person, overlap=0.01):
    return add_up(np.zeros(N, dtype=np.intp), 1, person, overlap)


def plain_scores(person, constant):
    """Return both scores of every row, as the formulas are printed."""
    a, ay, p, f, *_ = person
    f = np.full(N, constant) if constant is not None else f
    strong = p >= 0.01
    s = f + (ay - a * f) / np.where(strong, p, 1)
    return np.where(strong, s, ay), np.where(strong, s, ay + 1 - a)


@pytest.mark.parametrize("weak", [0.0, 0.3])
@pytest.mark.parametrize("constant", [None, 0.0, 0.25, 1.0])
def test_moments_are_those_of_the_scores(constant, weak):
    person = people(weak=weak)
    found = moments(group_sums(person).by_group().group(0), constant, False)
    for score, mine in zip(plain_scores(person, constant), found, strict=True):
        a, ay = person.accepted, person.positive
        expected = (N, a.sum(), ay.sum(), score.sum(), (score**2).sum(), (ay * score).sum(),
                    (a * score).sum())  # fmt: skip
        assert tuple(mine) == pytest.approx(expected)


def bernstein_low(values, scale, alpha):
    log = np.log(2 / alpha)
    n = len(values)
    return values.mean() - np.sqrt(2 * values.var(ddof=1) * log / n) - 7 * scale * log / (3 * n - 3)


@pytest.mark.parametrize("weak", [0.0, 0.3])
def test_empirical_bernstein_is_maurer_and_pontil_s_on_the_scores(weak):
    person = people(weak=weak)
    sums = group_sums(person).by_group().group(0)
    lower, upper = plain_scores(person, None)
    how = {"overlap": 0.01, "predicted": True, "trusted": False}
    low, high = bernstein.interval("qualification", sums, alpha=0.05, **how)
    assert low == pytest.approx(max(0, bernstein_low(lower, 199, 0.025)))
    assert 1 - high == pytest.approx(max(0, bernstein_low(1 - upper, 199, 0.025)))
    seen = 2 * person.positive + 1 - person.accepted
    low, _ = bernstein.interval("accuracy", sums, alpha=0.05, **how)
    assert low == pytest.approx(max(0, bernstein_low(seen - upper, 199, 0.025)))
    low, high = bernstein.interval("opportunity", sums, alpha=0.05, **how)
    for t in np.linspace(0.01, 0.99, 99):
        assert (bernstein_low(person.positive - t * upper, 199, 0.025) > 0) == (t < low)
        assert (bernstein_low(t * lower - person.positive, 199, 0.025) > 0) == (t > high)


def test_without_predictions_the_best_of_a_few_constants_counts_each_with_its_share():
    person = people(predicted=False)
    sums = group_sums(person).by_group().group(0)
    how = {"overlap": 0.01, "predicted": False, "trusted": False}
    low, _ = bernstein.interval("qualification", sums, alpha=0.05, **how)
    share = 0.025 / len(CONSTANTS)
    each = [bernstein_low(plain_scores(person, c)[0], 100, share) for c in CONSTANTS]
    assert low == pytest.approx(max(0, *each))


def test_the_range_that_bernstein_takes_for_granted_holds():
    """For every score, p and t that can occur: the extremes are at the corners."""
    tau = 0.01
    for notion in ("qualification", "accuracy", "opportunity"):
        for constant in (None, *CONSTANTS):
            values = []
            for f in (0.0, 1.0) if constant is None else (constant,):
                for p in (tau, 1.0):
                    for a, y in ((0, 0), (1, 0), (1, 1)):
                        s = f + a * (y - f) / p
                        for t in (0.3, 1.0):
                            values.append(
                                {
                                    "qualification": s,
                                    "accuracy": 2 * a * y + 1 - a - s,
                                    "opportunity": a * y - t * s,
                                }[notion]
                            )
            assert np.ptp(values) <= (2 / tau - 1 if constant is None else 1 / tau) + 1e-9


def test_normal_intervals_are_the_textbook_s():
    person = people()
    sums = group_sums(person).by_group().group(0)
    s = plain_scores(person, None)[0]
    low, high = normal.interval("qualification", sums, alpha=0.05)
    half = 1.959964 * s.std(ddof=1) / np.sqrt(N)
    assert (low, high) == pytest.approx((s.mean() - half, s.mean() + half))
    low, high = normal.interval("opportunity", sums, alpha=0.05)
    ratio = person.positive.sum() / s.sum()
    half = 1.959964 * (person.positive - ratio * s).std(ddof=1) / np.sqrt(N) / s.mean()
    assert (low, high) == pytest.approx((ratio - half, ratio + half), rel=1e-4)


def test_views_are_those_of_the_rows():
    import sellf

    person = people()
    log = {
        "group": np.arange(N) % 2,
        "action": person.accepted,
        "label": np.where(person.accepted == 1, person.positive, np.nan),
    }
    sums = add_up((np.arange(N) % 2).astype(np.intp), 2, person, 0.01)
    for notion in NOTIONS:
        found = views(notion, sums, predicted=True, trusted=False)
        imputed = sellf.disparity(notion, **log, prediction=person.prediction, view="imputed")
        assert found.imputed == pytest.approx(list(imputed.by_group.values()))
        if notion != "demographic":
            naive = sellf.disparity(notion, **log, view="accepted")
            assert found.naive == pytest.approx(list(naive.by_group.values()))
        assert np.all(found.low == found.high)
