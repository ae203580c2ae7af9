"""Whether the decisions contradict the propensities: then nothing made of these can be said.

If p is the chance with which each decision was to accept, then given p acceptance has nothing to do
with the group, nor with a score that was made before the decision. So in every stratum, of group,
propensity and score, as many were accepted as the propensities say, up to chance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sellf.logs.names import say
from sellf.logs.person import BINS, Floats
from sellf.logs.sums import Sums

LEVEL = 1e-3
"""The chance of an alarm if the propensities are right, over all strata."""


@dataclass(frozen=True)
class Contradiction:
    """Where the decisions contradict the propensities the most."""

    sentence: str

    def __str__(self) -> str:
        return self.sentence


def contradiction(names: list[Any], sums: Sums) -> Contradiction | None:
    """Return where decisions contradict propensities, None if they agree.

    By Bernstein's inequality a sum of independent decisions differs from its mean by x with
    probability 2 exp(-x^2 / (2 V + 2 x / 3)) at most, V being the sum of p (1 - p).
    """
    by_bin = (len(names), BINS + 1, BINS + 1)
    for shape, found in (
        ("propensity", [x.reshape(by_bin).sum(axis=-1, keepdims=True) for x in _four(sums)]),
        ("score", [x.reshape(by_bin) for x in _four(sums)]),
    ):
        people, accepted, expected, variance = found
        off = np.abs(accepted - expected)
        log_chance = np.log(2) - off**2 / (2 * variance + 2 * off / 3 + 1e-9)
        strata = max(int((people > 0).sum()), 1)
        # Half of the level for each of the two divisions into strata.
        if log_chance.min() < np.log(LEVEL / 2 / strata):
            place = np.unravel_index(int(np.argmin(log_chance)), log_chance.shape)
            counts = [float(x[place]) for x in (people, accepted, expected)]
            return Contradiction(_words(names, place, counts, shape))
    return None


def _four(sums: Sums) -> tuple[Floats, Floats, Floats, Floats]:
    return sums.people, sums.accepted, sums.propensity, sums.chance_variance


def _words(names: list[Any], place: Any, counts: list[float], shape: str) -> str:
    group, tenth, score = (int(i) for i in place)
    people, accepted, expected = counts
    who = f"of {int(people):,} people of {say(names[group])} with a propensity between "
    who += f"{tenth / BINS:g} and {(tenth + 1) / BINS:g}"
    if shape == "score":
        who += f" and a score between {score / BINS:g} and {(score + 1) / BINS:g}"
    hint = (
        "Propensities must be the chances with which these decisions were drawn, not a predicted "
        "outcome or a model's score."
        if shape == "propensity"
        else "Given the propensity, decisions must not depend on the score: it may have been "
        "fitted on these very people, or decisions may have used it beyond what the propensities "
        "say. Leave --score out, or give the propensities that were used."
    )
    return (
        f"the propensities contradict the decisions: {who}, {expected / people:.1%} should have "
        f"been accepted and {accepted / people:.1%} were. {hint}"
    )
