"""Handling of signals that stop a command (Ctrl-C and SIGTERM), safely and without losing any.

Python raises KeyboardInterrupt at whatever point it has reached. Within a callback of a library, or
during an import, the exception may be swallowed, only be reported, or leave a broken state. So the
signal is also recorded, and long steps check for it before they begin. While a command starts or a
program is compiled, no work can be lost: there a signal ends the process immediately, whatever the
main thread is doing. SIGTERM is treated the same, with another exit code and a time limit.

This module imports very little, so that it is loaded before the rest of a command and handles
signals from then on. When imported by another program, it does nothing on its own.
"""

import atexit
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""The exit codes by which shells denote a command that was stopped by a signal."""
PATIENCE = 10.0
"""Seconds in which a command has to end after SIGTERM, before a SIGKILL may follow."""
_came: list[int] = []
"""The signals that were received, in order."""
_unsaid = [True]
"""Empty once the message that the command was stopped has been printed."""
before_leaving: "list[Callable[[], None]]" = []
"""Cleanup to do before exiting, such as removing temporary files; quick, and safe in any thread."""
_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""Python's default handlers of these signals."""


def leave(number: int = 0, frame: object = None) -> "NoReturn":
    """End the process without unwinding the stack, which interrupted code may not support."""
    if number:
        _came.append(number)
    try:
        if os.isatty(2):
            os.write(2, b"\x1b[?25h\n")  # a progress bar hides the cursor
        if first_to_say():
            os.write(2, b"sellf: stopped.\n")
        else:
            time.sleep(0.05)  # another thread is about to print it
        for clean_up in before_leaving:
            clean_up()
    except OSError:
        pass
    os._exit(code())


def code() -> int:
    """Return the exit code of a command that was stopped."""
    return CODES[signal.Signals(_came[0])] if _came else CODES[signal.SIGINT]


def first_to_say() -> bool:
    """Return whether the message has not been printed yet, and mark it as printed."""
    try:
        return _unsaid.pop()  # succeeds in one thread only
    except IndexError:
        return False


def _from_the_start() -> None:
    """Exit immediately on signals from now on, if this process is a `sellf` command."""
    first = sys.argv[0] if sys.argv else ""
    module = first == "-m" and _after(sys.orig_argv, "-m") == "sellf"
    script = os.path.basename(first) in ("sellf", "sellf.exe")  # noqa: PTH119
    if not (module or script):
        return
    for number, usual in _USUAL.items():
        if signal.getsignal(number) == usual:
            signal.signal(number, leave)
    # The first function that is registered runs last.
    atexit.register(_too_late)


def _too_late() -> None:
    """Ignore signals at the end of a command, which has done its work."""
    for number in CODES:
        if signal.getsignal(number) == leave:
            signal.signal(number, signal.SIG_IGN)


def _after(words: list[str], word: str) -> str | None:
    place = words.index(word) + 1 if word in words else len(words)
    return words[place] if place < len(words) else None


_from_the_start()

# Imported only now, since these are slow.
import threading  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from typing import Any, Self  # noqa: E402

_listens = threading.Event()
"""Set while a command is running, which may end the process."""
_free = threading.Event()
"""Set while the command has no work to lose."""
_heard: dict[int, Any] = {}
"""The previous handlers of the signals that are handled here."""


def _usual() -> dict[int, Any]:
    """Return the handlers of signals that have their default behaviour, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}  # receives no signals
    found = {number: signal.getsignal(number) for number in CODES}
    return {number: own for number, own in found.items() if own in (_USUAL[number], leave)}


@contextmanager
def listening() -> Iterator[None]:
    """Record signals until the end of a command."""
    _came.clear()
    _unsaid[:] = [True]
    _heard.update(_usual())
    if not _heard:
        yield
        _came.clear()
        return
    keep()
    _listens.set()
    hook, sys.unraisablehook = sys.unraisablehook, _unless_interrupted(sys.unraisablehook)
    # Signals are written to a pipe immediately, even while the main thread is busy in a library.
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
        for number, handler in _heard.items():
            signal.signal(number, handler)
        _heard.clear()
        _came.clear()


def keep() -> None:
    """Install the handlers again, in case a library has replaced them."""
    for number in _heard:
        signal.signal(number, _handle)


def _unless_interrupted(tell: Any) -> Any:
    """Return a hook that does not report a signal within a callback, since it is recorded."""

    def told(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            tell(lost)

    return told


def _watch(end: int) -> None:
    """Exit on a signal while there is nothing to lose, or some time after SIGTERM."""
    late = threading.Timer(PATIENCE, leave)
    late.daemon = True
    while signals := os.read(end, 1):
        number = signals[0]
        if number in _heard and _free.is_set():
            leave(number)
        if number in _heard and number == signal.SIGTERM and not late.is_alive():
            late.start()
    late.cancel()
    os.close(end)


@contextmanager
def nothing_to_lose() -> Iterator[None]:
    """Let a signal end the command immediately within this context."""
    if not _listens.is_set() or threading.current_thread() is not threading.main_thread():
        yield
        return
    _free.set()
    try:
        if requested():
            leave()
        yield
    finally:
        _free.clear()


def heard(number: int = signal.SIGINT) -> None:
    """Record a signal, and end the command if it has nothing to lose."""
    if _listens.is_set():
        _came.append(number)
    if _free.is_set():
        leave(number)


def _handle(number: int, frame: object) -> None:
    _came.append(number)
    if _free.is_set() or _imports(frame):
        leave()
    raise KeyboardInterrupt


def _imports(frame: object) -> bool:
    """Return whether a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):  # pyright: ignore
            return True
        frame = frame.f_back  # pyright: ignore
    return False


def requested() -> bool:
    """Return whether a signal has asked the command to stop."""
    return bool(_came)


def check() -> None:
    """Raise KeyboardInterrupt if a signal was received and its exception was lost."""
    if requested():
        raise KeyboardInterrupt


class DeferredInterrupt:
    """Let the current iteration finish after a signal; a second signal stops immediately."""

    def __init__(self) -> None:
        """Start without a request to stop."""
        self.requested = False

    def __enter__(self) -> Self:
        # Only the main thread receives signals; in other threads the caller stops a training.
        # SIGTERM is handled in commands only: in other programs its handler is not changed.
        self.before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in {signal.SIGINT, *_heard}:
                self.before[number] = signal.signal(number, self._handle)
            check()
        return self

    def _handle(self, number: int, frame: object) -> None:
        heard(number)
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
