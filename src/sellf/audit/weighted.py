"""Sample weights.

With weights w a rate is E[w part] / E[w whole], a ratio of means of independent values, so its
standard error follows by the delta method. The intervals are normal, hence asymptotic.
"""

from dataclasses import replace

import numpy as np

from sellf.audit.beliefs import Ends, ratio
from sellf.audit.group import Group
from sellf.audit.scores import Side
from sellf.errors import InputError
from sellf.fairness.notions import Rate
from sellf.logs.log import Log
from sellf.logs.values import numbers


def with_weights(log: Log, column: str) -> Log:
    """Return a log whose rows are weighted by a column."""
    rows = log.rows
    if rows is None:
        raise InputError(
            f"the log has {log.count:,} rows, and --weight needs them in memory: audit a random "
            "part of it."
        )
    weight = numbers(rows.others[column], column, "weight")
    if (weight <= 0).any():
        row = int(np.flatnonzero(weight <= 0)[0])
        raise InputError(
            f"weight {column!r} is {weight[row]:g} at row {row}, which is 0 or less: leave out "
            "rows that do not count, and give all others the number of people they stand for."
        )
    return replace(rows, person=rows.person._replace(weight=weight / weight.mean()))


def ends(rate: Rate, group: Group) -> Ends:
    """Return both ends of the identified range of a group's rate, with standard errors."""
    key = ("ends", rate)
    if key not in group.made:
        weight = None if group.person is None else group.person.weight
        low, high = (ratio(_weighted(side, weight)) for side in group.values(rate))
        group.made[key] = Ends(*low, *high)
    return group.made[key]


def _weighted(side: Side, weight: np.ndarray | None) -> Side:
    if weight is None:
        return side
    return Side(side.part * weight, weight if side.whole is None else side.whole * weight)


def effective(weight: np.ndarray) -> float:
    """Return Kish's effective sample size: the equivalent number of equally weighted rows."""
    return float(weight.sum() ** 2 / (weight**2).sum())
