"""What would settle a verdict settles it, if it is followed to the letter."""

import pytest

import sellf
from tests.audit.logs import COLUMNS, lending


@pytest.mark.slow
@pytest.mark.parametrize("place", range(6))
def test_following_the_advice_settles_three_of_four_logs(place):
    from settle import SETTINGS, follow

    found = follow(SETTINGS[place], 100)
    assert found["followed"] >= 10
    assert found["settled"] >= 0.75 * found["followed"]


def test_the_advice_on_acceptance_is_followed_with_success():
    from settle import SETTINGS, follow

    found = follow(SETTINGS[0], 40)
    assert found["followed"] >= 5
    assert found["settled"] >= 0.75 * found["followed"]


def test_the_advice_names_the_groups_the_numbers_and_what_to_audit():
    audit = sellf.audit(lending(1500, gap=0.3, seed=3), **COLUMNS, omega=0.1, seed=1)
    assert audit.verdict == "undetermined"
    assert set(audit.needed.people) == {"a", "b"}
    for word in ("of a", "of b", "audited alone", "About 80%"):
        assert word in str(audit.needed)


def test_a_disparity_at_the_tolerance_is_called_not_practicable():
    log = lending(400_000, gap=0.3, seed=3)
    first = sellf.audit(log, **COLUMNS, seed=1)
    again = sellf.audit(log, **COLUMNS, seed=1, omega=first.difference.value)
    assert again.verdict == "undetermined"
    assert not again.needed.people
    assert str(again.needed).startswith("Not practicable, because")


def test_no_share_below_the_overlap_is_advised():
    log = lending(4000, gap=0.3, seed=3)
    log["p"] = (log["approved"] == 1) * 1.0
    for overlap in (0.01, 0.05, 0.2):
        audit = sellf.audit(log, **COLUMNS, overlap=overlap, seed=1)
        assert audit.needed.accept_share is None or audit.needed.accept_share >= 2 * overlap
