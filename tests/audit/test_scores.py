"""Scores stand in for hidden labels: right on average, and never beyond what they promise."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellf.audit import exact
from sellf.audit.scores import Person, reach, running_prediction, scores
from sellf.fairness.notions import NOTIONS, Counts, utility

chance = st.floats(0, 1)


@given(
    people=st.lists(st.tuples(chance, chance, chance), min_size=1, max_size=12),
    most=st.floats(1, 50),
    seed=st.integers(0, 2**32 - 1),
)
def test_scores_are_unbiased_and_within_their_bounds(people, most, seed):
    """The last row's two draws are enumerated: its mean is E[Y], or brackets it without overlap."""
    p, f, good = np.array(people).T
    rng = np.random.default_rng(seed)
    accepted = (rng.random(len(p)) < p).astype(float)
    label = (rng.random(len(p)) < good).astype(float)
    mean = np.zeros(2)
    for a in (0.0, 1.0):
        for y in (0.0, 1.0):
            accepted[-1], label[-1] = a, y
            both = scores(Person(accepted, accepted * label, p, f), 0.01, most)
            weight = (p[-1] if a else 1 - p[-1]) * (good[-1] if y else 1 - good[-1])
            if weight > 0:
                mean += weight * np.array([both.lower[-1], both.upper[-1]])
                assert np.all(both.lower >= -both.below - 1e-9)
                assert np.all(both.upper <= 1 + both.above + 1e-9)
    if p[-1] >= 0.01:
        assert mean == pytest.approx([good[-1]] * 2, abs=1e-6)
    else:
        assert mean[0] <= good[-1] + 1e-12
        assert mean[1] >= good[-1] - 1e-12


def test_a_running_prediction_knows_the_past_alone():
    rng = np.random.default_rng(1)
    accepted, label, p = (rng.random(50) < 0.6) * 1.0, (rng.random(50) < 0.4) * 1.0, rng.random(50)
    person = Person(accepted, accepted * label, p, None)
    before = running_prediction(person, 0.0)
    for row in range(50):
        seen = np.flatnonzero(accepted[:row] == 1)
        alike = [i for i in seen if int(p[i] * 10) == int(p[row] * 10)]
        overall = (label[seen].sum() + 0.5) / (len(seen) + 1)
        assert before[row] == pytest.approx((label[alike].sum() + 2 * overall) / (len(alike) + 2))


def test_the_bound_on_scores_is_known_before_each_row():
    """Changing a row must not change what was promised of it."""
    rng = np.random.default_rng(2)
    p, f = rng.uniform(0.02, 1, 40), rng.random(40)
    accepted = (rng.random(40) < p) * 1.0
    person = Person(accepted, accepted, p, f)
    changed = person._replace(
        accepted=1 - accepted, positive=1 - accepted, propensity=np.append(p[:-1], 0.03)
    )
    for name in ("below", "above"):
        a, b = (getattr(scores(who, 0.01, 5.0), name) for who in (person, changed))
        assert np.array_equal(a, b)


def test_more_rows_bear_a_longer_reach():
    assert reach(10, 0.01) == 1.0
    assert reach(200, 0.01) < reach(20_000, 0.01)


def test_intervals_do_not_depend_on_the_order_in_which_rows_are_stored():
    rng = np.random.default_rng(3)
    p, f = rng.uniform(0.1, 1, 300), rng.random(300)
    accepted = (rng.random(300) < p) * 1.0
    person = Person(accepted, accepted * (rng.random(300) < 0.5), p, f)
    mixed = person.take(rng.permutation(300))
    for notion in ("qualification", "accuracy", "opportunity", "demographic"):
        ends = [
            exact.interval(notion, exact.shuffled(who), alpha=0.05, overlap=0.01)
            for who in (person, mixed)
        ]
        assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("notion", "predicted"), [*((notion, False) for notion in NOTIONS), ("opportunity", True)]
)
def test_the_exact_chance_of_missing_a_utility_is_at_most_alpha(notion, predicted):
    """Every log of four people of three kinds, one of them without overlap, by its probability."""
    p, good, overlap = np.array([0.005, 0.3, 0.9]), np.array([0.5, 0.2, 0.7]), 0.01
    share = np.array([0.1, 0.5, 0.4])
    kinds = [(x, 0, 0) for x in range(3)] + [(x, 1, y) for x in range(3) for y in (0, 1)]
    x, a, y = np.array(kinds).T
    chances = share[x] * np.where(a, p[x] * np.where(y, good[x], 1 - good[x]), 1 - p[x])
    assert chances.sum() == pytest.approx(1)
    accept, both = share @ p, share @ (p * good)
    truth = utility(notion, Counts(1.0, accept, both, share @ good - both))
    alpha, missed, decided = 0.5, 0.0, 0
    for rows in product(range(9), repeat=4):
        who = list(rows)
        person = Person(
            a[who] * 1.0, (a * y)[who] * 1.0, p[x[who]], 1 - good[x[who]] if predicted else None
        )
        low, high = exact.interval(notion, person, alpha=alpha, overlap=overlap)
        missed += np.prod(chances[who]) * (not low - 1e-12 <= truth <= high + 1e-12)
        decided += (low > 0) or (high < 1)
    assert missed <= alpha
    assert decided > 100  # enough is ruled out for this to mean something


def test_betting_is_near_the_normal_width_and_far_below_the_paper_s_bound():
    """10,000 people a group, propensities in [0.1, 0.95]: 1.35 x normal, a twentieth of Cortes."""
    from sellf.audit import normal
    from sellf.audit.certificate import error_bound
    from sellf.audit.sums import add_up

    rng = np.random.default_rng(4)
    ratios, gains = [], []
    for _ in range(10):
        x = rng.random(10_000)
        p = 0.1 + 0.85 * x
        accepted = (rng.random(10_000) < p) * 1.0
        label = rng.random(10_000) < 0.2 + 0.6 * x
        person = Person(accepted, accepted * label, p, 0.3 + 0.4 * x)
        low, high = exact.interval("qualification", person, alpha=0.05, overlap=0.01)
        sums = add_up(np.zeros(10_000, dtype=np.intp), 1, person, 0.01)
        usual = normal.interval("qualification", sums.by_group().group(0), alpha=0.05)
        bound = error_bound(sums, predicted=True, pdim=1.0, delta=0.05)[0]
        rejected = 1 - accepted.mean()
        ratios.append((high - low) / (usual[1] - usual[0]))
        gains.append(2 * rejected * bound / (high - low))
    assert np.mean(ratios) < 1.35
    assert np.mean(gains) > 20
