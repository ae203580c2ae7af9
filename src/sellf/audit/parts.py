"""A notion that asks several rates to be equal: the larger disparity counts."""

from dataclasses import replace

import numpy as np

from sellf.audit.result import Audit, Doubt
from sellf.audit.verdict import decide, largest
from sellf.fairness.notions import Notion


def largest_of(notion: Notion, parts: dict[str, Audit], delta: float) -> Audit:
    """Return the audit of a notion from those of its rates.

    Figures by group are those of the rate whose disparity is largest. Each rate's intervals miss
    with its part of delta, so all of them hold together with probability 1 - delta.

    Args:
        notion: what is measured.
        parts: by rate.
        delta: the chance that any of them misses.
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
    # One rate that is unfair makes the notion unfair; all have to be fair for it to be fair.
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
