"""The statement of SELLF-direct at the end of a training: whether its constraint was met."""

from typing import Any

from sellf.fairness import Notion, define
from sellf.numbers import confidence

NEARLY = 0.99
"""Share of its upper limit from which lambda counts as being at the limit."""
LAST = 10
"""Number of last iterations over which the constraint is assessed."""


def statement(notion: Notion, config: Any, rows: list[dict[str, Any]]) -> str | None:
    """Return whether the constraint was met, and the bound on the true disparity that follows."""
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
    # The disparity fluctuates around the target, so it may be above it, but not above omega.
    met = gap <= max(target, min(config.omega, max(1.5 * target, target + 0.01)))
    if met:
        first = f"The constraint is met: {seen}, held at {target:.3f} (lambda {price:.2f})."
    elif price >= NEARLY * ceiling:
        first = (
            f"The constraint is not met, and lambda is at its ceiling of {ceiling:g}: {seen}, "
            f"above the target of {target:.3f}. From the initial population, with decisions worth "
            f"taking at that price, {notion} within {config.omega:g} is out of reach."
        )
    else:
        first = (
            f"The constraint is not met yet: {seen}, above the target of {target:.3f}, and lambda "
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
        return f"{first} The true disparity is not bounded: it depends on labels not observed yet."
    return (
        f"{first} A true disparity within {config.omega:g} cannot be promised: the predictor's "
        f"errors about the rejected may hide up to {bias:.2f} ({sure})."
    )
