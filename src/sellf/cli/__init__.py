"""Command line of sellf: parse the arguments, run the command, report errors."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from sellf import interrupts
from sellf._version import __version__
from sellf.errors import InputError


def entry() -> NoReturn:
    """Run `sellf` as a process of its own."""
    try:
        code = main()
    except KeyboardInterrupt:  # during shutdown
        interrupts.leave()
    if code in interrupts.CODES.values():
        sys.stdout.flush()
        sys.stderr.flush()
        # Exit immediately: interrupted code (a compiler, a partial import) may not end cleanly.
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sellf` and return its exit code: 0, or 2 if the command cannot be run as typed."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stderr is None:  # `2>&-`: messages are discarded, and the command still runs
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stdout is None:
        _tell("standard output is closed: type `> FILE`, or `> /dev/null` to discard it.")
        return 2
    if os.environ.get("COLUMNS") in set("123456789"):
        os.environ["COLUMNS"] = "10"  # with fewer columns, the layout of the help never ends
    with interrupts.listening():
        try:
            return _run(arguments or ["--help"])
        except KeyboardInterrupt:  # while an error was being reported
            return _stopped()
        except Exception:
            # A library interrupted during its import may raise another kind of exception.
            if interrupts.requested():
                return _stopped()
            raise


def _run(arguments: Sequence[str]) -> int:
    from sellf.text import plain

    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal cannot encode are escaped instead of raising an error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if arguments in (["--version"], ["-V"]):
            print(f"sellf {__version__}")
            sys.stdout.flush()
            return 0
        from sellf.cli.commands import run

        interrupts.check()
        run(arguments)
        sys.stdout.flush()
        interrupts.check()
    except InputError as error:
        interrupts.check()  # a file whose reading was interrupted may look damaged
        _tell(plain(error.typed))
        return 2
    except ImportError as error:
        from sellf.extras import what_to_type

        sentence = what_to_type(error)
        if sentence is None:
            raise
        _tell(plain(sentence))
        return 2
    except KeyboardInterrupt as error:
        return _stopped(str(error))
    except BrokenPipeError:
        # The reader (`| head`) has closed the pipe; Python would report that again at exit.
        _silence(sys.stdout)
        return 141
    except OSError as error:
        _tell(plain(_of_the_machine(error)))
        try:
            sys.stdout.flush()
        except OSError:  # the output device is full; Python would try again at exit
            _silence(sys.stdout)
        return 2
    except UnicodeEncodeError:
        _tell("a name contains bytes that are not text: rename the file or folder.")
        return 2
    except MemoryError:
        _tell("there is not enough memory for this: process less data at once.")
        return 2
    return 0


def _tell(sentence: str) -> None:
    """Print an error message; if stderr cannot be written either, only the exit code tells."""
    try:
        print(f"sellf: {sentence}", file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def _silence(stream: Any) -> None:
    """Redirect a stream that cannot be written to the null device, or Python fails at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _stopped(sentence: str = "") -> int:
    from sellf.text import plain

    if interrupts.first_to_say():
        _tell(plain(sentence or "stopped."))
    return interrupts.code()


def _of_the_machine(error: OSError) -> str:
    """Return the message for an error of the operating system."""
    named = [str(name) for name in (error.filename, error.filename2) if name is not None]
    what = f"cannot use {' and '.join(named)}" if named else "the system refused something"
    return (
        f"{what}: {error.strerror or error}. Check that it exists, that you may use it and that "
        "there is room; then type the same command again."
    )
