"""Data quality: which rows were read, which values are missing, and possible problems."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sellf.audit.evidence import Evidence
from sellf.audit.measured import to_plain
from sellf.logs.cautions import look_alikes
from sellf.logs.log import Log
from sellf.logs.names import say
from sellf.logs.person import BINS, Floats, LeftOut


class Bin(NamedTuple):
    """The people whose prediction lies in one tenth of its range."""

    predicted: float
    observed: float
    people: int


@dataclass(frozen=True)
class Calibration:
    """How well propensities predict decisions, or scores predict outcomes of the accepted."""

    of: str
    """Either "propensity" or "score"."""
    estimated: bool
    auc: float
    """The area under the ROC curve."""
    bins: tuple[Bin, ...]


class GroupQuality(NamedTuple):
    """Counts of one group."""

    group: str
    rows: int
    accepted: int
    pending: int
    """Accepted people without an outcome."""


@dataclass(frozen=True)
class Quality:
    """A description of the data and its possible problems."""

    rows: int
    """The number of rows read from the log."""
    used: int
    left_out: tuple[LeftOut, ...]
    first: str | None
    last: str | None
    duplicates: int | None
    groups: tuple[GroupQuality, ...]
    look_alikes: tuple[str, ...]
    identifiers: tuple[str, ...]
    after_decision: tuple[str, ...]
    calibration: tuple[Calibration, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return to_plain(self)


def quality(source: Log, evidence: Evidence) -> Quality:
    """Describe the data of a log.

    Args:
        source: the log.
        evidence: the evidence gathered from it.
    """
    facts = source.facts
    total = evidence.sums.by_group()
    figures = zip(evidence.names, total.people, total.accepted, total.pending, strict=True)
    return Quality(
        rows=source.count + sum(one.rows for one in source.left_out),
        used=source.count,
        left_out=source.left_out,
        first=facts.first,
        last=facts.last,
        duplicates=facts.duplicates,
        groups=tuple(GroupQuality(say(g), int(n), int(a), int(p)) for g, n, a, p in figures),
        look_alikes=tuple(look_alikes(source.columns, evidence.names)),
        identifiers=facts.identifiers,
        after_decision=facts.after_decision,
        calibration=tuple(_calibrations(evidence)),
    )


def doubts(found: Quality, features: Sequence[str]) -> list[str]:
    """Return the warnings about the data."""
    late = [name for name in found.after_decision if name in features]
    lines = [
        f"feature {name!r} is filled for the accepted and empty for the rejected, like a value "
        "recorded after the decision: leave it out of --feature."
        for name in late
    ]
    # If most rows are duplicates, the columns are merely too coarse to distinguish people.
    if found.duplicates and found.duplicates < found.rows / 2:
        lines.append(
            f"{found.duplicates:,} of {found.rows:,} rows repeat another row in every column: if "
            "they are copies, leave them out; each counts as a person here."
        )
    return lines


def _calibrations(evidence: Evidence) -> list[Calibration]:
    """Return how well propensities and predictions agree with decisions and outcomes."""
    sums = evidence.sums
    shape = (*sums.people.shape[:-1], BINS + 1, BINS + 1)
    made = []
    if evidence.known or evidence.estimated:
        people, accepted, chance = (
            x.reshape(shape).sum(axis=(0, 2))[:BINS]
            for x in (sums.people, sums.accepted, sums.propensity)
        )
        exact = _exact(evidence, "propensity")
        made.append(_calibration("propensity", evidence.estimated, people, accepted, chance, exact))
    if evidence.predicted and sums.accepted.sum():
        seen, positive = (
            x.reshape(shape).sum(axis=(0, 1))[:BINS]
            for x in (sums.accepted - sums.pending, sums.positive)
        )
        centre = (np.arange(BINS) + 0.5) / BINS
        exact = _exact(evidence, "score")
        made.append(_calibration("score", evidence.estimated, seen, positive, seen * centre, exact))
    return made


def _calibration(
    of: str, estimated: bool, people: Floats, events: Floats, predicted: Floats, exact: float | None
) -> Calibration:
    there = people > 0
    bins = tuple(
        Bin(float(f / n), float(y / n), int(n))
        for n, y, f in zip(people[there], events[there], predicted[there], strict=True)
    )
    auc = (
        auc_of(np.arange(len(people), dtype=np.float64), events, people - events)
        if exact is None
        else exact
    )
    return Calibration(of, estimated, auc, bins)


def _exact(evidence: Evidence, of: str) -> float | None:
    """Return the area under the ROC curve from rows; None if they are not in memory."""
    if any(person is None for person in evidence.people):
        return None
    people = [person for person in evidence.people if person is not None]
    pairs = []
    for person in people:
        if of == "propensity":
            pairs.append((person.propensity, person.accepted, 1 - person.accepted))
        else:
            known = person.accepted if person.pending is None else person.accepted - person.pending
            pairs.append((person.prediction, person.positive, known - person.positive))
    value, event, other = (np.concatenate([pair[i] for pair in pairs]) for i in range(3))
    return auc_of(value, event, other)


def auc_of(value: Floats, events: Floats, others: Floats) -> float:
    """Return the probability that an event has a larger value than a non-event; ties count half."""
    _, code = np.unique(value, return_inverse=True)
    one, two = np.bincount(code, events), np.bincount(code, others)
    if not one.sum() or not two.sum():
        return float("nan")
    below = np.concatenate([[0.0], np.cumsum(two)[:-1]])
    return float((one * (below + two / 2)).sum() / (one.sum() * two.sum()))
