"""Intervals hold as often as they say, on logs whose truth is known."""

import pytest

from sellf.audit.coverage import GROUPS, SETTINGS, SIZES, main, study


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("groups", "size"), [(2, 200), (6, 200), (2, 2000)])
def test_betting_covers_in_a_few_hundred_logs(setting, groups, size):
    for cell in study(setting, groups, size, 200):
        assert cell.coverage >= 0.95
        # Of 200 logs 10 may miss; 19 would happen once in 200 times.
        assert cell.groups_covered >= 0.905
        assert cell.false_fair <= 0.05


@pytest.mark.parametrize("setting", ["plain", "both"])
def test_empirical_bernstein_covers(setting):
    for cell in study(setting, 2, 2000, 100, method="bernstein"):
        assert cell.coverage >= 0.95


def test_the_program_writes_its_table(tmp_path):
    sizes = ["--logs", "4", "--asymptotic-logs", "2", "--sizes", "200"]
    assert main([str(tmp_path), *sizes]) == 0
    text = (tmp_path / "coverage.md").read_text()
    assert "Worst of the finite-sample cells" in text
    assert len((tmp_path / "coverage.csv").read_text().splitlines()) == 1 + 4 * (8 + 8) + 3 * 4


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("size", SIZES)
def test_betting_covers_in_two_thousand_logs(setting, groups, size):
    for cell in study(setting, groups, size, 2000):
        assert cell.coverage >= 0.95
        assert cell.groups_covered >= 0.94  # 95 %, less three standard errors
        assert cell.false_fair <= 0.05
