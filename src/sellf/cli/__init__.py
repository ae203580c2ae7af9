"""The command line: parse, call, print."""

import os
import sys
from collections.abc import Sequence

from sellf import __version__
from sellf.errors import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sellf` and return its exit code: 0, or 2 for something that cannot be done as typed."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        print(f"sellf {__version__}")
        return 0
    from sellf.cli.commands import run

    try:
        run(arguments or ["--help"])
        sys.stdout.flush()
    except InputError as error:
        print(f"sellf: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        from sellf.extras import what_to_type

        sentence = what_to_type(error)
        if sentence is None:
            raise
        print(f"sellf: {sentence}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output (`| head`) has seen enough; Python would complain on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0
