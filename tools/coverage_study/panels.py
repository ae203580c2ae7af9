"""What the study of the panel audits: tables of people whose true rates are sums over the table.

A cell has two or three groups and three kinds of people, with the chance of acceptance and of a
good outcome of each. So rates, their ratios, odds ratios and differences, in all and within strata,
are known exactly.
"""

from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import sellf
from sellf.errors import InputError

DELTA = 0.05
SIZES = ((15, 20), (40, 30), (60, 150), (120, 100), (300, 200))
LARGE = (6_000, 9_000)
"""Groups that are judged by fixed stakes rather than row by row."""
KINDS = 3
NAMES = "abc"
SLACK = 1e-9
FINITE = (
    "difference", "ratio", "odds ratio", "smallest over largest", "selection rates",
    "New York's ratios", "calibration", "strata",
)  # fmt: skip
"""Intervals that are to hold at every sample size, where the audit says so."""


class Cell(NamedTuple):
    """Whom logs are drawn from, and what is asked."""

    number: int
    kind: str
    notion: str
    options: dict[str, Any]
    sizes: tuple[int, ...]
    finite_sample: bool = True

    def __str__(self) -> str:
        sizes = " / ".join(f"{size:,}" for size in self.sizes)
        against = "reference" if "reference" in self.options else "largest"
        return f"{self.kind}, {sizes}, against the {against}"


class Law(NamedTuple):
    """The law of a cell's people; [group, kind]."""

    share: np.ndarray
    p: np.ndarray
    """The chance of acceptance."""
    q: np.ndarray
    """The chance of a good outcome."""
    score: np.ndarray


def catalogue() -> list[Cell]:
    """Return all cells: 200 of ratios, 15 with scores, 45 of strata, 10 of estimates."""
    base = {"group": "g", "decision": "a", "outcome": "y"}
    known = {**base, "propensity": "p"}
    trusted = {**base, "trust_rejected_outcomes": True}
    strata = {"within": "kind"}
    asked = [
        ("decisions", "demographic", base, 50),
        ("nothing known of the rejected", "opportunity", base, 25),
        ("propensities", "qualification", known, 50),
        ("propensities", "opportunity", known, 50),
        ("all outcomes known", "opportunity", trusted, 25),
        ("propensities and scores", "qualification", {**known, "score": "s"}, 15),
        ("strata, decisions", "demographic", {**base, **strata}, 20),
        ("strata, all outcomes known", "opportunity", {**trusted, **strata}, 5),
        ("strata, propensities", "qualification", {**known, **strata}, 10),
        ("strata, propensities", "opportunity", {**known, **strata}, 10),
        ("estimated propensities", "opportunity", {**base, "features": "kind"}, 10),
    ]
    return [cell._replace(number=i) for i, cell in enumerate(_cells(asked))]


def _cells(asked: list[tuple[str, str, dict[str, Any], int]]) -> Iterator[Cell]:
    for words, notion, options, count in asked:
        estimated = "features" in options
        for k in range(count):
            sizes = SIZES[k % len(SIZES)]
            if "within" in options or "score" in options or estimated:
                sizes = SIZES[2 + k % 3]
            elif "propensity" in options and k % 10 == 9:
                sizes = LARGE
            if k % 7 == 6 and sizes != LARGE:
                sizes = (*sizes, 50)
            if estimated:
                sizes = tuple(5 * size for size in sizes)
            # In every second cell groups are compared with the one whose estimate is largest.
            how = {**options, **({"panel": True} if k % 2 else {"reference": "a"})}
            if estimated:
                how["model"] = "logistic"
            yield Cell(0, f"{notion}, {words}", notion, how, sizes, not estimated)


def law(cell: Cell) -> Law:
    """Return whom a cell's logs are drawn from."""
    rng = np.random.default_rng([17, cell.number])
    shape = (len(cell.sizes), KINDS)
    share = rng.dirichlet(np.full(KINDS, 2.0), shape[0])
    level = rng.choice([0.1, 0.3, 0.6, 0.85])
    p = np.clip(level * rng.uniform(0.5, 1.4, shape), 0.03, 0.97)
    q = rng.uniform(0.05, 0.95, shape)
    return Law(share, p, q, np.clip(q + rng.normal(0, 0.15, shape), 0, 1))


def truth(cell: Cell) -> np.ndarray:
    """Return the true rate of each group."""
    share, p, q, _ = law(cell)
    if cell.notion == "demographic":
        return (share * p).sum(axis=1)
    if cell.notion == "qualification":
        return (share * q).sum(axis=1)
    return (share * p * q).sum(axis=1) / (share * q).sum(axis=1)


def draw(cell: Cell, log: int) -> dict[str, Any]:
    """Return one log."""
    rng = np.random.default_rng([19, cell.number, log])
    share, p, q, score = law(cell)
    group = np.repeat(np.arange(len(cell.sizes)), cell.sizes)
    kind = (rng.random(len(group))[:, None] > share.cumsum(axis=1)[group, :-1]).sum(axis=1)
    accepted = rng.random(len(group)) < p[group, kind]
    good = (rng.random(len(group)) < q[group, kind]).astype(float)
    hidden = "trust_rejected_outcomes" not in cell.options
    return {
        "g": np.array(list(NAMES))[group],
        "a": accepted.astype(int),
        "y": np.where(accepted, good, np.nan) if hidden else good,
        "p": p[group, kind],
        "s": score[group, kind],
        "kind": kind.astype(str),
    }


def misses(cell: Cell, log: int) -> dict[str, bool] | None:
    """Return which kinds of intervals miss in one log; None for a log that cannot be audited."""
    try:
        found = sellf.audit(
            draw(cell, log), notion=cell.notion, delta=DELTA, seed=log, **cell.options
        )
    except InputError:
        return None  # nobody was rejected, say
    if "within" in cell.options:
        return strata_missed(cell, found.measures["within"])
    return panel_missed(cell, found.measures["panel"])


def holds(interval: Any, value: float) -> bool:
    """Return whether a value is in an interval, up to rounding."""
    return bool(interval[0] - SLACK <= value <= interval[2] + SLACK)


def panel_missed(cell: Cell, panel: Any) -> dict[str, bool]:
    """Return which measures have an interval that misses."""
    true = dict(zip(NAMES, truth(cell), strict=False))
    missed: dict[str, bool] = dict.fromkeys(("difference", "ratio", "odds ratio"), False)
    for one in panel.comparisons:
        u, v = true[one.group], true[one.against]
        missed["difference"] |= not holds(one.difference, u - v)
        missed["ratio"] |= not holds(one.ratio, u / v)
        missed["odds ratio"] |= not holds(one.odds_ratio, u * (1 - v) / (v * (1 - u)))
    pairs = [
        (u, v) for g, u in true.items() for h, v in true.items()
        if g != h and panel.reference in (None, g, h)
    ]  # fmt: skip
    least = min(u / v for u, v in pairs)
    missed["smallest over largest"] = not holds(panel.impact_ratio, least)
    if panel.selection:
        rates = {row.category: row.selection_rate.value for row in panel.selection}
        highest = max(rates, key=lambda name: rates[name])
        wrong = [not holds(row.selection_rate, true[row.category]) for row in panel.selection]
        missed["selection rates"] = any(wrong)
        missed["New York's ratios"] = any(
            not holds(row.impact_ratio, true[row.category] / true[highest])
            for row in panel.selection
        )
    if panel.scores:
        missed["calibration"] = _bands_missed(cell, panel.calibration)
        gaps = [not holds(gap.smd, _true_smd(cell, gap)) for gap in panel.scores]
        missed["standardised scores"] = any(gaps)
    return missed


def _bands_missed(cell: Cell, bands: Any) -> bool:
    known = law(cell)
    for band in bands:
        g = NAMES.index(band.group)
        number = np.minimum((known.score[g] * 10).astype(int), 9)
        inside = number == round(10 * band.score_from)
        good = np.average(known.q[g, inside], weights=known.share[g, inside])
        if not holds(band.good, float(good)):
            return True
    return False


def _true_smd(cell: Cell, gap: Any) -> float:
    known = law(cell)
    places = [NAMES.index(gap.group), NAMES.index(gap.against)]
    mean = [float(known.share[g] @ known.score[g]) for g in places]
    variance = [
        float(known.share[g] @ (known.score[g] - m) ** 2) for g, m in zip(places, mean, strict=True)
    ]
    people = [cell.sizes[g] - 1 for g in places]
    return (mean[0] - mean[1]) / float(np.average(variance, weights=people)) ** 0.5


def strata_missed(cell: Cell, within: Any) -> dict[str, bool]:
    """Return whether any stratum's interval misses, and whether the standardised one does."""
    known = law(cell)
    # Within a stratum decisions and outcomes are independent, so both rates are those of decisions.
    true = known.q if cell.notion == "qualification" else known.p
    missed = {"strata": False}
    total: dict[tuple[str, str], float] = {}
    for row in within.strata:
        kind = int(row.stratum.removeprefix("kind="))
        gap = true[NAMES.index(row.group), kind] - true[NAMES.index(row.against), kind]
        missed["strata"] |= not holds(row.difference, gap)
        pair = (row.group, row.against)
        total[pair] = total.get(pair, 0.0) + row.share * float(gap)
    wrong = any(
        not holds(one.standardised, total[one.group, one.against]) for one in within.overall
    )
    exact = all(one.finite_sample for one in within.overall)
    missed["standardised, exact" if exact else "standardised, normal"] = wrong
    return missed


def measure(
    cell: Cell, *, first: int = 0, most: int = 1000, least: int = 20, seconds: float = 6
) -> dict[str, Any]:
    """Audit logs until there are `most`, or until time is up and there are `least`.

    Args:
        cell: to measure.
        first: how many logs of it were audited before.
        most: how many there are to be with these.
        least: how many, if time is up.
        seconds: of the processor, after which it is.
    """
    start, logs, refused = process_time(), 0, 0
    counts: dict[str, list[int]] = {}
    for log in range(first, most):
        if log >= least and process_time() - start > seconds:
            break
        logs += 1
        missed = misses(cell, log)
        if missed is None:
            refused += 1
            continue
        for name, wrong in missed.items():
            count = counts.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += wrong
    return {"logs": logs, "refused": refused, "counts": counts}
