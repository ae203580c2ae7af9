"""People as tables of raw columns: reading them, and encoding them as network inputs."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.envs.space import Space
from sellf.envs.transitions import Columns
from sellf.errors import InputError
from sellf.fairness.checks import column as as_column
from sellf.fairness.checks import short


def is_frame(given: Any) -> bool:
    """Return whether this is a mapping of columns or a data frame, and not an array."""
    return isinstance(given, Mapping) or hasattr(given, "columns")


def names_of(frame: Any) -> list[Any]:
    """Return the names of the columns of a mapping or a data frame."""
    return list(frame) if isinstance(frame, Mapping) else list(_narwhal(frame).columns)


def read(frame: Any, names: Sequence[str], numeric: Sequence[str]) -> Columns:
    """Return columns of a frame as checked arrays."""
    frame = frame if isinstance(frame, Mapping) else _narwhal(frame)
    present = list(frame) if isinstance(frame, Mapping) else frame.columns
    result: Columns = {}
    for name in names:
        if name not in present:
            near = get_close_matches(str(name), map(str, present), n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            listed = ", ".join(map(repr, present[:20])) or "none"
            raise InputError(f"there is no column {name!r}: {hint}The columns are {listed}.")
        array = _array(name, frame[name])
        missing = np.array([is_missing(item) for item in array.tolist()])
        if missing.any():
            raise InputError(
                f"{name} is missing at row {int(np.argmax(missing))}: fill it in or leave the "
                "row out."
            )
        result[name] = _numbers(name, array) if name in numeric else array
    lengths = {name: len(array) for name, array in result.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns differ in length: {lengths}.")
    return result


def is_missing(item: Any) -> bool:
    """Return whether this is None, NaN, NaT or another value that differs from itself."""
    if item is None:
        return True
    try:
        return bool(item != item)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array has several
        return False


def _array(name: str, values: Any) -> NDArray[Any]:
    """Return a column as an array, in which missing values stay missing."""
    if hasattr(values, "to_pylist"):  # a column of PyArrow in a mapping
        return as_column(name, values.to_pylist())
    if isinstance(values, np.ma.MaskedArray):
        return as_column(name, values.tolist())  # None where it is masked
    if hasattr(values, "is_null") and hasattr(values, "to_list") and values.is_null().any():
        # As a list: a missing value of an Arrow dictionary becomes the last category in an array.
        return as_column(name, values.to_list())
    return as_column(name, values.to_numpy() if hasattr(values, "to_numpy") else values)


def _numbers(name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    if array.dtype.kind in "mM":
        raise InputError(
            f"{name} must be numeric but holds dates: give a number, such as the days since a day."
        )
    try:
        if array.dtype.kind == "c":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        strange = next((item for item in array.tolist() if not _is_number(item)), array[0])
        raise InputError(
            f"{name} must be numeric but holds {short(strange)}: give numbers, or name it in "
            "categorical where the world is made."
        ) from None


def _is_number(item: Any) -> bool:
    try:
        float(item)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _narwhal(frame: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"{short(frame)} is not a table of people: give a data frame (pandas, "
            "Polars, PyArrow) or a mapping of columns."
        ) from None
    except nw.exceptions.NarwhalsError as error:
        raise InputError(f"the data frame cannot be read: {error}") from None


def encode(space: Space, frame: Any) -> NDArray[np.float32]:
    """Return the network inputs of people, without those of the group, from raw columns.

    A number is standardised as in the world; a category becomes one input per possible value.

    Args:
        space: the space whose inputs are wanted.
        frame: a data frame or a mapping of columns; columns that are no feature are ignored.
    """
    if space.raw is None:
        raise InputError(
            "the agent was saved by an earlier version, without the names of its raw columns: give "
            "features as an array that is encoded as world.columns, or train again."
        )
    numeric = [raw.feature for raw in space.raw if raw.category is None]
    rows = read(frame, list(dict.fromkeys(raw.feature for raw in space.raw)), numeric)
    known: dict[str, list[str]] = {}
    for raw in space.raw:
        if raw.category is not None:
            known.setdefault(raw.feature, []).append(raw.category)
    chosen = {name: _categories(name, rows[name], texts) for name, texts in known.items()}
    with np.errstate(over="ignore"):
        encoded = [
            (rows[raw.feature] - raw.mean) / raw.deviation
            if raw.category is None
            else chosen[raw.feature] == known[raw.feature].index(raw.category)
            for raw in space.raw
        ]
        result = np.stack(encoded, axis=1).astype(np.float32)
    if not np.isfinite(result).all():
        row, place = np.argwhere(~np.isfinite(result))[0]
        raise InputError(
            f"{space.raw[place].feature} is {short(rows[space.raw[place].feature][row])} at row "
            f"{row}: give a finite number of ordinary size."
        )
    return result


def _categories(name: str, values: NDArray[Any], known: list[str]) -> NDArray[np.int64]:
    """Return each value's position among the known categories.

    Numbers are compared as numbers where texts differ: 2.0 is the category 2.
    """
    place = {text: i for i, text in enumerate(known)}
    numbers = {_as_number(text): i for text, i in place.items() if _as_number(text) is not None}
    alone = len(numbers) == sum(_as_number(text) is not None for text in known)
    found = np.empty(len(values), np.int64)
    for row, value in enumerate(values.tolist()):
        at = place.get(str(value))
        if at is None and alone and not isinstance(value, str | bytes | bool):
            at = numbers.get(_as_number(value))
        if at is None:
            listed = ", ".join(map(repr, known[:20]))
            raise InputError(f"{name} is {short(value)} at row {row}: it is one of {listed}.")
        found[row] = at
    return found


def _as_number(value: Any) -> float | None:
    return float(value) if _is_number(value) else None
