"""The fairness notions, as a table of coefficients.

Every notion of Sec. 2, in every view of Sec. 3, compares groups by a ratio of two sums of the same
four counts: people, accepted people, accepted people with a positive label, and rejected people
with a positive label (known or imputed). A decision window, a data set of ten million rows and a
whole population are therefore all summarised by a `Counts`, and a notion is defined by the
coefficients of these sums. Utilities, gradients, bounds and report texts follow from the
coefficients; no other code depends on which notion it is. To add a notion, add an entry to `TABLE`,
here or in your own program.
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
"""With all labels, with labels of the accepted only, or with predictions for the rejected."""

VIEWS: tuple[View, ...] = get_args(View)


class Counts(NamedTuple):
    """Counts from which notions are computed; the last axis of every field is the group.

    Counts may be sums of sample weights, and `rejected_positive` may be a sum of probabilities: the
    utilities are then weighted means, or expectations over the imputed labels. A `Counts` whose
    fields are plain numbers also holds the coefficients of a sum of counts.
    """

    people: Array = 0
    """Everyone in the group."""
    accepted: Array = 0
    """People with A = 1; with more than two actions, people who got a favourable one."""
    accepted_positive: Array = 0
    """People with A = 1 and Y = 1."""
    rejected_positive: Array = 0
    """People with A = 0 and Y = 1, by their hidden labels or by predictions of them."""

    def accepted_only(self) -> "Counts":
        """Return the counts after dropping the rejected (Eq. 2)."""
        nobody = 0 * self.accepted
        return Counts(self.accepted, self.accepted, self.accepted_positive, nobody)

    def total(self, counts: "Counts") -> Array:
        """Return the sum of `counts` weighted with these coefficients."""
        return sum(c * number for c, number in zip(self, counts, strict=True) if c)

    @property
    def moves(self) -> bool:
        """Whether the sum with these coefficients depends on decisions."""
        return bool(self.accepted or self.accepted_positive != self.rejected_positive)

    def value(self, accepted: Array, positive: Array, label: Array) -> Array:
        """Return a person's contribution to the sum.

        Args:
            accepted: A.
            positive: A Y.
            label: Y, or a score with the same mean.
        """
        both = self.accepted_positive - self.rejected_positive
        terms = ((self.accepted, accepted), (both, positive), (self.rejected_positive, label))
        return sum((c * x for c, x in terms if c), start=self.people)

    def by_chance(self, label: Array) -> tuple[Array, Array]:
        """Return slope and level of a person's contribution to the sum, slope pi + level.

        Args:
            label: q, the person's label or the probability that it is good; pi is the probability
                of A = 1.
        """
        slope = self.accepted + (self.accepted_positive - self.rejected_positive) * label
        return slope, self.people + self.rejected_positive * label

    def by_label(self, chance: Array) -> tuple[Array, Array]:
        """Return slope and level of a person's contribution to the sum, slope q + level.

        Args:
            chance: pi, the probability of A = 1; q is the probability of a good label.
        """
        both = self.accepted_positive - self.rejected_positive
        return self.rejected_positive + both * chance, self.people + self.accepted * chance


@dataclass(frozen=True)
class Rate:
    """A group's utility, mu: a ratio of two sums of counts."""

    name: str
    of: Counts
    """Coefficients of the numerator."""
    among: Counts
    """Coefficients of the denominator."""
    whom: str
    """The people in the denominator, as a noun; a group without them has no utility."""
    says: tuple[str, str]
    """Text for reports: the people in the denominator, and the statement that the numerator counts,
    for example ("people", "are accepted")."""

    def utility(self, counts: Counts) -> Array:
        """Return the utility mu of each group; NaN where nobody is in the denominator."""
        return divide(self.of.total(counts), self.among.total(counts))

    @property
    def needs_label(self) -> bool:
        """Whether the rate depends on labels."""
        return any(sums.accepted_positive or sums.rejected_positive for sums in self.sums)

    @property
    def hides(self) -> bool:
        """Whether the rate depends on labels of the rejected, which are not observed."""
        return bool(self.of.rejected_positive or self.among.rejected_positive)

    @property
    def rises(self) -> bool:
        """Whether a good label of a rejected person increases the rate instead of decreasing it."""
        return self.of.rejected_positive > 0 or self.among.rejected_positive < 0

    @property
    def is_mean(self) -> bool:
        """Whether the rate is a mean over everyone."""
        return self.among == EVERYONE

    @property
    def moves(self) -> bool:
        """Whether decisions change the rate directly, not only through their effect on people."""
        return any(sums.moves for sums in self.sums)

    @property
    def sums(self) -> tuple[Counts, Counts]:
        """The coefficients of numerator and denominator."""
        return self.of, self.among


@dataclass(frozen=True)
class Definition:
    """A notion: the rate, or the several rates, that should be equal between groups."""

    name: Notion
    rates: tuple[Rate, ...]

    @property
    def needs_label(self) -> bool:
        """Whether the notion depends on labels."""
        return any(rate.needs_label for rate in self.rates)

    @property
    def hides(self) -> bool:
        """Whether the notion depends on labels of the rejected; if not, it is fully observed."""
        return any(rate.hides for rate in self.rates)

    @property
    def of_whom(self) -> str:
        """Text to follow "needs no label": whose labels are not needed."""
        return " of the rejected" if self.needs_label else ""

    @property
    def delayed(self) -> bool:
        """Whether decisions change the notion only through their effect on people (Sec. 4)."""
        return not any(rate.moves for rate in self.rates)

    @property
    def alone(self) -> Rate:
        """The single rate of the notion; an error if it has several."""
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
    """Return a notion that was defined elsewhere, under the name by which it was requested."""
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
            says=("decisions", "match the outcome"),
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
    """Return the definition of a notion; refuse an unknown name."""
    return TABLE.find(notion)


def utility(notion: Notion, counts: Counts) -> Array:
    """Return mu, each group's mean utility; NaN where nobody is in the notion's denominator."""
    return define(notion).alone.utility(counts)


def spread(utilities: Array) -> Array:
    """Return max - min over the groups (last axis) whose utility is defined.

    A disparity compares groups, so it is NaN if fewer than two of them have a defined utility.
    """
    xp = namespace(utilities)
    defined = ~xp.isnan(utilities)
    highest = xp.max(xp.where(defined, utilities, -xp.inf), axis=-1)
    lowest = xp.min(xp.where(defined, utilities, xp.inf), axis=-1)
    comparable = xp.sum(defined, axis=-1) >= 2
    # Both ends are infinite where nothing is defined: replace them before subtracting.
    return xp.where(
        comparable, xp.where(comparable, highest, 0.0) - xp.where(comparable, lowest, 0.0), xp.nan
    )


def gap(notion: Notion, counts: Counts) -> Array:
    """Return the disparity: the largest spread of a rate over the groups (last axis)."""
    gaps = [spread(rate.utility(counts)) for rate in define(notion).rates]
    return reduce(namespace(*gaps).fmax, gaps)  # undefined spreads are ignored
