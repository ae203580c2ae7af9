"""Sample sizes that would settle an undetermined verdict, by group.

The true disparity is unknown, but the log restricts it. Sample sizes are chosen so that a new log,
audited alone, is settled with a probability of about 80%, averaged over the plausible disparities
(the *assurance* of a sample size: O'Hagan, Stevens and Campbell 2005).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from sellf.audit.estimate import Views
from sellf.audit.evidence import Evidence
from sellf.audit.methods import kind
from sellf.audit.moments import central, means
from sellf.audit.result import Needed
from sellf.audit.sums import sample
from sellf.fairness.notions import Counts, Rate
from sellf.logs.names import say
from sellf.logs.person import Floats

if TYPE_CHECKING:
    from sellf.audit.judge import Judged

POWER = 0.8
"""The reported probability that a new log is settled."""
PLANNED = 0.83
"""The probability used in planning; it is larger because variances are estimated."""
SHARES = (0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 1.0)
"""Candidate shares of the rejected to accept at random."""
WORTH = 50
"""The number of applications whose waiting cost equals that of one additional acceptance."""
MOST_ROWS = 20_000_000
MOST_TIMES = 60.0
"""The largest practicable sample size, as a multiple of the people in the log."""


class Pair(NamedTuple):
    """The two groups that decide the verdict."""

    names: tuple[Any, Any]
    people: Floats
    accepted: Floats
    variance: Floats
    """The variance of one person's contribution to the utility."""
    weak: Floats
    """The share of the group that is rejected without overlap."""
    slope: Floats
    """The derivative of the utility with respect to the share of positives."""
    low: float
    """The smallest difference that the log allows, apart from sampling error."""
    high: float


def needed(
    rate: Rate,
    evidence: Evidence,
    found: "Judged",
    seen: Views,
    *,
    omega: float,
    delta: float,
) -> Needed | None:
    """Return what would settle an undetermined verdict.

    Args:
        rate: the audited rate.
        evidence: the log.
        found: the intervals.
        seen: the estimates and identified ranges.
        omega: the tolerated disparity.
        delta: the error probability.
    """
    pair = _deciding(rate, evidence, found, seen, omega)
    count = len(evidence.names)
    alpha = delta / (count * (count - 1))
    hidden = pair.high - pair.low
    error = float(np.sqrt((pair.variance / pair.people).sum()))
    if hidden > 0.25 * error:
        if not pair.weak.any():
            return _pending(evidence, pair)
        return _explore(evidence, pair, omega, alpha)
    # If delta is extremely small, no sample size is enough.
    times = min(_times(pair, pair.variance, omega, alpha, 0.0), 2.0 * MOST_TIMES)
    value = (pair.low + pair.high) / 2
    people = {name: _round_up(n * times) for name, n in zip(pair.names, pair.people, strict=True)}
    if times > MOST_TIMES or sum(people.values()) > MOST_ROWS:
        return _impracticable(
            f"the disparity, {abs(value):.3f}, is so near the tolerance {omega:g} that more than "
            f"{_round_up(float(pair.people.sum()) * MOST_TIMES):,} applications would be needed"
        )
    rates = pair.accepted / pair.people
    labels = {
        name: _round_up(people[name] * rate) for name, rate in zip(pair.names, rates, strict=True)
    }
    sentence = (
        f"{_listed(people)} new applications, decided by the same policy and audited alone, "
        f"without the rows of this log. About {_listed(labels)} of them would show an outcome. "
        f"About {POWER:.0%} of such logs will then be settled."
    )
    if not rate.needs_label:
        sentence = sentence.replace(f"About {_listed(labels)} of them would show an outcome. ", "")
    return Needed(people, labels, None, POWER, sentence[0].upper() + sentence[1:])


def _deciding(rate: Rate, evidence: Evidence, found: "Judged", seen: Views, omega: float) -> Pair:
    """Return the two groups that decide the verdict."""
    value = found.value
    if np.ptp(value) <= omega:  # it might be fair: the pair that may differ most
        first, second = np.unravel_index(int(np.argmax(-found.differences.T)), (len(value),) * 2)
    else:
        first, second = int(np.argmax(value)), int(np.argmin(value))
    if first == second:
        first, second = 0, 1
    places = np.array([first, second])
    total = evidence.sums.by_group()
    variance, slope = [], []
    for place in places:
        one = _variance(rate, evidence, int(place))
        variance.append(one)
        slope.append(_slope(rate, total, int(place), float(value[place])))
    low = float(seen.low[first] - seen.high[second])
    high = float(seen.high[first] - seen.low[second])
    names = (evidence.names[int(first)], evidence.names[int(second)])
    hidden = total.weak - total.weak_accepted
    if evidence.trusted or not rate.hides:
        hidden = 0 * total.people
    return Pair(
        names,
        total.people[places],
        total.accepted[places],
        np.array(variance),
        (hidden / total.people)[places],
        np.array(slope),
        low,
        high,
    )


def _variance(rate: Rate, evidence: Evidence, place: int) -> float:
    """Return the variance of one person's contribution to the utility, as far as identified."""
    group = evidence.groups[place]
    if kind(rate, group) == "exact":
        share = group.shares(rate)[0]
        p = min(max(share.value, 0.5 / max(share.people, 1)), 1 - 0.5 / max(share.people, 1))
        return p * (1 - p) * float(group.total.people) / max(share.people, 1.0)
    if group.averages(rate):
        raws = [means(side) for side in group.values(rate)]
    else:
        both = sample(rate, group.total, evidence.overlap, evidence.predicted)
        raws = [side.raw for side in both]
    worst = 0.0
    for raw in raws:
        level = 1.0 if rate.is_mean else max(float(raw[0, 1]), 1e-3)
        value = 0.0 if rate.is_mean else float(raw[1, 0]) / level
        worst = max(worst, central(raw, value)[0] / level**2)
    return max(worst, 1e-4)


def _slope(rate: Rate, total: Any, place: int, value: float) -> float:
    """Return the sensitivity of the utility u = part / whole to the label of a rejected person."""
    u = min(max(value, 0.01), 1.0)
    steep = abs(rate.of.rejected_positive - u * rate.among.rejected_positive)
    if rate.is_mean:
        return float(steep)
    people, accepted, positive = (
        float(x[place]) for x in (total.people, total.accepted, total.positive)
    )
    part = float(rate.of.total(Counts(people, accepted, positive, 0.0))) / people
    return float(steep) * u / max(part, 1 / people)


def _times(pair: Pair, variance: Floats, omega: float, alpha: float, reach: float) -> float:
    """Return the size of a new log that is likely to be settled, as a multiple of this log's."""
    error = float(np.sqrt((variance / pair.people).sum()))
    seen = float(np.sqrt((pair.variance / pair.people).sum()))
    # Plausible true differences: the identified range with sampling error around it.
    middles = np.linspace(pair.low, pair.high, 9)[:, None]
    truth = (middles + seen * ndtri((np.arange(41) + 0.5) / 41)[None, :]).ravel()
    truth = np.abs(truth)
    low, high = 0.0, np.log(100 * MOST_TIMES)
    if _settled(truth, pair, error, omega, alpha, reach, float(np.exp(high))) < PLANNED:
        return float("inf")
    low = np.log(1e-3)
    for _ in range(30):
        middle = (low + high) / 2
        enough = _settled(truth, pair, error, omega, alpha, reach, float(np.exp(middle))) >= PLANNED
        low, high = (low, middle) if enough else (middle, high)
    return float(np.exp(high))


def _settled(
    truth: Floats, pair: Pair, error: float, omega: float, alpha: float, reach: float, times: float
) -> float:
    """Return the probability that a log with `times` as many people is settled."""
    smallest = float(pair.people.min()) * times
    if smallest < 30:
        return 0.0
    # Finite-sample intervals are wider than normal ones, especially for few people and a large
    # reach of scores (measured by tools/widths.py).
    wider = min(1.1 + (25 + reach) / smallest**0.5, 1.8)
    scale = error / times**0.5
    end = -wider * ndtri(alpha)
    return float(np.mean(ndtr((omega - truth) / scale - end) + ndtr((truth - omega) / scale - end)))


def _explore(evidence: Evidence, pair: Pair, omega: float, alpha: float) -> Needed:
    """Return the share of the rejected without overlap to accept at random, and its cost."""
    best: tuple[float, float, float] | None = None
    for share in SHARES:
        if share < 2 * evidence.overlap:
            continue
        # A label seen with probability q has weight 1 / q, which adds at most (1 - q) / (4 q).
        added = pair.weak * pair.slope**2 * (0.25 / share)
        times = _times(pair, pair.variance + added, omega, alpha, 1 / share)
        rows = times * float(pair.people.sum())
        cost = times * share * float((pair.weak * pair.people).sum()) + rows / WORTH
        if times <= MOST_TIMES and rows <= MOST_ROWS and (best is None or cost < best[0]):
            best = (cost, share, times)
    if best is None:
        return _impracticable(
            "the log says nothing about the rejected without overlap, and learning enough about "
            f"them would take more than {_round_up(float(pair.people.sum()) * MOST_TIMES):,} "
            "applications"
        )
    _, share, times = best
    people = {name: _round_up(n * times) for name, n in zip(pair.names, pair.people, strict=True)}
    labels = {
        name: _round_up(people[name] * weak * share)
        for name, weak in zip(pair.names, pair.weak, strict=True)
    }
    sentence = (
        "More rows like these will not settle it: they say nothing about the rejected without "
        f"overlap. Accept {share:.0%} of them at random, and record that chance as their "
        f"propensity, over the next {_listed(people)} applications. The cost: about "
        f"{_listed(labels)} would be "
        "accepted who are rejected today. Then audit these new applications alone, without "
        f"the rows of this log. About {POWER:.0%} of such logs will then be settled."
    )
    return Needed(people, labels, share, POWER, sentence)


def _pending(evidence: Evidence, pair: Pair) -> Needed:
    total = evidence.sums.by_group()
    waiting = {
        name: int(total.pending[evidence.names.index(name)])
        for name in pair.names
        if total.pending[evidence.names.index(name)] > 0
    }
    if not waiting:
        return _impracticable("a group has no accepted people, so its outcomes are unknown")
    return Needed(
        {}, waiting, None, None,
        f"The outcomes of {_listed(waiting)} accepted people are not known yet, and may be good "
        "or bad. Audit again when they are known, or count only decisions that had time to show "
        "their outcome: type --decided-on and --matures-after.",
    )  # fmt: skip


def _impracticable(reason: str) -> Needed:
    return Needed({}, {}, None, None, f"Not practicable, because {reason}.")


def _listed(counts: dict[Any, int]) -> str:
    return " and ".join(f"{number:,} of {say(name)}" for name, number in counts.items())


def _round_up(number: float) -> int:
    """Round up to two digits; numbers computed from estimates are not more precise."""
    if number <= 0:
        return 0
    scale = 10 ** max(int(np.floor(np.log10(number))) - 1, 0)
    return int(np.ceil(number / scale) * scale)
