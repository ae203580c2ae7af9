"""Intervals that hold at every sample size cost little more than those that hold in the limit."""

import pytest

from coverage_study.cells import STUDIED as NOTIONS
from sellf.logs import Limits

LIMITS = {1_000: 1.5, 10_000: 1.25, 100_000: 1.2, 1_000_000: 1.2}
NEAR_THE_BOUND = {1_000: 1.65, 10_000: 1.4, 100_000: 1.2, 1_000_000: 1.2}
"""Of the efficiency bound with known propensities: about 1.56 and 1.32 at worst (opportunity)."""


@pytest.mark.parametrize("score", [pytest.param("true", marks=pytest.mark.slow), "rough"])
@pytest.mark.parametrize(
    ("size", "logs"),
    [
        (1_000, 20),
        (10_000, 10),
        pytest.param(100_000, 3, marks=pytest.mark.slow),
        pytest.param(1_000_000, 1, marks=pytest.mark.slow),
    ],
)
def test_the_difference_is_hardly_wider_than_the_efficient_normal_one(size, logs, score):
    """Over AIPW with the true score, and over the bound that no regular estimate beats."""
    from coverage_study.worlds import efficient_width, world
    from widths import mean_widths, standard

    cell = standard(size, score=score)
    groups = world(cell)
    for notion, width in mean_widths(cell, logs).items():
        assert width <= LIMITS[size] * efficient_width(notion, groups, cell.sizes), notion
        if notion != "demographic":  # which is counted, not averaged over decisions
            least = efficient_width(notion, groups, cell.sizes, bound=True)
            assert width <= NEAR_THE_BOUND[size] * least, notion


@pytest.mark.slow
def test_an_audit_at_any_time_is_at_most_half_as_wide_again():
    from widths import ratios, standard

    cell = standard(100_000)
    fixed, anytime = ratios(cell, 1), ratios(cell, 1, anytime=True)
    for notion in NOTIONS:
        assert anytime[notion] <= 1.45 * fixed[notion], notion


@pytest.mark.parametrize("people", [3_000, 5_000])
def test_one_more_person_does_not_widen_the_interval(people):
    """Groups of this size are judged by another method than those with one person less."""
    from widths import ratios, standard

    fewer, more = (ratios(standard(size), 6) for size in (people - 1, people))
    for notion in NOTIONS:
        assert more[notion] <= 1.1 * fewer[notion], notion


@pytest.mark.slow
def test_where_only_sums_are_taken_intervals_are_a_little_wider():
    """The step that was a factor of three: one row more than are looked at one by one."""
    from widths import ratios, standard

    most = Limits().row_by_row
    cell = standard(most)
    rows, sums = (ratios(cell, 1, limits=Limits(row_by_row=n)) for n in (most, most - 1))
    for notion in NOTIONS:
        assert rows[notion] <= sums[notion] * 1.001, notion
        assert sums[notion] <= 1.3 * rows[notion], notion


@pytest.mark.parametrize("bound", [False, True])
def test_the_efficient_width_is_that_of_estimates_over_many_logs(bound):
    """AIPW with the true score, by hand, against the variance that the world's tables give.

    And, with known propensities, the same with the decision's chance in its place.
    """
    import numpy as np

    from coverage_study.worlds import draw, efficient_width, world
    from widths import standard

    cell = standard(400)
    groups = world(cell)
    differences = {notion: [] for notion in NOTIONS}
    levels = np.stack([group.good for group in groups])
    for seed in range(3000):
        log = draw(cell, groups, np.random.default_rng(seed))
        by_group = []
        for code in (0, 1):
            mine = log["group"] == code
            a, p = log["accepted"][mine], log["propensity"][mine]
            seen = np.nan_to_num(log["outcome"][mine])
            # The score knows half: what it lacks is known here.
            f = 2 * log["score"][mine] - levels[code].mean()
            s = f + a * (seen - f) / p
            decided, both = (p, p * f + a * (seen - f)) if bound else (a, a * seen)
            by_group.append(
                (
                    s.mean(),
                    (2 * both + 1 - decided - s).mean(),
                    both.mean() / s.mean(),
                    decided.mean(),
                )
            )
        for notion, pair in zip(NOTIONS, zip(*by_group, strict=True), strict=True):
            differences[notion].append(pair[1] - pair[0])
    for notion, found in differences.items():
        expected = efficient_width(notion, groups, cell.sizes, bound=bound) / (2 * 1.959964)
        assert np.std(found) == pytest.approx(expected, rel=0.06), notion
