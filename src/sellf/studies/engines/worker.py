"""A worker process: reads runs from its input, does them, writes folders to its output."""

import os
import sys
import threading
import time

from sellf.studies.engines import frames


def main(core: int, parent: int) -> None:
    """Work until the input ends, or the process that asked.

    Args:
        core: to stay on; -1 for any.
        parent: the process that asked.
    """
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    if core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    # Whatever a library prints must not get between the messages.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # JAX only now: it counts the cores it may use when it starts.
    from sellf.studies.engines.task import attempt

    while (received := frames.receive(sys.stdin.buffer)) is not None:
        message, files = attempt(received[0])
        frames.send(output, message, files)


def _leave_with(parent: int) -> None:
    """End when the process that asked is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
