"""What ± means: half of the 95% interval over seeds, and nothing else."""

import numpy as np
import pytest
from scipy import stats

from sellf.studies import statistics


def test_half_widths_leave_out_what_is_no_number():
    values = np.array([[1.0, np.nan, 2.0], [3.0, 4.0, np.nan], [8.0, 6.0, np.nan]])
    low, high = stats.t.interval(0.95, 2, 4.0, stats.sem([1, 3, 8]))
    two = stats.t.interval(0.95, 1, 5.0, stats.sem([4, 6]))
    found = statistics.half_widths(values)
    assert found[:2] == pytest.approx([(high - low) / 2, (two[1] - two[0]) / 2])
    assert np.isnan(found[2])
    assert statistics.mean_over(values) == pytest.approx([4.0, 5.0, 2.0])


def test_a_curve_of_several_seeds_has_their_interval_and_of_one_its_deviation():
    one, other = np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([[4.0, 4.0], [6.0, 6.0]])
    mean, spread = statistics.curve([one])
    assert (mean.tolist(), spread.tolist()) == ([2.0, 2.0], [1.0, 0.0])
    mean, spread = statistics.curve([one, other])
    assert mean.tolist() == [3.5, 3.5]
    assert spread == pytest.approx(stats.t.ppf(0.975, 1) * stats.sem([2, 5]))


@pytest.mark.parametrize(
    ("seeds", "name"),
    [
        ([1, 1], "standard deviation over deployments"),
        ([3, 5], "95% interval over training seeds"),
        (
            [1, 5],
            "95% interval over training seeds; with one seed, standard deviation over deployments",
        ),
    ],
)
def test_what_a_band_is_called(seeds, name):
    assert statistics.spread_name(seeds) == name
