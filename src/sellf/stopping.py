"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever it happens to be. Within a callback of a library, or while
a module is imported, that may be caught or only be reported, and the command would go on. So it is
also remembered, and whatever takes long asks before it begins.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_asked = threading.Event()


@contextmanager
def listening() -> Iterator[None]:
    """Remember Ctrl-C until the end; only the main thread gets signals."""
    usual = threading.current_thread() is threading.main_thread()
    usual = usual and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    _asked.clear()
    if usual:
        signal.signal(signal.SIGINT, _ask)
    try:
        yield
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _asked.clear()


def _ask(number: int, frame: object) -> None:
    _asked.set()
    raise KeyboardInterrupt


def asked() -> bool:
    """Return whether Ctrl-C was pressed."""
    return _asked.is_set()


def check() -> None:
    """Stop here if Ctrl-C was pressed and got lost."""
    if asked():
        raise KeyboardInterrupt
