"""`sellf audit --init LOG`: write a first configuration, from the log's columns and questions."""

import os
import sys
from pathlib import Path
from typing import Any

from sellf import files
from sellf.errors import InputError
from sellf.logs.config import reading_of
from sellf.logs.configured import written
from sellf.logs.databases import is_server
from sellf.logs.guess import guess, look
from sellf.text import plain

ASKED = {
    "group": "Which column names each person's group (race, sex, ...)?",
    "decision": "Which column holds the decision?",
    "accepted_value": "Which value of that column means accepted?",
    "outcome": "Which column holds the outcome (empty: none, to audit shares of decisions only)?",
    "positive_value": "Which value of that column is good?",
}


def init(log: str | None, given: dict[str, Any], out: Path | None, *, yes: bool) -> None:
    """Write a configuration for a log.

    Args:
        log: the file.
        given: the options that were typed.
        out: the file to write; None: audit.toml.
        yes: use what is detected without asking.
    """
    if log is None or is_server(log):
        raise InputError("--init looks at a file: type `sellf audit --init loans.csv`.")
    out = out or Path("audit.toml")
    files.check_output(out, [Path(log)], "--out")
    if out.exists():
        raise InputError(f"{out} exists: type --out with another name, or remove it first.")
    columns = look(log, reading_of(given))
    options, notes = guess(columns, given)
    names = [column.name for column in columns]
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("--init asks questions: type --yes to use what it detects.")
        options = _asked(options, given, names)
    for name in ("group", "decision"):
        if not options.get(name):
            shown = ", ".join(names[:12])
            raise InputError(
                f"no column looks like a {name} ({shown}): type --{name} and the name of one."
            )
    if not options.get("outcome"):
        options.setdefault("notion", "demographic")
        notes["notion"] = "shares of decisions: no column looks like an outcome"
    beside = os.path.relpath(log, out.parent)
    files.write(out, written(beside, options, notes).encode())
    print(plain(f"wrote {out}: read it through, then type `sellf audit {out}`."))


def _asked(options: dict[str, Any], given: dict[str, Any], names: list[str]) -> dict[str, Any]:
    print(plain(f"The log has the columns {', '.join(names)}."))
    found = dict(options)
    for name, question in ASKED.items():
        if given.get(name) or (name.endswith("_value") and name not in options):
            continue
        first = options.get(name, "")
        first = first[0] if isinstance(first, list) and first else first
        answer = input(plain(f"{question} [{first}] ")).strip()
        if not answer:
            continue
        if not name.endswith("_value") and answer not in names:
            raise InputError(f"the log has no column {answer!r}: it has {', '.join(names[:12])}.")
        found[name] = [answer] if name == "group" else answer
    return found
