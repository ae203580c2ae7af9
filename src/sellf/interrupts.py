"""Interrupts (Ctrl-C) that are not lost, and do no harm.

Python raises KeyboardInterrupt wherever it happens to be. Within a callback of a library, or while
a module is imported, that may be caught, only be reported, or break what cannot bear it. So it is
also remembered, and whatever takes long asks before it begins. While a command starts or a program
is compiled, nothing can be lost: there it ends at once, whatever its main thread is at.

This module imports next to nothing: it is there before anything else of a command is, and hears
Ctrl-C from then on. In a program of somebody else it does nothing of itself.
"""

import os
import signal
import sys

CODE = 130
"""What a shell calls a command that was stopped with Ctrl-C."""
_said: list[bool] = []
"""Whether anybody was told that the command was stopped."""


def _leave(number: int = 0, frame: object = None) -> None:
    """End the process: nothing is unwound, since what is interrupted may not bear it."""
    try:
        if os.isatty(2):
            os.write(2, b"\x1b[?25h\n")  # a bar hides the cursor
        if first_to_say():
            os.write(2, b"sellf: stopped.\n")
    except OSError:
        pass
    os._exit(CODE)


def first_to_say() -> bool:
    """Return whether nobody was told yet; from now on somebody was."""
    _said.append(True)
    return len(_said) == 1


def _from_the_start() -> None:
    """End at once on Ctrl-C from now on, if this process is a command that begins."""
    first = sys.argv[0] if sys.argv else ""
    module = first == "-m" and _after(sys.orig_argv, "-m") == "sellf"
    script = os.path.basename(first) in ("sellf", "sellf.exe")  # noqa: PTH119
    if (module or script) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _after(words: list[str], word: str) -> str | None:
    place = words.index(word) + 1 if word in words else len(words)
    return words[place] if place < len(words) else None


_from_the_start()

# Only now: these take a while.
import threading  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from typing import Any, Self  # noqa: E402

_requested = threading.Event()
_listens = threading.Event()
"""Whether a command is under way, which may end the process."""
_free = threading.Event()
"""Whether it has nothing to lose now."""


def _usual() -> bool:
    """Return whether Ctrl-C does here what it usually does; only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _leave)


@contextmanager
def listening() -> Iterator[None]:
    """Remember Ctrl-C until the end of a command."""
    usual = _usual()
    _requested.clear()
    _said.clear()
    if not usual:
        yield
        _requested.clear()
        return
    signal.signal(signal.SIGINT, _handle)
    _listens.set()
    hook, sys.unraisablehook = sys.unraisablehook, _unless_interrupted(sys.unraisablehook)
    # The system writes to a pipe at once, also while the main thread is in a library for long.
    end, begin = os.pipe()
    os.set_blocking(begin, False)
    before = signal.set_wakeup_fd(begin, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(end,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(begin)
        sys.unraisablehook = hook
        _listens.clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _requested.clear()


def _unless_interrupted(tell: Any) -> Any:
    """Return a hook that says nothing of Ctrl-C within a callback: it is remembered."""

    def told(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            tell(lost)

    return told


def _watch(end: int) -> None:
    """Leave when Ctrl-C is pressed while there is nothing to lose."""
    while signals := os.read(end, 1):
        if signals[0] == signal.SIGINT and _free.is_set():
            _leave()
    os.close(end)


@contextmanager
def nothing_to_lose() -> Iterator[None]:
    """Let Ctrl-C end a command at once; elsewhere it is as usual."""
    if not _listens.is_set() or threading.current_thread() is not threading.main_thread():
        yield
        return
    _free.set()
    try:
        if requested():
            _leave()
        yield
    finally:
        _free.clear()


def heard() -> None:
    """Note that Ctrl-C was pressed; end a command that has nothing to lose, now or when it has."""
    if _listens.is_set():
        _requested.set()
    if _free.is_set():
        _leave()


def _handle(number: int, frame: object) -> None:
    _requested.set()
    if _free.is_set() or _imports(frame):
        _leave()
    raise KeyboardInterrupt


def _imports(frame: object) -> bool:
    """Return whether a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):  # pyright: ignore
            return True
        frame = frame.f_back  # pyright: ignore
    return False


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
        heard()
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *error: object) -> None:
        if self.mine:
            signal.signal(signal.SIGINT, self.before)
