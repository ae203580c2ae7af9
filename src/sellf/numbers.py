"""How numbers are written, in tables, on axes and in sentences: one way everywhere."""

import math

NOTHING = "\N{EM DASH}"
"""What stands where there is no figure."""


def figure(value: float | None) -> str:
    """Return a figure of a table: thousands apart, and as many decimals as its size asks for."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def tick(value: float, position: object = None) -> str:
    """Return a round number beside an axis; matplotlib also gives its position."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def confidence(delta: float) -> str:
    """Return the level at which something holds that may fail with probability delta."""
    if delta < 1e-8:
        return f"1 - {delta:g}"
    return f"{100 * (1 - delta):.10g}%"
