"""The disparity of decisions in three views, and the bias of the imputed disparity."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.fairness.arrays import Array, divide, namespace
from sellf.fairness.checks import UndefinedUtilityWarning, one_of
from sellf.fairness.notions import VIEWS, Counts, Notion, View, define, spread
from sellf.fairness.tables import Table
from sellf.fairness.tally import tally


@dataclass(frozen=True)
class Disparity(Table):
    """Disparity between groups: the spread of their utilities."""

    notion: Notion
    view: View
    by_rate: dict[str, dict[Any, float]]
    """Mean utility mu of each group, in sorted order, for each rate that the notion compares. Most
    notions compare one rate; equalized odds compares two."""
    counts: dict[Any, Counts]
    """Counts from which the utilities were computed."""

    @property
    def by_group(self) -> dict[Any, float]:
        """Utility mu of each group; of several rates, the one with the largest disparity."""
        return max(self.by_rate.values(), key=lambda rate: np.nan_to_num(_spread(rate), nan=-1.0))

    @property
    def value(self) -> float:
        """Delta = max - min over the groups whose utility is defined; NaN if fewer than two are."""
        return _spread(self.by_group)

    @property
    def signed(self) -> float:
        """Second group minus first, in sorted order: the paper's Delta for two groups."""
        if len(self.by_group) != 2:
            raise InputError(
                f"signed compares two groups and there are {len(self.by_group)}: use value, or "
                "subtract the entries of by_group."
            )
        first, second = self.by_group.values()
        return second - first

    @property
    def undefined(self) -> list[Any]:
        """The groups with an undefined utility, since nobody is in the notion's denominator."""
        rates = self.by_rate.values()
        return [name for name in self.by_group if any(np.isnan(rate[name]) for rate in rates)]

    @classmethod
    def of(cls, notion: Notion, view: View, names: list[Any], counts: Counts) -> Self:
        """Compute a disparity from counts; warn about groups whose utility is undefined."""
        rates = define(notion).rates
        by_rate = {rate.name: _named(names, rate.utility(counts)) for rate in rates}
        each = {name: Counts(*row) for name, row in zip(names, _rows(counts), strict=True)}
        accepted = "accepted " if view == "accepted" else ""
        for rate in rates:
            empty = [name for name, mean in by_rate[rate.name].items() if np.isnan(mean)]
            if empty:
                _warn(empty, f"no {accepted}{rate.whom}, so no utility")
        return cls(notion, view, by_rate, each)

    def _title(self) -> str:
        return f"{self.notion} disparity ({self.view} view): {self.value:.4f}"

    def _table(self) -> dict[str, list[Any]]:
        return {
            "group": list(self.by_group),
            **{
                "utility" if len(self.by_rate) == 1 else name: list(rate.values())
                for name, rate in self.by_rate.items()
            },
            **{
                field: [getattr(count, field) for count in self.counts.values()]
                for field in Counts._fields
            },
        }


@dataclass(frozen=True)
class Decomposition(Table):
    """Theorem 1 on a sample: the effect of the predictor's errors on the imputed disparity.

    `imputed`, `true` and `bias` have one entry per group, and imputed = true + bias holds for every
    group. Therefore `imputed.signed = true.signed + bias.signed` for two groups, and
    `imputed.value <= true.value + bias.value` for more.
    """

    notion: Notion
    imputed: Disparity
    true: Disparity
    bias: Disparity
    """Qualification: r eps; accuracy: -r eps; opportunity: mu (kappa - 1); others analogously."""
    rejection_rate: dict[Any, float]
    """r = P(A = 0 | Z)."""
    prediction_error: dict[Any, float]
    """eps: mean of prediction - label over the rejected; 0 where nobody was rejected."""
    imputed_positive_rate: dict[Any, float]
    """phi~ = P(Y~ = 1 | Z), with labels of the accepted and predictions for the rejected."""
    kappa: dict[Any, float]
    """1 - r eps / phi~, the factor by which opportunity is biased; NaN if nobody is imputed
    positive."""

    @property
    def residual(self) -> float:
        """Largest |imputed - (true + bias)| over the groups where both sides are defined."""
        sides = [
            self.imputed.by_group[name] - (self.true.by_group[name] + self.bias.by_group[name])
            for name in self.true.by_group
        ]
        return max((abs(side) for side in sides if not np.isnan(side)), default=0.0)

    def _title(self) -> str:
        return (
            f"{self.notion} disparity: {self.imputed.value:.4f} imputed, {self.true.value:.4f} "
            f"true (predictor's bias {self.bias.value:.4f})"
        )

    def _table(self) -> dict[str, list[Any]]:
        return {
            "group": list(self.true.by_group),
            "imputed": list(self.imputed.by_group.values()),
            "true": list(self.true.by_group.values()),
            "bias": list(self.bias.by_group.values()),
            "rejection_rate": list(self.rejection_rate.values()),
            "prediction_error": list(self.prediction_error.values()),
            "imputed_positive_rate": list(self.imputed_positive_rate.values()),
            "kappa": list(self.kappa.values()),
        }


def disparity(
    notion: Notion,
    *,
    group: Any,
    action: Any,
    label: Any = None,
    prediction: Any = None,
    view: View = "true",
    weights: Any = None,
) -> Disparity:
    """Measure the disparity of decisions between groups.

    Args:
        notion: "qualification" (E[Y]), "accuracy" (P(Y = A)), "opportunity" (P(A = 1 | Y = 1)),
            "demographic" (P(A = 1), which needs no label), "predictive-parity" (P(Y = 1 | A = 1)),
            "false-positive-rate" (P(A = 1 | Y = 0)) or "equalized-odds" (the larger of the
            disparities of opportunity and of the false-positive rate).
        group: the group of each person, any hashable values, two or more groups.
        action: 1 if the person was accepted, 0 if rejected.
        label: 1 if the outcome was good (repaid, passed), 0 if not. With view "accepted" or
            "imputed" it may be NaN for the rejected; values for the rejected are not used.
        prediction: the predicted label of each rejected person, for view "imputed": draws of 0
            or 1, or probabilities, which give the expectation over the draws.
        view: "true" (needs every label), "accepted" (drops the rejected, Eq. 2: what most tools
            show) or "imputed" (the label of the accepted, the prediction of the rejected).
        weights: number of people that each row represents.

    >>> log = dict(group=["a", "a", "a", "b", "b", "b"], action=[1, 1, 0, 1, 0, 0])
    >>> disparity("opportunity", **log, label=[1, 1, 0, 1, 1, 1]).by_group
    {'a': 1.0, 'b': 0.3333333333333333}
    """
    definition = define(notion)
    one_of("view", view, VIEWS)
    if not definition.needs_label:
        # Decisions are always observed, so labels and predictions are ignored even if given.
        label = prediction = None
    elif label is None:
        raise InputError(
            f"label is missing: {notion} needs the outcome of the accepted at least; only "
            "'demographic' needs none."
        )
    elif view == "imputed" and prediction is None:
        raise InputError("prediction is missing: view='imputed' needs one for the rejected.")
    rows = tally(
        group=group,
        action=action,
        label=label,
        prediction=prediction if view == "imputed" else None,
        weights=weights,
        every_label=view == "true" and definition.hides,
    )
    return Disparity.of(notion, view, rows.names, rows.counts(view))


def decompose(
    notion: Notion, *, group: Any, action: Any, label: Any, prediction: Any, weights: Any = None
) -> Decomposition:
    """Split the imputed disparity into the true one and the predictor's bias (Theorem 1).

    The arguments are those of `disparity`, and every label is needed. Use it in simulations, in
    tests, and for logs in which the outcomes of rejected people became known later.
    """
    definition = define(notion)
    if not definition.hides:
        raise InputError(
            f"notion is {notion!r}, which needs no label{definition.of_whom}: the observed "
            "disparity is the true one, and there is nothing to decompose."
        )
    rate = definition.alone
    for name, given in {"label": label, "prediction": prediction}.items():
        if given is None:
            raise InputError(f"{name} is missing: a decomposition needs one for every person.")
    rows = tally(group=group, action=action, label=label, prediction=prediction, weights=weights)
    names, true, imputed = rows.names, rows.counts("true"), rows.counts("imputed")
    parts = imputation_bias(notion, true, imputed)
    empty = [name for name, kappa in _named(names, parts.kappa).items() if np.isnan(kappa)]
    if rate.among.rejected_positive and empty:
        _warn(empty, "nobody imputed positive, so no kappa")
    return Decomposition(
        notion,
        Disparity.of(notion, "imputed", names, imputed),
        Disparity.of(notion, "true", names, true),
        Disparity(notion, "imputed", {rate.name: _named(names, parts.bias)}, {}),
        _named(names, parts.rejection_rate),
        _named(names, parts.prediction_error),
        _named(names, parts.imputed_positive_rate),
        _named(names, parts.kappa),
    )


@dataclass(frozen=True)
class ImputationBias:
    """The terms of Theorem 1, one entry per group."""

    rejection_rate: Array
    prediction_error: Array
    imputed_positive_rate: Array
    kappa: Array
    bias: Array


def imputation_bias(
    notion: Notion, true: Counts, imputed: Counts, hidden: Array | None = None
) -> ImputationBias:
    """Return the terms of Theorem 1 from the counts with the true and with the imputed labels.

    Args:
        notion: a notion with a single rate.
        true: the counts with every label.
        imputed: the counts with predictions in place of labels that no decision reveals.
        hidden: number of people with such a label, by group; by default the people without a
            favourable decision, which is correct where the favourable actions are those that
            reveal the outcome. `rejection_rate` and `prediction_error` refer to these people.
    """
    xp = namespace(true.people)
    rejected = true.people - true.accepted if hidden is None else hidden
    within = imputed.accepted_positive - true.accepted_positive
    surplus = imputed.rejected_positive - true.rejected_positive + within
    rejection_rate = divide(rejected, true.people)
    prediction_error = divide(surplus, rejected, empty=0.0)
    positives = imputed.accepted_positive + imputed.rejected_positive
    imputed_positive_rate = divide(positives, true.people)
    shift = rejection_rate * prediction_error
    kappa = 1 - divide(shift, imputed_positive_rate)
    rate = define(notion).alone
    # (N + n e) / (D + d e) - N / D = (n - mu d) e / (D + d e), where e is the number of positives
    # that predictions add among the rejected, and n and d are its coefficients in N and D.
    above, below = rate.of.rejected_positive, rate.among.rejected_positive
    change = shift * above - rate.utility(true) * shift * below if below else shift * above
    if hidden is not None:
        # Some of e is among people with a favourable decision, where the coefficients differ.
        inside = divide(within, true.people)
        more, less = rate.of.accepted_positive - above, rate.among.accepted_positive - below
        change = change + (more - rate.utility(true) * less) * inside
    share = divide(rate.among.total(imputed), true.people)
    # A change of exactly 0 gives a bias of 0, even where the imputed denominator is empty.
    bias = xp.where(change == 0, 0.0, divide(change, share))
    return ImputationBias(rejection_rate, prediction_error, imputed_positive_rate, kappa, bias)


def _named(names: list[Any], values: NDArray[Any]) -> dict[Any, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _spread(by_group: dict[Any, float]) -> float:
    return float(spread(np.array(list(by_group.values()))))


def _rows(counts: Counts) -> list[list[float]]:
    return np.stack([np.asarray(field) for field in counts], axis=1).tolist()


def _warn(groups: list[Any], what: str) -> None:
    listed = ", ".join(repr(name) for name in groups)
    kind = "group" if len(groups) == 1 else "groups"
    message = f"{kind} {listed}: {what}; left out of the disparity."
    # Level 4 points at the caller of `disparity` or `decompose`.
    warnings.warn(message, UndefinedUtilityWarning, stacklevel=4)
