"""What a log makes one doubt before any figure is computed: sentences for an audit's warnings."""

from typing import Any

from sellf.audit.scores import Floats
from sellf.audit.verdict import say

FEW_REJECTED = 0.02
"""A smaller share of rejected people is warned of."""
ENOUGH_PEOPLE = 50
"""In smaller groups a share says little."""


def nearly_all_accepted(names: list[Any], people: Floats, accepted: Floats) -> list[str]:
    """Say where hardly anybody is rejected, as in logs that lack most of the rejected.

    Args:
        names: the groups.
        people: how many people each group has.
        accepted: how many of them were accepted.
    """
    rejected = people - accepted
    if rejected.sum() < FEW_REJECTED * people.sum():
        return [_nearly_all("the log", rejected.sum(), people.sum())]
    few = (people >= ENOUGH_PEOPLE) & (rejected < FEW_REJECTED * people)
    return [
        _nearly_all(f"group {say(name)}", rejected[i], people[i])
        for i, name in enumerate(names)
        if few[i]
    ]


def _nearly_all(where: str, rejected: float, people: float) -> str:
    return (
        f"only {int(rejected):,} of {int(people):,} people of {where} are rejected "
        f"({rejected / people:.1%}): if rejected applications are missing from the log, no figure "
        "here is right. Audit a log of all applications."
    )
