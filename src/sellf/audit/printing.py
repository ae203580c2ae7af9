"""The printed report of an audit."""

from typing import TYPE_CHECKING

from sellf.text import plain

if TYPE_CHECKING:
    from sellf.audit.result import Audit
    from sellf.fairness.bounds import Certificate


def report(audit: "Audit", table: str) -> str:
    """Return the printed report of an audit, which starts with its table."""
    title, *rows = table.split("\n")
    naive = "undefined" if audit.naive != audit.naive else f"{audit.naive:.3f}"
    imputed = "undefined" if audit.imputed != audit.imputed else f"{audit.imputed:.3f}"
    parts = [
        title,
        "",
        *rows,
        "",
        f"Among the accepted alone the disparity is {naive}; with predictions filled in {imputed}.",
    ]
    if audit.parts:
        parts.append(_largest(audit))
    if audit.truth is not None:
        values = list(audit.truth.values())
        parts.append(
            "The true disparity of the lender that made this simulated log is "
            f"{max(values) - min(values):.3f}."
        )
    for measured in audit.measures.values():
        parts += ["", str(measured)]
    if audit.periods:
        parts += ["", *_periods(audit)]
    if audit.needed is not None:
        parts += ["", f"What would settle it: {audit.needed}"]
    if audit.sensitivity:
        parts += ["", *_doubts(audit)]
    if audit.certificate is not None:
        parts += ["", certificate_in_words(audit.certificate)]
    parts += ["", "Assumed:", *(f"- {line}" for line in audit.assumptions)]
    if audit.warnings:
        parts += ["", "Warnings:", *(f"- {line}" for line in audit.warnings)]
    return plain("\n".join(parts))


def _largest(audit: "Audit") -> str:
    """Describe each rate's disparity and name the rate that the table shows."""
    each = "; ".join(
        f"{name} {part.difference.value:.3f}, between {part.difference.low:.3f} and "
        f"{part.difference.high:.3f}"
        for name, part in audit.parts.items()
    )
    return f"The larger of these disparities counts: {each}. The table shows {audit.rate.name}."


def certificate_in_words(found: "Certificate") -> str:
    """Summarise the paper's observable conditions."""
    bias = f"at most {found.bias:.3f}" if found.bias < float("inf") else "unbounded"
    limit = max(found.limit, 0.0)
    bound = found.disparity_bound
    return (
        f"The paper's conditions on the same log: imputed disparity {found.imputed:.3f}, bias of "
        f"the predictor {bias}, both of which must be at most {limit:.3f}: "
        + ("certified" if found.certified else "not certified")
        + f". They bound the disparity by {bound:.3f}"
        + (", its largest possible value." if bound >= 1 else ".")
    )


def _doubts(audit: "Audit") -> list[str]:
    ranges = "; ".join(
        f"L = {doubt.level:g}: {doubt.low:.3f} to {doubt.high:.3f}" for doubt in audit.sensitivity
    )
    lines = [
        "If decisions used information about the outcome that is not in the log, so that the odds "
        f"of acceptance were off by a factor of up to L: {ranges}."
    ]
    if audit.overturned_at is not None:
        large = audit.overturned_at == float("inf")
        lines.append(
            "No such L overturns the verdict."
            if large
            else f"The smallest L that overturns the verdict is {audit.overturned_at:.2f}."
        )
    return lines


def _periods(audit: "Audit") -> list[str]:
    header = f"{'period':<12}{'people':>10}{'value':>8}{'low':>8}{'high':>8}  {'verdict':<13}so far"
    return [
        header,
        *(
            f"{period.name:<12}{period.people:>10,}{period.value:>8.3f}{period.low:>8.3f}"
            f"{period.high:>8.3f}  {period.verdict:<13}"
            + (
                "not judged: the log drifts"
                if period.so_far is None
                else f"{period.so_far_low:.3f} to {period.so_far_high:.3f}, {period.so_far}"
            )
            for period in audit.periods
        ),
    ]
