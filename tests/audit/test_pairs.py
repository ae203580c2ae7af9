"""Two groups bet on together: the difference holds, and is narrower than two intervals make it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sellf
from sellf.audit import exact, pairs
from sellf.audit.scores import Person
from sellf.fairness.notions import NOTIONS, Counts, utility
from tests.audit.logs import COLUMNS, lending
from tests.audit.plain import draw, truths


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_exact_chance_of_missing_a_difference_is_at_most_delta(notion):
    """Every log of three people in either group, with its probability."""
    p, good, delta = np.array([0.3, 0.8]), np.array([0.6, 0.3]), 0.5
    rows = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    chances = np.array([1 - p, p * (1 - good), p * good])
    both = p * good
    first, second = utility(notion, Counts(np.ones(2), p, both, good - both))
    missed, decided = 0.0, 0
    for kinds in product(range(3), repeat=6):
        people = []
        for group, mine in enumerate((kinds[:3], kinds[3:])):
            accepted, positive = np.array([rows[kind] for kind in mine]).T
            people.append(Person(accepted, positive, np.full(3, p[group]), np.full(3, 0.4)))
        low, high = pairs.difference(notion, *people, delta=delta, overlap=0.01)
        chance = np.prod(chances[list(kinds[:3]), 0]) * np.prod(chances[list(kinds[3:]), 1])
        missed += chance * (not low <= second - first <= high)
        decided += (low > -1) or (high < 1)
    assert missed <= delta
    assert decided > 20


@given(
    ends=st.lists(st.floats(0, 1), min_size=4, max_size=4), share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_corners_span_everything_below_a_difference(ends, share, seed):
    first, second = tuple(sorted(ends[:2])), tuple(sorted(ends[2:]))
    lowest, highest = first[0] - second[1], first[1] - second[0]
    d = lowest + share * (highest - lowest)
    found = np.array(pairs.corners(first, second, d))
    assert len(found)
    rng = np.random.default_rng(seed)
    m1, m0 = rng.uniform(*first, 300), rng.uniform(*second, 300)
    below = m1 - m0 <= d
    # Whatever is linear is nowhere larger than at a corner.
    for slope in rng.standard_normal((20, 2)):
        inside = slope[0] * m1[below] + slope[1] * m0[below]
        assert inside.max(initial=-np.inf) <= (found @ slope).max() + 1e-9


def test_it_is_a_third_narrower_and_holds_as_often_as_it_says():
    missed, ratios = dict.fromkeys(NOTIONS, 0), []
    for log in range(150):
        rng = np.random.default_rng([log, 77])
        people = [draw(rng, group, 600, log % 2 == 1) for group in range(2)]
        for notion, true in truths(2).items():
            low, high = pairs.difference(notion, *people, delta=0.05, overlap=0.01)
            missed[notion] += not low <= true[1] - true[0] <= high
            ends = [exact.interval(notion, who, alpha=0.025, overlap=0.01) for who in people]
            ratios.append((high - low) / sum(end[1] - end[0] for end in ends))
    assert max(missed.values()) <= 15  # 7 or 8 are allowed, plus noise
    assert np.mean(ratios) < 0.75


def test_an_audit_of_two_groups_uses_it_and_one_of_three_does_not():
    log = lending(2000)
    audit = sellf.audit(log, **COLUMNS)
    assert list(audit.pairs) == [("a", "b")]
    a, b = audit.by_group.values()
    assert audit.signed.width < 0.85 * (a.high - a.low + b.high - b.low)
    assert audit.difference.high == pytest.approx(-audit.signed.low)
    log["race"] = np.where(np.arange(2000) % 5 == 0, "c", log["race"])
    assert sellf.audit(log, **COLUMNS).signed is None


def test_a_group_of_nobody_says_nothing():
    nobody = Person(np.empty(0), np.empty(0), np.empty(0), np.empty(0))
    somebody = Person(np.ones(3), np.ones(3), np.ones(3), np.ones(3))
    for notion in NOTIONS:
        low, high = pairs.difference(notion, somebody, nobody, delta=0.05, overlap=0.01)
        assert low <= -1 + 1e-9
        assert high >= 0
