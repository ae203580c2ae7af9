"""What a log holds, gathered once for all notions: every group's sums, and rows where they are."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.audit.aipw import Model, cross_fit
from sellf.audit.checks import Contradiction, contradiction
from sellf.audit.columns import Columns
from sellf.audit.estimators import Group
from sellf.audit.rows import Rows
from sellf.audit.scores import BINS, Person
from sellf.audit.sums import Sums, add_up
from sellf.errors import InputError

MOST_ROWS = 2_000_000
"""Groups with more rows than this are judged by their sums."""
ANYTIME_ROWS = 1_000_000
"""Logs with more rows than this are not bet on in the order of time."""
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
    """The rows of each group; None for groups of which only sums are known."""
    overlap: float
    known: bool
    """Whether the log says the chance of acceptance."""
    estimated: bool
    """Whether it was estimated."""
    predicted: bool
    trusted: bool
    warnings: tuple[str, ...]
    seed: int = 0
    """Of pilots and orders."""
    rows: Rows | None = None
    """The whole log, if it is in memory."""
    contradiction: Contradiction | None = None
    """Where the decisions contradict the propensities."""
    _groups: list[Group] = field(default_factory=list, compare=False, repr=False)

    @property
    def apart(self) -> bool:
        """Whether somebody is in several groups, so that these are not independent."""
        return self.rows is not None and self.rows.people_in_several_groups

    @property
    def groups(self) -> list[Group]:
        """Every group with its methods."""
        if not self._groups:
            total = self.sums.by_group()
            self._groups.extend(
                Group(
                    total=total.group(i),
                    person=person,
                    seed=(self.seed, i),
                    overlap=self.overlap,
                    known=self.known,
                    trusted=self.trusted,
                    estimated=self.estimated,
                    predicted=self.predicted,
                )
                for i, person in enumerate(self.people)
            )
        return self._groups

    def without_propensities(self) -> "Evidence":
        """Return the same log as if it had neither propensities nor a score."""
        sums = self.sums._replace(
            weak=self.sums.people,
            weak_accepted=self.sums.accepted,
            weak_positive=self.sums.positive,
        )
        people = tuple(
            None if person is None else person._replace(propensity=None, prediction=None)
            for person in self.people
        )
        return replace(
            self,
            sums=sums,
            people=people,
            known=False,
            estimated=False,
            predicted=False,
            _groups=[],
        )

    def from_sums(self, sums: Sums) -> "Evidence":
        """Return the evidence of a part of the log of which only sums are known."""
        nobody = (None,) * len(self.names)
        return replace(self, sums=sums, people=nobody, _groups=[])

    def part(self, rows: slice | NDArray[np.intp]) -> "Evidence":
        """Return the evidence of some rows of a log in memory."""
        if self.rows is None:
            raise ValueError("the log is not in memory")
        codes, person = self.rows.codes[rows], self.rows.person.take(rows)
        names = self.names
        some = replace(self.rows, codes=codes, person=person, time=None, features=None)
        return replace(
            self,
            sums=add_up(codes, len(names), person, self.overlap),
            people=tuple(of_group(some, i) for i in range(len(names))),
            rows=some,
            _groups=[],
        )


def of_group(rows: Rows, place: int) -> Person:
    """Return the rows of one group in an order that depends on nothing but the rows themselves.

    Then a seed means the same orders however the log is stored. Rows of one person stay together,
    in the order of the log.
    """
    person = rows.of_group(place)
    if person.unit is not None:
        return person.take(np.argsort(person.unit, kind="stable"))
    code = person.accepted + 2 * person.positive
    code = code if person.pending is None else code + 4 * person.pending
    keys = [code, person.propensity, person.prediction, person.rejected_positive]
    return person.take(np.lexsort([key for key in keys if key is not None][::-1]))


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
        anytime: whether rows are bet on in the order of time.
        seed: of pilots, orders and the folds of cross-fitting.
    """
    trusted = columns.trust_rejected_outcomes
    estimated = columns.propensity is None and not trusted and _has_features(columns)
    if overlap is None:
        overlap = OVERLAP_ESTIMATED if estimated else OVERLAP
    if isinstance(source, Rows):
        rows = source
        if estimated:
            rows = replace(rows, person=cross_fit(rows, model, seed))
        sums = add_up(rows.codes, len(rows.names), rows.person, overlap)
        names = rows.names
        # Sums tell as much of very many rows, and need no room.
        needed = estimated or rows.person.unit is not None
        size = sums.people.sum(axis=-1)
        people = tuple(
            of_group(rows, i) if needed or size[i] <= MOST_ROWS else None for i in range(len(names))
        )
    else:
        if estimated:
            raise InputError(
                f"the log has {source.count:,} rows, and estimating propensities needs them in "
                "memory: name the column that holds them with --propensity, or audit a random part."
            )
        rows = None
        names, sums = source.sums(overlap)
        people = _fetch_small(source, columns, names, sums)
    if anytime:
        _check_anytime(rows, estimated)
    known = columns.propensity is not None
    predicted = columns.score is not None or estimated
    return Evidence(
        names=names,
        sums=sums,
        people=people,
        overlap=overlap,
        known=known,
        estimated=estimated,
        predicted=predicted,
        trusted=trusted,
        warnings=(*_direction(columns, sums), *_unused(columns)),
        seed=seed,
        rows=rows,
        contradiction=contradiction(names, sums) if known else None,
    )


def _check_anytime(rows: Rows | None, estimated: bool) -> None:
    if estimated or rows is None or len(rows.codes) > ANYTIME_ROWS:
        raise InputError(
            f"--anytime bets row by row, on logs of up to {ANYTIME_ROWS:,} rows, with known "
            "propensities or none: leave --anytime out, or audit a part of the log."
        )
    if rows.person.unit is not None:
        raise InputError(
            "--anytime counts every row as another person, so it does not go with --person: leave "
            "one of them out."
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
        if count[[*chosen, i]].sum() > FETCH_ROWS or len(chosen) >= 100:
            break
        chosen.append(int(i))
    people: list[Person | None] = [None] * len(names)
    if chosen:
        wanted = [names[i] for i in chosen]
        table = fetch(source.of_groups(wanted), columns)
        rows = check_rows(columns, table, several=False)
        for place, name in enumerate(rows.names):
            people[names.index(name)] = of_group(rows, place)
    return tuple(people)


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
