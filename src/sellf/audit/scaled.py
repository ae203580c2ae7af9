"""Estimated propensities for logs of any size: fitted on a sample, predicted in the log's engine.

Predictions are cross-fitted: every row is in one of five folds, and is predicted by models fitted
on sampled rows of the other four.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np

from sellf.audit.aipw import Model, estimator_of
from sellf.audit.cells import FOLDS, as_numbers, by_fold, hashes, over, sampled, words_of
from sellf.logs.columns import Columns
from sellf.logs.dates import EVERY, period_of
from sellf.logs.lazy import LazyLog
from sellf.logs.limits import DEFAULT, Limits
from sellf.logs.person import Facts, Floats, LeftOut, Person
from sellf.logs.sums import STRATA, Sums, added

LEVELS = 100
"""Categories rarer in the sample than the hundredth most frequent one are merged."""


@dataclass(frozen=True)
class EstimatedLog:
    """A log that stays in its engine, with estimated propensities and predictions."""

    log: LazyLog
    model: Model
    seed: int
    limits: Limits = DEFAULT
    _fitted: list["Fitted"] = field(default_factory=list, compare=False, repr=False)

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.log.count

    @property
    def columns(self) -> Columns:
        """The meaning of the columns."""
        return self.log.columns

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The rows of the log that were not read."""
        return self.log.left_out

    @property
    def facts(self) -> Facts:
        """Facts about all columns of the log."""
        return self.log.facts

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the columns."""
        return self.log.warnings

    @property
    def rows(self) -> None:
        """Always None: the rows are not in memory."""
        return None

    def fingerprint(self) -> tuple[str | None, str]:
        """Return the fingerprint of the underlying log, or why there is none."""
        return self.log.fingerprint()

    def people_by_group(self) -> dict[Any, int]:
        """Return the number of rows of each group."""
        return self.log.people_by_group()

    def people(
        self, names: list[Any], sums: Sums, limits: Limits = DEFAULT
    ) -> tuple[Person | None, ...]:
        """Return None for every group: groups are judged by their sums."""
        return (None,) * len(names)

    def in_order(self) -> "EstimatedLog":
        """Return the log unchanged: sums do not depend on the order."""
        return self

    def latest(self) -> date:
        """Return the day of the last decision."""
        return self.log.latest()

    def up_to(self, cutoff: date) -> "EstimatedLog":
        """Return the log with the given last day of decisions that count."""
        return replace(self, log=self.log.up_to(cutoff), _fitted=[])

    def matured(self) -> "EstimatedLog":
        """Return the part of the log whose outcomes have had time to be known."""
        return replace(self, log=self.log.matured(), _fitted=[])

    def sums(self, overlap: float) -> tuple[list[Any], Sums]:
        """Return the groups and their sums."""
        names, (sums,), _ = self._sums(overlap, None)
        return names, sums

    def sums_by(self, overlap: float, by: str) -> tuple[list[str], list[Sums]]:
        """Return the names and the sums of every period."""
        _, sums, starts = self._sums(overlap, EVERY[by])
        return period_of(np.array(starts, dtype="datetime64[s]"), by)[1], sums

    def _sums(self, overlap: float, every: str | None) -> tuple[list[Any], list[Sums], list[Any]]:
        # This raises InputError for rows that cannot be used.
        names, _ = self.log.sums(overlap)
        cells = self.log.cells(every)
        fitted = self._fit(names)
        table = over(cells, Prediction(fitted, overlap), summed_schema())
        periods = sorted(set(table["t"].to_pylist()))
        when = np.array([periods.index(t) for t in table["t"].to_pylist()], dtype=np.intp)
        place = (when * len(names) + table["g"].to_numpy()) * STRATA + table["s"].to_numpy()
        shape = (len(periods), len(names), STRATA)
        fields = [
            np.bincount(place, table[name].to_numpy(), int(np.prod(shape))).reshape(shape)
            for name in Sums._fields
        ]
        made = [Sums(*(one[i] for one in fields)).rounded() for i in range(len(periods))]
        return names, made, periods

    def _fit(self, names: list[Any]) -> "Fitted":
        if not self._fitted:
            cells = self.log.cells(None)
            share = min(self.limits.fitted / max(self.log.count, 1), 1.0)
            keys = [name for name in cells.collect_schema().names() if name not in ("n", "t")]
            schema = _sample_schema(cells)
            sample = over(cells, Sampling(tuple(keys), share, self.seed, schema), schema)
            sample = sample.sort_by([("hash", "ascending"), ("fold", "ascending")])
            places = {raw: names.index(name) for raw, name in self.log.spellings().items()
                      if name is not None}  # fmt: skip
            self._fitted.append(fit(sample.combine_chunks(), tuple(keys), places, self))
        return self._fitted[0]


def _sample_schema(cells: Any) -> Any:
    """Return the schema of the sample: the columns of a cell, its hash, fold and weight."""
    import pyarrow

    given = cells.head(0).collect().to_arrow().schema
    kept = [one for one in given if one.name not in ("n", "t")]
    added = [("hash", pyarrow.int64()), ("fold", pyarrow.int64()), ("weight", pyarrow.int64())]
    return pyarrow.schema([*kept, *(pyarrow.field(*one) for one in added)])


@dataclass(frozen=True)
class Sampling:
    """Draws the sample from cells."""

    keys: tuple[str, ...]
    share: float
    seed: int
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the sampled cells, once for each fold that contains some of their rows."""
        import pyarrow

        for batch in batches:
            own = hashes(batch, self.keys, self.seed)
            drawn = sampled(by_fold(_counts(batch), own), own, self.share)
            cell, fold = np.nonzero(drawn)
            kept = batch.take(pyarrow.array(cell))
            arrays = [kept.column(one.name) for one in self.schema if one.name in self.keys]
            more = (own[cell].view(np.int64), fold, drawn[cell, fold])
            arrays = [a.cast(f.type) for a, f in zip(arrays, self.schema, strict=False)]
            yield pyarrow.RecordBatch.from_arrays(
                [*arrays, *(pyarrow.array(x, pyarrow.int64()) for x in more)], schema=self.schema
            )


def _counts(batch: Any) -> Any:
    return batch.column("n").to_numpy(zero_copy_only=False).astype(np.int64)


@dataclass(frozen=True)
class Column:
    """The numerical encoding of a feature."""

    name: str
    ranks: dict[Any, int] | None = None
    """Ranks of the categories by frequency; None for numbers."""
    centre: float = 0.0
    """The value imputed for missing numbers, if the model needs one."""
    gaps: bool = False
    """Whether some numbers are missing."""


@dataclass(frozen=True)
class Fitted:
    """Models of the propensity and of the outcome, one of each for every fold."""

    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    places: dict[Any, int]
    """The index of each group, by the values of its columns."""
    scored: bool
    model: Model
    seed: int
    models: tuple[tuple[Any, Any], ...] = ()

    @property
    def words(self) -> list[int]:
        """Which columns of the features are categorical, for boosting."""
        return [0, *(i for i, c in enumerate(self.columns, 1 + self.scored) if c.ranks is not None)]

    def groups(self, batch: Any) -> Any:
        """Return the index of each cell's group."""
        names = [name for name in self.keys if name.startswith("g")]
        values, codes = zip(*(words_of(batch.column(name)) for name in names), strict=True)
        code = np.zeros(batch.num_rows, dtype=np.intp)
        for own, many in zip(codes, values, strict=True):
            code = code * len(many) + own
        kinds, inverse = np.unique(code, return_inverse=True)
        found = np.empty(len(kinds), dtype=np.intp)
        for i, kind in enumerate(kinds):
            raw = []
            for many in reversed(values):
                kind, at = divmod(int(kind), len(many))
                raw.append(many[at])
            found[i] = self.places[tuple(reversed(raw))]
        return found[inverse]

    def matrix(self, batch: Any) -> Floats:
        """Return the features as numbers."""
        made: list[Floats] = []

        def add_words(ranks: Any, most: int) -> None:
            if self.model == "boosting":
                made.append(ranks.astype(float))
            else:
                made.extend((ranks == rank).astype(float) for rank in range(1, most + 1))

        add_words(np.minimum(self.groups(batch), LEVELS), min(max(self.places.values()), LEVELS))
        if self.scored:
            made.append(as_numbers(batch.column("f")))  # pyright: ignore[reportArgumentType]
        for column in self.columns:
            if column.ranks is not None:
                values, places = words_of(batch.column(column.name))
                own = np.array([column.ranks.get(value, LEVELS) for value in values])
                add_words(own[places], max([0, *column.ranks.values()]))
                continue
            numbers = as_numbers(batch.column(column.name))
            assert numbers is not None
            if self.model == "boosting":
                made.append(numbers)
                continue
            gone = np.isnan(numbers)
            made.append(np.where(gone, column.centre, numbers))
            if column.gaps:
                made.append(gone.astype(float))
        return np.column_stack(made)


def fit(sample: Any, keys: tuple[str, ...], places: dict[Any, int], log: EstimatedLog) -> Fitted:
    """Fit the models on a sample.

    Args:
        sample: an Arrow table of cells with fold and weight.
        keys: the columns that define a cell.
        places: the index of each group.
        log: the log that the sample comes from.
    """
    batch = sample.to_batches()[0] if sample.num_rows else sample
    weight = batch.column("weight").to_numpy().astype(float)
    columns = tuple(_column(batch, name, weight) for name in keys if name.startswith("x"))
    scored = log.columns.score is not None
    made = Fitted(keys, columns, places, scored, log.model, log.seed)
    matrix, fold = made.matrix(batch), batch.column("fold").to_numpy()
    accepted, positive, pending = (
        np.asarray(as_numbers(batch.column(name))) for name in ("accepted", "positive", "pending")
    )
    seen = (accepted == 1) & (pending == 0)
    models = tuple(
        tuple(
            estimator_of(
                matrix[kept],
                target[kept],
                weight[kept],
                made.words,
                log.model,
                predicts=log.count // FOLDS,
            )
            for kept, target in (((fold != k), accepted), ((fold != k) & seen, positive))
        )
        for k in range(FOLDS)
    )
    return replace(made, models=models)


def _column(batch: Any, name: str, weight: Floats) -> Column:
    numbers = as_numbers(batch.column(name))
    if numbers is not None:
        gone = np.isnan(numbers)
        known = ~gone
        centre = float(np.average(numbers[known], weights=weight[known])) if known.any() else 0.0
        return Column(name, centre=centre, gaps=bool(gone.any()))
    values, places = words_of(batch.column(name))
    counts = np.bincount(places, weight, len(values))
    order = sorted(range(len(values)), key=lambda i: (-counts[i], str(values[i])))[:LEVELS]
    return Column(name, ranks={values[i]: rank for rank, i in enumerate(order)})


def summed_schema() -> Any:
    """Return the schema of batches of sums: period, group and stratum, then the sums."""
    import pyarrow

    keys = [("t", pyarrow.string()), ("g", pyarrow.int64()), ("s", pyarrow.int64())]
    return pyarrow.schema([*keys, *((name, pyarrow.float64()) for name in Sums._fields)])


@dataclass(frozen=True)
class Prediction:
    """Predicts cells with the models of the other folds, and sums up the results."""

    fitted: Fitted
    overlap: float

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the sums of each batch."""
        for batch in batches:
            if batch.num_rows:
                yield self.batch(batch)

    def batch(self, batch: Any) -> Any:
        """Return the sums of a batch, by period, group and stratum."""
        import pyarrow

        fitted = self.fitted
        own = hashes(batch, fitted.keys, fitted.seed)
        rows = by_fold(_counts(batch), own)
        matrix, groups = fitted.matrix(batch), fitted.groups(batch)
        times, when = words_of(batch.column("t").cast(pyarrow.string()))
        a, ay, pending = (
            np.asarray(as_numbers(batch.column(n))) for n in ("accepted", "positive", "pending")
        )
        places = max(fitted.places.values()) + 1
        total = np.zeros((len(Sums._fields), len(times) * places * STRATA))
        for k, (chance, outcome) in enumerate(fitted.models):
            kept = np.flatnonzero(rows[:, k])
            if not len(kept):
                continue
            # Accepted people had a positive probability of acceptance, whatever a model predicts.
            p = np.clip(chance(matrix[kept]), 1e-6, 1.0)
            predicted, count = outcome(matrix[kept]), rows[kept, k].astype(float)
            person = Person(a[kept], ay[kept], p, predicted, pending=pending[kept], weight=count)
            code = when[kept] * places + groups[kept]
            found = added(code, len(times) * places, person, self.overlap)
            total += np.array([one.reshape(-1) for one in found])
        cell = np.flatnonzero(total[0])
        period, rest = np.divmod(cell, places * STRATA)
        group, stratum = np.divmod(rest, STRATA)
        named = [pyarrow.array([times[i] for i in period], pyarrow.string())]
        named += [pyarrow.array(x, pyarrow.int64()) for x in (group, stratum)]
        arrays = [*named, *(pyarrow.array(one[cell]) for one in total)]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=summed_schema())
