"""Conversion of columns to NumPy arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sellf.errors import InputError
from sellf.logs.columns import Columns
from sellf.logs.engine import collect
from sellf.logs.names import LONG, Values


def fetch(frame: Any, columns: Columns) -> dict[str, Values]:
    """Load the named columns into memory."""
    return arrays(collect(frame.select(*columns.named())), columns)


def arrays(frame: Any, columns: Columns) -> dict[str, Values]:
    """Return the named columns of a frame in memory."""
    return {name: array(name, frame[name]) for name in columns.named()}


def array(name: str, values: Any) -> Values:
    """Return one column as a NumPy array; of dtype object if its values have several types."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values
    if not isinstance(values, np.ndarray) and hasattr(values, "to_numpy"):
        try:
            words = _words(values)
            made = np.asarray(values.to_numpy()) if words is None else words
        except ValueError as error:  # from Arrow, for a value that no Python type can hold
            raise InputError(f"column {name!r} cannot be read: {error}.") from None
        if made.ndim == 1:
            return made
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise InputError(f"column {name!r} is {values!r}: give one value per person.")
    items = list(values)
    kinds = {type(item) for item in items}
    if len(kinds) == 1 and kinds <= {bool, int, float} and all(map(_moderate, items)):
        return np.array(items)
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def _words(values: Any) -> Values | None:
    """Return a column of words from Arrow, with one object for all rows that hold the same word.

    Separate objects for millions of rows take most of the time and of the memory. None for other
    columns.
    """
    native = values.to_native() if hasattr(values, "to_native") else values
    if type(native).__module__.partition(".")[0] != "pyarrow" or len(native) < LONG:
        return None
    import pyarrow as pa

    if not isinstance(native, pa.ChunkedArray) or not pa.types.is_string(native.type):
        return None
    coded: Any = native.combine_chunks().dictionary_encode("encode")
    if not isinstance(coded, pa.DictionaryArray):
        return None
    distinct = np.empty(len(coded.dictionary), dtype=object)
    distinct[:] = coded.dictionary.to_pylist()
    return distinct[coded.indices.to_numpy()]


def _moderate(item: Any) -> bool:
    return not isinstance(item, int) or -(2**63) <= item < 2**63
