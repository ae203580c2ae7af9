"""From intervals to a verdict, and from an open verdict to what would settle it."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from sellf.audit.exact import Interval
from sellf.audit.scores import Floats

Verdict: TypeAlias = Literal["fair", "unfair", "undetermined"]


class Ends(NamedTuple):
    """Intervals of all groups; arrays with one entry a group."""

    low: Floats
    high: Floats


def difference(ends: Ends, value: Floats) -> Interval:
    """Return the range of max - min over the groups, if every group is within its interval."""
    groups = np.arange(len(value))
    pairs = [(i, j) for i in groups for j in groups if i != j] if len(value) < 50 else None
    if pairs is not None:
        first, second = np.array(pairs).T
        high = float(np.max(ends.high[first] - ends.low[second]))
        low = float(np.max(ends.low[first] - ends.high[second]))
    else:  # the two ends are of different groups, or the interval of one is all that matters
        high = float(ends.high.max() - ends.low.min())
        low = float(ends.low.max() - ends.high.min())
    return Interval(max(low, 0.0), float(np.ptp(value)), min(high, 1.0))


def absolute(low: float, high: float, value: Floats) -> Interval:
    """Return the range of |difference| of two groups from that of second minus first."""
    least, most = max(low, -high, 0.0), min(max(high, -low), 1.0)
    return Interval(least, min(max(float(np.ptp(value)), least), most), most)


def decide(interval: Interval, omega: float) -> Verdict:
    """Say fair if all of the interval is within the tolerance, unfair if none of it is."""
    if interval.high <= omega:
        return "fair"
    return "unfair" if interval.low > omega else "undetermined"


@dataclass(frozen=True)
class Needed:
    """What would settle an open verdict, if the log's figures are near the truth."""

    people: dict[Any, int]
    """How many more applications of each group."""
    labels: dict[Any, int]
    """How many of those would be accepted, and so show their outcome."""
    accept_share: float | None
    """What share of the rejected whose outcome nothing tells of to accept at random."""
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Known(NamedTuple):
    """What is at hand of each group; arrays with one entry a group."""

    people: Floats
    accepted: Floats
    value: Floats
    unidentified: Floats
    """The width that partial identification adds."""
    weak: Floats
    """The share of the group that is rejected and without overlap."""
    slope: Floats
    """How much the utility moves with P(Y = 1)."""


def needed(
    names: list[Any],
    ends: Ends,
    known: Known,
    *,
    span: Interval,
    omega: float,
    delta: float,
    verdict: Verdict,
) -> Needed | None:
    """Return what would settle an undetermined verdict; None if there is nothing to settle.

    An interval's width without what is unidentified shrinks with the root of the number of people.
    The two groups that decide must together come within the distance of the disparity from omega.
    """
    if verdict != "undetermined":
        return None
    value = span.value
    if value <= omega:
        first, second = int(np.argmax(ends.high)), int(np.argmin(ends.low))
        if first == second:
            second = int(np.argsort(ends.low)[1])
        radii = (ends.high[first] - known.value[first], known.value[second] - ends.low[second])
    else:
        first, second = int(np.argmax(known.value)), int(np.argmin(known.value))
        radii = (known.value[first] - ends.low[first], ends.high[second] - known.value[second])
    gap = abs(value - omega)
    pair = [first, second]
    # Without overlap the middle of what is identified stands for the truth. Where overlap holds and
    # nothing is known all the same, as for a group without positives, more rows do help.
    hidden = np.where(known.weak[pair] > 0, known.unidentified[pair] / 2, 0.0)
    noise = np.maximum(np.array(radii) - hidden, 0.0)
    # Two groups' difference may be known better than the two of them.
    radius = span.high - value if value <= omega else value - span.low
    noise *= min(1.0, max(radius - hidden.sum(), 0.0) / max(noise.sum(), 1e-12))
    if gap < 1e-3:
        return Needed(
            {}, {}, None,
            f"The disparity, {value:.3f}, is so near the tolerance {omega:g} that no feasible "
            "number of people would tell them apart: choose another tolerance.",
        )  # fmt: skip
    if hidden.sum() >= gap / 2:
        return _explore(names, pair, gap, noise, known, len(names), delta)
    factor = float((noise.sum() / (gap - hidden.sum())) ** 2)
    extra = {names[i]: _round_up(known.people[i] * (factor - 1)) for i in pair}
    rate = {i: known.accepted[i] / known.people[i] for i in pair}
    labels = {names[i]: _round_up(extra[names[i]] * rate[i]) for i in pair}
    each = " and ".join(f"{extra[names[i]]:,} of {say(names[i])}" for i in pair)
    seen = " and ".join(f"{labels[names[i]]:,}" for i in pair)
    sentence = (
        f"About {each} more applications, with the same policy, would settle it if the estimates "
        f"are right: that is {seen} more people whose outcome is seen."
    )
    return Needed(extra, labels, None, sentence)


def _explore(
    names: list[Any], pair: list[int], gap: float, noise: Floats, known: Known, groups: int,
    delta: float,
) -> Needed:  # fmt: skip
    """Return what share of the rejected without overlap to accept at random."""
    room = (gap / 2) ** 2 - noise**2
    # A label seen with chance q counts 1 / q: at most 1 / (4 q) is its variance.
    variance = 2 * np.log(2 * groups / delta) * known.weak[pair] * known.slope[pair] ** 2 / 4
    share = np.where(room > 0, variance / (known.people[pair] * np.maximum(room, 1e-12)), 1.0)
    q = float(np.clip(share.max(), 0.001, 1.0))
    growth = max(1.0, float((share.max()) if (room > 0).all() else (2 * noise.max() / gap) ** 2))
    people = {names[i]: _round_up(known.people[i] * growth) for i in pair}
    labels = {names[i]: _round_up(people[names[i]] * (known.weak[i] * q)) for i in pair}
    listed = " and ".join(f"{labels[names[i]]:,} of {say(names[i])}" for i in pair)
    sentence = (
        f"More rows like these will not settle it: nothing tells of the rejected without overlap. "
        f"Accept about {q:.1%} of them at random, and record that chance as their propensity: "
        f"that is {listed} over the next {sum(people.values()):,} applications."
    )
    return Needed(people, labels, q, sentence)


def _round_up(number: float) -> int:
    """Round up to two digits: what is computed from an estimate is not known better."""
    if number <= 0:
        return 0
    scale = 10 ** max(int(np.floor(np.log10(number))) - 1, 0)
    return int(np.ceil(number / scale) * scale)


def say(name: Any) -> str:
    """Return a group's name as one reads it."""
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)
