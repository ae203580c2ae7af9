"""A worker that trains nothing: its run's seed says how often it dies first."""

import os
import sys
from pathlib import Path

from sellf.studies.engines import frames

print("noise of a library", file=sys.stderr)
while (received := frames.receive(sys.stdin.buffer)) is not None:
    run = received[0]
    tally = Path(os.environ["FAKE_TALLY"]) / str(run["seed"])
    with tally.open("a") as file:
        file.write(f"{sys.argv[1]}\n")
    if len(tally.read_text().splitlines()) <= run["seed"] % 10:
        os.abort() if run["seed"] >= 10 else os._exit(9)
    if run["steps"] == 1:
        frames.send(sys.stdout.buffer, {"kind": "diverged", "reason": "loss is not a number"})
    else:
        frames.send(sys.stdout.buffer, {}, {"a": b"1\n2", "b": str(run["seed"]).encode()})
