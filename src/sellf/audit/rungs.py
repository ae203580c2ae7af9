"""Computation of the ladder of beliefs from evidence."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sellf.audit import instrument
from sellf.audit.beliefs import NO_BETTER, NO_WORSE, Belief, ends, hidden_factors, span
from sellf.audit.evidence import Evidence
from sellf.audit.interval import Interval
from sellf.audit.judge import estimates, intervals
from sellf.audit.ladder import Ladder, Rung
from sellf.audit.result import Audit
from sellf.audit.verdict import decide, of_pairs
from sellf.errors import InputError
from sellf.fairness.notions import Rate, define
from sellf.logs.names import grouping
from sellf.logs.rows import Rows

LEVELS = (3.0, 2.0, 1.5, 1.1)
"""The factors by which hidden factors may change the odds of acceptance."""


def ladder(audit: Audit, evidence: Evidence, examiner: str | None) -> Ladder | None:
    """Return the disparity under every belief that applies to the log.

    None for a rate that does not depend on hidden outcomes, and if all outcomes are known.

    Args:
        audit: the audit of one rate.
        evidence: the log, with its propensities if it has any.
        examiner: the column that names the decision maker; None if there is none.
    """
    rate = define(audit.notion).alone
    if not rate.hides or evidence.trusted:
        return None
    rows = _in_memory(evidence)
    found = [_nothing(rate, evidence, audit)]
    found += [_rung(rate, evidence, belief, audit) for belief in (NO_BETTER, NO_WORSE)]
    if examiner is not None:
        found.append(_examiners(rate, evidence, rows, examiner, audit))
    found += [_rung(rate, evidence, hidden_factors(level), audit) for level in LEVELS]
    found += _own(evidence, audit)
    return Ladder(rate.name, audit.omega, audit.delta, tuple(found))


def _in_memory(evidence: Evidence) -> Rows:
    if evidence.rows is None or any(person is None for person in evidence.people):
        raise InputError(
            "the ladder of beliefs needs the rows in memory: audit a random part of the log, or "
            "leave --ladder and --examiner out."
        )
    return evidence.rows


def _nothing(rate: Rate, evidence: Evidence, audit: Audit) -> Rung:
    bare = evidence.without_propensities()
    seen = estimates(rate, bare)
    found = intervals(rate, bare, seen.value, delta=audit.delta).span
    says = "nothing is assumed about the rejected: each of their outcomes may be good or bad"
    return Rung("nothing", says, found, decide(found, audit.omega), finite_sample=True)


def _rung(rate: Rate, evidence: Evidence, belief: Belief, audit: Audit) -> Rung:
    found = span(
        [ends(rate, person, belief) for person in evidence.people if person is not None],
        audit.delta,
    )
    verdict = decide(found, audit.omega)
    return Rung(belief.key, belief.says, found, verdict, finite_sample=False)


def _examiners(rate: Rate, evidence: Evidence, rows: Rows, examiner: str, audit: Audit) -> Rung:
    says = (
        "cases of each group came to examiners as if at random, so good outcomes are equally "
        "frequent among the cases of every examiner"
    )
    if rows.person.unit is not None:
        raise InputError(
            "--examiner counts every row as another person, so it does not go with --person: leave "
            "one of them out."
        )
    _, codes = grouping(rows.others[examiner], examiner, "examiner")
    place, usable = instrument.classes(codes, rows.person.accepted, evidence.seed)
    count = int(place.max()) + 1
    low, high, middle, contradicted = [], [], [], False
    for i in range(len(evidence.names)):
        own = np.flatnonzero((rows.codes == i) & usable)
        if not len(own):
            own = np.flatnonzero(rows.codes == i)
        cases = instrument.by_examiner(rows.person.take(own), place[own], count)
        found = instrument.interval(rate, cases, audit.delta / len(evidence.names))
        contradicted |= found is None
        low.append(0.0 if found is None else found[0])
        high.append(1.0 if found is None else found[1])
        middle.append((low[-1] + high[-1]) / 2)
    lower = np.subtract.outer(np.array(low), np.array(high))
    interval = of_pairs(lower, np.array(middle))
    verdict = "undetermined" if contradicted else decide(interval, audit.omega)
    return Rung("examiners", says, interval, verdict, True, contradicted)


def _own(evidence: Evidence, audit: Audit) -> Iterator[Rung]:
    """Yield the audit's own interval, if propensities were known or estimated."""
    if not (evidence.known or evidence.estimated):
        return
    says = (
        "the propensities are the chances with which the decisions were drawn"
        if evidence.known
        else "everything that mattered for decisions and outcomes is in the features"
    )
    name = "propensities known" if evidence.known else "features"
    contradicted = audit.void is not None
    interval: Interval = audit.difference
    verdict: Any = "undetermined" if contradicted else decide(interval, audit.omega)
    yield Rung(name, says, interval, verdict, audit.finite_sample, contradicted)
