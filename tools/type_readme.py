"""Type what the README says, from top to bottom, in a fresh clone; print how long each part takes.

git clone . /tmp/fresh && cd /tmp/fresh && python3 tools/type_readme.py

Commands go to one shell, as they would by copy and paste; the Python of a section goes to one
`python` started from it. It ends at the first thing that fails.
"""

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


def main() -> None:
    """Do it, and print the times."""
    text = Path("README.md").read_text("utf-8")
    begin = last = time.perf_counter()
    shell = subprocess.Popen(
        ["bash", "-c", script(sections(text))], stdout=subprocess.PIPE, text=True
    )
    assert shell.stdout is not None
    taken: list[tuple[str, float]] = []
    for line in shell.stdout:
        if line.startswith("@@ "):
            now = time.perf_counter()
            taken.append((line[3:].strip(), now - last))
            last = now
        else:
            sys.stdout.write(line)
            sys.stdout.flush()
    code = shell.wait()
    print()
    for title, seconds in taken:
        print(f"{seconds:7.1f} s  {title}")
    print(f"{time.perf_counter() - begin:7.1f} s  in all" + ("" if code == 0 else ": FAILED"))
    sys.exit(code)


if __name__ == "__main__":
    main()
