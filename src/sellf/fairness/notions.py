"""The fairness notions, as a table: what a group's members get from decisions.

Every notion of Sec. 2, in every view of Sec. 3, compares groups by a ratio of two sums of the same
four counts: how many people, how many accepted, how many of the accepted were positive, and how
many of the rejected were (known, or as imputed). So a decision window, a data set of ten million
rows and a whole population all come down to a `Counts`, and a notion to the coefficients of these
sums. Utilities, gradients, bounds and words follow from the coefficients: no other code asks which
notion it is. To add one, add an entry to `TABLE`, here or in a program of your own.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from sellf.errors import InputError
from sellf.fairness.arrays import Array, divide, namespace
from sellf.fairness.checks import short
from sellf.fairness.registry import Registry

Notion: TypeAlias = str
"""The name of an entry of `TABLE`."""

View: TypeAlias = Literal["true", "accepted", "imputed"]
"""With every label, with the labels of accepted people only, or with predictions filled in."""

VIEWS: tuple[View, ...] = get_args(View)


class Counts(NamedTuple):
    """What a notion needs to know of each group; the last axis of every field is the group.

    Counts may be sums of sample weights, and `rejected_positive` a sum of probabilities: the
    utilities are then weighted means, or expectations over the imputed labels. With numbers as
    fields it is the coefficients of a sum of counts.
    """

    people: Array = 0
    """Everyone in the group."""
    accepted: Array = 0
    """Those with A = 1; where there are more than two actions, a favourable one."""
    accepted_positive: Array = 0
    """Those with A = 1 and Y = 1."""
    rejected_positive: Array = 0
    """Those with A = 0 and Y = 1: the hidden labels, or the predicted ones that stand for them."""

    def accepted_only(self) -> "Counts":
        """Return the counts as seen by whoever drops the rejected (Eq. 2)."""
        nobody = 0 * self.accepted
        return Counts(self.accepted, self.accepted, self.accepted_positive, nobody)

    def total(self, counts: "Counts") -> Array:
        """Return the sum of counts that these coefficients stand for."""
        return sum(c * number for c, number in zip(self, counts, strict=True) if c)

    @property
    def moves(self) -> bool:
        """Whether the sum that these coefficients stand for depends on decisions."""
        return bool(self.accepted or self.accepted_positive != self.rejected_positive)

    def value(self, accepted: Array, positive: Array, label: Array) -> Array:
        """Return what a person adds to the sum.

        Args:
            accepted: A.
            positive: A Y.
            label: Y, or what stands in for it: a score with the same mean.
        """
        both = self.accepted_positive - self.rejected_positive
        terms = ((self.accepted, accepted), (both, positive), (self.rejected_positive, label))
        return sum((c * x for c, x in terms if c), start=self.people)

    def by_chance(self, label: Array) -> tuple[Array, Array]:
        """Return slope and level of what a person adds to the sum: slope pi + level.

        Args:
            label: q, the person's label, or the chance that it is good; pi is the chance of A = 1.
        """
        slope = self.accepted + (self.accepted_positive - self.rejected_positive) * label
        return slope, self.people + self.rejected_positive * label

    def by_label(self, chance: Array) -> tuple[Array, Array]:
        """Return slope and level of what a person adds to the sum: slope q + level.

        Args:
            chance: pi, the chance of A = 1; q is the chance of a good label.
        """
        both = self.accepted_positive - self.rejected_positive
        return self.rejected_positive + both * chance, self.people + self.accepted * chance


@dataclass(frozen=True)
class Rate:
    """A group's utility, mu: a ratio of two sums of counts."""

    name: str
    of: Counts
    """Coefficients of the numerator ..."""
    among: Counts
    """... and of the denominator."""
    whom: str
    """Whom the denominator counts, in a word: who has none of them has no utility."""
    says: tuple[str, str]
    """The same for reports, and what the numerator says of them: (people, "are accepted")."""

    def utility(self, counts: Counts) -> Array:
        """Return mu of each group; NaN where a group has nobody the notion speaks of."""
        return divide(self.of.total(counts), self.among.total(counts))

    @property
    def needs_label(self) -> bool:
        """Whether anybody's label counts."""
        return any(sums.accepted_positive or sums.rejected_positive for sums in self.sums)

    @property
    def hides(self) -> bool:
        """Whether it counts labels of the rejected, which nobody sees."""
        return bool(self.of.rejected_positive or self.among.rejected_positive)

    @property
    def rises(self) -> bool:
        """Whether a good label of somebody rejected makes it larger, not smaller."""
        return self.of.rejected_positive > 0 or self.among.rejected_positive < 0

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean over everybody."""
        return self.among == EVERYONE

    @property
    def moves(self) -> bool:
        """Whether a decision itself changes it, not only what the decision makes of the person."""
        return any(sums.moves for sums in self.sums)

    @property
    def sums(self) -> tuple[Counts, Counts]:
        """Above and below the line."""
        return self.of, self.among


@dataclass(frozen=True)
class Definition:
    """What a notion asks to be equal between groups: one rate, or each of several."""

    name: Notion
    rates: tuple[Rate, ...]

    @property
    def needs_label(self) -> bool:
        """Whether anybody's label counts."""
        return any(rate.needs_label for rate in self.rates)

    @property
    def hides(self) -> bool:
        """Whether labels of the rejected count: else what one sees is the truth."""
        return any(rate.hides for rate in self.rates)

    @property
    def of_whom(self) -> str:
        """Whose labels it can do without, to follow "needs no label"."""
        return " of the rejected" if self.needs_label else ""

    @property
    def delayed(self) -> bool:
        """Whether decisions act on it only through what they make of people (Sec. 4)."""
        return not any(rate.moves for rate in self.rates)

    @property
    def alone(self) -> Rate:
        """The rate, of a notion that has one."""
        rate, *others = self.rates
        if others:
            parts = " and ".join(repr(rate.name) for rate in self.rates)
            raise InputError(
                f"notion is {self.name!r}, which has {len(self.rates)} utilities per group: use "
                f"{parts}, one at a time."
            )
        return rate


EVERYONE = Counts(people=1)
POSITIVES = Counts(accepted_positive=1, rejected_positive=1)


def _alone(name: Notion, **rate: Any) -> Definition:
    return Definition(name, (Rate(name, **rate),))


def _adapt(thing: Any, name: str) -> Definition:
    """Return a notion from outside under the name that it is asked for by."""
    if not isinstance(thing, Definition) or not thing.rates:
        raise InputError(
            f"notion {name!r} is {short(thing)}: give a sellf.fairness.notions.Definition."
        )
    return replace(thing, name=name)


TABLE: Registry[Definition] = Registry("notion", _adapt)
TABLE.update(
    (definition.name, definition)
    for definition in (
        # E[Y]
        _alone(
            "qualification",
            of=POSITIVES,
            among=EVERYONE,
            whom="people",
            says=("people", "have a good outcome"),
        ),
        # P(Y = A)
        _alone(
            "accuracy",
            of=Counts(people=1, accepted=-1, accepted_positive=1, rejected_positive=-1),
            among=EVERYONE,
            whom="people",
            says=("decisions", "suit the outcome"),
        ),
        # P(A = 1 | Y = 1)
        _alone(
            "opportunity",
            of=Counts(accepted_positive=1),
            among=POSITIVES,
            whom="positives",
            says=("people whose outcome is good", "are accepted"),
        ),
        # P(A = 1)
        _alone(
            "demographic",
            of=Counts(accepted=1),
            among=EVERYONE,
            whom="people",
            says=("people", "are accepted"),
        ),
        # P(Y = 1 | A = 1), the hit rate
        _alone(
            "predictive-parity",
            of=Counts(accepted_positive=1),
            among=Counts(accepted=1),
            whom="accepted people",
            says=("people who are accepted", "have a good outcome"),
        ),
        # P(A = 1 | Y = 0)
        _alone(
            "false-positive-rate",
            of=Counts(accepted=1, accepted_positive=-1),
            among=Counts(people=1, accepted_positive=-1, rejected_positive=-1),
            whom="negatives",
            says=("people whose outcome is bad", "are accepted"),
        ),
    )
)
TABLE["equalized-odds"] = Definition(
    "equalized-odds", TABLE["opportunity"].rates + TABLE["false-positive-rate"].rates
)
"""The notions by name."""

NOTIONS: tuple[Notion, ...] = tuple(TABLE)


def define(notion: Notion) -> Definition:
    """Return what a notion is; refuse a name that there is not."""
    return TABLE.find(notion)


def utility(notion: Notion, counts: Counts) -> Array:
    """Return mu, each group's mean utility; NaN where a group has nobody the notion speaks of."""
    return define(notion).alone.utility(counts)


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


def gap(notion: Notion, counts: Counts) -> Array:
    """Return the disparity: the largest spread of a rate over the groups (last axis)."""
    gaps = [spread(rate.utility(counts)) for rate in define(notion).rates]
    return reduce(namespace(*gaps).fmax, gaps)  # one that is not defined does not count
