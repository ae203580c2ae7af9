"""Worlds whose truth is known exactly, and logs drawn from them.

A person has one feature, which takes LEVELS equally likely values. So expectations are finite sums:
the truth has no simulation noise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from coverage_study.cells import Cell
from sellf.fairness.notions import Notion

Floats = NDArray[np.float64]
LEVELS = 10_000
FEATURE: Floats = (np.arange(LEVELS) + 0.5) / LEVELS
SPREAD = 2 / 3
"""How much of the room around its mean a group's chance of a good outcome uses."""
OVERLAP = 0.01
"""The audit's default."""
EFFICIENT: tuple[Notion, ...] = ("qualification", "accuracy", "opportunity", "demographic")
"""Notions whose efficient interval `variance` knows."""


@dataclass(frozen=True)
class Group:
    """Chances by level of the feature."""

    good: Floats
    accept: Floats


def world(cell: Cell) -> list[Group]:
    """Return the groups of a cell."""
    return [
        Group(good_chance(rate), accept_chance(cell, group))
        for group, rate in enumerate(cell.rates)
    ]


def good_chance(rate: float) -> Floats:
    """Return the chance of a good outcome; it rises with the feature, and its mean is the rate."""
    return rate + SPREAD * 2 * min(rate, 1 - rate) * (FEATURE - 0.5)


def accept_chance(cell: Cell, group: int) -> Floats:
    """Return the propensity; later groups are accepted somewhat less often."""
    tilt = 0.0 if cell.pending else 0.06 * (group % 6)
    x = FEATURE
    match cell.law:
        case "wide":
            return 0.1 + (0.85 - tilt) * x
        case "extreme":
            return 0.02 + (0.9 - tilt) * x**3
        case "low":
            return OVERLAP + (0.9 - tilt) * x**3
        case "falling":
            return 0.95 - (0.85 - tilt) * x
        case "halves":
            return np.where(x < 0.5, OVERLAP, 0.9 - tilt)
        case "rule 2%":
            return np.where(x < 0.5 + tilt, 0.02, 1.0)
        case "rule 10%":
            return np.where(x < 0.5 + tilt, 0.1, 1.0)
        case "no overlap":
            return np.where(x < 0.3 + tilt, 0.0, 1.0)
        case "constant":
            return np.full(LEVELS, cell.shares[group])


def truths(groups: list[Group]) -> dict[str, Floats]:
    """Return each group's utility, by rate."""
    good = np.array([group.good.mean() for group in groups])
    accept = np.array([group.accept.mean() for group in groups])
    both = np.array([(group.accept * group.good).mean() for group in groups])
    return {
        "qualification": good,
        "accuracy": 1 - good - accept + 2 * both,
        "opportunity": both / good,
        "demographic": accept,
        "predictive-parity": both / accept,
        "false-positive-rate": (accept - both) / (1 - good),
    }


def variance(notion: Notion, group: Group, *, bound: bool = False) -> float:
    """Return the variance of one person's influence on an estimate with the true score.

    Args:
        notion: what is measured.
        group: whose chances are known.
        bound: of the estimate that no regular one beats where propensities are known: the decision
            is then replaced by its chance, and A Y by p s (Hahn 1998). Else of the AIPW estimate,
            which takes decisions as they were.
    """
    p, f = group.accept, group.good
    utility = (p * f).mean() / f.mean()
    terms: list[tuple[Floats, Floats]] = []
    for a, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        chance = (p if a else 1 - p) * (f if y else 1 - f)
        s = f + (y - f) / np.where(p > 0, p, 1.0) if a else f
        decided, both = (p, p * s) if bound else (np.full(LEVELS, float(a)), a * y)
        influence = {
            "qualification": s,
            "accuracy": 2 * both + (1 - decided) - s,
            "opportunity": (both - utility * s) / f.mean(),
            "demographic": decided,
        }
        terms.append((chance, influence[notion]))
    mean = sum(float((chance * value).mean()) for chance, value in terms)
    return sum(float((chance * (value - mean) ** 2).mean()) for chance, value in terms)


def efficient_width(
    notion: Notion, groups: list[Group], sizes: tuple[int, ...], *, bound: bool = False
) -> float:
    """Return the width of the normal 95 % interval for the difference of two groups.

    Args:
        notion: what is measured.
        groups: whose chances are known.
        sizes: people in each.
        bound: of the efficiency bound with known propensities, not of AIPW: see `variance`.
    """
    total = sum(
        variance(notion, group, bound=bound) / n for group, n in zip(groups, sizes, strict=True)
    )
    return float(2 * norm.ppf(0.975) * np.sqrt(total))


def draw(cell: Cell, groups: list[Group], rng: np.random.Generator) -> dict[str, Any]:
    """Return a log as a mapping of columns."""
    size = np.array(cell.sizes)
    code = np.repeat(np.arange(len(size)), size)
    level = rng.integers(LEVELS, size=len(code))
    person = np.arange(len(code))
    if cell.applications > 1:
        # How often someone applies has nothing to do with the rest: rows and people have one truth.
        often = 1 + rng.poisson(cell.applications - 1, len(code))
        code, level, person = (np.repeat(column, often) for column in (code, level, person))
    good = np.stack([group.good for group in groups])[code, level]
    p = np.stack([group.accept for group in groups])[code, level]
    accepted = (rng.random(len(code)) < p).astype(np.int64)
    label = (rng.random(len(code)) < good).astype(float)
    seen = (accepted == 1) | (cell.knowledge == "trusted")
    if cell.pending:
        seen &= rng.random(len(code)) >= np.array(cell.pending)[code]
    columns = {
        "group": code,
        "accepted": accepted,
        "outcome": np.where(seen, label, np.nan),
        "propensity": p,
        "score": guess(cell, good, np.array(cell.rates)[code], label, rng),
        "person": person,
    }
    if cell.knowledge == "estimated":
        # What a logistic model can learn the propensity from, but not the outcome.
        columns["x"] = np.log(p / (1 - p))
    rows = sort(cell, columns, label, rng)
    return {name: columns[name][rows] for name in used(cell).values()}


def guess(
    cell: Cell, good: Floats, rate: Floats, label: Floats, rng: np.random.Generator
) -> Floats:
    """Return the score: fixed before the decisions, whatever it is worth."""
    match cell.score:
        case "rough":  # half of what there is to know
            return 0.5 * good + 0.5 * rate
        case "reversed":
            return 1 - good
        case "noise":
            return rng.random(len(good))
        case "constant":
            return np.full(len(good), 0.5)
        case "oracle":
            return label
        case "true" | "none":
            return good


def sort(
    cell: Cell, columns: dict[str, NDArray[Any]], label: Floats, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the order of the rows; sorted ones are sorted by what nobody sees, too."""
    drawn = rng.permutation(len(label))
    if cell.order == "drawn":
        return drawn
    key = label if cell.order == "outcome" else columns[cell.order]
    return drawn[np.argsort(key[drawn], kind="stable")]


def used(cell: Cell) -> dict[str, str]:
    """Return the columns that the audit is told of, by option."""
    columns = {"group": "group", "decision": "accepted"}
    if cell.knowledge != "decisions":
        columns["outcome"] = "outcome"
    if cell.knowledge == "propensity":
        columns["propensity"] = "propensity"
        if cell.score != "none":
            columns["score"] = "score"
    if cell.knowledge == "estimated":
        columns["features"] = "x"
    if cell.applications > 1:
        columns["person"] = "person"
    return columns
