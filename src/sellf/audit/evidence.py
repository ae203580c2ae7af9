"""Evidence from a log, gathered once for all notions: sums of each group, and rows if in memory."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.audit.aipw import Model, check_sklearn, cross_fit
from sellf.audit.checks import Contradiction, contradiction
from sellf.audit.group import Group
from sellf.audit.scaled import EstimatedLog
from sellf.errors import InputError
from sellf.logs.columns import Columns
from sellf.logs.lazy import LazyLog
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.log import Log
from sellf.logs.person import BINS, Person
from sellf.logs.rows import Rows
from sellf.logs.sums import Sums

OVERLAP = 0.01
"""The smallest known propensity used for weighting."""
OVERLAP_ESTIMATED = 0.02
"""The smallest estimated propensity used for weighting; smaller estimates are unreliable."""


@dataclass(frozen=True)
class Evidence:
    """The contents of a log that verdicts are based on."""

    names: list[Any]
    sums: Sums
    """The sums by group and stratum."""
    people: tuple[Person | None, ...]
    """The rows of each group; None for groups of which only sums are known."""
    overlap: float
    known: bool
    """Whether the log holds the propensities."""
    estimated: bool
    """Whether the propensities were estimated."""
    predicted: bool
    trusted: bool
    warnings: tuple[str, ...]
    seed: int = 0
    """Seed of pilot samples and of row orders."""
    rows: Rows | None = None
    """The whole log, if it is in memory."""
    contradiction: Contradiction | None = None
    """Where the decisions contradict the propensities."""
    _groups: list[Group] = field(default_factory=list, compare=False, repr=False)

    @property
    def weight(self) -> Any:
        """The weight of each row; None if all rows count equally."""
        return None if self.rows is None else self.rows.person.weight

    @property
    def apart(self) -> bool:
        """Whether some people are in several groups, which makes the groups dependent."""
        return self.rows is not None and self.rows.people_in_several_groups

    @property
    def groups(self) -> list[Group]:
        """The evidence of each group."""
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
        some = self.rows.take(rows)
        return replace(
            self,
            sums=some.sums(self.overlap)[1],
            people=tuple(some.of_group(i) for i in range(len(self.names))),
            rows=some,
            _groups=[],
        )


def gather(
    log: Log,
    columns: Columns,
    *,
    overlap: float | None,
    model: Model,
    anytime: bool,
    seed: int = 0,
    limits: Limits = DEFAULT,
) -> Evidence:
    """Gather the evidence from a log.

    Args:
        log: a checked log.
        columns: the meaning of its columns.
        overlap: the smallest propensity used for weighting; None: a default.
        model: the model of propensities that are not known.
        anytime: whether rows are bet on in the order of time.
        seed: seed of pilot samples, row orders and the folds of cross-fitting.
        limits: numbers of rows up to which groups are processed row by row.
    """
    trusted = columns.trust_rejected_outcomes
    estimated = columns.propensity is None and not trusted and _has_features(columns)
    if overlap is None:
        overlap = OVERLAP_ESTIMATED if estimated else OVERLAP
    if estimated:
        log = _with_estimates(log, model, seed, limits)
    if anytime:
        _check_anytime(log, estimated, limits)
    names, sums = log.sums(overlap)
    people = log.people(names, sums, limits)
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
        rows=log.rows,
        contradiction=_contradiction(log, names, sums, people, overlap) if known else None,
    )


def _contradiction(
    log: Log, names: list[Any], sums: Sums, people: tuple[Person | None, ...], overlap: float
) -> Contradiction | None:
    """Return where decisions contradict propensities, with all rows weighted equally."""
    if log.rows is not None and log.rows.person.weight is not None:
        sums = replace(log.rows, person=log.rows.person._replace(weight=None)).sums(overlap)[1]
    return contradiction(names, sums, people)


def _with_estimates(log: Log, model: Model, seed: int, limits: Limits) -> Log:
    """Return the log with propensities and predictions estimated from it."""
    if isinstance(log, LazyLog):
        check_sklearn()
        return EstimatedLog(log, model, seed, limits)
    if log.rows is None:
        raise ValueError("a log is in memory or in an engine")
    return replace(log.rows, person=cross_fit(log.rows, model, seed), estimated=True)


def _check_anytime(log: Log, estimated: bool, limits: Limits) -> None:
    if estimated or log.rows is None or log.count > limits.anytime:
        raise InputError(
            f"--anytime bets row by row, on logs of up to {limits.anytime:,} rows, with known "
            "propensities or none: leave --anytime out, or audit a part of the log."
        )
    if log.rows.person.unit is not None:
        raise InputError(
            "--anytime counts every row as another person, so it does not go with --person: leave "
            "one of them out."
        )


def _has_features(columns: Columns) -> bool:
    return bool(columns.features) or columns.score is not None


def _unused(columns: Columns) -> list[str]:
    if not columns.features or columns.propensity is None:
        return []
    return ["features are for estimating propensities; these are known, so features were not used."]


def _direction(columns: Columns, sums: Sums) -> list[str]:
    """Warn if a score looks like the probability of a bad outcome."""
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
        "bad outcome, type --score-is-risk. The intervals hold either way, but are wider than "
        "necessary, and the imputed figures are wrong."
    ]
