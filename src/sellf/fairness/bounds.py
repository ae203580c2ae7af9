"""Guarantees on the true disparity from observable quantities (Theorems 2 to 4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sellf.errors import InputError
from sellf.fairness.arrays import Array, divide, namespace
from sellf.fairness.checks import number, per_group, within
from sellf.fairness.disparity import Disparity
from sellf.fairness.notions import Notion, define
from sellf.fairness.tables import Table


def cortes(n: Array, d2: Array, pdim: Array, delta: float) -> Array:
    """Return B such that R <= R^_w + B for all predictors at once, with probability 1 - delta.

    This is the bound of Cortes, Mansour and Mohri (2010, Theorem 3), with the 3/8-power rate that
    they prove: B = 2^(5/4) sqrt(d2) ((p ln(2 n e / p) + ln(4 / delta)) / n)^(3/8). It is one-sided
    and holds for losses in [0, 1]. It is infinite where 2 n < p, that is, with too few people.

    Args:
        n: number of accepted people in the weighted mean R^_w.
        d2: the Renyi divergence of the rejected against the accepted.
        pdim: p, the pseudo-dimension of the predictors' losses (linear predictors: inputs + 1).
        delta: failure probability of the bound.
    """
    number("delta", delta, low=0, high=1, low_open=True)
    xp = namespace(n, d2, pdim)
    enough = xp.asarray(2.0 * n >= pdim)
    logarithm = xp.log(xp.where(enough, 2.0 * np.e * n / pdim, 1.0))
    rate = ((pdim * logarithm + np.log(4 / delta)) / n) ** 0.375
    return xp.where(enough, 2**1.25 * d2**0.5 * rate, xp.inf)[()]


def cortes_two_sided(
    n: Array, d2: Array, pdim: Array, delta: float, *, groups: int, mean_weight: Array = 1.0
) -> Array:
    """Return B such that |eps - eps^| <= B in every group at once, with probability 1 - delta.

    The observable conditions (Theorem 4) need a two-sided bound, because an upper bound on a signed
    error does not limit its size. The error of a prediction lies in [-1, 1], so (1 + eps) / 2 and
    (1 - eps) / 2 are losses in [0, 1]. The one-sided bound on both gives
    |eps - eps^| <= 2 B + (w - 1), where w is the mean weight of the sample. delta is divided among
    both sides and all groups.

    Args:
        n: number of accepted people of the group from whom the error was estimated.
        d2: the Renyi divergence of the group's rejected against its accepted.
        pdim: the pseudo-dimension of the predictors.
        delta: probability that the bound fails in any group.
        groups: number of groups in which the bound must hold simultaneously.
        mean_weight: the mean importance weight of these n people (1 in expectation).
    """
    return 2 * cortes(n, d2, pdim, delta / (2 * groups)) + (mean_weight - 1)


def bias_shares(
    notion: Notion,
    *,
    rejection_rate: Array,
    error_bound: Array,
    imputed_positive_rate: Array | None = None,
) -> Array:
    """Return how far prediction errors can shift each group's utility: r |eps| / share.

    The share is that of the people in the notion's denominator: 1 for notions over everyone, phi~
    for opportunity. The last axis of the arguments is the group.
    """
    xp = namespace(rejection_rate, error_bound)
    share = rejection_rate * xp.minimum(error_bound, 1.0)  # |eps| is never above 1
    among = define(notion).alone.among
    if not among.rejected_positive:
        return share
    spoken_of = among.people + among.rejected_positive * imputed_positive_rate
    # If the imputed denominator is empty, any error may move the utility anywhere.
    nobody = xp.where(share == 0, 0.0, xp.inf)
    return xp.where(spoken_of == 0, nobody, divide(share, spoken_of, empty=0.0))


def bias_bound(shares: Array) -> Array:
    """Return how far prediction errors can shift the disparity: the sum of the two largest shares.

    Theorem 4 adds up the shares of all groups. A disparity compares only two groups, so the sum of
    two shares is enough; for two groups both sums are equal.
    """
    xp = namespace(shares)
    return xp.sum(xp.sort(shares, axis=-1)[..., -2:], axis=-1)


@dataclass(frozen=True)
class Certificate(Table):
    """Result of checking whether the true disparity is guaranteed to be at most omega.

    Two conditions are jointly sufficient: |imputed disparity| <= `limit` and the predictor's
    `bias` <= `limit`, with `limit` = omega / 2, or (1 - v) omega / 2 for opportunity. If one of
    them fails, nothing is guaranteed, but the disparity may still be small.
    """

    notion: Notion
    omega: float
    imputed: float
    """|Delta~|, the imputed disparity."""
    bias: float
    """Upper bound on the difference between two groups that the predictor's errors can cause."""
    v: float
    """max r |eps| / phi~ for opportunity (nothing can be certified if it is 1 or more); 0 for
    notions whose denominator does not depend on predictions."""
    share_by_group: dict[Any, float]
    """Each group's contribution to `bias`."""

    @property
    def limit(self) -> float:
        """Threshold of both conditions; negative if v is above 1."""
        return (1 - self.v) * self.omega / 2

    @property
    def imputed_slack(self) -> float:
        """Slack of the condition on the imputed disparity; negative if it fails."""
        return self.limit - self.imputed

    @property
    def bias_slack(self) -> float:
        """Slack of the condition on the predictor's bias; negative if it fails."""
        return self.limit - self.bias

    @property
    def imputed_holds(self) -> bool:
        """Whether the imputed disparity is small enough."""
        return self.imputed_slack >= 0 and self.v < 1

    @property
    def bias_holds(self) -> bool:
        """Whether the predictor's bias is small enough."""
        return self.bias_slack >= 0 and self.v < 1

    @property
    def certified(self) -> bool:
        """Whether |Delta| <= omega is guaranteed."""
        return self.imputed_holds and self.bias_holds

    @property
    def certified_omega(self) -> float:
        """The smallest omega that both conditions would certify; infinite if none."""
        if self.v >= 1:
            return np.inf
        return 2 * max(self.imputed, self.bias) / (1 - self.v)

    @property
    def disparity_bound(self) -> float:
        """Upper bound on the true disparity: (|Delta~| + bias) / (1 - v), at most 1.

        This is the inequality of the proof before it is split into two conditions. It never
        exceeds `certified_omega`.
        """
        if self.v >= 1:
            return 1.0
        return min(1.0, (self.imputed + self.bias) / (1 - self.v))

    def _title(self) -> str:
        verdict = "certified" if self.certified else "not certified"
        bound = f"{self.certified_omega:.4f}" if self.v < 1 else "nothing"
        return (
            f"{self.notion} disparity at most {self.omega:g}: {verdict} (these figures certify "
            f"{bound})"
        )

    def _table(self) -> dict[str, list[Any]]:
        return {
            "condition": ["imputed disparity", "predictor's bias"],
            "value": [self.imputed, self.bias],
            "limit": [self.limit, self.limit],
            "slack": [self.imputed_slack, self.bias_slack],
            "holds": [self.imputed_holds, self.bias_holds],
        }


def certify(
    notion: Notion,
    omega: float,
    *,
    imputed: Any,
    rejection_rate: Any,
    error_bound: Any = None,
    error: Any = None,
    imputed_positive_rate: Any = None,
) -> Certificate:
    """Check the sufficient conditions for a true disparity of at most omega (Theorems 2 and 4).

    If the signed errors of the predictor are given as `error`, this is Theorem 2: errors that shift
    all groups in the same direction do not add to the disparity. If bounds on their size are given
    as `error_bound`, which hold with probability 1 - delta (see `cortes_two_sided`), it is
    Theorem 4 in corrected form: the signs are unknown, so the shares of two groups add up.
    Per-group arguments are sequences in the order of the groups, or mappings from group to number,
    as returned by `decompose`.

    Args:
        notion: a notion whose disparity depends on labels of the rejected, for example
            "qualification", "accuracy" or "opportunity".
        omega: the largest tolerated disparity.
        imputed: the imputed disparity, a number or a `Disparity`.
        rejection_rate: r = P(A = 0 | Z), per group.
        error_bound: a bound on |eps|, the predictor's mean error over the rejected, per group.
        error: eps itself, prediction minus label, instead of a bound on its size.
        imputed_positive_rate: phi~ = P(Y~ = 1 | Z), per group; needed for notions whose
            denominator depends on labels, such as opportunity.
    """
    definition = define(notion)
    if not definition.hides:
        raise InputError(
            f"notion is {notion!r}, which needs no label{definition.of_whom}: compare "
            f"disparity({notion!r}, ...).value with omega; there is nothing to certify."
        )
    moves = bool(definition.alone.among.rejected_positive)
    omega = number("omega", omega, low=0)
    seen = imputed.value if isinstance(imputed, Disparity) else imputed
    seen = abs(number("imputed", seen, low=-1, high=1))
    if (error is None) == (error_bound is None):
        raise InputError(
            "give either error_bound, a bound on the size of the predictor's errors, or error, the "
            "errors with their signs."
        )
    known = "error_bound" if error is None else "error"
    columns = {"rejection_rate": rejection_rate, known: error_bound if error is None else error}
    if moves:
        if imputed_positive_rate is None:
            raise InputError(
                f"imputed_positive_rate is missing: {notion} needs P(imputed label = 1) of "
                "each group, as decompose(...).imputed_positive_rate gives it."
            )
        columns["imputed_positive_rate"] = imputed_positive_rate
    names, arrays = per_group(columns)
    limits = {"error_bound": (0, np.inf), "error": (-1, 1)}
    for name, values in arrays.items():
        within(name, values, *limits.get(name, (0, 1)))
    errors = arrays.pop(known)
    shares = bias_shares(notion, **arrays, error_bound=np.abs(errors))
    v = float(shares.max()) if moves else 0.0
    by_group = dict(zip(names, shares.tolist(), strict=True))
    bias = bias_bound(shares) if error is None else np.ptp(np.sign(errors) * shares)
    return Certificate(notion, omega, seen, float(bias), v, by_group)
