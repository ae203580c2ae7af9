"""Unrecorded groups: only the probability p that a person belongs to the group is known.

The dependence of group and outcome among people with the same p is then unknown (Kallus, Mao and
Zhou 2022). A group's rate is at most t if E[G v] <= 0, with G = 1 for members and v the person's
part - t whole; hidden outcomes take the value that makes v larger. For any number c that is the
same for all people in a band of p,

    E[G v] <= E[c p + max(v - c, 0)],

with equality for the best c of each band, by linear programming duality. The right side is a mean
of independent values, so it has a standard error; c comes from the other half of the rows.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sellf.audit.interval import Interval
from sellf.audit.measured import Measured
from sellf.audit.scores import Scores, Side, scores, sides
from sellf.audit.strata import of_difference
from sellf.audit.verdict import Verdict
from sellf.fairness.notions import Rate
from sellf.logs.person import Floats, Person
from sellf.numbers import confidence

BANDS = 20
"""The largest number of bands of p."""
FEWEST = 100
"""The smallest number of people per band."""


@dataclass(frozen=True)
class Proxy(Measured):
    """The difference between a group known only by its probability and everybody else."""

    key: ClassVar[str] = "proxy"
    heading: ClassVar[str] = "Groups that are not recorded"

    rate: str
    column: str
    omega: float
    delta: float
    any_dependence: Interval
    """The group's rate minus the others', for any dependence of group and outcome."""
    verdict: Verdict
    if_explained: Interval
    """The same if, given p, the group is independent of decision and outcome."""
    verdict_if_explained: Verdict

    def check(self) -> None:
        """Raise ValueError if a verdict does not follow from the figures beside it."""
        found = (
            (self.any_dependence, self.verdict),
            (self.if_explained, self.verdict_if_explained),
        )
        if any(of_difference(difference, self.omega) != said for difference, said in found):
            raise ValueError("a verdict does not follow from its interval")

    def _title(self) -> str:
        low, _, high = self.any_dependence
        return (
            f"{self.column} less others in {self.rate}: between {low:+.3f} and {high:+.3f}, "
            f"for any dependence of group and outcome: {self.verdict.upper()}"
        )

    def _table(self) -> dict[str, list[object]]:
        both = (self.any_dependence, self.if_explained)
        return {
            "assumed": ["nothing", f"given {self.column}, the group tells nothing more"],
            "difference": [one.value for one in both],
            "low": [one.low for one in both],
            "high": [one.high for one in both],
            "verdict": [self.verdict, self.verdict_if_explained],
        }

    def notes(self) -> list[str]:
        """Return the assumptions of the two lines."""
        return [
            f"Both lines assume that {self.column} is the chance of belonging to the group for "
            "people like these. The first assumes nothing else. The second is what is usually "
            "reported: it assumes that among people with the same chance the group is independent "
            "of decisions and outcomes, which is wrong where the group itself is treated "
            "differently.",
            f"Each holds with {confidence(self.delta)} confidence, for large logs (asymptotic).",
        ]


class Bands(NamedTuple):
    """Bands of people with similar p, and the halves of rows for cross-fitting c."""

    place: NDArray[np.intp]
    number: int
    half: NDArray[np.bool_] | None
    """Whether each row is in the first half; None: c comes from the same rows."""


def bands(p: Floats, rng: np.random.Generator | None) -> Bands:
    """Return bands of p: its values if they are few, else bands of equally many people."""
    values, place = np.unique(p, return_inverse=True)
    if len(values) > BANDS or np.bincount(place).min() < FEWEST:
        count = int(min(BANDS, max(len(p) // FEWEST, 1)))
        cuts = np.unique(np.quantile(p, np.linspace(0, 1, count + 1)[1:-1]))
        place = np.searchsorted(cuts, p, side="right")
    half = None if rng is None else rng.permutation(len(p)) % 2 == 0
    return Bands(place.astype(np.intp), int(place.max()) + 1, half)


def dual(v: Floats, p: Floats, by: Bands) -> Floats:
    """Return values whose mean is at least E[G v] for every G with E[G | band] = E[p | band]."""
    if by.half is None:
        return _dual(v, p, by.place, _prices(v, p, by.place, by.number))
    found = np.empty(len(v))
    for half in (by.half, ~by.half):
        prices = _prices(v[~half], p[~half], by.place[~half], by.number)
        found[half] = _dual(v[half], p[half], by.place[half], prices)
    return found


def _prices(v: Floats, p: Floats, place: NDArray[np.intp], count: int) -> Floats:
    """Return the best c of each band: the quantile of v at one minus the mean of p."""
    prices = np.zeros(count)
    for k in range(count):
        own = place == k
        if own.any():
            prices[k] = np.quantile(v[own], 1 - p[own].mean(), method="inverted_cdf")
    return prices


def _dual(v: Floats, p: Floats, place: NDArray[np.intp], prices: Floats) -> Floats:
    c = prices[place]
    return c * p + np.maximum(v - c, 0.0)


def worst(rate: Rate, person: Person, t: float, sign: int) -> Floats:
    """Return the largest part - t whole of each person (sign 1), or the smallest (sign -1)."""
    hidden = 1 - person.accepted
    if person.rejected_positive is not None:
        found = [person.positive + person.rejected_positive]
    else:
        found = [person.positive, person.positive + hidden]
    values = []
    for label in found:
        for late in (0.0, 1.0) if person.pending is not None else (0.0,):
            extra = 0.0 if person.pending is None else late * person.pending
            a, ay, y = person.accepted, person.positive + extra, label + extra
            values.append(rate.of.value(a, ay, y) - t * rate.among.value(a, ay, y))
    picked = np.max(values, axis=0) if sign > 0 else np.min(values, axis=0)
    return np.broadcast_to(picked, person.accepted.shape).astype(float)


def ends(rate: Rate, person: Person, p: Floats, by: Bands, quantile: float) -> tuple[float, float]:
    """Return the interval of the rate of a group to which people belong with probability p."""

    def beyond(t: float, sign: int) -> bool:
        """Return whether a rate of t or more (sign 1), or of t or less (sign -1), is possible."""
        values = dual(sign * worst(rate, person, t, sign), p, by)
        error = float(values.std(ddof=1)) / len(values) ** 0.5
        return float(values.mean()) + quantile * error >= -1e-12

    found = []
    for sign in (-1, 1):
        inside, outside = (1.0, 0.0) if sign < 0 else (0.0, 1.0)
        if beyond(outside, sign):
            found.append(outside)
            continue
        for _ in range(30):
            t = (inside + outside) / 2
            inside, outside = (t, outside) if beyond(t, sign) else (inside, t)
        found.append(outside)
    return found[0], found[1]


def explained(
    rate: Rate, person: Person, p: Floats, overlap: float, guess: Floats | float, delta: float
) -> Interval:
    """Return the difference if, given p, the group is independent of decision and outcome.

    Args:
        rate: the rate to bound.
        person: the rows of everybody.
        p: the probability of belonging to the group.
        overlap: the smallest propensity used for weighting.
        guess: a prediction of each outcome.
        delta: the error probability.
    """
    far = 1 / overlap
    found: Scores = scores(person, overlap, guess, far, far)
    low, high = sides(rate, person, found)
    quantile = float(-ndtri(delta / 2))

    def parts(side: Side, weight: Floats) -> tuple[float, Floats]:
        whole = np.ones(len(weight)) if side.whole is None else side.whole
        level = float((weight * whole).mean())
        if level <= 0:
            return 0.5, np.zeros(len(weight))
        value = float((weight * side.part).mean()) / level
        return value, weight * (side.part - value * whole) / level

    def end(first: Side, second: Side, sign: int) -> tuple[float, float]:
        one, other = parts(first, p), parts(second, 1 - p)
        error = float((one[1] - other[1]).std(ddof=1)) / len(p) ** 0.5
        value = one[0] - other[0]
        return value, min(max(value + sign * quantile * error, -1.0), 1.0)

    (least, bottom), (most, top) = end(low, high, -1), end(high, low, 1)
    middle = min(max((least + most) / 2, bottom), top)
    return Interval(bottom, middle, top)
