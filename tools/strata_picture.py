"""Draw Simpson's paradox for docs/audit.md: `python tools/strata_picture.py`."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

import sellf

TARGET = Path(__file__).resolve().parents[1] / "docs" / "assets" / "simpson.svg"
CELLS = (
    ("men", "engineering", 800, 480),
    ("women", "engineering", 200, 140),
    ("men", "arts", 200, 40),
    ("women", "arts", 800, 240),
)


def main() -> None:
    """Draw it."""
    log: dict[str, list[Any]] = {"sex": [], "faculty": [], "admitted": []}
    for sex, faculty, people, admitted in CELLS:
        log["sex"] += [sex] * people
        log["faculty"] += [faculty] * people
        log["admitted"] += [1] * admitted + [0] * (people - admitted)
    found: Any = sellf.audit(
        log, group="sex", decision="admitted", notion="demographic", within="faculty",
        reference="men", seed=0,
    )  # fmt: skip
    # The same file each time.
    mpl.rcParams["svg.hashsalt"] = "strata"
    found.measures["within"].plot().savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
