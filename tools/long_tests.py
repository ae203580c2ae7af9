"""Make tests/long.txt: the tests that take longest, from the times of whole runs.

    python -m pytest --junitxml build/default.xml
    python -m pytest -m "long and not slow" --junitxml build/long.xml
    python tools/long_tests.py build/default.xml build/long.xml --share 0.5

The tests that take the longest are listed until those left take this share of all the time. Tests
in `KEPT` stay in the default run, however long they take: each stands for a whole kind.
"""

import argparse
from pathlib import Path
from xml.etree import ElementTree

KEPT = (
    "one_seed_gives_one_agent[ppo]",
    "one_seed_gives_one_agent[sellf]",
    "one_seed_gives_one_agent[sellf-direct]",
    "bit_for_bit[recidivism-ppo-accuracy]",
    "test_the_commands_run",
    "test_a_hook_that_asks_its_space_for_the_label_law_does_not_pass_type_checking",
    "test_what_is_imported_is_declared",
    "test_two_studies_on_one_store_do_every_run_once",
    "test_the_same_rows_are_the_same_log",
    "test_sigterm_saves_a_training",
    "hold_in_accuracy[rates0]",
)
LIST = Path(__file__).parent.parent / "tests" / "long.txt"
HEADER = (
    "# The tests that take the longest, made by tools/long_tests.py: `make test-long` and CI run "
    "them.\n"
)


def times(paths: list[Path]) -> dict[str, float]:
    """Return the seconds of each test, by its name."""
    found: dict[str, float] = {}
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
            found[name] = found.get(name, 0.0) + float(case.get("time", 0))
    return found


def main() -> None:
    """Choose and write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", type=Path, nargs="+", help="JUnit files of whole runs")
    parser.add_argument("--share", type=float, default=0.5, help="of the time, for the default run")
    given = parser.parse_args()
    found = times(given.reports)
    left, limit = sum(found.values()), given.share * sum(found.values())
    chosen: list[str] = []
    for name in sorted(found, key=lambda name: -found[name]):
        if left <= limit:
            break
        if not any(kept in name for kept in KEPT):
            chosen.append(name)
            left -= found[name]
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in sorted(chosen)))
    print(f"{len(chosen)} of {len(found)} tests; {left:.0f} of {sum(found.values()):.0f} s left")


if __name__ == "__main__":
    main()
