"""Measure how often intervals of `sellf.whatif` and `sellf.cutoffs` hold, on known truths.

    python tools/measure_whatif.py build/whatif --seconds 300  # hours; goes on where it was stopped
    python tools/measure_whatif.py build/whatif --seconds 3    # every cell for three seconds

People have one feature with many equally likely values, so every truth is a finite sum. A cell is a
logging policy, a proposed policy, a size, a kind of score, base rates and a notion; acceptance,
reward, the notion by group, its disparity and all paired changes of a log are judged, each an
interval of its own. One cell in twenty is a curve of cut-offs, judged all at once. A cell is held
against its promise by an exact binomial test on the worst of its intervals, corrected for the
number of intervals of all cells (Holm).
"""

import argparse
import csv
import json
import sys
import time
import zlib
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from sellf.fairness.notions import TABLE, Rate
from sellf.offline.cutoffs import cutoffs
from sellf.offline.whatif import whatif

LEVELS = 4_000
X = (np.arange(LEVELS) + 0.5) / LEVELS
COST = 0.6
COLUMNS = {"group": "group", "decision": "accepted", "outcome": "outcome"}
LOGGING = {
    "wide": 0.1 + 0.8 * X,
    "rule 2%": np.where(X > 0.5, 1.0, 0.02),
    "rule 10%": np.where(X > 0.5, 0.95, 0.1),
    "halves": np.where(X > 0.5, 0.8, 0.2),
    "no overlap": np.where(X < 0.3, 0.0, 0.9),
}
PROPOSED = {
    "near": np.where((X > 0.45) & (X < 0.55), 1.0, -1.0),
    "rule": (X > 0.4).astype(float),
    "opposite": (X < 0.3).astype(float),
    "everybody": np.ones(LEVELS),
    "soft": 0.2 + 0.6 * X**2,
}
SIZES = ((200, 200), (1_000, 400), (5_000, 2_000))
RATES = ((0.4, 0.6), (0.02, 0.9))
SCORES = ("true", "wrong", "none")
NOTIONS = tuple(n for n, entry in TABLE.items() if len(entry.rates) == 1 and not entry.delayed)
CURVES = 20
"""One cell in so many is a curve of cut-offs."""


@dataclass(frozen=True)
class Cell:
    """What logs are drawn from."""

    logging: str
    proposed: str
    sizes: tuple[int, int]
    rates: tuple[float, float]
    score: str
    notion: str
    curve: bool = False

    @property
    def name(self) -> str:
        """For tables."""
        policy = "cut-offs" if self.curve else self.proposed
        people = f"{self.sizes}, {self.rates}, score {self.score}"
        return f"{self.logging} -> {policy}, {people}, {self.notion}"


def cells() -> list[Cell]:
    """Return all cells, in an order that mixes them."""
    every = [Cell(*one) for one in product(LOGGING, PROPOSED, SIZES, RATES, SCORES, NOTIONS)]
    order = np.random.default_rng(0).permutation(len(every))
    return [replace(every[k], curve=i % CURVES == 0) for i, k in enumerate(order)]


def law(cell: Cell, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the chance of a good outcome, the propensity and the proposed chance by level."""
    rate = cell.rates[group]
    good = rate + 1.3 * min(rate, 1 - rate) * (X - 0.5)
    p = LOGGING[cell.logging]
    pi = PROPOSED[cell.proposed]
    return good, p, np.where(pi < 0, p, pi)


def utility(rate: Rate, pi: np.ndarray, good: np.ndarray) -> float:
    """Return a group's utility under a policy; NaN if it is about nobody."""
    slope, level = rate.of.by_label(pi)
    below, base = rate.among.by_label(pi)
    whole = float(np.mean(below * good + base))
    return float(np.mean(slope * good + level)) / whole if whole > 0 else np.nan


def truth(cell: Cell) -> dict[tuple[str, Any, str], float]:
    """Return every figure by measure, group and kind."""
    sizes = np.array(cell.sizes) / sum(cell.sizes)
    found: dict[tuple[str, Any, str], float] = {}
    by: dict[tuple[str, str], list[float]] = {}
    earned = {"now": 0.0, "proposed": 0.0}
    accepted = {"now": 0.0, "proposed": 0.0}
    for group in (0, 1):
        good, p, new = law(cell, group)
        for kind, pi in (("now", p), ("proposed", new)):
            earned[kind] += sizes[group] * float((pi * (good - COST)).mean())
            accepted[kind] += sizes[group] * float(pi.mean())
            for name, definition in TABLE.items():
                if len(definition.rates) > 1 or definition.delayed:
                    continue
                rate = definition.alone
                by.setdefault((name, kind), []).append(utility(rate, pi, good))
    for (name, kind), values in by.items():
        for group in (0, 1):
            found[name, group, kind] = values[group]
        found[name, None, kind] = abs(values[1] - values[0])
    for kind in ("now", "proposed"):
        found["reward", None, kind] = earned[kind]
        found["acceptance", None, kind] = accepted[kind]
        for group in (0, 1):
            found["acceptance", group, kind] = found["demographic", group, kind]
    for name, group in {(name, group) for name, group, _ in found}:
        found[name, group, "change"] = found[name, group, "proposed"] - found[name, group, "now"]
    return found


def draw(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    """Return a log."""
    # The group of each row is drawn, so that everybody together is a sample of the population.
    group = (rng.random(sum(cell.sizes)) < cell.sizes[1] / sum(cell.sizes)).astype(int)
    level = rng.integers(LEVELS, size=len(group))
    parts = [law(cell, g) for g in (0, 1)]
    good, p, new = (np.stack([part[k] for part in parts])[group, level] for k in range(3))
    accepted = (rng.random(len(group)) < p).astype(int)
    label = (rng.random(len(group)) < good).astype(float)
    log = {
        "group": group,
        "accepted": accepted,
        "outcome": np.where(accepted == 1, label, np.nan),
        "p": p,
        "new": new,
        "x": X[level],
    }
    if cell.score != "none":
        log["score"] = good if cell.score == "true" else 1 - good
    return log


def measure(cell: Cell, logs: int, start: int = 0) -> dict[str, list[int]]:
    """Return how often each interval missed, of how many logs."""
    true = truth(cell)
    missed: dict[str, list[int]] = {}
    for number in range(start, start + logs):
        rng = np.random.default_rng([20, number, zlib.crc32(cell.name.encode())])
        log = draw(cell, rng)
        columns: dict[str, Any] = dict(COLUMNS)
        columns |= {"propensity": "p"} | ({"score": "score"} if "score" in log else {})
        found = whatif(log, policy="new", cost=COST, notions=[cell.notion], seed=number, **columns)
        for change in found.changes:
            for kind in ("now", "proposed", "change"):
                value = true[change.measure, change.group, kind]
                ends = getattr(change, kind)
                if np.isnan(value):
                    continue
                key = f"{change.measure}|{change.group}|{kind}"
                own = missed.setdefault(key, [0, 0])
                own[0] += not ends.low - 1e-9 <= value <= ends.high + 1e-9
                own[1] += 1
    return missed


def measure_curve(cell: Cell, logs: int, start: int = 0) -> dict[str, list[int]]:
    """Return how often any rule's disparity or reward missed, of how many curves."""
    missed, places = [0, 0], [float(x) for x in np.linspace(0.1, 0.9, 5)]
    rate = TABLE[cell.notion].alone
    for number in range(start, start + logs):
        rng = np.random.default_rng([21, number, zlib.crc32(cell.name.encode())])
        log = draw(cell, rng)
        columns: dict[str, Any] = dict(COLUMNS)
        columns |= {"propensity": "p"} | ({"score": "score"} if "score" in log else {})
        how: dict[str, Any] = {"cost": COST, "notion": cell.notion, "seed": number}
        found = cutoffs(log, by="x", at=places, **how, **columns)
        out = [False, False]
        for rule in found.rules:
            pi = (rule.at[0] <= X).astype(float)
            goods = [law(cell, g)[0] for g in (0, 1)]
            chances = [utility(rate, pi, good) for good in goods]
            shares = np.array(cell.sizes) / sum(cell.sizes)
            earned = sum(
                s * float((pi * (g - COST)).mean()) for s, g in zip(shares, goods, strict=True)
            )
            gap = abs(chances[1] - chances[0])
            out[0] |= not rule.disparity.low - 1e-9 <= gap <= rule.disparity.high + 1e-9
            out[1] |= not rule.reward.low - 1e-9 <= earned <= rule.reward.high + 1e-9
        missed = [missed[0] + out[0], missed[1] + out[1]]
    return {
        "disparity|None|cut-offs at once": [missed[0], logs],
        "reward|None|cut-offs at once": [missed[1], logs],
    }


def judge(results: dict[str, dict[str, list[int]]]) -> list[dict[str, Any]]:
    """Return one row a cell, with the worst of its intervals and whether it breaks its promise."""
    pvalues = []
    for name, own in results.items():
        for key, (missed, logs) in own.items():
            # Intervals of groups share delta between them.
            level = 0.05 if key.split("|")[1] == "None" else 0.025
            pvalues.append((float(binom.sf(missed - 1, logs, level)), name, key))
    pvalues.sort()
    adjusted = {
        (name, key): min(1.0, p * (len(pvalues) - k)) for k, (p, name, key) in enumerate(pvalues)
    }
    rows = []
    for name, own in results.items():
        worst = min(own, key=lambda key: adjusted[name, key])
        total = np.sum(list(own.values()), axis=0)
        rows.append(
            {
                "cell": name,
                "logs": max(logs for _, logs in own.values()),
                "intervals": int(total[1]),
                "covered": 1 - total[0] / total[1],
                "worst": worst,
                "worst missed": own[worst][0],
                "adjusted p": adjusted[name, worst],
            }
        )
    return rows


def run_cell(cell: Cell, own: dict[str, list[int]], options: argparse.Namespace) -> float:
    """Measure a cell until its time or its logs are used up; return the seconds it took."""
    begun = time.process_time()
    while time.process_time() - begun < options.seconds:
        have = max((logs for _, logs in own.values()), default=0)
        if have >= options.logs:
            break
        judged = measure_curve if cell.curve else measure
        for key, (missed, logs) in judged(
            cell, min(options.slice, options.logs - have), have
        ).items():
            before = own.setdefault(key, [0, 0])
            own[key] = [before[0] + missed, before[1] + logs]
    return time.process_time() - begun


def write(folder: Path, results: dict[str, dict[str, list[int]]]) -> list[dict[str, Any]]:
    """Keep what was measured, and return one row a cell."""
    store = folder / "coverage.json"
    beside = store.with_suffix(".part")
    beside.write_text(json.dumps(results))
    beside.replace(store)
    rows = judge(results)
    with (folder / "coverage.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def summary(results: dict[str, dict[str, list[int]]], rows: list[dict[str, Any]]) -> str:
    """Return what was found in a few lines, with what could have been found."""
    kinds: dict[str, list[int]] = {}
    for own in results.values():
        for key, (missed, logs) in own.items():
            _, group, kind = key.split("|")
            name = kind if group == "None" else f"{kind}, by group"
            found = kinds.setdefault(name, [0, 0])
            kinds[name] = [found[0] + missed, found[1] + logs]
    lines = ["| interval | intervals | missed |", "| --- | ---: | ---: |"]
    for name, (missed, logs) in sorted(kinds.items()):
        lines.append(f"| {name} | {logs:,} | {missed / logs:.2%} |")
    logs = [row["logs"] for row in rows]
    worst = min(rows, key=lambda row: row["adjusted p"])
    typical = int(np.median(logs))
    tests = sum(len(own) for own in results.values())
    level = 0.05 / tests
    needed = int(binom.isf(level, typical, 0.05)) + 1
    shares = (q / 100 for q in range(5, 101))
    seen = next((q for q in shares if binom.sf(needed - 1, typical, q) >= 0.9), 1.0)
    lines += [
        "",
        f"{len(rows)} cells, {min(logs)} to {max(logs)} logs each (median {typical}); worst cell: "
        f"{worst['cell']}, {worst['worst']}, missed {worst['worst missed']}, adjusted p "
        f"{worst['adjusted p']:.3f}. With {typical} logs and {tests:,} tests, an interval that "
        f"misses {seen:.0%} of the time would be found with a chance of 90 %.",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description="How often what-if intervals hold.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=1000, help="at most so many logs a cell")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--slice", type=int, default=5, help="logs of a cell at a time")
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for a cell")
    parser.add_argument("--most", type=float, default=1e9, help="seconds of the processor in all")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    store = options.folder / "coverage.json"
    results: dict[str, dict[str, list[int]]] = (
        json.loads(store.read_text()) if store.exists() else {}
    )
    chosen = cells()[: options.cells]
    # Those that have the fewest logs first, so that every start goes on where the last one ended.
    chosen.sort(key=lambda c: max((n for _, n in results.get(c.name, {}).values()), default=0))
    spent = 0.0
    for cell in chosen:
        if spent >= options.most:
            break
        own = results.setdefault(cell.name, {})
        spent += run_cell(cell, own, options)
        write(options.folder, results)
    print(summary(results, write(options.folder, results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
