"""A worker process: reads runs from its input, executes them and writes folders to its output."""

import os
import sys
import threading
import time

from sellf.studies.engines import frames


def main(core: int, parent: int) -> None:
    """Work until the input or the parent process ends.

    Args:
        core: the core to run on; -1 for any.
        parent: id of the parent process.
    """
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    if core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    # Output of libraries must not be mixed with the messages.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # JAX is imported only now, since it counts the usable cores when it starts.
    from sellf.studies.engines.task import attempt

    while (received := frames.receive(sys.stdin.buffer)) is not None:
        message, files = attempt(received[0])
        frames.send(output, message, files)


def _leave_with(parent: int) -> None:
    """End this process when the parent process has ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
