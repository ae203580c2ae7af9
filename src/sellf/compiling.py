"""How everything here is compiled."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from sellf import durations

PAGE = 4096
"""Bytes."""
OPTIONS = {"xla_cpu_scheduler_type": 1}
"""Run the pieces of a program one after the other.

Ours are many and small. XLA by default hands them to a pool of threads as soon as there are more
than a few, and the handing over costs more than the work: a step of an environment took 93
microseconds that way and takes 33 so. Large products still use every core.
"""


def compiled(function: Callable[..., Any], **arguments: Any) -> Any:
    """Return `jax.jit(function, **arguments)` with the options that suit small programs."""
    return jax.jit(function, compiler_options=OPTIONS, **arguments)


def cache_folder() -> str | None:
    """Return where compiled programs are kept, a folder or an address; None if nowhere.

    As `durations.cache_folder` says; SELLF_CACHE= (empty) keeps none. A cache that was configured
    in JAX itself stays as it is.
    """
    configured = getattr(jax.config, "jax_compilation_cache_dir", None)
    if configured is not None:
        return configured
    return durations.cache_folder() or None


def use_cache() -> None:
    """Keep compiled programs on disk, so that the next start is quick."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    folder = cache_folder()
    if folder:
        sweep_cache(folder)
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def sweep_cache(folder: str) -> None:
    """Remove programs that were cut off while they were written, which JAX warns of for ever.

    A disk that is full, or a process that is killed, ends a file at a page of memory. One in 4096
    whole programs ends there too, and is compiled again.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith("-cache") and entry.stat().st_size % PAGE == 0:
                    Path(entry.path).unlink()
