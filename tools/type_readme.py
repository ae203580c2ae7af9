"""Type what the README says, from top to bottom, in a fresh clone; print how long each part takes.

git clone . /tmp/fresh && cd /tmp/fresh && python3 tools/type_readme.py --without-tests

`--without-tests` leaves `make test` out. Of each part, the time on the clock is printed and, on
Linux, that of the processors. Commands go to one shell, as they would by copy and paste; the Python
of a section goes to one `python` started from it. It ends at the first thing that fails.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

HEADING = re.compile(r"^## ([^\n]+)$|^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return the blocks of each section, as (language, text); Python in a row is one block."""
    found: dict[str, list[tuple[str, str]]] = {}
    title = "(top)"
    for heading, language, block in HEADING.findall(text):
        if heading:
            title = heading
            continue
        blocks = found.setdefault(title, [])
        if language == "python" and blocks and blocks[-1][0] == "python":
            blocks[-1] = (language, blocks[-1][1] + block)
        else:
            blocks.append((language, block))
    return found


def script(found: dict[str, list[tuple[str, str]]]) -> str:
    """Return a script that does all of it and says when each section is over."""
    lines = ["set -e"]
    for title, blocks in found.items():
        for language, block in blocks:
            lines.append(block if language == "sh" else f"python - <<'END'\n{block}END")
        lines.append(f"echo {shlex.quote('@@ ' + title)}")
    return "\n".join(lines) + "\n"


def without_tests(text: str) -> str:
    """Return the page without the command that runs the tests."""
    return re.sub(r"^make test\b.*\n", "", text, flags=re.MULTILINE)


def processor_seconds(process: int) -> float | None:
    """Return what the finished children of a process have used; None where that is not known."""
    try:
        # After the name, which is in brackets: the 14th and 15th numbers are of its children.
        numbers = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(numbers[13]) + int(numbers[14])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def main() -> None:
    """Do it, and print the times."""
    text = Path("README.md").read_text("utf-8")
    if "--without-tests" in sys.argv[1:]:
        text = without_tests(text)
    begin = last = time.perf_counter()
    shell = subprocess.Popen(
        ["bash", "-c", script(sections(text))], stdout=subprocess.PIPE, text=True
    )
    assert shell.stdout is not None
    taken: list[tuple[str, float, float]] = []
    used = 0.0
    for line in shell.stdout:
        if line.startswith("@@ "):
            now = time.perf_counter()
            total = processor_seconds(shell.pid) or 0.0
            taken.append((line[3:].strip(), now - last, total - used))
            last, used = now, total
        else:
            sys.stdout.write(line)
            sys.stdout.flush()
    code = shell.wait()
    print()
    for title, seconds, cpu in taken:
        print(f"{seconds:7.1f} s ({cpu:6.1f} s of processors)  {title}")
    failed = "" if code == 0 else ": FAILED"
    print(f"{time.perf_counter() - begin:7.1f} s ({used:6.1f} s of processors)  in all{failed}")
    sys.exit(code)


if __name__ == "__main__":
    main()
