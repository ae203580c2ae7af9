"""The audit over time: periods add up, and looking often is allowed."""

import numpy as np
import pandas as pd
import pytest

import sellf
from sellf.cli import main
from sellf.errors import InputError
from sellf.logs.dates import period_of
from tests.audit.logs import COLUMNS, lending, opportunity_gap


def dated(people=6000, seed=0, days=360, gap=0.5):
    rng = np.random.default_rng(seed + 100)
    log = lending(people, seed, gap)
    log["date"] = np.datetime64("2025-01-01") + rng.integers(0, days, people)
    return log


@pytest.mark.parametrize(
    ("by", "count", "first"),
    [("day", 360, "2025-01-01"), ("week", 52, "2024-12-30"), ("month", 12, "2025-01"),
     ("quarter", 4, "2025-Q1"), ("year", 1, "2025")],
)  # fmt: skip
def test_periods_follow_the_calendar(by, count, first):
    times = (np.datetime64("2025-01-01") + np.arange(360)).astype("datetime64[s]")
    codes, names = period_of(times, by)
    assert (len(names), names[0]) == (count, first)
    assert np.all(np.diff(codes) >= 0)
    if by == "week":
        assert all(np.datetime64(name).astype(object).weekday() == 0 for name in names)


def test_each_period_is_the_audit_of_its_rows():
    log = dated()
    audit = sellf.audit(log, **COLUMNS, time="date", by="quarter", seed=1)
    assert [period.name for period in audit.periods] == [f"2025-Q{i}" for i in (1, 2, 3, 4)]
    assert sum(period.people for period in audit.periods) == 6000
    last = log["date"] >= np.datetime64("2025-10-01")
    alone = sellf.audit(
        {name: values[last] for name, values in log.items()}, **COLUMNS, delta=0.05 / 20, seed=1
    )
    quarter = audit.periods[3]
    assert (quarter.low, quarter.value, quarter.high) == pytest.approx(alone.difference)
    assert "2025-Q3" in str(audit)


def test_what_is_known_so_far_only_grows():
    audit = sellf.audit(dated(), **COLUMNS, time="date", by="month", seed=1)
    lows = [period.so_far_low for period in audit.periods]
    highs = [period.so_far_high for period in audit.periods]
    # Every look has a smaller chance to miss than the one before, which costs a little, and where a
    # group becomes large enough for another method its pilot is left out.
    assert np.all(np.diff(lows) > -0.04)
    assert np.all(np.diff(highs) < 0.04)
    widths = np.array(highs) - lows
    assert widths[-1] < min(widths[:-1].min(), widths[0] / 2)
    assert audit.periods[-1].so_far == "unfair"


def test_looking_every_month_misses_the_truth_no_more_often_than_delta():
    truth = opportunity_gap(0.5)
    missed = own_missed = 0
    for seed in range(30):
        audit = sellf.audit(dated(1500, seed), **COLUMNS, time="date", by="quarter", delta=0.2)
        missed += any(not p.so_far_low <= truth <= p.so_far_high for p in audit.periods)
        own_missed += any(not p.low <= truth <= p.high for p in audit.periods)
    # 12 of 30 or more have a chance of 1 % if each misses with 20 %.
    assert missed <= 11
    assert own_missed <= 11


def test_a_change_shows_in_its_period():
    before, after = dated(4000, 0, gap=0.0), dated(4000, 1, gap=0.6)
    after["date"] = after["date"] + np.timedelta64(360, "D")
    log = {name: np.concatenate([before[name], after[name]]) for name in before}
    audit = sellf.audit(log, **COLUMNS, time="date", by="year")
    assert [period.verdict for period in audit.periods][-1] == "unfair"
    assert audit.periods[0].low == 0


def test_anytime_intervals_are_wider_and_follow_the_order_of_time():
    log = dated(3000)
    fixed = sellf.audit(log, **COLUMNS)
    anytime = sellf.audit(log, **COLUMNS, anytime=True, time="date")
    order = np.argsort(log["date"], kind="stable")
    sorted_log = {name: values[order] for name, values in log.items()}
    assert sellf.audit(sorted_log, **COLUMNS, anytime=True).difference == anytime.difference
    assert fixed.difference.width < anytime.difference.width < 4 * fixed.difference.width
    assert "at any time" in str(anytime)


def test_dates_may_be_words_and_a_group_may_be_missing_from_a_period():
    log = dated(2000)
    late = (log["race"] == "b") & (log["date"] < np.datetime64("2025-04-01"))
    log = {name: values[~late] for name, values in log.items()}
    log["date"] = [str(date) for date in log["date"]]
    audit = sellf.audit(log, **COLUMNS, time="date", by="quarter")
    assert audit.periods[0].verdict == "undetermined"
    assert audit.periods[0].high == pytest.approx(1, abs=0.6)


@pytest.mark.parametrize(
    ("days", "by", "instead"),
    [(1095, "day", "week"), (20_000, "day", "month"), (20_000, "week", "month"),
     (80_000, "month", "quarter")],
)  # fmt: skip
def test_too_many_periods_are_refused_with_the_shortest_that_are_few_enough(days, by, instead):
    times = (np.datetime64("1800-01-01") + np.arange(days)).astype("datetime64[s]")
    with pytest.raises(
        InputError, match=f"at most 1,000 are audited: type a longer one, by='{instead}'."
    ):
        period_of(times, by)
    assert len(period_of(times, instead)[1]) <= 1000


def test_dates_of_two_thousand_years_are_for_somebody_to_look_at():
    times = np.array([f"{year:04}-01-01" for year in range(1, 2001)], "datetime64[s]")
    with pytest.raises(InputError, match="look for dates that are wrong"):
        period_of(times, "year")


def test_every_day_of_three_years_is_answered_with_weeks(tmp_path, capsys):
    log = dated(3000)
    log["date"] = (np.datetime64("2023-01-01") + np.arange(3000) % 1095).astype(str)
    path = tmp_path / "log.csv"
    pd.DataFrame(log).to_csv(path, index=False)
    options = [part for name, column in COLUMNS.items() for part in (f"--{name}", column)]
    asked = ["audit", str(path), *options, "--notion", "demographic", "--time", "date", "--by"]
    assert main([*asked, "day"]) == 2
    assert "which makes 1,095 periods" in (told := capsys.readouterr().err)
    assert "type a longer one, --by week." in told
    assert main([*asked, "week"]) == 0
