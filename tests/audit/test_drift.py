"""Logs that change over time are told from logs that do not."""

import numpy as np
import pytest

import sellf
from sellf.audit.periods import drift
from sellf.fairness.notions import define
from sellf.logs.person import Person
from sellf.logs.sums import add_up
from tests.audit.logs import COLUMNS, lending


def by_month(seed, people=3000, months=12, change=0.0):
    """Return every month's sums; `change` is how much acceptance rises until the last."""
    rng = np.random.default_rng(seed)
    group, month = rng.integers(0, 2, people), rng.integers(0, months, people)
    p = np.clip(0.1 + 0.6 * rng.random(people) + change * month / months, 0.01, 0.99)
    accepted = (rng.random(people) < p) * 1.0
    positive = accepted * (rng.random(people) < 0.6)
    sums = []
    for k in range(months):
        mine = month == k
        person = Person(accepted[mine], positive[mine], p[mine], None)
        sums.append(add_up(group[mine].astype(np.intp), 2, person, 0.01))
    return sums


@pytest.mark.parametrize("people", [300, 3000])
@pytest.mark.parametrize("notion", ["opportunity", "demographic"])
def test_a_log_that_stays_the_same_is_hardly_ever_said_to_drift(people, notion):
    names = [f"month {k}" for k in range(12)]
    alarms = [
        drift(define(notion), ["a", "b"], by_month(seed, people), names) for seed in range(200)
    ]
    assert sum(alarm is not None for alarm in alarms) <= 10


def test_a_log_that_changes_is_said_to_drift_and_where():
    names = [f"month {k}" for k in range(12)]
    for seed in range(20):
        sentence = drift(define("opportunity"), ["a", "b"], by_month(seed, 6000, change=0.5), names)
        assert "the log drifts: the share of acceptance of " in sentence
        assert " in month " in sentence
        assert "not all periods so far" in sentence


def dated(seed, gaps):
    """Return a log of one quarter after the other, each with its own gap."""
    parts = []
    for k, gap in enumerate(gaps):
        part = lending(700, seed=100 * seed + k, gap=gap)
        month = f"2025-{3 * k + 1:02d}-15"
        parts.append({**part, "date": np.full(700, np.datetime64(month))})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_an_audit_says_nothing_of_all_periods_so_far_where_the_log_drifts():
    options = {**COLUMNS, "time": "date", "by": "quarter", "seed": 1}
    for seed in range(3):
        audit = sellf.audit(dated(seed, (0.0, 0.3, 0.6, 0.8)), **options)
        assert audit.drift is not None
        assert audit.drift in audit.warnings
        for period in audit.periods:
            assert period.so_far is None
            assert np.isnan(period.so_far_low)
            assert np.isnan(period.so_far_high)
        assert [period.name for period in audit.periods] == [f"2025-Q{k}" for k in (1, 2, 3, 4)]
        assert audit.periods[-1].verdict == "unfair"


def test_an_audit_of_a_log_that_stays_the_same_speaks_of_all_periods():
    options = {**COLUMNS, "time": "date", "by": "quarter", "seed": 1}
    for seed in range(3):
        audit = sellf.audit(dated(seed, (0.5, 0.5, 0.5)), **options)
        assert audit.drift is None
        assert all(period.so_far is not None for period in audit.periods)
        last = audit.periods[-1]
        assert last.so_far_low <= audit.difference.value <= last.so_far_high
