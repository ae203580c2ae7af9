"""Cells of a log that stays in its engine: counts of equal rows, streamed as Arrow batches.

Rows that are equal in all relevant columns are interchangeable, so a cell holds their number. The
fold of a row, and whether it is sampled, follow from a hash of its cell: they are the same in every
engine and for every order of the rows.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.logs.engine import collect, plain
from sellf.logs.person import Floats

BATCH = 500_000
"""The number of cells in a batch."""
FOLDS = 5
Hashes = NDArray[np.uint64]
Work = Callable[[Iterable[Any]], Iterator[Any]]
"""A function from batches of cells to smaller batches."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def over(frame: Any, work: Work, schema: Any) -> Any:
    """Apply a function to a frame's batches, in its engine if possible, and return an Arrow table.

    Args:
        frame: a lazy frame of narwhals.
        work: the function to apply to the batches.
        schema: the Arrow schema of the result.
    """
    import pyarrow

    native = frame.to_native()
    try:
        if frame.implementation.is_spark_like():
            # A frame of Spark implies that pyspark is installed.
            types = import_module("pyspark.sql.pandas.types")
            return native.mapInArrow(work, types.from_arrow_schema(schema)).toArrow().cast(schema)
        if frame.implementation.is_duckdb():
            # The name depends on the version of DuckDB.
            read = getattr(native, "to_arrow_reader", None) or native.fetch_arrow_reader
            batches: Iterable[Any] = read(BATCH)
        else:
            batches = collect(frame).to_arrow().to_batches(BATCH)
        return pyarrow.Table.from_batches(list(work(batches)), schema)
    except InputError:
        raise
    except Exception as error:
        missing = re.search(r"No module named '(\w+)", str(error))
        if frame.implementation.is_spark_like() and missing:
            raise InputError(
                f"the Python workers of Spark cannot import {missing[1]!r}, which is needed to "
                "estimate propensities where the rows are: install sellf[audit] on the workers, or "
                "set the environment variable PYSPARK_PYTHON to a Python that has it (on this "
                f"machine {sys.executable}) before Spark starts."
            ) from error
        raise InputError(f"the log cannot be read: {plain(error)}") from error


def mixed(values: Hashes) -> Hashes:
    """Return a pseudorandom number for each number (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hashes(batch: Any, names: Iterable[str], seed: int) -> Hashes:
    """Return a hash of each cell, which depends on its contents and the seed alone."""
    total = np.full(batch.num_rows, mixed(np.array([seed], dtype=np.uint64))[0], dtype=np.uint64)
    for name in names:
        numbers = as_numbers(batch.column(name))
        if numbers is None:
            own = _of_words(batch.column(name))
        else:
            own = (np.where(np.isnan(numbers), np.nan, numbers) + 0.0).view(np.uint64)
        total = mixed(total ^ mixed(own))
    return total


def as_numbers(column: Any) -> Floats | None:
    """Return a column of numbers, Booleans or dates as floats, or None for other columns.

    Missing and infinite values become NaN.
    """
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    if types.is_temporal(kind):
        column = compute.cast(compute.cast(column, pyarrow.timestamp("us")), pyarrow.int64())
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
              or types.is_decimal(kind) or types.is_null(kind)):  # fmt: skip
        return None
    values = compute.cast(column, pyarrow.float64(), safe=False)
    found = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def words_of(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values of a categorical column, and each row's index among them."""
    encoded = column.dictionary_encode()
    encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    values = encoded.dictionary.to_pylist()
    places = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return [*values, None], places.astype(np.intp)


def _of_words(column: Any) -> Hashes:
    values, places = words_of(column)
    digests = (hashlib.blake2b(str(value).encode(), digest_size=8).digest() for value in values)
    return np.array([int.from_bytes(d, "little") for d in digests], dtype=np.uint64)[places]


def by_fold(count: NDArray[np.int64], own: Hashes) -> NDArray[np.int64]:
    """Return the number of rows of each cell in each fold, as equal as possible.

    Args:
        count: the number of rows in each cell.
        own: the hash of each cell.
    """
    start = (own % np.uint64(FOLDS)).astype(np.int64)
    after = (np.arange(FOLDS) - start[:, None]) % FOLDS
    return count[:, None] // FOLDS + (after < (count % FOLDS)[:, None])


def sampled(rows: NDArray[np.int64], own: Hashes, share: float) -> NDArray[np.int64]:
    """Return the number of sampled rows of each cell and fold: their share, randomly rounded."""
    steps = np.arange(1, FOLDS + 1, dtype=np.uint64) * _GOLDEN
    chance = mixed(own[:, None] ^ steps).astype(np.float64) / 2.0**64
    return np.minimum(np.floor(rows * share + chance).astype(np.int64), rows)
