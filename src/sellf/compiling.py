"""Compilation with JAX: options, and the cache of compiled programs."""

import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from sellf import durations

PAGE = 4096
"""The size of a memory page in bytes."""
OPTIONS = {"xla_cpu_scheduler_type": 1}
"""Compiler options: run the operations of a program sequentially.

The programs of this library consist of many small operations. By default XLA dispatches them to a
thread pool as soon as there are more than a few, and the dispatch costs more than the work: a step
of an environment takes 33 microseconds with these options and took 93 without them. Large matrix
products still use all cores.
"""


def compiled(function: Callable[..., Any], **arguments: Any) -> Any:
    """Return `jax.jit(function, **arguments)` with the options that suit small programs."""
    return jax.jit(function, compiler_options=OPTIONS, **arguments)


def cache_folder() -> str | None:
    """Return the cache of compiled programs, a folder or an address; None if there is none.

    The default is `durations.cache_folder`; SELLF_CACHE= (empty) disables the cache. A cache that
    is configured in JAX itself is not changed.
    """
    configured = getattr(jax.config, "jax_compilation_cache_dir", None)
    if configured is not None:
        return configured
    return durations.cache_folder() or None


def use_cache() -> None:
    """Cache compiled programs on disk, so that the next start is quick."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    folder = cache_folder()
    if folder:
        sweep_cache(folder)
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def release() -> None:
    """Free the memory of all compiled programs; those that are used again are loaded again.

    A program takes 50 to 200 MB. The C library keeps what is freed unless it is told to return it.
    """
    jax.clear_caches()
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def sweep_cache(folder: str) -> None:
    """Remove programs that were truncated while they were written, of which JAX keeps warning.

    If the disk is full or the process is killed, a file ends at a multiple of the page size. One in
    4096 complete programs does so too, and is compiled again.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith("-cache") and entry.stat().st_size % PAGE == 0:
                    Path(entry.path).unlink()
