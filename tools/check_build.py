"""Whether what users install works: both archives built, installed apart, and used.

    python tools/check_build.py      (`make check-build`; about two minutes)

The wheel is built from the source archive, and installed with the locked packages and nothing else.
Every command is run from a folder that holds none of the project's files.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMMANDS = {
    "sellf --version": r"^sellf \d+\.\d+",
    "sellf doctor": r"Nothing is broken",
    "sellf demo --log": r"accepted",
    "sellf audit --example --html audit.html": r"UNFAIR at tolerance 0\.05",
    "sellf audit --example --json": r'"verdict": "unfair"',
    "sellf worlds": r"lending",
    "sellf train lending ppo --steps 2048 --quiet --out run": r"",
    "sellf evaluate run --deployments 2 --json": r'"deployments": 2',
    "sellf report run -o run.html": r"",
}
"""What is typed, and what must be in the output."""
FILES = ("audit.html", "run.html")
"""What has been written in the end."""


def step(title: str, *command: str | Path, folder: Path = ROOT) -> str:
    """Run a command and return what it printed; end if it fails."""
    since = time.monotonic()
    # As in a new login: nothing of this project is on any path.
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
    print(f"{time.monotonic() - since:6.1f} s  {title}", flush=True)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Build, install, use."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        dist, environment, here = place / "dist", place / "environment", place / "elsewhere"
        here.mkdir()
        python = environment / "bin" / "python"
        uv = [sys.executable, "-m", "uv", "--quiet"]
        build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, ROOT]
        step("build the source archive, and the wheel from it", *build)
        (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
        step("make an empty environment", *uv, "venv", "--python", sys.executable, environment)
        install = [*uv, "pip", "install", "--python", python]
        locked = ["--require-hashes", "--requirement", ROOT / "locks" / "run.txt"]
        step("install the locked packages", *install, *locked)
        step("install the wheel", *install, "--no-deps", wheel)
        step("see that nothing is missing", *uv, "pip", "check", "--python", python)
        for typed, expected in COMMANDS.items():
            words = typed.split()
            printed = step(typed, environment / "bin" / words[0], *words[1:], folder=here)
            if not re.search(expected, printed, re.MULTILINE):
                sys.exit(f"{expected!r} is not in what was printed:\n{printed}")
        missing = [one for one in FILES if not (here / one).is_file()]
        if missing:
            sys.exit(f"not written: {', '.join(missing)}")
        found = json.loads(step("sellf doctor --json", environment / "bin" / "sellf",
                                "doctor", "--json", folder=here))  # fmt: skip
        if not Path(found["folder"]).is_relative_to(environment):
            sys.exit(f"the package in {found['folder']} was used, not the installed one")
        print(f"{wheel.name} ({wheel.stat().st_size:,} bytes) and {source.name} "
              f"({source.stat().st_size:,} bytes) work.")  # fmt: skip


if __name__ == "__main__":
    main()
