"""How often the panel's intervals hold: 200 designs whose truth is known, through `sellf.audit`.

    python tools/panel_coverage.py figures.json --logs 100 --minutes 9

Goes on where it stopped, and prints a summary. A design is a table of two or three groups
and three kinds of people, with the chance of acceptance and of a good outcome of each; so the true
rates, their ratios, odds ratios and differences, in all and within strata, are sums over the table.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

import sellf

DELTA = 0.05
SIZES = ((15, 20), (40, 30), (60, 150), (120, 100), (300, 200))
KINDS = 3
MEASURES = ("difference", "ratio", "odds_ratio")


class Design(NamedTuple):
    """Whom logs are drawn from, and what is asked."""

    name: str
    notion: str
    options: dict[str, Any]
    sizes: tuple[int, ...]
    seed: int


def designs() -> list[Design]:
    """Return all designs: 200 of the panel, 20 of strata."""
    base = {"group": "g", "decision": "a", "outcome": "y"}
    known = {**base, "propensity": "p"}
    trusted = {**base, "trust_rejected_outcomes": True}
    asked = [
        ("demographic", base, 50, "decisions"),
        ("opportunity", base, 25, "nothing known of the rejected"),
        ("qualification", known, 50, "propensities"),
        ("opportunity", known, 50, "propensities"),
        ("opportunity", trusted, 25, "all outcomes known"),
    ]
    found = []
    for notion, options, count, words in asked:
        for k in range(count):
            sizes = SIZES[k % len(SIZES)]
            sizes = (*sizes, 50) if k % 7 == 6 else sizes
            found.append(Design(f"{notion}, {words}", notion, options, sizes, len(found)))
    for k in range(20):
        options = {**base, "within": "kind"}
        found.append(Design("strata", "demographic", options, SIZES[2 + k % 3], len(found)))
    return found


def law(design: Design) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the share, the chance of acceptance and that of a good outcome; [group, kind]."""
    rng = np.random.default_rng([17, design.seed])
    shape = (len(design.sizes), KINDS)
    share = rng.dirichlet(np.full(KINDS, 2.0), shape[0])
    level = rng.choice([0.1, 0.3, 0.6, 0.85])
    p = np.clip(level * rng.uniform(0.5, 1.4, shape), 0.03, 0.97)
    return share, p, rng.uniform(0.05, 0.95, shape)


def truth(design: Design) -> np.ndarray:
    """Return the true rate of each group."""
    share, p, q = law(design)
    if design.notion == "demographic":
        return (share * p).sum(axis=1)
    if design.notion == "qualification":
        return (share * q).sum(axis=1)
    return (share * p * q).sum(axis=1) / (share * q).sum(axis=1)


def draw(design: Design, number: int) -> dict[str, Any]:
    """Return one log."""
    rng = np.random.default_rng([design.seed, number])
    share, p, q = law(design)
    group = np.repeat(np.arange(len(design.sizes)), design.sizes)
    kind = np.array([rng.choice(KINDS, p=share[g]) for g in group])
    chance = p[group, kind]
    accepted = (rng.random(len(group)) < chance).astype(int)
    good = (rng.random(len(group)) < q[group, kind]).astype(float)
    seen = good if "trust_rejected_outcomes" in design.options else np.where(accepted, good, np.nan)
    names = np.array(["a", "b", "c"])[group]
    return {"g": names, "a": accepted, "y": seen, "p": chance, "kind": kind.astype(str)}


def misses(design: Design, number: int) -> dict[str, bool] | None:
    """Return which kinds of intervals miss in one log; None for a log that cannot be audited."""
    try:
        found = sellf.audit(
            draw(design, number),
            notion=design.notion,
            delta=DELTA,
            reference="a",
            seed=number,
            **design.options,
        )
    except sellf.errors.InputError:
        return None  # nobody was rejected, say
    if "within" in design.options:
        return _strata_missed(design, found)
    true = dict(zip("abc", truth(design), strict=False))
    missed: dict[str, bool] = dict.fromkeys(MEASURES, False)
    for one in found.measures["panel"].comparisons:
        u, v = true[one.group], true[one.against]
        exact = {"difference": u - v, "ratio": u / v, "odds_ratio": u * (1 - v) / (v * (1 - u))}
        for measure, value in exact.items():
            low, _, high = getattr(one, measure)
            missed[measure] |= not low - 1e-9 <= value <= high + 1e-9
    return missed


def _strata_missed(design: Design, found: Any) -> dict[str, bool]:
    _, p, _ = law(design)
    within = found.measures["within"]
    missed = {"strata": False, "standardised": False}
    total = 0.0
    for row in within.strata:
        kind = int(row.stratum.removeprefix("kind="))
        true = p["abc".index(row.group), kind] - p["abc".index(row.against), kind]
        missed["strata"] |= not row.difference.low <= true <= row.difference.high
        total += row.share * true
    (overall,) = within.overall
    low, _, high = overall.standardised
    missed["standardised"] = not low <= total <= high
    return missed


def run(path: Path, logs: int, minutes: float) -> dict[str, Any]:
    """Audit what is missing, for some minutes, and return all figures."""
    content = json.loads(path.read_text()) if path.exists() else {}
    end = time.monotonic() + 60 * minutes
    step = 25
    for start in range(0, logs, step):
        for design in designs():
            key = f"{design.seed}: {design.name}, {design.sizes}"
            entry = content.setdefault(key, {"logs": 0, "refused": 0, "misses": {}})
            if entry["logs"] + entry["refused"] > start:
                continue
            for number in range(start, min(start + step, logs)):
                missed = misses(design, number)
                if missed is None:
                    entry["refused"] += 1
                    continue
                entry["logs"] += 1
                for name, wrong in missed.items():
                    entry["misses"][name] = entry["misses"].get(name, 0) + int(wrong)
            if time.monotonic() > end:
                path.write_text(json.dumps(content, indent=1))
                return content
    path.write_text(json.dumps(content, indent=1))
    return content


def summary(content: dict[str, Any]) -> str:
    """Return, by measure, how many logs missed and whether any design misses more than it may."""
    lines = [f"{len(content)} designs, {sum(one['logs'] for one in content.values()):,} logs"]
    for name in (*MEASURES, "strata", "standardised"):
        found = [
            (one["logs"], one["misses"].get(name, 0))
            for one in content.values()
            if name in one["misses"] and one["logs"]
        ]
        if not found:
            continue
        logs, missed = (sum(column) for column in zip(*found, strict=True))
        # The chance of as many misses if delta is the chance of each.
        least = min(binom.sf(k - 1, n, DELTA) for n, k in found)
        worst = max(k / n for n, k in found)
        lines.append(
            f"{name}: {missed} of {logs:,} missed ({missed / logs:.2%}), at most {worst:.1%} in a "
            f"design; smallest p-value {least:.2g} of {len(found)} designs"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=1e9)
    given = parser.parse_args()
    print(summary(run(given.path, given.logs, given.minutes)))
