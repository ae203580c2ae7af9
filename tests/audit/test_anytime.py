"""Intervals that hold at every row at once, and the parts of delta that groups have."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from coverage_study.cells import STUDIED as NOTIONS
from sellf.audit import anytime
from sellf.audit.anytime import HORIZONS, WEIGHTS, Line, line, lower, lower_difference
from sellf.audit.betting import LARGEST_LOSS
from sellf.fairness.notions import define
from tests.audit.plain import draw, truths
from tests.audit.test_betting import KINDS, STRATA, chance_of, person_of, truth

TAU = 0.01
ALPHA = 0.1


def of(notion, person, when=None):
    when = np.arange(len(person.accepted)) if when is None else when
    return line(define(notion).alone, person, when, alpha=ALPHA, overlap=TAU)


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_mixture_of_all_horizons_is_one_on_average_after_every_row(notion):
    """Every sequence of three people of six kinds, with its probability."""
    u, average = truth(notion, STRATA), np.zeros(3)
    assert WEIGHTS.sum() == pytest.approx(1)
    for kinds in product(KINDS, repeat=3):
        game = of(notion, person_of(kinds, STRATA)).low
        residual = game.part - anytime.betting.past_ratio(game) * game.whole
        variance = anytime.betting.past_variance(residual)
        sizes = np.sqrt(2 * 3.0 / (variance * HORIZONS[:, None]))
        bets = np.minimum(sizes, LARGEST_LOSS / np.maximum(game.loss(u), 1e-300))
        capital = np.exp(anytime._capital(bets, game.part - u * game.whole))
        average += chance_of(kinds, STRATA) * (WEIGHTS @ capital)
    assert average == pytest.approx(1)


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_line_that_grows_keeps_what_it_had(notion):
    person = draw(np.random.default_rng(0), 0, 120, score=False)
    whole = of(notion, person)
    for rows in (1, 30, 119):
        part = of(notion, person.take(slice(0, rows)))
        for mine, theirs in zip(part[:2], whole[:2], strict=True):
            for a, b in zip(mine, theirs, strict=True):
                assert np.array_equal(a, b[:rows])


@pytest.mark.parametrize("score", [True, False])
def test_looking_after_every_row_misses_no_more_often_than_alpha(score):
    """A bound is the best of all rows so far, so whoever misses at any row misses at the last."""
    logs, true = 60, truths(2)
    missed = {notion: np.zeros(3, dtype=int) for notion in NOTIONS}
    for log in range(logs):
        rng = np.random.default_rng([log, score, 3])
        people = [draw(rng, group, 250, score) for group in (0, 1)]
        places = rng.permutation(500)
        when = [np.sort(places[:250]), np.sort(places[250:])]
        for notion in NOTIONS:
            one, two = (of(notion, *pair) for pair in zip(people, when, strict=True))
            u1, u0 = true[notion][:2]
            ends = lower(one.low, ALPHA), 1 - lower(one.high, ALPHA)
            together = lower_difference(one, two, (0.0, 1.0), (0.0, 1.0), ALPHA)
            missed[notion] += [ends[0] > u1, ends[1] < u1, together > u1 - u0]
    for notion, found in missed.items():
        assert found.max() <= binom.isf(1e-6, logs, ALPHA), (notion, found)


def test_a_bound_never_falls_as_the_log_grows():
    person = draw(np.random.default_rng(4), 0, 400, score=True)
    for notion in NOTIONS:
        found = of(notion, person)
        looks = []
        for rows in range(10, 401, 26):
            game = anytime.Game(*(part[:rows] for part in found.low))
            looks.append((lower(game, ALPHA), anytime.betting.estimate(game)[1] / 25))
        for (before, _), (after, rounding) in pairwise(looks):
            assert after >= before - rounding - 1e-9


@given(groups=st.integers(1, 200))
def test_the_parts_of_delta_are_no_more_than_all_of_it_and_stay_when_groups_are_added(groups):
    parts = anytime.shares_of_delta(groups)
    assert len(parts) == groups
    assert parts.min() > 0
    assert parts.sum() <= 1 + 1e-12
    assert np.array_equal(anytime.shares_of_delta(groups + 1)[:groups], parts)


def test_the_parts_of_all_pairs_are_no_more_than_all_of_delta():
    total = 0.0
    for later in range(1, 300):
        each = [anytime.pair_share(first, later) for first in range(later)]
        assert each == [anytime.pair_share(later, first) for first in range(later)]
        assert min(each) > 0
        total += sum(each)
        assert total <= 1 + 1e-12


def test_nobody_says_nothing():
    nobody = anytime.Game(*(np.empty(0) for _ in range(4)))
    assert lower(nobody, ALPHA) == 0
    empty = Line(nobody, nobody, np.empty(0, dtype=np.intp))
    assert lower_difference(empty, empty, (0.1, 0.8), (0.3, 0.4), ALPHA) == pytest.approx(-0.3)
