"""Signals that stop a command (Ctrl-C and SIGTERM): not lost, and without harm.

Python raises KeyboardInterrupt wherever it happens to be. Within a callback of a library, or while
a module is imported, that may be caught, only be reported, or break what cannot bear it. So it is
also remembered, and whatever takes long asks before it begins. While a command starts or a program
is compiled, nothing can be lost: there it ends at once, whatever its main thread is at. SIGTERM, by
which a system ends a command, is the same with another exit code, and does not wait for ever.

This module imports next to nothing: it is there before anything else of a command is, and hears
signals from then on. In a program of somebody else it does nothing of itself.
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
"""What a shell calls a command that was stopped by a signal."""
PATIENCE = 10.0
"""Seconds that a command has to end after SIGTERM; whoever sent it may follow with SIGKILL."""
_came: list[int] = []
"""The signals that came, in order."""
_unsaid = [True]
"""Empty once somebody was told that the command was stopped."""
before_leaving: "list[Callable[[], None]]" = []
"""What has to be done even then, such as removing temporary files; from any thread, and quick."""
_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""What happens on these in a Python program that has not chosen anything else."""


def leave(number: int = 0, frame: object = None) -> "NoReturn":
    """End the process: nothing is unwound, since what is interrupted may not bear it."""
    if number:
        _came.append(number)
    try:
        if os.isatty(2):
            os.write(2, b"\x1b[?25h\n")  # a bar hides the cursor
        if first_to_say():
            os.write(2, b"sellf: stopped.\n")
        else:
            time.sleep(0.05)  # another thread is about to say it
        for clean_up in before_leaving:
            clean_up()
    except OSError:
        pass
    os._exit(code())


def code() -> int:
    """Return the exit code of a command that was stopped."""
    return CODES[signal.Signals(_came[0])] if _came else CODES[signal.SIGINT]


def first_to_say() -> bool:
    """Return whether nobody was told yet; from now on somebody was."""
    try:
        return _unsaid.pop()  # by one thread only
    except IndexError:
        return False


def _from_the_start() -> None:
    """End at once on a signal from now on, if this process is a command that begins."""
    first = sys.argv[0] if sys.argv else ""
    module = first == "-m" and _after(sys.orig_argv, "-m") == "sellf"
    script = os.path.basename(first) in ("sellf", "sellf.exe")  # noqa: PTH119
    if not (module or script):
        return
    for number, usual in _USUAL.items():
        if signal.getsignal(number) == usual:
            signal.signal(number, leave)
    # The first that is registered runs last.
    atexit.register(_too_late)


def _too_late() -> None:
    """Let a command that has done everything end as it would."""
    for number in CODES:
        if signal.getsignal(number) == leave:
            signal.signal(number, signal.SIG_IGN)


def _after(words: list[str], word: str) -> str | None:
    place = words.index(word) + 1 if word in words else len(words)
    return words[place] if place < len(words) else None


_from_the_start()

# Only now: these take a while.
import threading  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from typing import Any, Self  # noqa: E402

_listens = threading.Event()
"""Whether a command is under way, which may end the process."""
_free = threading.Event()
"""Whether it has nothing to lose now."""
_heard: dict[int, Any] = {}
"""What happened on the signals that are heard before they were."""


def _usual() -> dict[int, Any]:
    """Return what happens on signals that do here what they usually do, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}  # gets none
    found = {number: signal.getsignal(number) for number in CODES}
    return {number: own for number, own in found.items() if own in (_USUAL[number], leave)}


@contextmanager
def listening() -> Iterator[None]:
    """Remember signals until the end of a command."""
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
        for number, handler in _heard.items():
            signal.signal(number, handler)
        _heard.clear()
        _came.clear()


def keep() -> None:
    """Hear signals again, after a library may have taken them for itself."""
    for number in _heard:
        signal.signal(number, _handle)


def _unless_interrupted(tell: Any) -> Any:
    """Return a hook that says nothing of a signal within a callback: it is remembered."""

    def told(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            tell(lost)

    return told


def _watch(end: int) -> None:
    """Leave on a signal while there is nothing to lose, or if nothing else comes of SIGTERM."""
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
    """Let a signal end a command at once; elsewhere it is as usual."""
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
    """Note that a signal came; end a command that has nothing to lose, now or when it has."""
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
    """Return whether a command is to stop."""
    return bool(_came)


def check() -> None:
    """Stop here if a signal came and got lost."""
    if requested():
        raise KeyboardInterrupt


class DeferredInterrupt:
    """Signals that let the iteration under way finish first; a second one stops at once."""

    def __init__(self) -> None:
        """Begin without a request."""
        self.requested = False

    def __enter__(self) -> Self:
        # Only the main thread gets signals; elsewhere a training is stopped by whoever started it.
        # SIGTERM is for commands only: in a program of somebody else it stays what it is.
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
