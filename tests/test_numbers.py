"""How figures are written."""

import pytest

from sellf.numbers import confidence


@pytest.mark.parametrize(
    ("delta", "shown"),
    [
        (0.05, "95%"), (0.1, "90%"), (0.07, "93%"), (0.025, "97.5%"), (0.001, "99.9%"),
        (1e-6, "99.9999%"), (1e-12, "1 - 1e-12"),
    ],
)  # fmt: skip
def test_a_level_is_never_said_to_be_higher_than_it_is(delta, shown):
    assert confidence(delta) == shown
