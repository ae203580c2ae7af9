"""Audits of notions that require several rates to be equal: the largest disparity counts."""

from dataclasses import replace

import numpy as np

from sellf.audit.result import Audit, Doubt
from sellf.audit.verdict import decide, largest
from sellf.fairness.notions import Notion


def largest_of(notion: Notion, parts: dict[str, Audit], delta: float) -> Audit:
    """Combine the audits of a notion's rates.

    Figures by group are those of the rate with the largest disparity. Each rate's intervals have a
    share of delta, so all of them hold together with probability 1 - delta.

    Args:
        notion: the notion of fairness.
        parts: the audits by rate.
        delta: the probability that any of the intervals misses.
    """
    audits = list(parts.values())
    shown = max(audits, key=lambda audit: audit.difference.value)
    difference = largest([audit.difference for audit in audits])
    void = next((audit.void for audit in audits if audit.void is not None), None)
    verdict = "undetermined" if void is not None else decide(difference, shown.omega)
    doubts = []
    for several in zip(*(audit.sensitivity for audit in audits), strict=True):
        low, high = (max(getattr(doubt, end) for doubt in several) for end in ("low", "high"))
        at = several[0].level
        span = difference._replace(low=low, high=high)
        doubts.append(Doubt(at, low, high, decide(span, shown.omega)))
    # The notion is unfair if one rate is, and fair only if all are.
    limits = [audit.overturned_at for audit in audits if audit.verdict == verdict]
    limits = [limit for limit in limits if limit is not None]
    overturned = (max if verdict == "unfair" else min)(limits) if limits else None
    open_ones = [audit for audit in audits if audit.needed is not None]
    widest = max(open_ones, key=lambda audit: audit.difference.high, default=shown)
    return replace(
        shown,
        notion=notion,
        delta=delta,
        verdict=verdict,
        difference=difference,
        naive=float(np.fmax.reduce([audit.naive for audit in audits])),
        imputed=float(np.fmax.reduce([audit.imputed for audit in audits])),
        needed=widest.needed if verdict == "undetermined" else None,
        finite_sample=all(audit.finite_sample for audit in audits),
        sensitivity=tuple(doubts),
        overturned_at=overturned,
        certificate=None,
        assumptions=tuple(dict.fromkeys(line for audit in audits for line in audit.assumptions)),
        warnings=tuple(dict.fromkeys(line for audit in audits for line in audit.warnings)),
        void=void,
        parts=parts,
    )
