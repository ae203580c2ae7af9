"""A seed repeats an audit exactly, and another one hardly changes it."""

import numpy as np
import pytest

import sellf
from coverage_study.cells import STUDIED as NOTIONS
from tests.audit.logs import COLUMNS, lending


@pytest.mark.parametrize("people", [400, 12_000])
def test_the_same_seed_gives_the_same_audit(people):
    log = lending(people)
    first, again = (sellf.audit_all(log, **COLUMNS, seed=5) for _ in range(2))
    for notion in NOTIONS:
        assert first[notion].to_json() == again[notion].to_json()
    drawn = sellf.audit(log, **COLUMNS)
    assert sellf.audit(log, **COLUMNS, seed=drawn.origin.seed).difference == drawn.difference


def test_another_seed_moves_ends_by_little_of_the_width():
    moved = []
    sizes = np.geomspace(300, 20_000, 50).astype(int)
    for k, people in enumerate(sizes):
        columns = COLUMNS if k % 2 else {**COLUMNS, "score": None}
        notion = ("qualification", "accuracy", "opportunity")[k % 3]
        log = lending(int(people), seed=k)
        one, two = (sellf.audit(log, **columns, notion=notion, seed=seed).signed for seed in (1, 2))
        moved.append(max(abs(one.low - two.low), abs(one.high - two.high)) / one.width)
    assert np.median(moved) < 0.03
    assert np.median(moved) > 0  # orders and pilots differ indeed


def test_rows_in_another_order_are_the_same_log():
    log = lending(1500)
    mixed = np.random.default_rng(0).permutation(1500)
    again = {name: values[mixed] for name, values in log.items()}
    for notion in NOTIONS:
        one, two = (sellf.audit(same, **COLUMNS, notion=notion, seed=3) for same in (log, again))
        assert one.difference == two.difference
        assert {k: v[:3] for k, v in one.by_group.items()} == {
            k: v[:3] for k, v in two.by_group.items()
        }


def test_one_seed_does_not_shift_every_log_the_same_way():
    """Whoever always types the same seed has intervals that hold, too."""

    def log(rng, people=6_000):
        accepted, label = rng.integers(0, 2, (2, 2 * people))
        return {
            "g": np.repeat([0, 1], people),
            "a": accepted,
            "y": np.where(accepted == 1, label, np.nan),
            "p": np.full(2 * people, 0.5),
            "f": np.full(2 * people, 0.5),
        }

    columns = {"group": "g", "decision": "a", "outcome": "y", "propensity": "p", "score": "f"}
    logs = [log(np.random.default_rng([14, i])) for i in range(3)]
    centres = np.array(
        [
            [
                sum(sellf.audit(one, seed=seed, notion="qualification", **columns).signed[::2]) / 2
                for one in logs
            ]
            for seed in range(12)
        ]
    )
    between = np.corrcoef(centres.T)[np.triu_indices(3, 1)]
    assert between.mean() < 0.6  # of orders that are the same in every log it is above 0.95
