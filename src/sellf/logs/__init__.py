"""Decision logs: reading any kind of file or frame, checking it, and adding it up. No JAX."""

from sellf.logs.limits import Limits

__all__ = ["Limits"]
