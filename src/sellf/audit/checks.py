"""A test of whether the decisions contradict the propensities, which would void the verdict.

If p is the probability that each decision was to accept, then given p acceptance is independent of
the group and of any score made before the decision. So in every stratum of group, propensity and
score, the number of accepted people matches the propensities up to sampling error.

Rows of one person may share a decision. People with several rows are therefore tested twice, over
rows and over people, and only a contradiction in both tests counts. Over rows, the sum of A - p
stays within its bounds if each decision was drawn with p given the decisions before it, whatever
the number of rows. Over people, each with the mean of their rows, it does so however the rows of
one person depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sellf.logs.names import say
from sellf.logs.person import BINS, Floats, Person
from sellf.logs.sums import Sums, stratum

LEVEL = 1e-3
"""The probability of a false alarm, over all strata."""


@dataclass(frozen=True)
class Contradiction:
    """The stratum in which the decisions contradict the propensities most clearly."""

    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Agreement(NamedTuple):
    """Observed and expected acceptances by stratum; axes are group, tenth of propensity, score."""

    people: Floats
    accepted: Floats
    expected: Floats
    variance: Floats
    """The sum of p (1 - p)."""

    @property
    def log_chance(self) -> Floats:
        """Logarithm of a bound on the p-value of the difference (Bernstein's inequality).

        A sum of independent terms, each within 1 of its mean, differs from its mean by x with
        probability at most 2 exp(-x^2 / (2 V + 2 x / 3)), where V is a bound on its variance.
        """
        off = np.abs(self.accepted - self.expected)
        return np.log(2) - off**2 / (2 * self.variance + 2 * off / 3 + 1e-9)


def contradiction(
    names: list[Any], sums: Sums, people: Sequence[Person | None] = ()
) -> Contradiction | None:
    """Return the strongest contradiction of decisions and propensities; None if they agree.

    Args:
        names: the names of the groups.
        sums: the sums over rows by group and stratum.
        people: the rows of each group, needed if people have several rows; rows of one person are
            consecutive.
    """
    several = any(person is not None and person.unit is not None for person in people)
    by_bin = (len(names), BINS + 1, BINS + 1)
    for shape in ("propensity", "score"):
        rows = [x.reshape(by_bin) for x in _four(sums)]
        if shape == "propensity":
            rows = [x.sum(axis=-1, keepdims=True) for x in rows]
        told = found = Agreement(*rows)
        log_chance = found.log_chance
        if several:
            told = _over_people(people, by_score=shape == "score")
            log_chance = np.maximum(log_chance, told.log_chance)
        strata = max(int((found.people > 0).sum()), 1)
        # Half of the level for each of the two divisions into strata.
        if log_chance.min() < np.log(LEVEL / 2 / strata):
            place = np.unravel_index(int(np.argmin(log_chance)), log_chance.shape)
            counts = [float(x[place]) for x in told[:3]]
            return Contradiction(_words(names, place, counts, shape))
    return None


def _four(sums: Sums) -> tuple[Floats, Floats, Floats, Floats]:
    return sums.people, sums.accepted, sums.propensity, sums.chance_variance


def _over_people(people: Sequence[Person | None], *, by_score: bool) -> Agreement:
    """Return the agreement over people, each with the mean of their rows in a stratum.

    The variance of a mean is at most the mean of the variances.
    """
    scores = BINS + 1 if by_score else 1
    total = np.zeros((4, len(people), BINS + 1, scores))
    for group, person in enumerate(people):
        if person is None or person.unit is None or person.propensity is None:
            continue
        p, rows = person.propensity, len(person.accepted)
        cell = stratum(p, person.prediction, rows)
        cell = cell if by_score else cell // (BINS + 1)
        width = (BINS + 1) * scores
        pairs, which, many = np.unique(
            person.unit * width + cell, return_inverse=True, return_counts=True
        )
        share = 1 / many[which]
        for k, value in enumerate((np.ones(rows), person.accepted, p, p * (1 - p))):
            own = np.bincount(which, value * share, len(pairs))
            total[k, group] = np.bincount(pairs % width, own, width).reshape(BINS + 1, scores)
    return Agreement(*total)


def _words(names: list[Any], place: Any, counts: list[float], shape: str) -> str:
    group, tenth, score = (int(i) for i in place)
    people, accepted, expected = counts
    who = f"of {round(people):,} people of {say(names[group])} with a propensity between "
    who += f"{tenth / BINS:g} and {(tenth + 1) / BINS:g}"
    if shape == "score":
        who += f" and a score between {score / BINS:g} and {(score + 1) / BINS:g}"
    hint = (
        "Propensities must be the chances with which these decisions were drawn, not a predicted "
        "outcome or a model's score."
        if shape == "propensity"
        else "Given the propensity, decisions must not depend on the score: it may have been "
        "fitted on the people in this log, or decisions may have used it beyond what the "
        "propensities say. Leave --score out, or give the propensities that were used."
    )
    return (
        f"the propensities contradict the decisions: {who}, {expected / people:.1%} should have "
        f"been accepted and {accepted / people:.1%} were. {hint}"
    )
