"""The audit of an unrecorded group, from each person's probability of belonging to it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from sellf.audit import pilot
from sellf.audit.evidence import Evidence, gather
from sellf.audit.interval import Interval
from sellf.audit.parts import largest_of
from sellf.audit.proxy import Proxy, bands, ends, explained
from sellf.audit.result import Audit, GroupFigures
from sellf.audit.strata import of_difference
from sellf.audit.verdict import decide, of_pairs
from sellf.errors import InputError
from sellf.fairness.arrays import divide
from sellf.fairness.notions import Counts, Notion, Rate, define
from sellf.logs.columns import Columns
from sellf.logs.log import Log
from sellf.logs.person import Floats
from sellf.logs.values import numbers

if TYPE_CHECKING:
    from sellf.audit.run import How

OTHERS = "others"


def probabilities(values: Any, column: str) -> Floats:
    """Return a column of probabilities; raise InputError for other values."""
    p = numbers(values, column, "group_probability")
    if not ((p >= 0) & (p <= 1)).all():
        bad = p[~((p >= 0) & (p <= 1))][0]
        raise InputError(
            f"group_probability {column!r} holds {bad:g}: it is the chance that a person belongs "
            "to the group, between 0 and 1; divide per cents by 100."
        )
    if p.sum() == 0 or (1 - p).sum() == 0:
        raise InputError(
            f"group_probability {column!r} is {p[0]:g} in every row: a disparity compares two "
            "groups."
        )
    return p


def audit_by_proxy(
    notions: list[Notion],
    log: Log,
    columns: Columns,
    how: "How",
) -> dict[Notion, Audit]:
    """Audit a group of which only each person's probability of membership is known.

    Args:
        notions: the notions to audit.
        log: the log, with everybody in one group.
        columns: the meaning of its columns.
        how: the checked options, including the column with the probabilities.
    """
    if log.rows is None:
        raise InputError(
            f"the log has {log.count:,} rows, and --group-probability needs them in memory: audit "
            "a random part of it."
        )
    column, omega, delta = str(how.wanted.proxy), how.omega, how.delta
    ask = {"overlap": how.overlap, "model": how.model, "seed": how.seed}
    evidence = gather(log, columns, anytime=False, **ask)
    result = {}
    for notion in notions:
        rates = define(notion).rates
        found = {
            rate.name: _audit(rate, evidence, column, omega=omega, delta=delta / len(rates))
            for rate in rates
        }
        result[notion] = found[notion] if notion in found else largest_of(notion, found, delta)
    return result


def _audit(rate: Rate, evidence: Evidence, column: str, *, omega: float, delta: float) -> Audit:
    rows = evidence.rows
    if rows is None:
        raise ValueError("proxies need rows")
    person, p = rows.person, probabilities(rows.others[column], column)
    by = bands(p, np.random.default_rng([evidence.seed, 3]))
    quantile = float(-ndtri(delta / 4))
    ranges = [ends(rate, person, chance, by, quantile) for chance in (p, 1 - p)]
    low, high = (np.array(side) for side in zip(*ranges, strict=True))
    middle = (low + high) / 2
    span = of_pairs(np.subtract.outer(low, high), middle)
    signed = Interval(
        float(low[0] - high[1]), float(middle[0] - middle[1]), float(high[0] - low[1])
    )
    usual = explained(rate, person, p, evidence.overlap, _guess(evidence), delta)
    proxy = Proxy(
        rate.name,
        column,
        omega,
        delta,
        signed,
        of_difference(signed, omega),
        usual,
        of_difference(usual, omega),
    )
    naive = np.array([_naive(rate, evidence, chance) for chance in (p, 1 - p)])
    figures = {}
    for i, (name, chance) in enumerate(((column, p), (OTHERS, 1 - p))):
        people, accepted = round(chance.sum()), round((chance * person.accepted).sum())
        figures[name] = GroupFigures(
            float(low[i]),
            float(middle[i]),
            float(high[i]),
            people,
            accepted,
            float(naive[i]),
            float("nan"),
            float(high[i] - low[i]),
            "proxy",
        )
    return Audit(
        notion=rate.name,
        omega=omega,
        delta=delta,
        verdict=decide(span, omega),
        difference=span,
        signed=None,
        by_group=figures,
        naive=float(abs(naive[0] - naive[1])),
        imputed=float("nan"),
        needed=None,
        method="bounds for any dependence of group and outcome, normal (asymptotic)",
        finite_sample=False,
        sensitivity=(),
        overturned_at=None,
        certificate=None,
        assumptions=(
            "rows are independent draws from the population that is judged",
            f"{column} is the chance of belonging to the group for people like these",
            "nothing about how group and outcome go together among people with the same chance",
            "nothing about the rejected: each of their outcomes may have been good or bad",
        )[: 4 if rate.hides and not evidence.trusted else 3],
        warnings=evidence.warnings,
        measures={Proxy.key: proxy},
    )


def _guess(evidence: Evidence) -> Floats | float:
    rows = evidence.rows
    if rows is None:
        return 0.0
    return pilot.predictions(rows.person, pilot.by_bin(rows.person, evidence.overlap))


def _naive(rate: Rate, evidence: Evidence, chance: Floats) -> float:
    """Return the rate among the accepted alone, weighted by the probability of membership."""
    if evidence.rows is None:
        return float("nan")
    person = evidence.rows.person
    accepted, good = (float((chance * x).sum()) for x in (person.accepted, person.positive))
    counts = Counts(float(chance.sum()), accepted, good, 0.0)
    counts = counts.accepted_only() if rate.needs_label else counts
    return float(divide(*(np.array(side.total(counts)) for side in rate.sums)))
