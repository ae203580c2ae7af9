"""Intervals that hold at every sample size cost little more than those that hold in the limit."""

import pytest

from sellf.audit.verdict import AUDITED as NOTIONS

LIMITS = {1_000: 1.5, 10_000: 1.25, 100_000: 1.2, 1_000_000: 1.2}
RATIO_LIMITS = {1_000: 1.7, 10_000: 1.4, 100_000: 1.2, 1_000_000: 1.2}
"""Opportunity is a ratio: two more figures have to be bounded, which costs more in small groups."""


@pytest.mark.parametrize(
    ("size", "logs"),
    [
        (1_000, 20),
        (10_000, 5),
        pytest.param(100_000, 3, marks=pytest.mark.slow),
        pytest.param(1_000_000, 1, marks=pytest.mark.slow),
    ],
)
def test_the_difference_is_hardly_wider_than_the_efficient_normal_one(size, logs):
    from widths import ratios, standard

    for notion, ratio in ratios(standard(size), logs).items():
        limits = RATIO_LIMITS if notion == "opportunity" else LIMITS
        assert ratio <= limits[size], notion


@pytest.mark.slow
def test_an_audit_at_any_time_is_less_than_twice_as_wide():
    from widths import ratios, standard

    cell = standard(100_000)
    fixed, anytime = ratios(cell, 1), ratios(cell, 1, anytime=True)
    for notion in NOTIONS:
        assert anytime[notion] <= 1.75 * fixed[notion], notion


def test_the_efficient_width_is_that_of_estimates_over_many_logs():
    """AIPW with the true score, by hand, against the variance that the world's tables give."""
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
            by_group.append(
                (
                    s.mean(),
                    (2 * a * seen + 1 - a - s).mean(),
                    (a * seen).mean() / s.mean(),
                    a.mean(),
                )
            )
        for notion, pair in zip(NOTIONS, zip(*by_group, strict=True), strict=True):
            differences[notion].append(pair[1] - pair[0])
    for notion, found in differences.items():
        expected = efficient_width(notion, groups, cell.sizes) / (2 * 1.959964)
        assert np.std(found) == pytest.approx(expected, rel=0.06), notion
