"""The fairness notions: what a group's members get from decisions, from four counts per group.

Every notion of Sec. 2, in every view of Sec. 3, is a ratio of two sums of the same four counts:
how many people, how many accepted, how many of the accepted were positive, and how many of the
rejected were (known, or as imputed). So a decision window, a data set of ten million rows and a
whole population all come down to a `Counts`, and the formulas are written once, here.
"""

from typing import Literal, NamedTuple, TypeAlias, get_args

from sellf.fairness.arrays import Array, divide, namespace

Notion: TypeAlias = Literal["qualification", "accuracy", "opportunity", "demographic"]
"""Whose equality across groups is asked for: E[Y], P(Y = A), P(A = 1 | Y = 1) or P(A = 1)."""

View: TypeAlias = Literal["true", "accepted", "imputed"]
"""With every label, with the labels of accepted people only, or with predictions filled in."""

NOTIONS: tuple[Notion, ...] = get_args(Notion)
VIEWS: tuple[View, ...] = get_args(View)


class Counts(NamedTuple):
    """What a notion needs to know of each group; the last axis of every field is the group.

    Counts may be sums of sample weights, and `rejected_positive` a sum of probabilities: the
    utilities are then weighted means, or expectations over the imputed labels.
    """

    people: Array
    """Everyone in the group."""
    accepted: Array
    """Those with A = 1."""
    accepted_positive: Array
    """Those with A = 1 and Y = 1."""
    rejected_positive: Array
    """Those with A = 0 and Y = 1: the hidden labels, or the predicted ones that stand for them."""

    def accepted_only(self) -> "Counts":
        """Return the counts as seen by whoever drops the rejected (Eq. 2)."""
        nobody = 0 * self.accepted
        return Counts(self.accepted, self.accepted, self.accepted_positive, nobody)


def utility(notion: Notion, counts: Counts) -> Array:
    """Return mu, each group's mean utility; NaN where a group has nobody the notion speaks of."""
    people, accepted, accepted_positive, rejected_positive = counts
    if notion == "qualification":
        return divide(accepted_positive + rejected_positive, people)
    if notion == "accuracy":
        return divide(accepted_positive + (people - accepted) - rejected_positive, people)
    if notion == "opportunity":
        return divide(accepted_positive, accepted_positive + rejected_positive)
    return divide(accepted, people)


def spread(utilities: Array) -> Array:
    """Return max - min over the groups (last axis) whose utility is defined.

    A disparity compares groups, so it is NaN while fewer than two of them have a utility.
    """
    xp = namespace(utilities)
    defined = ~xp.isnan(utilities)
    highest = xp.max(xp.where(defined, utilities, -xp.inf), axis=-1)
    lowest = xp.min(xp.where(defined, utilities, xp.inf), axis=-1)
    comparable = xp.sum(defined, axis=-1) >= 2
    # Both ends are infinite where nothing is defined: replace them before they meet.
    return xp.where(
        comparable, xp.where(comparable, highest, 0.0) - xp.where(comparable, lowest, 0.0), xp.nan
    )
