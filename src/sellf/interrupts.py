"""Interrupts (Ctrl-C) that are not lost.

Python raises KeyboardInterrupt wherever it happens to be. Within a callback of a library, or while
a module is imported, that may be caught or only be reported, and the command would go on. So it is
also remembered, and whatever takes long asks before it begins.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

_requested = threading.Event()
_held = threading.Event()


@contextmanager
def listening() -> Iterator[None]:
    """Remember Ctrl-C until the end; only the main thread gets signals."""
    usual = threading.current_thread() is threading.main_thread()
    usual = usual and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    _requested.clear()
    if usual:
        signal.signal(signal.SIGINT, _handle)
    try:
        yield
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _requested.clear()


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back until the end; a second one is not.

    A library that is interrupted while it starts, as JAX, may crash the process on its way out.
    """
    _held.set()
    try:
        yield
    finally:
        _held.clear()
    check()


def _handle(number: int, frame: object) -> None:
    first = not _requested.is_set()
    _requested.set()
    if not (first and _held.is_set()):
        raise KeyboardInterrupt


def requested() -> bool:
    """Return whether Ctrl-C was pressed."""
    return _requested.is_set()


def check() -> None:
    """Stop here if Ctrl-C was pressed and got lost."""
    if requested():
        raise KeyboardInterrupt


class DeferredInterrupt:
    """Ctrl-C that lets the iteration under way finish first; a second one stops at once."""

    def __init__(self) -> None:
        """Begin without a request."""
        self.requested = False

    def __enter__(self) -> Self:
        # Only the main thread gets signals; elsewhere a training is stopped by whoever started it.
        self.mine = threading.current_thread() is threading.main_thread()
        if self.mine:
            self.before = signal.signal(signal.SIGINT, self._handle)
            check()
        return self

    def _handle(self, number: int, frame: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *error: object) -> None:
        if self.mine:
            signal.signal(signal.SIGINT, self.before)
