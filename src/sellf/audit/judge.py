"""The audit of one notion from evidence: intervals, verdict, sensitivity and certificate."""

from typing import Any, NamedTuple

import numpy as np

from sellf.audit import anytime as ever
from sellf.audit import methods
from sellf.audit.assumptions import OUTCOMES_KNOWN
from sellf.audit.certificate import certificate
from sellf.audit.estimate import Views, views
from sellf.audit.evidence import Evidence
from sellf.audit.interval import Interval
from sellf.audit.methods import METHODS, Kind
from sellf.audit.needed import needed
from sellf.audit.parts import largest_of
from sellf.audit.result import MOST_PAIRED, Audit, Doubt, GroupFigures, Overlap
from sellf.audit.sensitivity import LARGEST, LEVELS, shift
from sellf.audit.verdict import Ends, decide, of_pairs
from sellf.audit.weighted import effective
from sellf.fairness.notions import Notion, Rate, define, spread
from sellf.logs.person import BINS, Floats

MOST_PAIRS = 66
"""The largest number of pairs, that of twelve groups, for which pairs are judged jointly."""


class Judged(NamedTuple):
    """The intervals of all groups and bounds on their differences."""

    ends: Ends
    """The interval of every group; all hold together with probability 1 - delta."""
    value: Floats
    lower: Floats | None
    """lower[i, j] is a lower bound on group i minus group j; all hold together with probability
    1 - delta. None where the groups' own intervals are narrower."""
    methods: list[Kind | str]

    @property
    def span(self) -> Interval:
        """The interval of the largest minus the smallest utility."""
        return of_pairs(self.differences, self.value)

    @property
    def differences(self) -> Floats:
        """Lower bounds on every group minus every other group."""
        if self.lower is not None:
            return self.lower
        return self.ends.low[:, None] - self.ends.high[None, :]


def judge(
    notion: Notion,
    evidence: Evidence,
    *,
    omega: float,
    delta: float,
    anytime: bool = False,
    pdim: float = 1.0,
) -> Audit:
    """Audit one notion.

    Args:
        notion: the notion of fairness.
        evidence: the log.
        omega: the tolerated disparity.
        delta: the error probability of the disparity's interval, and of all group intervals.
        anytime: whether intervals stay valid however often a growing log is audited.
        pdim: the pseudo-dimension of the predictors, for the paper's bound.
    """
    definition = define(notion)
    each = delta / len(definition.rates)
    found = {
        rate.name: _judge(rate, evidence, omega=omega, delta=each, anytime=anytime, pdim=pdim)
        for rate in definition.rates
    }
    return found[notion] if notion in found else largest_of(notion, found, delta)


def _judge(
    rate: Rate, evidence: Evidence, *, omega: float, delta: float, anytime: bool, pdim: float
) -> Audit:
    """Audit one rate."""
    # Rates without hidden outcomes do not depend on the propensities.
    void = evidence.contradiction if rate.hides else None
    usable = evidence if void is None else evidence.without_propensities()
    predicted, trusted = usable.predicted, usable.trusted
    seen = estimates(rate, usable)
    found = intervals(rate, usable, seen.value, delta=delta, anytime=anytime)
    span, value = found.span, found.value
    verdict = decide(span, omega) if void is None else "undetermined"
    doubts, overturned = _doubts(rate, usable, found, omega) if void is None else ((), None)
    known = usable.known or usable.estimated
    low = found.differences
    return Audit(
        notion=rate.name,
        omega=omega,
        delta=delta,
        verdict=verdict,
        difference=span,
        signed=_within(float(low[1, 0]), float(value[1] - value[0]), float(-low[0, 1]))
        if len(value) == 2 and found.lower is not None
        else None,
        by_group=_figures(usable, found, seen),
        naive=float(spread(seen.naive)),
        imputed=float(spread(seen.imputed)),
        needed=needed(rate, usable, found, seen, omega=omega, delta=delta)
        if verdict == "undetermined" and void is None and usable.weight is None
        else None,
        method=", ".join(
            METHODS[name].words if name in METHODS else str(name)
            for name in dict.fromkeys(found.methods)
        ),
        finite_sample=all(
            name not in METHODS or METHODS[name].finite_sample for name in found.methods
        ),
        sensitivity=doubts,
        overturned_at=overturned,
        certificate=certificate(
            rate, omega, usable.sums, predicted=predicted, pdim=pdim, delta=delta
        )
        if known and not trusted and usable.weight is None
        else None,
        assumptions=tuple(_assumed(rate, usable, anytime)),
        warnings=(*(() if void is None else (str(void),)), *usable.warnings),
        overlap=_overlap(usable) if known and not trusted else None,
        void=None if void is None else str(void),
        differences=_by_pair(usable.names, found),
    )


def _figures(evidence: Evidence, found: Judged, seen: Views) -> dict[Any, GroupFigures]:
    """Return the figures of each group."""
    low, high = found.ends
    unidentified = np.minimum(seen.high - seen.low, high - low)
    return {
        name: GroupFigures(
            float(low[i]),
            float(found.value[i]),
            float(high[i]),
            group.people,
            round(group.accepted),
            float(seen.naive[i]),
            float(seen.imputed[i]),
            float(unidentified[i]),
            found.methods[i],
        )
        for i, (name, group) in enumerate(zip(evidence.names, evidence.groups, strict=True))
    }


def estimates(rate: Rate, evidence: Evidence) -> Views:
    """Return the estimates of every group's utility, over people if some have several rows."""
    seen = views(
        rate,
        evidence.sums,
        predicted=evidence.predicted,
        trusted=evidence.trusted,
        averaged=evidence.known and not evidence.trusted,
    )
    for i, group in enumerate(evidence.groups):
        ends = group.estimate(rate)
        if ends is not None:
            seen.low[i], seen.high[i] = ends
    return seen


def _within(low: float, value: float, high: float) -> Interval:
    return Interval(low, min(max(value, low), high), high)


def _by_pair(names: list[Any], found: Judged) -> dict[tuple[Any, Any], Interval] | None:
    if found.lower is None or not 2 < len(names) <= MOST_PAIRED:
        return None
    return {
        (a, b): _within(
            float(found.lower[j, i]),
            float(found.value[j] - found.value[i]),
            float(-found.lower[i, j]),
        )
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i < j
    }


def intervals(
    rate: Rate, evidence: Evidence, estimate: Floats, *, delta: float, anytime: bool = False
) -> Judged:
    """Return every group's interval and bounds on all differences.

    Args:
        rate: the rate to bound.
        evidence: the log.
        estimate: the estimate of each group's utility; NaN if it is undefined.
        delta: the probability that any group's interval misses, and that any difference's does.
        anytime: whether rows are bet on in the order of time.
    """
    if anytime:
        ends, lower = _ever(rate, evidence, delta)
        kinds: list[Any] = ["betting"] * len(evidence.names)
    else:
        groups = evidence.groups
        both = [methods.interval(rate, group, delta / len(groups)) for group in groups]
        ends = Ends(*(np.array(side) for side in zip(*both, strict=True)))
        lower = _pairs(rate, evidence, delta)
        kinds = [methods.kind(rate, group) for group in groups]
    middle = np.where(np.isnan(estimate), 0.5, estimate)
    return Judged(ends, np.clip(middle, ends.low, ends.high), lower, kinds)


def _pairs(rate: Rate, evidence: Evidence, delta: float) -> Floats | None:
    """Return bounds on all differences; None if the groups' own intervals are used instead."""
    groups = evidence.groups
    count = len(groups)
    if evidence.apart or not _pairs_are_narrower([g.people for g in groups], delta):
        return None
    lower = np.zeros((count, count))
    for i, first in enumerate(groups):
        for j, second in enumerate(groups):
            if i != j:
                alpha = delta / (count * (count - 1))
                lower[i, j] = methods.lower_difference(rate, first, second, alpha)
    # Bounds cross, or lie beyond what is possible, with probability at most delta; they are then
    # trivial.
    crossed = (lower > -lower.T) | (lower > 1) | (lower.T > 1)
    lower = np.clip(lower, -1.0, 1.0)
    np.fill_diagonal(crossed, False)
    return np.where(crossed, -1.0, lower)


def _pairs_are_narrower(people: list[int], delta: float) -> bool:
    """Return whether joint intervals of differences are narrower than the groups' intervals imply.

    This is judged from the numbers of people alone, as if all groups had the same variance.
    """
    count = len(people)
    if count == 2:
        return True
    if count * (count - 1) / 2 > MOST_PAIRS:
        return False
    error = 1 / np.sqrt(np.maximum(people, 1))
    pair = np.sqrt(np.log(count * (count - 1) / delta))
    alone = np.sqrt(np.log(2 * count / delta))
    together = pair * np.hypot.outer(error, error)
    return bool(together.sum() < (alone * np.add.outer(error, error)).sum())


def _ever(rate: Rate, evidence: Evidence, delta: float) -> tuple[Ends, Floats | None]:
    """Return intervals and bounds on differences that hold at all rows simultaneously."""
    rows = evidence.rows
    if rows is None:
        raise ValueError("betting in the order of time needs rows")
    places = [np.flatnonzero(rows.codes == i) for i in range(len(evidence.names))]
    came = np.argsort(np.argsort([place[0] if len(place) else len(rows.codes) for place in places]))
    parts = ever.shares_of_delta(len(places))[came] * delta

    def line(i: int, alpha: float) -> ever.Line:
        person = rows.person.take(places[i])
        return ever.line(rate, person, places[i], alpha=alpha, overlap=evidence.overlap)

    both = [ever.interval(line(i, part), part) for i, part in enumerate(parts)]
    ends = Ends(*(np.array(side) for side in zip(*both, strict=True)))
    if len(places) > 2:
        return ends, None
    alpha = ever.pair_share(0, 1) * delta / 2
    box = ever.BOX_SHARE * alpha
    lines = [line(i, alpha) for i in (0, 1)]
    ranges = [ever.interval(each, box) for each in lines]
    lower = np.zeros((2, 2))
    for i, j in ((0, 1), (1, 0)):
        how = (ranges[i], ranges[j], (1 - 2 * ever.BOX_SHARE) * alpha)
        lower[i, j] = ever.lower_difference(lines[i], lines[j], *how)
    crossed = lower[0, 1] > -lower[1, 0]
    return ends, np.array([[0.0, -1.0], [-1.0, 0.0]]) if crossed else lower


def _doubts(
    rate: Rate, evidence: Evidence, found: Judged, omega: float
) -> tuple[tuple[Doubt, ...], float | None]:
    """Return the range of the disparity by L, and the smallest L that overturns the verdict."""
    weak = evidence.sums.weak.sum() == evidence.sums.people.sum()
    if not rate.hides or evidence.trusted or weak:
        return (), None

    def at(level: float) -> Doubt:
        move = shift(rate, evidence.sums, level)
        moved = found.differences - move.down[:, None] - move.up[None, :]
        span = of_pairs(np.clip(moved, -1.0, 1.0), found.value)
        return Doubt(level, span.low, span.high, decide(span, omega))

    doubts = tuple(at(level) for level in LEVELS)
    verdict = doubts[0].verdict
    if verdict == "undetermined":
        return doubts, None
    if at(LARGEST).verdict == verdict:
        return doubts, float("inf")
    low, high = 0.0, float(np.log(LARGEST))
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if at(float(np.exp(middle))).verdict == verdict else (low, middle)
        )
    return doubts, float(np.exp(high))


def _overlap(evidence: Evidence) -> Overlap:
    """Return the number of people of each group in each tenth of the propensity's range."""

    def by_tenth(values: Any) -> Any:
        return values.reshape(len(values), BINS + 1, BINS + 1).sum(axis=-1)[:, :BINS]

    weak = by_tenth(evidence.sums.weak)
    people = by_tenth(evidence.sums.people) - weak
    return Overlap(
        evidence.overlap,
        {name: tuple(map(int, people[i])) for i, name in enumerate(evidence.names)},
        {name: int(weak[i].sum()) for i, name in enumerate(evidence.names)},
    )


def _assumed(rate: Rate, evidence: Evidence, anytime: bool) -> list[str]:
    several = any(person is not None and person.unit is not None for person in evidence.people)
    unit = "people, with all their rows," if several else "rows"
    lines = [f"{unit} are independent draws from the population that is judged"]
    if evidence.weight is not None:
        lines.append(
            "the weight of a row is the number of people that it represents; the effective number "
            f"of rows is {effective(evidence.weight):,.0f}, and the interval is asymptotic"
        )
    if anytime:
        lines.append(
            "the population stays the same while the log grows; then intervals hold at any time"
        )
    if not rate.hides:
        return lines
    if evidence.trusted:
        return [*lines, OUTCOMES_KNOWN]
    if evidence.known:
        lines.append("the propensities are the chances with which the decisions were drawn")
    elif evidence.estimated:
        lines.append(
            "decisions are independent of outcomes given the features, and the models of both are "
            "good: the interval is asymptotic, not guaranteed at this sample size"
        )
    else:
        lines.append(
            "nothing about the rejected, since there are neither propensities nor features: each "
            "of their outcomes may have been good or bad"
        )
    if evidence.predicted and not evidence.estimated:
        lines.append("the score was fitted on other people than these")
    weak = evidence.sums.weak.sum()
    if weak and (evidence.known or evidence.estimated):
        lines.append(
            f"nothing about the rejected among {int(weak):,} people whose propensity is below "
            f"{evidence.overlap:g}"
        )
    return lines
