"""Ratios of two groups' rates: the exact chance to miss, coverage, and agreement with textbooks."""

import numpy as np
import pytest
from scipy.stats import binom

import sellf
from sellf.audit import betting
from sellf.audit.ratios import corners, from_games, from_normal, from_shares
from sellf.audit.shares import Share
from tests.audit.logs import COLUMNS, lending

CHANCES = np.concatenate([[0.001, 0.01, 0.99, 0.999], np.linspace(0.03, 0.97, 12)])


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (10, 10), (4, 20)])
@pytest.mark.parametrize("alpha", [0.2, 0.025])
def test_the_exact_chance_to_miss_a_ratio_is_at_most_alpha(sizes, alpha):
    """Every pair of counts with its probability, for every pair of true shares of a grid."""
    first, second = sizes
    bound = np.array(
        [
            [from_shares(Share(i, first), Share(j, second), alpha) for j in range(second + 1)]
            for i in range(first + 1)
        ]
    )
    one = binom.pmf(np.arange(first + 1), first, CHANCES[:, None])
    two = binom.pmf(np.arange(second + 1), second, CHANCES[:, None])
    missed = [
        one[a] @ (bound > p1 / p0 + 1e-9) @ two[b]
        for a, p1 in enumerate(CHANCES)
        for b, p0 in enumerate(CHANCES)
    ]
    assert max(missed) <= alpha
    if min(sizes) >= 10:
        assert bound.max() > 1.5  # something is ruled out


def test_the_ratio_of_large_shares_is_nearly_the_normal_one():
    n = 100_000
    error = 0.5 * ((0.7 / 0.3 + 0.4 / 0.6) / n) ** 0.5
    found = from_shares(Share(0.3 * n, n), Share(0.6 * n, n), 0.025)
    assert 0.5 - 1.05 * 1.96 * error < found < 0.5 - 1.95 * error


def test_fieller_s_bound_solves_fieller_s_equation():
    (a, s), (b, t), z = (0.4, 0.02), (0.5, 0.03), 1.96
    r = from_normal((a, s), (b, t), z)
    assert a - r * b == pytest.approx(z * np.hypot(s, r * t), abs=1e-4)


@pytest.mark.parametrize("r", [0.2, 0.8, 1.0, 3.0])
def test_every_pair_with_a_smaller_ratio_lies_between_the_corners(r):
    rng = np.random.default_rng(0)
    for _ in range(40):
        one, two = (tuple(np.sort(rng.random(2))) for _ in range(2))
        found = np.array(corners(one, two, r)).reshape(-1, 2)
        points = np.stack([rng.uniform(*one, 200), rng.uniform(*two, 200)], axis=1)
        inside = points[points[:, 0] <= r * points[:, 1]]
        if not len(inside):
            continue
        assert (found[:, 0] <= r * found[:, 1] + 1e-9).all()
        # In no direction is a point further out than the furthest corner.
        directions = rng.normal(size=(50, 2))
        assert ((inside @ directions.T).max(axis=0) <= (found @ directions.T).max(axis=0)).all()


def test_the_joint_game_covers_the_ratio():
    rng = np.random.default_rng(1)
    alpha, missed, logs = 0.2, 0, 300
    for _ in range(logs):
        games = []
        for p, n in ((0.3, 150), (0.6, 100)):
            x = (rng.random(n) < p).astype(float)[None]
            games.append(x)
        one = betting.Game(games[0], np.ones((1, 150)), np.zeros((1, 150)), np.ones((1, 150)))
        two = betting.Game(1 - games[1], np.ones((1, 100)), np.zeros((1, 100)), np.ones((1, 100)))
        missed += from_games(one, two, ((0.0, 1.0), (0.0, 1.0)), alpha) > 0.5
    assert missed <= binom.ppf(0.999, logs, alpha)


@pytest.mark.parametrize(
    ("people", "options"),
    [
        (500, {}),
        (9_000, {}),
        (500, {"propensity": None, "score": None}),
        (1_500, {"propensity": None, "score": None, "features": "x"}),
    ],
)
@pytest.mark.parametrize("notion", ["opportunity", "qualification"])
def test_a_ratio_is_no_wider_than_the_quotient_of_the_groups_own_ends(people, options, notion):
    how = {**COLUMNS, **options, "notion": notion, "model": "logistic", "seed": 3}
    found = sellf.audit(lending(people), panel=True, **how)
    (one,) = found.measures["panel"].comparisons
    low, high = (found.by_group[one.group], found.by_group[one.against])
    if options.get("propensity", "p") is None and "features" not in options:
        return  # nothing is known of the rejected: the range is that of the shares themselves
    assert one.ratio.low >= 0.9 * low.low / high.high
    assert one.ratio.high <= 1.1 * low.high / high.low
    assert one.difference == pytest.approx(found.pairs[("a", "b")], abs=2e-2) or one.group == "a"
