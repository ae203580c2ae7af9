"""Decision logs: reading files and data frames, checking them, and summing them. Without JAX."""

from sellf.logs.limits import Limits

__all__ = ["Limits"]
