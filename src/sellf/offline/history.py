"""A log prepared for estimating policies other than the one that made its decisions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.audit.aipw import MODELS, cross_fit
from sellf.audit.checks import contradiction
from sellf.audit.evidence import OVERLAP, OVERLAP_ESTIMATED
from sellf.audit.maturity import read_maturity, set_aside
from sellf.audit.run import seed_of
from sellf.errors import InputError
from sellf.fairness.checks import number, one_of, short
from sellf.fairness.tables import as_pandas
from sellf.logs.columns import Columns
from sellf.logs.config import OF_COLUMNS, OF_READING, LogConfig
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.names import Values
from sellf.logs.person import Floats, Person
from sellf.logs.reading import open_log
from sellf.logs.rows import Rows
from sellf.logs.values import numbers
from sellf.offline.sample import Sample

MOST_ROWS = 20_000_000
"""Largest number of rows that are read into memory by default."""
DEFAULTS: dict[str, Any] = {
    "matures_after": None,
    "as_of": None,
    "overlap": None,
    "model": "boosting",
    "seed": None,
}
"""Defaults of options other than the meaning of columns and how the log is read."""
ARRAY = "__policy__"
"""Name of the column that an array of acceptance probabilities is added to the log as."""


@dataclass(frozen=True)
class History:
    """Checked rows of a log, with what is needed to weight them."""

    rows: Rows
    extra: dict[str, Values]
    """Columns that policies may use."""
    overlap: float
    seed: int
    known: bool
    """Whether the log contains the propensities."""
    warnings: tuple[str, ...]
    void: str | None
    """Why propensities cannot be used, if they contradict the decisions."""
    looked: NDArray[np.bool_] | None = None
    """Mask of the pilot's rows, excluded from estimates; None: drawn from every group."""

    @property
    def estimated(self) -> bool:
        """Whether propensities were estimated."""
        return self.rows.estimated

    @property
    def person(self) -> Person:
        """All rows, with the rows of each person next to each other."""
        return self.rows.person

    @property
    def current(self) -> Floats | None:
        """Acceptance probabilities of the policy that decided; None: only decisions are known."""
        return self.person.propensity if self.known else None

    @cached_property
    def everyone(self) -> Sample:
        """The sample of all people."""
        return self._sample(len(self.rows.names), None)

    @cached_property
    def people(self) -> int:
        """Number of people that estimates are based on."""
        if self.looked is None:
            return self.everyone.people
        return len(np.unique(self.everyone.units[~self.looked]))

    @cached_property
    def groups(self) -> list[tuple[Any, Sample]]:
        """The name and the sample of each group."""
        found = []
        for place, name in enumerate(self.rows.names):
            rows = np.flatnonzero(self.rows.codes == place)
            found.append((name, self._sample(place, rows)))
        return found

    def _sample(self, place: int, where: NDArray[np.intp] | None) -> Sample:
        person = self.person if where is None else self.person.take(where)
        rng = np.random.default_rng([self.seed, person.digest(), 20, place])
        looked = self.looked if self.looked is None or where is None else self.looked[where]
        return Sample(
            self.person, where, self.overlap, rng, estimated=self.estimated, looked=looked
        )


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options for the log's columns and its reading, with defaults; refuse others."""
    known = (*OF_COLUMNS, *OF_READING, *DEFAULTS)
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
            raise InputError(f"there is no option {name!r}: {hint}")
    for name in ("group", "decision"):
        if not given.get(name):
            raise InputError(f"{name} is missing: name the column of the log that holds it.")
    return DEFAULTS | given


def read(
    log: Any,
    options: dict[str, Any],
    extra: tuple[str, ...],
    limits: Limits | None,
    option: str = "feature",
) -> History:
    """Read and check a log, and return its history.

    Args:
        log: as for `sellf.audit`.
        options: meaning of the log's columns and how it is read, as for `sellf.audit`.
        extra: further columns to read.
        limits: limits on the size of the log; None: up to twenty million rows.
        option: the option that named the further columns, for messages.
    """
    if limits is not None and not isinstance(limits, Limits):
        raise InputError(f"limits is {short(limits)}: give sellf.Limits(...), or leave it out.")
    config = LogConfig.of(options)
    columns = config.columns
    if columns.outcome is None:
        raise InputError("outcome is missing: name the column of outcomes with --outcome.")
    seed = seed_of(options["seed"])
    wanted = tuple(dict.fromkeys([*columns.features, *extra]))
    used = {columns.decision, columns.outcome, *columns.group}
    others = tuple((name, option) for name in wanted if name not in (*used, *columns.features))
    reading = replace(
        columns, features=tuple(n for n in columns.features if n not in used), others=others
    )
    limits = limits or replace(DEFAULT, in_memory=MOST_ROWS)
    maturity = read_maturity(*(options.get(n) for n in ("decided_on", "matures_after", "as_of")))
    source, _ = set_aside(open_log(log, reading, limits, config.reading), maturity)
    rows = source.matured().rows
    if rows is None:
        raise InputError(
            f"the log has {source.count:,} rows, and up to {limits.in_memory:,} fit in memory: "
            "take a random part of its people."
        )
    rows = _together(rows)
    read_columns = {**(rows.features or {}), **rows.others}
    for name in wanted:
        if name in used:
            read_columns[name] = _own(rows, columns, name)
    rows = replace(rows, features={n: read_columns[n] for n in columns.features} or None)
    return _checked(rows, columns, read_columns, options, seed)


def _own(rows: Rows, columns: Columns, name: str) -> Values:
    """Return the group column for use by a policy; refuse the decision and the outcome."""
    if name in columns.group and len(columns.group) == 1:
        return np.array(rows.names, dtype=object)[rows.codes]
    raise InputError(f"column {name!r} is the decision or the outcome: no policy can use it.")


def _together(rows: Rows) -> Rows:
    """Return the rows sorted such that the rows of each person are next to each other."""
    if rows.person.unit is None:
        return rows
    return rows.take(np.argsort(rows.person.unit, kind="stable"))


def _checked(
    rows: Rows, columns: Columns, extra: dict[str, Values], options: dict[str, Any], seed: int
) -> History:
    trusted, known = columns.trust_rejected_outcomes, columns.propensity is not None
    estimated = not known and not trusted and bool(columns.features or columns.score)
    one_of("model", options["model"], MODELS)
    if estimated:
        rows = replace(rows, person=cross_fit(rows, options["model"], seed), estimated=True)
    overlap = options["overlap"]
    if overlap is None:
        overlap = OVERLAP_ESTIMATED if estimated else OVERLAP
    overlap = number("overlap", overlap, low=0, high=1, low_open=True)
    void = None
    if known:
        names, sums = rows.sums(overlap)
        several = rows.person.unit is not None
        people = tuple(rows.of_group(i) for i in range(len(names))) if several else ()
        found = contradiction(names, sums, people)
        if found is not None:
            void, known = str(found), False
            person = rows.person._replace(propensity=None, prediction=None)
            rows = replace(rows, person=person)
    return History(rows, extra, overlap, seed, known, rows.warnings, void)


Policy = str | Callable[[Mapping[str, Values]], Any] | Any
"""A column name, an array of probabilities, a function of columns or a model with predict_proba."""


def chances(policy: Policy, history: History) -> Floats:
    """Return the probability with which a policy accepts each person."""
    if isinstance(policy, str):
        values = numbers(history.extra[policy], policy, "policy")
        return _checked_chances(values, f"policy {policy!r}")
    columns = history.extra
    model: Any = policy
    if hasattr(policy, "predict_proba"):
        found = np.asarray(model.predict_proba(_frame(columns)))
        found = found[:, 1] if found.ndim == 2 and found.shape[1] == 2 else found
    else:
        try:
            found = np.asarray(model(columns))
        except KeyError as error:
            raise InputError(
                f"the policy needs the column {error}: name it, columns=[{error}]."
            ) from None
    if found.dtype.kind not in "biufO":
        raise InputError("the policy returns no numbers: return probabilities of acceptance.")
    if found.shape != (history.rows.count,):
        raise InputError(
            f"the policy returned an array of shape {found.shape} for {history.rows.count:,} "
            "people: return one probability of acceptance for each."
        )
    return _checked_chances(found.astype(np.float64), "the policy")


def _checked_chances(values: Floats, what: str) -> Floats:
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{what} is {values[row]} at row {row}: give probabilities of acceptance, between 0 "
            "and 1; for a rule 0 or 1."
        )
    return values


def _frame(columns: Mapping[str, Values]) -> Any:
    """Return columns as a data frame, or as a matrix if pandas is not installed."""
    frame = as_pandas(columns)
    if frame is not None:
        return frame
    return np.column_stack([numbers(column, name, "feature") for name, column in columns.items()])
