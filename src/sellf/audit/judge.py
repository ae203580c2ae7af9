"""From evidence to an audit of one notion: intervals, verdict, what would settle it, what if."""

from typing import Any

import numpy as np

from sellf.audit import bernstein, exact, normal, pairs
from sellf.audit.certificate import certificate
from sellf.audit.estimate import Views, views
from sellf.audit.evidence import Evidence
from sellf.audit.exact import Interval
from sellf.audit.result import Audit, Doubt, GroupFigures, Overlap
from sellf.audit.scores import BINS
from sellf.audit.sensitivity import LARGEST, LEVELS, shift
from sellf.audit.verdict import Ends, Known, absolute, decide, difference, needed
from sellf.fairness.notions import Notion, spread

METHODS = {
    "betting": "betting (finite-sample)",
    "bernstein": "empirical Bernstein (finite-sample)",
    "normal": "cross-fitted AIPW, normal (asymptotic)",
}


def judge(
    notion: Notion,
    evidence: Evidence,
    *,
    omega: float,
    delta: float,
    anytime: bool = False,
    pdim: float = 1.0,
) -> Audit:
    """Return the audit of one notion.

    Args:
        notion: what is measured.
        evidence: the log.
        omega: the tolerated disparity.
        delta: the chance that any group's interval misses.
        anytime: whether intervals hold however often one looks while the log grows.
        pdim: the pseudo-dimension of the predictors, for the paper's bound.
    """
    predicted, trusted = evidence.predicted, evidence.trusted
    seen = views(notion, evidence.sums, predicted=predicted, trusted=trusted)
    ends, methods = intervals(notion, evidence, delta=delta, anytime=anytime)
    value = np.clip(seen.value, ends.low, ends.high)
    signed = None if anytime else signed_difference(notion, evidence, delta)
    span = difference(ends, value) if signed is None else absolute(*signed, value)
    verdict = decide(span, omega)
    doubts, overturned = _doubts(notion, evidence, ends, signed, value, omega)
    total = evidence.sums.by_group()
    unidentified = np.minimum(seen.high - seen.low, ends.high - ends.low)
    settle = needed(
        evidence.names,
        ends,
        Known(
            total.people,
            total.accepted,
            value,
            unidentified,
            (total.weak - total.weak_accepted) / total.people,
            _slope(notion, evidence, seen),
        ),
        span=span,
        omega=omega,
        delta=delta,
        verdict=verdict,
    )
    by_group = {
        name: GroupFigures(
            float(ends.low[i]),
            float(value[i]),
            float(ends.high[i]),
            int(total.people[i]),
            int(total.accepted[i]),
            float(seen.naive[i]),
            float(seen.imputed[i]),
            float(unidentified[i]),
            methods[i],
        )
        for i, name in enumerate(evidence.names)
    }
    known = evidence.known or evidence.estimated
    return Audit(
        notion=notion,
        omega=omega,
        delta=delta,
        verdict=verdict,
        difference=span,
        signed=None
        if signed is None
        else Interval(signed[0], float(value[1] - value[0]), signed[1]),
        by_group=by_group,
        naive=float(spread(seen.naive)),
        imputed=float(spread(seen.imputed)),
        needed=settle,
        method=", ".join(METHODS[name] for name in dict.fromkeys(methods)),
        finite_sample="normal" not in methods,
        sensitivity=doubts,
        overturned_at=overturned,
        certificate=certificate(
            notion, omega, evidence.sums, predicted=predicted, pdim=pdim, delta=delta
        )
        if known and not trusted
        else None,
        assumptions=tuple(_assumed(notion, evidence, anytime)),
        warnings=evidence.warnings,
        overlap=_overlap(evidence) if known and not trusted else None,
    )


def intervals(
    notion: Notion, evidence: Evidence, *, delta: float, anytime: bool = False
) -> tuple[Ends, list[str]]:
    """Return every group's interval, all of which hold with probability 1 - delta, and how."""
    alpha = delta / len(evidence.names)
    total = evidence.sums.by_group()
    lows, highs, methods = [], [], []
    for i, person in enumerate(evidence.people):
        group = total.group(i)
        if evidence.estimated and notion != "demographic":
            low, high = normal.interval(notion, group, alpha=alpha)
            methods.append("normal")
        elif person is not None:
            how: dict[str, Any] = {"alpha": alpha, "overlap": evidence.overlap, "anytime": anytime}
            low, high = exact.interval(notion, person, **how)
            methods.append("betting")
        else:
            low, high = bernstein.interval(
                notion,
                group,
                alpha=alpha,
                overlap=evidence.overlap,
                predicted=evidence.predicted,
                trusted=evidence.trusted,
                weighted=evidence.known,
            )
            methods.append("bernstein")
        lows.append(low)
        highs.append(high)
    return Ends(np.array(lows), np.array(highs)), methods


def signed_difference(
    notion: Notion, evidence: Evidence, delta: float
) -> tuple[float, float] | None:
    """Return second minus first of two groups that can be bet on together; None for others."""
    if len(evidence.people) != 2 or (evidence.estimated and notion != "demographic"):
        return None
    first, second = evidence.people
    if first is None or second is None:
        return None
    return pairs.difference(notion, first, second, delta=delta, overlap=evidence.overlap)


def _doubts(
    notion: Notion,
    evidence: Evidence,
    ends: Ends,
    signed: tuple[float, float] | None,
    value: Any,
    omega: float,
) -> tuple[tuple[Doubt, ...], float | None]:
    """Return the disparity's range for some L, and the smallest L that overturns the verdict."""
    weak = evidence.sums.weak.sum() == evidence.sums.people.sum()
    if notion == "demographic" or evidence.trusted or weak:
        return (), None

    def at(level: float) -> Doubt:
        move = shift(notion, evidence.sums, level)
        if signed is None:
            wide = Ends(np.maximum(ends.low - move.down, 0), np.minimum(ends.high + move.up, 1))
            span = difference(wide, value)
        else:
            low = signed[0] - move.down[1] - move.up[0]
            span = absolute(float(low), float(signed[1] + move.up[1] + move.down[0]), value)
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
    """Return how many people of each group are in which tenth of the propensity."""

    def by_tenth(values: Any) -> Any:
        return values.reshape(len(values), BINS + 1, BINS + 1).sum(axis=-1)[:, :BINS]

    weak = by_tenth(evidence.sums.weak)
    people = by_tenth(evidence.sums.people) - weak
    return Overlap(
        evidence.overlap,
        {name: tuple(map(int, people[i])) for i, name in enumerate(evidence.names)},
        {name: int(weak[i].sum()) for i, name in enumerate(evidence.names)},
    )


def _slope(notion: Notion, evidence: Evidence, seen: Views) -> Any:
    """Return how much each group's utility moves with its share of positives."""
    total = evidence.sums.by_group()
    if notion == "demographic":
        return 0 * total.people
    if notion != "opportunity":
        return np.ones(len(total.people))
    positive = np.maximum(total.positive / total.people, 1 / total.people)
    return np.clip(seen.value, 0.01, 1.0) ** 2 / positive


def _assumed(notion: Notion, evidence: Evidence, anytime: bool) -> list[str]:
    lines = ["rows are independent draws from the population that is judged"]
    if anytime:
        lines.append("which stays the same while the log grows: then one may look at any time")
    if notion == "demographic":
        return lines
    if evidence.trusted:
        return [*lines, "the outcomes of the rejected are what really happened to them"]
    if evidence.known:
        lines.append("the propensities are the chances with which the decisions were drawn")
    elif evidence.estimated:
        lines.append(
            "given the features decisions have nothing to do with outcomes, and the models of "
            "both are good: the interval is asymptotic, not guaranteed at this sample size"
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
