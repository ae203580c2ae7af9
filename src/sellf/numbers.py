"""Formats of numbers in tables, on axes and in sentences."""

import math

NOTHING = "\N{EM DASH}"
"""The text for a missing number."""


def figure(value: float | None) -> str:
    """Return a number for a table, with thousands separators and decimals that suit its size."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def defined(value: float, form: str = ".3f") -> str:
    """Return a number in a format, or "undefined" if it is NaN."""
    return "undefined" if math.isnan(value) else f"{value:{form}}"


def or_none(value: float) -> float | None:
    """Return a number for JSON, which has no NaN: None instead."""
    return None if math.isnan(value) else value


def tick(value: float, position: object = None) -> str:
    """Return the label of a tick; matplotlib also passes its position."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def confidence(delta: float) -> str:
    """Return the confidence level 1 - delta as text."""
    if delta < 1e-8:
        return f"1 - {delta:g}"
    return f"{100 * (1 - delta):.10g}%"
