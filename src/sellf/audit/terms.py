"""The terms of `Sums` as expressions that an engine adds up."""

from typing import Any

import narwhals as nw

from sellf.audit.columns import Columns
from sellf.audit.scores import BINS
from sellf.audit.sums import Sums, fourth_moment, miss_fourth_moment

SCALED = Sums._fields[5:]
"""The sums that depend on propensities and predictions, from `propensity` on."""


def strata(c: Columns) -> dict[str, Any]:
    """Return the numbers of the strata: of the propensity, and of the prediction."""

    def bins(name: str, known: bool) -> Any:
        if not known:
            return nw.lit(BINS)
        number = (nw.col(name) * BINS) // 1
        return nw.when(number >= BINS).then(nw.lit(float(BINS - 1))).otherwise(number)

    return {
        "_p": bins("p", c.propensity is not None),
        "_f": bins("f", c.score is not None),
    }


def weights(c: Columns, overlap: float) -> dict[str, Any]:
    """Return the terms of `SCALED` that are not 0 for every row of such a log."""
    a, ay, p, f = (nw.col(name) for name in ("accepted", "positive", "p", "f"))
    zero, one, pending = nw.lit(0.0), nw.lit(1.0), nw.col("pending")
    known, predicted = c.propensity is not None, c.score is not None
    if not known:
        terms = {"weak": nw.lit(1.0), "weak_accepted": a, "weak_positive": ay}
        terms |= {"fourth": nw.lit(1.0), "miss_fourth": nw.lit(1.0)}
        if predicted:
            terms["predicted_rejected"] = (1 - a) * f
        return terms
    strong, guess = p >= overlap, f if predicted else None

    def where_strong(value: Any) -> Any:
        return nw.when(strong).then(value).otherwise(zero)

    def where_weak(value: Any) -> Any:
        return nw.when(strong).then(zero).otherwise(value)

    terms = {
        "propensity": p,
        "chance_variance": p * (1 - p),
        "weak": where_weak(nw.lit(1.0)),
        "weak_accepted": where_weak(a),
        "weak_positive": where_weak(ay),
        "weight": where_strong(a / p),
        "weight_square": where_strong(a / (p * p)),
        "weight_positive": where_strong(ay / p),
        "fourth": nw.when(strong).then(fourth_moment(p, guess)).otherwise(one),
        "miss_fourth": nw.when(strong).then(miss_fourth_moment(p, guess)).otherwise(one),
        "pending_weight": nw.when(strong).then(pending / p).otherwise(pending),
        "pending_weight_square": nw.when(strong).then(pending / (p * p)).otherwise(pending),
    }
    if not predicted:
        terms["weight_square_positive"] = where_strong(ay / (p * p))
    else:
        s = f + (ay - a * f) / p
        terms |= {
            "predicted_rejected": (1 - a) * f,
            "predicted_weighted": where_strong(a * f * (1 - p) / p),
            "score": where_strong(s),
            "score_square": where_strong(s * s),
            "score_positive": where_strong(ay * s),
            "score_accepted": where_strong(a * s),
        }
    return terms
