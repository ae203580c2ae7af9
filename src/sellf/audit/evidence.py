"""What a log holds, gathered once for all notions: sums of every group, rows of those to bet on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sellf.audit.aipw import Model, cross_fit
from sellf.audit.columns import Columns
from sellf.audit.exact import shuffled
from sellf.audit.rows import Rows
from sellf.audit.scores import BINS, Person
from sellf.audit.sums import Sums, add_up
from sellf.audit.verdict import say
from sellf.errors import InputError

BETTING_ROWS = 1_000_000
"""Groups with more people than this are judged by their sums alone."""
OVERLAP = 0.01
"""The smallest known propensity that is weighted by."""
OVERLAP_ESTIMATED = 0.02
"""The smallest estimated one: an estimate that small says little."""


@dataclass(frozen=True)
class Evidence:
    """A log, ready to be judged."""

    names: list[Any]
    sums: Sums
    """By group and stratum."""
    people: tuple[Person | None, ...]
    """The rows of each group in betting order; None for groups that are too large."""
    overlap: float
    known: bool
    """Whether the log says the chance of acceptance."""
    estimated: bool
    """Whether it was estimated."""
    predicted: bool
    trusted: bool
    warnings: tuple[str, ...]
    rows: Rows | None = None
    """The whole log, if it is in memory."""


def gather(
    source: Any,
    columns: Columns,
    *,
    overlap: float | None,
    model: Model,
    anytime: bool,
    seed: int = 0,
) -> Evidence:
    """Return what a log holds.

    Args:
        source: checked rows, or a frame to push sums down to.
        columns: what the columns mean.
        overlap: the smallest propensity that is weighted by; None: a default.
        model: what to estimate propensities with, where they are not known.
        anytime: whether rows stay in their order.
        seed: of whatever is drawn at random.
    """
    trusted = columns.trust_rejected_outcomes
    estimated = columns.propensity is None and not trusted and _has_features(columns)
    if overlap is None:
        overlap = OVERLAP_ESTIMATED if estimated else OVERLAP
    if isinstance(source, Rows):
        rows = source
        if estimated:
            rows = replace(rows, person=cross_fit(rows, model))
        sums = add_up(rows.codes, len(rows.names), rows.person, overlap)
        names = rows.names
        small = [n <= BETTING_ROWS for n in sums.people.sum(axis=-1)]
        order = (lambda person: person) if anytime else shuffled
        people = tuple(order(rows.of_group(i)) if fits else None for i, fits in enumerate(small))
    else:
        if estimated:
            raise InputError(
                f"the log has {source.count:,} rows, and estimating propensities needs them in "
                "memory: name the column that holds them with --propensity, or audit a random part."
            )
        rows = None
        names, sums = source.sums(overlap)
        people = _fetch_small(source, columns, names, sums)
    if anytime and (estimated or any(person is None for person in people)):
        raise InputError(
            f"--anytime bets row by row, on groups of up to {BETTING_ROWS:,} people, with known "
            "propensities or none: leave --anytime out, or audit a part of the log."
        )
    known = columns.propensity is not None
    predicted = columns.score is not None or estimated
    warnings = (*_calibration(names, sums, known), *_direction(columns, sums), *_unused(columns))
    return Evidence(
        names, sums, people, overlap, known, estimated, predicted, trusted, warnings, rows
    )


def _has_features(columns: Columns) -> bool:
    return bool(columns.features) or columns.score is not None


def _fetch_small(
    source: Any, columns: Columns, names: list[Any], sums: Sums
) -> tuple[Person | None, ...]:
    """Bring the rows of small groups here, as many groups as fit together."""
    from sellf.audit.rows import check_rows
    from sellf.audit.sources import FETCH_ROWS, fetch

    count = sums.people.sum(axis=-1)
    chosen: list[int] = []
    for i in np.argsort(count, kind="stable"):
        if count[i] > BETTING_ROWS or count[[*chosen, i]].sum() > FETCH_ROWS or len(chosen) >= 100:
            break
        chosen.append(int(i))
    people: list[Person | None] = [None] * len(names)
    if chosen:
        wanted = [names[i] for i in chosen]
        table = fetch(source.of_groups(wanted), columns)
        rows = check_rows(columns, table, several=False)
        for place, name in enumerate(rows.names):
            people[names.index(name)] = shuffled(rows.of_group(place))
    return tuple(people)


def _calibration(names: list[Any], sums: Sums, known: bool) -> list[str]:
    """Say where people were accepted more or less often than their propensities promise."""
    if not known:
        return []
    groups = len(names)

    def bins(values: Any) -> Any:
        return values.reshape(groups, BINS + 1, BINS + 1).sum(axis=-1)

    expected, seen = bins(sums.propensity), bins(sums.accepted)
    spread = np.sqrt(bins(sums.chance_variance))
    people = bins(sums.people)
    off = np.abs(seen - expected) / np.maximum(spread, 0.5)
    if off.max() <= 4.5:
        return []
    group, place = np.unravel_index(int(np.argmax(off)), off.shape)
    n = people[group, place]
    return [
        f"propensities do not match decisions: of {int(n):,} people of {say(names[group])} with a "
        f"propensity between {place / BINS:g} and {(place + 1) / BINS:g}, "
        f"{expected[group, place] / n:.1%} should have been accepted and "
        f"{seen[group, place] / n:.1%} were. If the propensities are wrong, so are the intervals."
    ]


def _unused(columns: Columns) -> list[str]:
    if not columns.features or columns.propensity is None:
        return []
    return ["features serve to estimate propensities; these are known, so features were not used."]


def _direction(columns: Columns, sums: Sums) -> list[str]:
    """Say so if a score looks like the chance of a bad outcome."""
    if columns.score is None:
        return []
    shape = (*sums.people.shape[:-1], BINS + 1, BINS + 1)
    accepted = sums.accepted.reshape(shape).sum(axis=(0, 1))
    positive = sums.positive.reshape(shape).sum(axis=(0, 1))
    total = accepted.sum()
    if total < 20:
        return []
    level = np.arange(BINS + 1)
    rate, centre = positive.sum() / total, (accepted * level).sum() / total
    slope = ((level - centre) * (positive - rate * accepted)).sum()
    error = (rate * (1 - rate) * (accepted * (level - centre) ** 2).sum()) ** 0.5
    if slope >= -4 * error or error == 0:
        return []
    return [
        f"the higher the score {columns.score!r} the worse the outcome: if it is the chance of a "
        "bad outcome, type --score-is-risk. The intervals hold either way, but are wider than need "
        "be, and the imputed figures are wrong."
    ]
