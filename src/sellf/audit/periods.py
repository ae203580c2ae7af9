"""Audits over time: each period separately, and all periods so far."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import chdtrc

from sellf.audit.evidence import Evidence
from sellf.audit.interval import Interval
from sellf.audit.judge import estimates, intervals
from sellf.audit.result import Period
from sellf.audit.verdict import decide, largest
from sellf.fairness.notions import Definition, Notion, define
from sellf.logs.log import Log
from sellf.logs.names import say
from sellf.logs.rows import Values
from sellf.logs.sums import Sums

DRIFT_LEVEL = 0.01
"""The probability of a false alarm if nothing changes over the periods."""


def by_period(
    notion: Notion, evidence: Evidence, log: Log, by: str, *, omega: float, delta: float
) -> tuple[tuple[Period, ...], str | None]:
    """Audit every period and all periods up to its end, and describe any drift between periods.

    The intervals of all periods hold together (the k-th gets delta / (k (k + 1))), and so do those
    of all periods so far. The latter are about the pooled population; if the log drifts, that
    population is not meaningful, and these intervals are left out.
    """
    definition = define(notion)
    parts = list(_parts(evidence, log, by))
    sums, periods = [own.sums for _, own, _ in parts], [name for name, _, _ in parts]
    change = drift(definition, evidence.names, sums, periods)
    result = []
    for k, (name, own, past) in enumerate(parts):
        chance = delta / ((k + 1) * (k + 2))
        span = _span(definition, own, chance)
        so_far = None if change is not None else _span(definition, past, chance)
        result.append(
            Period(
                name,
                int(own.sums.people.sum()),
                span.value,
                span.low,
                span.high,
                decide(span, omega) if _usable(definition, own) is own else "undetermined",
                float("nan") if so_far is None else so_far.low,
                float("nan") if so_far is None else so_far.high,
                None if so_far is None else decide(so_far, omega),
            )
        )
    return tuple(result), change


def drift(
    definition: Definition, names: list[Any], sums: list[Sums], periods: list[str]
) -> str | None:
    """Return a description of the strongest change over the periods; None if none is detected.

    Pearson's test of equal shares is applied to acceptance and to good outcomes among the accepted,
    in every group; the level is for all tests together.
    """
    totals = [one.by_group() for one in sums]
    tests = []
    for i, name in enumerate(names):
        people = np.array([float(total.people[i]) for total in totals])
        accepted = np.array([float(total.accepted[i]) for total in totals])
        good = np.array([float(total.positive[i]) for total in totals])
        known = accepted - np.array([float(total.pending[i]) for total in totals])
        tests.append((_same_share(accepted, people), name, "acceptance", accepted, people))
        if definition.needs_label:
            tests.append(
                (_same_share(good, known), name, "good outcomes of the accepted", good, known)
            )
    chance, name, what, part, whole = min(tests, key=lambda test: test[0])
    if chance * len(tests) > DRIFT_LEVEL:
        return None
    share = part / np.maximum(whole, 1)
    usable = np.where(whole >= 5, share, np.nan)
    low, high = int(np.nanargmin(usable)), int(np.nanargmax(usable))
    return (
        f"the log drifts: the share of {what} of {say(name)} is {share[low]:.1%} in {periods[low]} "
        f"and {share[high]:.1%} in {periods[high]}. So only individual periods are judged, not all "
        "periods so far."
    )


def _same_share(part: Values, whole: Values) -> float:
    """Return the p-value of Pearson's test that all shares are equal."""
    some = whole >= 5
    if some.sum() < 2:
        return 1.0
    k, n = part[some], whole[some]
    share = k.sum() / n.sum()
    if share in (0, 1):
        return 1.0
    # Small expected counts would make the test anticonservative, so they are at least 1.
    expected = n * share, n * (1 - share)
    statistic = ((k - expected[0]) ** 2 / np.maximum(expected[0], 1)).sum()
    statistic += ((n - k - expected[1]) ** 2 / np.maximum(expected[1], 1)).sum()
    return float(chdtrc(len(k) - 1, statistic))


def _parts(evidence: Evidence, log: Log, by: str) -> Iterator[tuple[str, Evidence, Evidence]]:
    """Yield each period's name, its own evidence, and the evidence up to its end."""
    rows = evidence.rows
    if rows is None:
        names, sums = log.sums_by(evidence.overlap, by)
        so_far = sums[0]
        for k, (name, own) in enumerate(zip(names, sums, strict=True)):
            so_far = so_far + own if k else own
            yield name, evidence.from_sums(own), evidence.from_sums(so_far)
        return
    codes, names = rows.periods(by)
    ends = np.searchsorted(codes, np.arange(len(names)), side="right")
    start = 0
    for name, end in zip(names, ends, strict=True):
        yield name, evidence.part(slice(start, end)), evidence.part(slice(0, end))
        start = end


def _span(definition: Definition, evidence: Evidence, delta: float) -> Interval:
    usable = _usable(definition, evidence)
    found = []
    for rate in definition.rates:
        value = estimates(rate, usable).value
        found.append(intervals(rate, usable, value, delta=delta / len(definition.rates)).span)
    return largest(found)


def _usable(definition: Definition, evidence: Evidence) -> Evidence:
    """Return the evidence, without propensities if the decisions contradict them."""
    # Notions without hidden outcomes do not depend on the propensities.
    void = definition.hides and evidence.contradiction is not None
    return evidence.without_propensities() if void else evidence
