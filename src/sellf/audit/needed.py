"""What would settle an open verdict: how many people, of which groups, and how likely.

The true disparity is not known; the log says where it may be. Numbers are chosen so that a new log,
audited by itself, is settled with a chance of about 80 %, averaged over where the truth may be (the
*assurance* of a sample size: O'Hagan, Stevens and Campbell 2005).
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
"""What is promised,"""
PLANNED = 0.83
"""and what is planned for, since variances are estimates too."""
SHARES = (0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 1.0)
"""Of the rejected, to accept at random."""
WORTH = 50
"""Waiting for so many applications counts as much as accepting one more person."""
MOST_ROWS = 20_000_000
MOST_TIMES = 60.0
"""More people than so many times the log's are not asked for."""


class Pair(NamedTuple):
    """The two groups that decide."""

    names: tuple[Any, Any]
    people: Floats
    accepted: Floats
    variance: Floats
    """Of one person's part of the utility."""
    weak: Floats
    """The share of the group that is rejected and of whom nothing tells."""
    slope: Floats
    """How much the utility moves with the share of positives."""
    low: float
    """The least difference that the log allows, but for sampling error."""
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
        rate: what is measured.
        evidence: the log.
        found: its intervals.
        seen: what the log identifies.
        omega: the tolerated disparity.
        delta: the chance to miss.
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
    # Where hardly any chance to miss is allowed, no number would be enough.
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
    """Return the two groups on which the verdict hangs."""
    value = found.value
    if np.ptp(value) <= omega:  # it might be fair: the pair that may be furthest apart
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
    """Return the variance of one person's part of the utility, but for what is not identified."""
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
    """Return how far the utility u moves with a label of somebody rejected, u = part / whole."""
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
    """Return how many times the log's people a new log needs to be settled, in most cases."""
    error = float(np.sqrt((variance / pair.people).sum()))
    seen = float(np.sqrt((pair.variance / pair.people).sum()))
    # Where the truth may be: what is identified, and the sampling error around it.
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
    """Return the chance that a log with so many times the people is settled."""
    smallest = float(pair.people.min()) * times
    if smallest < 30:
        return 0.0
    # Finite-sample intervals are wider than normal ones, the more so the fewer people there are and
    # the further scores reach (tools/widths.py measures it).
    wider = min(1.1 + (25 + reach) / smallest**0.5, 1.8)
    scale = error / times**0.5
    end = -wider * ndtri(alpha)
    return float(np.mean(ndtr((omega - truth) / scale - end) + ndtr((truth - omega) / scale - end)))


def _explore(evidence: Evidence, pair: Pair, omega: float, alpha: float) -> Needed:
    """Return what share of the rejected of whom nothing tells to accept at random."""
    best: tuple[float, float, float] | None = None
    for share in SHARES:
        if share < 2 * evidence.overlap:
            continue
        # A label seen with chance q counts 1 / q: at most (1 - q) / (4 q) is what that adds.
        added = pair.weak * pair.slope**2 * (0.25 / share)
        times = _times(pair, pair.variance + added, omega, alpha, 1 / share)
        rows = times * float(pair.people.sum())
        cost = times * share * float((pair.weak * pair.people).sum()) + rows / WORTH
        if times <= MOST_TIMES and rows <= MOST_ROWS and (best is None or cost < best[0]):
            best = (cost, share, times)
    if best is None:
        return _impracticable(
            "nothing tells of the rejected without overlap, and to learn enough of them would take "
            f"more than {_round_up(float(pair.people.sum()) * MOST_TIMES):,} applications"
        )
    _, share, times = best
    people = {name: _round_up(n * times) for name, n in zip(pair.names, pair.people, strict=True)}
    labels = {
        name: _round_up(people[name] * weak * share)
        for name, weak in zip(pair.names, pair.weak, strict=True)
    }
    sentence = (
        "More rows like these will not settle it: nothing tells of the rejected without overlap. "
        f"Accept {share:.0%} of them at random, and record that chance as their propensity, over "
        f"the next {_listed(people)} applications. The cost: about {_listed(labels)} would be "
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
        return _impracticable("nobody of some group was accepted, so nothing tells of its outcomes")
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
    """Round up to two digits: what is computed from an estimate is not known better."""
    if number <= 0:
        return 0
    scale = 10 ** max(int(np.floor(np.log10(number))) - 1, 0)
    return int(np.ceil(number / scale) * scale)
