"""Array functions that work with both NumPy and JAX."""

from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""A NumPy or a JAX array (or tracer), or a Python number."""


def namespace(*arrays: Array) -> ModuleType:
    """Return `jax.numpy` if any array is a JAX array, else `numpy`, without importing JAX."""
    for array in arrays:
        if not isinstance(array, np.ndarray | np.generic) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np


def divide(numerator: Array, denominator: Array, *, empty: float = float("nan")) -> Array:
    """Return the ratio, and `empty` where the denominator is 0 (with a finite gradient there)."""
    xp = namespace(numerator, denominator)
    possible = denominator != 0
    with np.errstate(over="ignore"):  # a ratio too large for a float becomes infinite
        return xp.where(possible, numerator / xp.where(possible, denominator, 1), empty)
