"""Random decision logs, and the definitions of Sec. 2 and 3 written out person by person."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass
class Log:
    group: list
    action: list
    label: list
    prediction: list

    def columns(self) -> dict:
        return vars(self)


@st.composite
def logs(draw, *, min_groups=2, max_groups=6, max_rows=40):
    """Draw logs of a few rows, in which degenerate groups are common; every group has a row."""
    groups = draw(st.integers(min_groups, max_groups))
    extra = draw(st.lists(st.integers(0, groups - 1), max_size=max_rows))
    group = [*range(groups), *extra]
    n = len(group)
    bits = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    # Sometimes everyone of a group is treated alike, so that nobody is rejected, or accepted.
    action = np.array(draw(bits))
    for i in range(groups):
        habit = draw(st.sampled_from(["mixed", "mixed", "accept", "reject"]))
        if habit != "mixed":
            action[np.array(group) == i] = habit == "accept"
    probability = st.floats(0, 1, allow_nan=False)
    prediction = draw(st.one_of(bits, st.lists(probability, min_size=n, max_size=n)))
    return Log(group, action.tolist(), draw(bits), prediction)


SPEAKS_OF = {
    "opportunity": lambda y, a: y == 1,
    "predictive-parity": lambda y, a: a == 1,
    "false-positive-rate": lambda y, a: y == 0,
}
"""Of whom a utility is the mean; others are of everyone."""
VALUE = {
    "qualification": lambda y, a: y,
    "accuracy": lambda y, a: y == a,
    "opportunity": lambda y, a: a,
    "demographic": lambda y, a: a,
    "predictive-parity": lambda y, a: y,
    "false-positive-rate": lambda y, a: a,
}


def utility_by_hand(notion, log: Log, group, view) -> float:
    """Compute E[U(Y, A) | C] by enumerating people and, where imputed, both possible labels."""
    total = weight = 0.0
    for z, a, y, p in zip(log.group, log.action, log.label, log.prediction, strict=True):
        if z != group or (view == "accepted" and a == 0):
            continue
        guessed = view == "imputed" and a == 0
        outcomes = [(1, p), (0, 1 - p)] if guessed else [(y, 1.0)]
        for outcome, chance in outcomes:
            if SPEAKS_OF.get(notion, lambda *_: True)(outcome, a):
                total, weight = total + chance * VALUE[notion](outcome, a), weight + chance
    return total / weight if weight > 0 else float("nan")
