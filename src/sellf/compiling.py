"""How everything here is compiled."""

from collections.abc import Callable
from typing import Any

import jax

OPTIONS = {"xla_cpu_scheduler_type": 1}
"""Run the pieces of a program one after the other.

Ours are many and small. XLA by default hands them to a pool of threads as soon as there are more
than a few, and the handing over costs more than the work: a step of an environment took 93
microseconds that way and takes 33 so. Large products still use every core.
"""


def compiled(function: Callable[..., Any], **arguments: Any) -> Any:
    """Return `jax.jit(function, **arguments)` with the options that suit small programs."""
    return jax.jit(function, compiler_options=OPTIONS, **arguments)
