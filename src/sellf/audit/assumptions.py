"""Assumptions of an audit that a report refers to: their wording, and how to recognise them.

A saved audit keeps its assumptions as sentences. Both the audit that writes them and the report
that looks for them use the wording defined here.
"""

from collections.abc import Sequence

OUTCOMES_KNOWN = "the outcomes of the rejected are what really happened to them"
_JOINT = "notions hold together with"


def all_hold_together(notions: int, sure: float) -> str:
    """Return the statement that the intervals of all notions hold jointly."""
    return f"all {notions} {_JOINT} {sure:.0%} confidence"


def are_joint(assumptions: Sequence[str]) -> bool:
    """Return whether the intervals of all notions hold jointly."""
    return any(_JOINT in line for line in assumptions)


def nothing_hidden(assumptions: Sequence[str]) -> bool:
    """Return whether the log also holds the outcomes of the rejected."""
    return OUTCOMES_KNOWN in assumptions
