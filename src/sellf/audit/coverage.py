"""How often intervals hold: simulated logs whose truth is known, over sizes, rarities and policies.

`python -m sellf.audit.coverage docs/audit` writes the table; see --help. A cell counts how often
the disparity's interval holds, how often those of all groups do, and how often the former misses in
the way that would call an unfair system fair: with its upper end below the truth.
"""

import argparse
import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from sellf.audit import bernstein, exact, pairs
from sellf.audit.rows import Rows
from sellf.audit.scores import Floats, Person
from sellf.audit.sums import add_up
from sellf.audit.verdict import Ends, absolute, difference
from sellf.fairness.notions import NOTIONS, Counts, Notion, utility

SETTINGS = ("plain", "rare outcome", "extreme propensity", "both")
SIZES = (200, 2_000, 20_000)
GROUPS = (2, 6)
DELTA = 0.05
OVERLAP = 0.01


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    method: str
    setting: str
    notion: Notion
    groups: int
    size: int
    """People in each group."""
    logs: int
    truth: float
    """The disparity."""
    coverage: float
    """The share of logs whose interval holds the truth."""
    groups_covered: float
    """The share of logs in which the interval of every group does."""
    false_fair: float
    """The share whose upper end is below the truth."""
    width: float
    """The mean width."""


def policy(setting: str, group: int, x: Floats) -> tuple[Floats, Floats]:
    """Return the chances of a good outcome and of acceptance of people with feature x in [0, 1]."""
    tilt = 0.06 * group
    if setting in ("rare outcome", "both"):
        good = 0.004 + (0.012 - 0.001 * group) * x
    else:
        good = 0.15 + tilt + (0.65 - tilt) * x
    if setting in ("extreme propensity", "both"):
        return good, 0.02 + (0.9 - tilt) * x**3
    return good, 0.1 + (0.85 - tilt) * x


def truths(setting: str, groups: int) -> dict[Notion, Floats]:
    """Return each group's true utility, by notion."""
    x = (np.arange(200_000) + 0.5) / 200_000
    rows = []
    for group in range(groups):
        good, accept = policy(setting, group, x)
        rows.append((1.0, accept.mean(), (accept * good).mean(), ((1 - accept) * good).mean()))
    counts = Counts(*np.array(rows).T)
    return {notion: utility(notion, counts) for notion in NOTIONS}


def draw(rng: np.random.Generator, setting: str, group: int, size: int, score: bool) -> Person:
    """Return the rows of one group, with a rough score or with none."""
    x = rng.random(size)
    good, accept = policy(setting, group, x)
    accepted = (rng.random(size) < accept).astype(float)
    label = rng.random(size) < good
    # A score that knows half of what there is to know.
    guess = 0.5 * good + 0.5 * good.mean() if score else None
    return Person(accepted, accepted * label, accept, guess)


def study(
    setting: str, groups: int, size: int, logs: int, *, method: str = "betting", seed: int = 0
) -> list[Cell]:
    """Return one cell a notion.

    Args:
        setting: one of `SETTINGS`.
        groups: how many groups.
        size: people in each.
        logs: how many logs; every other one comes with a score.
        method: "betting", "bernstein" or "asymptotic".
        seed: of the simulation.
    """
    true = truths(setting, groups)
    spans: dict[Notion, list[Any]] = {notion: [] for notion in NOTIONS}
    key = [seed, SETTINGS.index(setting), groups, size]
    for log in range(logs):
        rng = np.random.default_rng([*key, log])
        people = [draw(rng, setting, group, size, log % 2 == 1) for group in range(groups)]
        sides = _ends(people, method)
        for notion in NOTIONS:
            low, high = sides[notion]
            held = np.all((low <= true[notion]) & (true[notion] <= high))
            span = difference(sides[notion], true[notion])
            if method == "betting" and groups == 2:
                how: dict[str, Any] = {"delta": DELTA, "overlap": OVERLAP}
                span = absolute(*pairs.difference(notion, *people, **how), true[notion])
            spans[notion].append((*span, held))
    cells = []
    for notion in NOTIONS:
        low, _, high, held = np.array(spans[notion]).T
        truth = float(np.ptp(true[notion]))
        cells.append(
            Cell(
                method,
                setting,
                notion,
                groups,
                size,
                logs,
                truth,
                float(np.mean((low <= truth) & (truth <= high))),
                float(np.mean(held)),
                float(np.mean(high < truth)),
                float(np.mean(high - low)),
            )
        )
    return cells


def _ends(people: list[Person], method: str) -> dict[Notion, Ends]:
    alpha = DELTA / len(people)
    found: dict[Notion, Ends] = {}
    if method == "asymptotic":
        return _asymptotic(people)
    for notion in NOTIONS:
        pairs = []
        for person in people:
            if method == "betting":
                pair = exact.interval(notion, person, alpha=alpha, overlap=OVERLAP)
            else:
                codes = np.zeros(len(person.accepted), dtype=np.intp)
                sums = add_up(codes, 1, person, OVERLAP).by_group().group(0)
                predicted = person.prediction is not None
                how = {"overlap": OVERLAP, "predicted": predicted, "trusted": False}
                pair = bernstein.interval(notion, sums, alpha=alpha, **how)
            pairs.append(pair)
        low, high = np.array(pairs).T
        found[notion] = Ends(low, high)
    return found


def _asymptotic(people: list[Person]) -> dict[Notion, Ends]:
    """Return normal intervals after cross-fitting on one feature, its true propensity unknown."""
    from sellf.audit.columns import Columns
    from sellf.audit.evidence import gather
    from sellf.audit.judge import intervals

    size = len(people[0].accepted)
    codes = np.repeat(np.arange(len(people)), size)
    accept = np.concatenate([p.propensity for p in people if p.propensity is not None])
    person = Person(
        np.concatenate([p.accepted for p in people]),
        np.concatenate([p.positive for p in people]),
        None,
        None,
    )
    # Linear in the feature is what logistic regression can learn: the propensity, not the outcome.
    feature = np.log(accept / (1 - accept))
    rows = Rows(list(range(len(people))), codes, person, features={"x": feature})
    columns = Columns(("group",), "decision", "outcome", features=("x",))
    evidence = gather(rows, columns, overlap=None, model="logistic", anytime=False)
    return {notion: intervals(notion, evidence, delta=DELTA)[0] for notion in NOTIONS}


def markdown(cells: list[Cell]) -> str:
    """Return the cells as a table for people."""
    lines = [
        "| method | setting | groups | people a group | notion | logs | true disparity | covered "
        "| all groups covered | called fair though not | mean width |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {c.method} | {c.setting} | {c.groups} | {c.size:,} | {c.notion} | {c.logs:,} | "
        f"{c.truth:.4f} | {c.coverage:.1%} | {c.groups_covered:.1%} | {c.false_fair:.1%} | "
        f"{c.width:.3f} |"
        for c in cells
    ]
    return "\n".join(lines)


def write(folder: Path, cells: list[Cell]) -> None:
    """Write the table and the figures, each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    exact_cells = [cell for cell in cells if cell.method != "asymptotic"]
    worst = min(exact_cells, key=lambda cell: cell.coverage)
    fair = max(exact_cells, key=lambda cell: cell.false_fair)
    text = (
        "# How often the intervals hold\n\n"
        "Made by `python -m sellf.audit.coverage docs/audit`; 95 % confidence, disparity over all "
        "groups. Every other log comes with a rough score, the others with none. *Called fair "
        "though not*: the interval's upper end lies below the truth, so that some tolerance would "
        "wrongly be met.\n\n"
        f"Worst of the finite-sample cells: {worst.coverage:.1%} covered ({worst.method}, "
        f"{worst.setting}, {worst.notion}, {worst.groups} groups of {worst.size:,}); called fair "
        f"though not: {fair.false_fair:.1%} at most.\n\n" + markdown(cells) + "\n"
    )
    _replace(folder / "coverage.md", text)
    rows = [list(vars(cells[0])), *(list(vars(cell).values()) for cell in cells)]
    part = folder / "coverage.csv.part"
    with part.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    part.replace(folder / "coverage.csv")


def _replace(path: Path, text: str) -> None:
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Run the whole study."""
    parser = argparse.ArgumentParser(prog="python -m sellf.audit.coverage")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=2000, help="logs in each cell")
    parser.add_argument("--asymptotic-logs", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    options = parser.parse_args(arguments)
    cells: list[Cell] = []
    for size in options.sizes:
        for setting in SETTINGS:
            for groups in GROUPS:
                for method in ("betting", "bernstein", "asymptotic"):
                    if method == "asymptotic" and (groups > 2 or size > 2000):
                        continue
                    start = perf_counter()
                    logs = options.asymptotic_logs if method == "asymptotic" else options.logs
                    found = study(setting, groups, size, logs, method=method)
                    # Acceptance is seen, so that nothing about it is asymptotic.
                    hidden = [cell for cell in found if cell.notion != "demographic"]
                    cells += hidden if method == "asymptotic" else found
                    worst = min(cell.coverage for cell in found)
                    seconds = perf_counter() - start
                    print(f"{method}, {setting}, {groups} x {size}: {worst:.3f} ({seconds:.0f} s)",
                          flush=True)  # fmt: skip
    order = {"betting": 0, "bernstein": 1, "asymptotic": 2}
    cells.sort(key=lambda cell: (order[cell.method], cell.size, SETTINGS.index(cell.setting)))
    write(options.folder, cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
