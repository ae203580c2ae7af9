"""Computation of the panel of measures, which compare groups with a reference group."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from sellf.audit import methods
from sellf.audit.evidence import Evidence
from sellf.audit.interval import Interval
from sellf.audit.panel import (
    SMALL,
    CalibrationBand,
    Comparison,
    Panel,
    ScoreGap,
    Selection,
    impact,
)
from sellf.errors import InputError
from sellf.fairness.notions import TABLE, Counts, Rate
from sellf.logs.names import say
from sellf.logs.person import Floats

MOST_PAIRED = 12
"""With more groups and no reference, the groups' own intervals are compared."""
FISHER = 10_000
"""The largest number of people for Fisher's exact test; for more, the z-test is used."""
BOX = 0.1
"""The share of delta for the two rates in odds ratios; ratio and difference share the rest."""
BANDS = 10
FEWEST_IN_BAND = 20


class Bounds(NamedTuple):
    """Bounds for all ordered pairs; [i, j] compares group i with group j."""

    difference: Floats
    """Lower bounds on i minus j; -1 where nothing is known."""
    ratio: Floats
    """Lower bounds on i over j; 0 where nothing is known."""


def find_reference(names: list[Any], reference: Any) -> int | None:
    """Return the index of the group that others are compared with."""
    if reference is None:
        return None
    said = [say(name) for name in names]
    if say(reference) not in said:
        shown = ", ".join(map(repr, said[:12])) + (", ..." if len(said) > 12 else "")
        raise InputError(
            f"reference is {say(reference)!r}, and the groups are {shown}: "
            "type --reference with one of them."
        )
    return said.index(say(reference))


def panel(
    rate: Rate,
    evidence: Evidence,
    value: Floats,
    *,
    delta: float,
    reference: Any = None,
    unknown: tuple[str, ...] = (),
) -> Panel:
    """Return the panel of measures of one rate.

    Args:
        rate: the rate to compare.
        evidence: the log.
        value: the estimate of each group's rate.
        delta: the probability that any interval of one kind misses.
        reference: the group that others are compared with; None: the one with the largest rate.
        unknown: groups of people whose category is not known.
    """
    names = [say(name) for name in evidence.names]
    place = find_reference(evidence.names, reference)
    strange = next((name for name in unknown if name not in names), None)
    if strange is not None:
        shown = ", ".join(map(repr, names[:12]))
        raise InputError(
            f"unknown_group is {strange!r}, and the groups are {shown}: "
            "type --unknown-group with one of them."
        )
    pairs = ordered_pairs(len(names), place)
    found = bounds(rate, evidence, pairs, delta)
    odds = odds_ratios(rate, evidence, pairs, delta)
    highest = int(np.argmax(value)) if place is None else place
    comparisons = []
    for i, name in enumerate(names):
        if i == highest:
            continue
        ratio = _interval(
            found.ratio[i, highest], found.ratio[highest, i], value[i], value[highest]
        )
        low, high = float(found.difference[i, highest]), float(-found.difference[highest, i])
        difference = clipped(low, float(value[i] - value[highest]), high)
        test, p = classical_test(rate, evidence, i, highest)
        comparisons.append(
            Comparison(
                name,
                names[highest],
                difference,
                ratio,
                odds(i, highest, value),
                impact(ratio),
                test,
                p,
                _direction(rate, name, names[highest], difference),
            )
        )
    whole = smallest_over_largest(found, value, pairs)
    return Panel(
        rate=rate.name,
        whom=rate.says[0],
        what=rate.says[1],
        delta=delta,
        reference=None if place is None else names[place],
        impact_ratio=whole,
        verdict=impact(whole),
        finite_sample=_finite(rate, evidence),
        comparisons=tuple(comparisons),
        scores=score_gaps(evidence, highest, delta),
        calibration=calibration(evidence, delta),
        selection=selection(evidence, delta, unknown) if not rate.needs_label else (),
    )


def _finite(rate: Rate, evidence: Evidence) -> bool:
    return all(methods.METHODS[methods.kind(rate, g)].finite_sample for g in evidence.groups)


def ordered_pairs(count: int, reference: int | None) -> list[tuple[int, int]]:
    """Return the ordered pairs to bound."""
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    return pairs if reference is None else [pair for pair in pairs if reference in pair]


def bounds(rate: Rate, evidence: Evidence, pairs: list[tuple[int, int]], delta: float) -> Bounds:
    """Return bounds on differences and ratios; those of one kind hold together."""
    groups = evidence.groups
    count = len(groups)
    difference, ratio = np.full((count, count), -1.0), np.zeros((count, count))
    if len(pairs) > MOST_PAIRED * (MOST_PAIRED - 1) or evidence.apart:
        ends = [methods.interval(rate, group, delta / count) for group in groups]
        for i, j in pairs:
            difference[i, j] = ends[i][0] - ends[j][1]
            ratio[i, j] = ends[i][0] / ends[j][1] if ends[j][1] > 0 else 0.0
        return Bounds(difference, ratio)
    each = delta / max(len(pairs), 1)
    for i, j in pairs:
        difference[i, j] = methods.lower_difference(rate, groups[i], groups[j], each)
        ratio[i, j] = methods.lower_ratio(rate, groups[i], groups[j], each)
    # Bounds cross with probability at most delta; they are then trivial.
    np.fill_diagonal(difference, 0.0)
    crossed = (difference > -difference.T) | (difference > 1) | (difference.T > 1)
    difference = np.where(crossed, -1.0, np.maximum(difference, -1.0))
    return Bounds(difference, np.where(ratio * ratio.T > 1, 0.0, ratio))


def smallest_over_largest(found: Bounds, value: Floats, pairs: list[tuple[int, int]]) -> Interval:
    """Return the interval of the smallest rate over the largest, among the pairs."""
    low = min(found.ratio[i, j] for i, j in pairs)
    high = min([1.0, *(_over(found.ratio[j, i]) for i, j in pairs)])
    estimates = [_quotient(value[i], value[j]) for i, j in pairs]
    return clipped(min(float(low), high), float(np.nanmin([1.0, *estimates])), float(high))


def odds_ratios(rate: Rate, evidence: Evidence, pairs: list[tuple[int, int]], delta: float) -> Any:
    """Return a function from a pair and the estimates to the interval of its odds ratio.

    The two rates are restricted by their own intervals and by bounds on their difference and ratio;
    the interval extends from the smallest to the largest odds ratio under these restrictions.
    """
    part = (1 - BOX) / 2 * delta
    found = bounds(rate, evidence, pairs, part)
    each = BOX * delta / len(evidence.groups)
    ends = [methods.interval(rate, group, each) for group in evidence.groups]

    def of(i: int, j: int, value: Floats) -> Interval:
        low = _least_odds(ends[i], ends[j], found.difference[i, j], found.ratio[i, j])
        other = _least_odds(ends[j], ends[i], found.difference[j, i], found.ratio[j, i])
        estimate = _quotient(value[i] * (1 - value[j]), value[j] * (1 - value[i]))
        return clipped(low, estimate, _over(other))

    return of


def _least_odds(
    first: tuple[float, float], second: tuple[float, float], difference: float, ratio: float
) -> float:
    """Return the least odds ratio of u1 and u0 where u1 - u0 >= difference and u1 / u0 >= ratio."""
    u0 = np.linspace(second[0], second[1], 2001)
    # The smallest possible u1 does not decrease in u0. On each step of the grid it is therefore
    # smallest at the left end, and u0 largest at the right end: their odds ratio is a lower bound.
    u1 = np.maximum(np.maximum(u0 + difference, ratio * u0), first[0])
    larger = np.append(u0[1:], u0[-1])
    possible = u1 <= first[1] + 1e-12
    if not possible.any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = u1 * (1 - larger) / (larger * (1 - u1))
    odds = np.where(np.isnan(odds), 0.0, odds)
    return float(odds[possible].min())


def classical_test(rate: Rate, evidence: Evidence, i: int, j: int) -> tuple[str, float]:
    """Return the name and the p-value of a test of equal rates on the observed outcomes."""
    total = evidence.sums.by_group()
    seen = Counts(total.people, total.accepted, total.positive, 0 * total.people)
    if evidence.trusted:
        seen = seen._replace(rejected_positive=total.rejected_positive)
    elif rate.hides:
        seen = seen.accepted_only()
    count, people = (np.array(side.total(seen)) * np.ones(len(total.people)) for side in rate.sums)
    table = np.array([[count[k], people[k] - count[k]] for k in (i, j)])
    hidden = rate.hides and not evidence.trusted and not table[:, 1].any()
    if hidden or evidence.weight is not None:  # weights are not counts of people
        return "no test", float("nan")
    if people[i] + people[j] <= FISHER:
        from scipy.stats import fisher_exact

        _, p = fisher_exact(np.round(table).astype(int))
        return "Fisher's exact test", float(p)  # pyright: ignore[reportArgumentType]
    pooled = table[:, 0].sum() / table.sum()
    error = (pooled * (1 - pooled) * (1 / people[[i, j]]).sum()) ** 0.5
    if not error > 0:
        return "the z-test", 1.0
    z = (count[i] / people[i] - count[j] / people[j]) / error
    return "the z-test", float(2 * ndtr(-abs(z)))


def score_gaps(evidence: Evidence, reference: int, delta: float) -> tuple[ScoreGap, ...]:
    """Return the standardised mean difference of scores between each group and the reference."""
    rows = evidence.rows
    if rows is None or rows.columns.score is None or rows.person.prediction is None:
        return ()
    if evidence.estimated:
        return ()
    scores = rows.person.prediction
    by_group = [scores[rows.codes == i] for i in range(len(evidence.names))]
    other = by_group[reference]
    quantile = float(-ndtri(delta / (2 * max(len(by_group) - 1, 1))))
    found = []
    for i, own in enumerate(by_group):
        n, m = len(own), len(other)
        if i == reference or min(n, m) < 2:
            continue
        spread = (((n - 1) * own.var(ddof=1) + (m - 1) * other.var(ddof=1)) / (n + m - 2)) ** 0.5
        if spread == 0:
            continue
        d = (own.mean() - other.mean()) / spread
        # The variance of the means, with unequal variances, plus that of the pooled deviation.
        error = (own.var(ddof=1) / n + other.var(ddof=1) / m) / spread**2 + d * d / (2 * (n + m))
        half = quantile * error**0.5
        name, against = (say(evidence.names[k]) for k in (i, reference))
        interval = Interval(float(d - half), float(d), float(d + half))
        found.append(ScoreGap(name, against, float(own.mean()), float(other.mean()), interval))
    return tuple(found)


def calibration(evidence: Evidence, delta: float) -> tuple[CalibrationBand, ...]:
    """Return the share of good outcomes by group and score band; all intervals hold together."""
    rows = evidence.rows
    if rows is None or rows.columns.outcome is None or rows.columns.score is None:
        return ()
    if evidence.estimated or evidence.contradiction is not None:
        return ()
    scores = rows.person.prediction
    if scores is None:
        return ()
    rate = TABLE["qualification"].alone
    band = np.minimum((scores * BANDS).astype(int), BANDS - 1)
    cells = []
    for k in np.unique(band):
        some = evidence.part(np.flatnonzero(band == k))
        for i, group in enumerate(some.groups):
            if group.people >= FEWEST_IN_BAND:
                cells.append((int(k), i, group))
    found = []
    for k, i, group in cells:
        low, high = methods.interval(rate, group, delta / len(cells))
        mean = float(scores[(band == k) & (rows.codes == i)].mean())
        middle = group.estimate(rate) or _ends(rate, evidence, band == k, i)
        good = clipped(low, sum(middle) / 2, high)
        found.append(
            CalibrationBand(
                say(evidence.names[i]),
                k / BANDS,
                (k + 1) / BANDS,
                group.people,
                mean,
                good,
                low <= mean <= high,
            )
        )
    return tuple(found)


def _ends(rate: Rate, evidence: Evidence, rows: Any, i: int) -> tuple[float, float]:
    from sellf.audit.estimate import views

    some = evidence.part(np.flatnonzero(rows))
    seen = views(rate, some.sums, predicted=evidence.predicted, trusted=evidence.trusted)
    return float(seen.low[i]), float(seen.high[i])


def selection(evidence: Evidence, delta: float, unknown: tuple[str, ...]) -> tuple[Selection, ...]:
    """Return New York's table: selection rates, and impact ratios to the highest rate."""
    rate = TABLE["demographic"].alone
    groups, names = evidence.groups, [say(name) for name in evidence.names]
    total = sum(group.people for group in groups)
    counted = [i for i, name in enumerate(names) if name not in unknown]
    large = [i for i in counted if groups[i].people >= SMALL * total] or counted
    rates = [group.accepted / max(group.people, 1) for group in groups]
    highest = max(large, key=lambda i: rates[i], default=None)
    each = delta / len(groups)
    found = []
    for i, group in enumerate(groups):
        own = Interval(*_ordered(methods.interval(rate, group, each), rates[i]))
        ratio = Interval(0.0, float("nan"), float("inf"))
        if highest is not None and i in counted:
            part = delta / max(len(counted) * (len(counted) - 1), 1)
            low = methods.lower_ratio(rate, group, groups[highest], part) if i != highest else 1.0
            high = (
                _over(methods.lower_ratio(rate, groups[highest], group, part))
                if i != highest
                else 1.0
            )
            ratio = clipped(low, _quotient(rates[i], rates[highest]), high)
        found.append(
            Selection(
                names[i],
                group.people,
                round(group.accepted),
                own,
                ratio,
                group.people < SMALL * total,
                i not in counted,
            )
        )
    return tuple(found)


def _ordered(ends: tuple[float, float], value: float) -> tuple[float, float, float]:
    return ends[0], min(max(value, ends[0]), ends[1]), ends[1]


def _direction(rate: Rate, group: str, other: str, difference: Interval) -> str:
    whom, what = rate.says
    low, value, high = difference
    if low > 0 or high < 0:
        more = "more" if low > 0 else "fewer"
        least, most = sorted((abs(low), abs(high)))
        return (
            f"Of 100 {whom}, between {100 * least:.1f} and {100 * most:.1f} {more} {what} in "
            f"{group} than in {other}."
        )
    return (
        f"Of 100 {whom}, between {max(-100 * low, 0):.1f} fewer and {max(100 * high, 0):.1f} more "
        f"{what} in {group} than in {other} (estimate {100 * value:+.1f}): the direction is "
        "undetermined."
    )


def _interval(low: float, other: float, first: float, second: float) -> Interval:
    """Return the interval of a ratio from lower bounds on the ratio and on its inverse."""
    return clipped(float(low), _quotient(first, second), _over(other))


def _over(low: float) -> float:
    return float(1 / low) if low > 0 else float("inf")


def _quotient(first: float, second: float) -> float:
    if second > 0:
        return float(first / second)
    return float("inf") if first > 0 else float("nan")


def clipped(low: float, value: float, high: float) -> Interval:
    """Return an interval with its estimate, clipped to the interval."""
    if np.isnan(value):
        value = low
    return Interval(low, min(max(value, low), high), high)
