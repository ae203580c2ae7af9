"""What SELLF-direct says at the end of a training: whether its constraint was met."""

from typing import Any

from sellf.fairness import Notion, define
from sellf.numbers import confidence

NEARLY = 0.99
"""From which share of its ceiling on lambda is at it."""
LAST = 10
"""Over how many iterations at the end the constraint is judged."""


def statement(notion: Notion, config: Any, rows: list[dict[str, Any]]) -> str | None:
    """Say whether the constraint was met, and what that promises."""
    last = [row for row in rows if "promise" in row][-LAST:]
    if not last:
        return None
    gap, target, price = (
        sum(row[name] for row in last) / len(last) for name in ("gap", "target", "multiplier")
    )
    bias, promise = last[-1]["bias"], last[-1]["promise"]
    delayed = define(notion).delayed
    ceiling = config.credit_limit if delayed else config.dual_limit
    seen = f"over the last {len(last)} iterations the imputed disparity was {gap:.3f}"
    # The disparity is held around the target, so it is on either side of it; but never above omega.
    met = gap <= max(target, min(config.omega, max(1.5 * target, target + 0.01)))
    if met:
        first = f"The constraint is met: {seen}, held at {target:.3f} (lambda {price:.2f})."
    elif price >= NEARLY * ceiling:
        first = (
            f"The constraint is not met, and lambda is at its ceiling of {ceiling:g}: {seen}, "
            f"where {target:.3f} was asked for. From where people start, and by decisions worth "
            f"taking at that price, {notion} within {config.omega:g} is out of reach."
        )
    else:
        first = (
            f"The constraint is not met yet: {seen}, where {target:.3f} was asked for, and lambda "
            f"({price:.2f}) is still moving: train for more steps."
        )
    if not met and all("earned" in row for row in last):
        earned = round(1000 * sum(row["earned"] for row in last) / len(last), 1)
        first += f" A thousand decisions earn {earned or 0:g}; rejecting everyone earns 0."
    sure = confidence(config.guard_delta)
    if promise <= config.omega:
        whose = f"of the people met in the last {config.guard_memory} iterations"
        bound = f"is at most {promise:.3f}: omega is kept."
        return f"{first} With {sure} the true disparity {whose} {bound}"
    if delayed:
        return f"{first} Nothing is promised of the true one: it is of labels yet to be seen."
    return (
        f"{first} A true disparity within {config.omega:g} cannot be promised: the predictor's "
        f"errors about the rejected may hide up to {bias:.2f} ({sure})."
    )
