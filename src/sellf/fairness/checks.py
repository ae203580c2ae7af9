"""Input checks whose messages say what was given, what was expected and what to type instead."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError

DIRECT_RANGE = 4096
"""Integer groups spread over at most this many values are counted without sorting."""


class UndefinedUtilityWarning(RuntimeWarning):
    """A group has nobody in the notion's denominator, so its utility is undefined."""


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse a value that is not allowed, and suggest the closest one that is."""
    if isinstance(value, str) and value in allowed:
        return
    near = get_close_matches(str(value).lower(), allowed, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"{name} is {short(value)}: {hint}It is one of {', '.join(map(repr, allowed))}."
    )


def number(
    name: str, value: Any, *, low: float, high: float = np.inf, low_open: bool = False
) -> float:
    """Return one finite number within bounds."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {short(value)}: give one number.") from None
    above = result > low if low_open else result >= low
    if not (above and result <= high and np.isfinite(result)):
        ends = f"above {low:g}" if low_open else f"at least {low:g}"
        raise InputError(
            f"{name} is {result:g}: it must be {ends}"
            + (f" and at most {high:g}." if np.isfinite(high) else " and finite.")
        )
    return result


def whole(name: str, value: Any, *, low: int, high: int) -> int:
    """Return a whole number within bounds: 2 or 2.0, but not 2.5, "2" or True."""
    given = value
    if isinstance(value, float | np.floating) and np.isfinite(value) and value % 1 == 0:
        value = int(value)
    right = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not right or not low <= value <= high:
        raise InputError(f"{name} is {short(given)}: give a whole number from {low:,} to {high:,}.")
    return int(value)


SMALLEST = 1e-300
"""Smallest error probability; smaller ones underflow when they are divided between groups."""


def chance_of_error(value: Any, name: str = "delta") -> float:
    """Return the error probability of an interval, at most 0.5."""
    result = number(name, value, low=0, high=0.5, low_open=True)
    return result if result >= SMALLEST else number(name, result, low=SMALLEST, high=0.5)


SEEDS = 2**32
"""Number of distinct seeds: JAX keeps 32 bits, so a larger seed would be equal to another one."""


def seed(name: str, value: Any) -> int:
    """Return a seed; refuse one that JAX would truncate to another seed."""
    return whole(name, value, low=0, high=SEEDS - 1)


def short(value: Any) -> str:
    """Return the repr of a value as a Python value, not as a NumPy one; truncated if it is long."""
    value = value.item() if isinstance(value, np.generic) else value
    # Python refuses to convert an integer of more than a few thousand digits to a string.
    large = isinstance(value, int) and value.bit_length() > 300
    text = "a number of hundreds of digits" if large else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def column(name: str, values: Any) -> NDArray[Any]:
    """Return one-dimensional, non-empty data as a NumPy array, without copying if possible."""
    if values is None:
        raise InputError(f"{name} is missing: give one value per person.")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)
    if not hasattr(values, "__array__") and not isinstance(values, Iterable):
        raise InputError(f"{name} is {short(values)}: give a sequence with one value per person.")
    if isinstance(values, str | bytes | dict | set):
        raise InputError(
            f"{name} is a {type(values).__name__}: give a list, an array or a column of a frame."
        )
    array = _as_array(name, values)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}: give one value per person, shape (n,).")
    if not len(array):
        raise InputError(f"{name} is empty: there is nobody to compare.")
    return array


def _as_array(name: str, values: Any) -> NDArray[Any]:
    if hasattr(values, "__array__"):
        return np.asarray(values)
    items = list(values)
    # Tuples, or strings mixed with numbers, must stay one Python object per person: NumPy would
    # turn the former into a two-dimensional array and the latter into strings.
    kinds = {type(item) for item in items}
    if tuple in kinds or (str in kinds and len(kinds) > 1):
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array
    try:
        return np.asarray(items)
    except ValueError:
        raise InputError(
            f"{name} holds lists of unequal length: give one value per person."
        ) from None


def numeric(name: str, values: Any) -> NDArray[Any]:
    """Return a column of numbers; None becomes NaN."""
    array = column(name, values)
    if array.dtype.kind in "biuf":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        row = next(i for i, item in enumerate(array) if not _is_number(item))
        raise InputError(
            f"{name} holds {short(array[row])} at row {row}: give numbers (0 or 1, "
            "or a probability for a prediction)."
        ) from None


def _is_number(item: Any) -> bool:
    try:
        float(item if item is not None else "nan")
    except (TypeError, ValueError):
        return False
    return True


def same_length(columns: dict[str, NDArray[Any] | None]) -> int:
    """Return the common length of the columns; refuse unequal lengths."""
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"unequal lengths: {given}. Give one value per person in each.")
    return next(iter(lengths.values()))


def refuse_row(name: str, values: NDArray[Any], bad: NDArray[np.bool_], expected: str) -> NoReturn:
    """Raise for the first bad row of a column."""
    row = int(np.flatnonzero(bad)[0])
    more = int(np.count_nonzero(bad)) - 1
    others = f" ({more:,} more like it)" if more else ""
    raise InputError(f"{name} is {values[row]!s} at row {row}{others}: {expected}")


class Grouping(NamedTuple):
    """Groups as whole numbers: the person at row j belongs to `names[codes[j] - offset]`."""

    names: list[Any]
    codes: NDArray[np.integer[Any]]
    offset: int


def grouping(group: Any) -> Grouping:
    """Number the groups in sorted order; some of the names may have no rows."""
    values = column("group", group)
    if values.dtype.kind == "b":
        return Grouping([False, True], values.view(np.uint8), 0)
    if values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < DIRECT_RANGE:
            return Grouping(list(range(low, high + 1)), values, low)
    if values.dtype.kind == "O":
        return _grouping_of_objects(values)
    if values.dtype.kind in "fM":
        _refuse_missing(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values))
    names, codes = np.unique(values, return_inverse=True)
    return Grouping(names.tolist(), codes, 0)


def _grouping_of_objects(values: NDArray[np.object_]) -> Grouping:
    numbers: dict[Any, int] = {}
    try:
        codes = np.fromiter(
            (numbers.setdefault(item, len(numbers)) for item in values), np.intp, len(values)
        )
    except TypeError:
        row = next(i for i, item in enumerate(values) if not _hashable(item))
        raise InputError(
            f"group is {short(values[row])} at row {row}: a group's name must be hashable, "
            "for example a word, a number or a tuple of them."
        ) from None
    # NaN and None both mean "not known", and NaN is not even equal to itself.
    missing = np.array([name is None or name != name for name in numbers], dtype=bool)
    _refuse_missing(missing[codes])
    names = sorted_names(numbers)
    place = {name: i for i, name in enumerate(names)}
    order = np.array([place[name] for name in numbers], dtype=np.intp)
    return Grouping(names, order[codes], 0)


def sorted_names(names: Iterable[Any]) -> list[Any]:
    """Sort group names; names of different types are sorted by type first."""
    names = list(names)
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def _hashable(item: Any) -> bool:
    try:
        hash(item)
    except TypeError:
        return False
    return True


def _refuse_missing(missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise InputError(
            f"group is missing in {int(missing.sum()):,} rows (the first is row "
            f"{int(np.flatnonzero(missing)[0])}): leave those rows out, or name the group they "
            "belong to, for example 'unknown'."
        )


def per_group(columns: dict[str, Any]) -> tuple[list[Any], dict[str, NDArray[np.float64]]]:
    """Return the groups' names and each column's numbers, one per group.

    A column is a mapping from group to number, or a sequence in the sorted order of the groups.
    """
    keyed = {name: sorted_names(v) for name, v in columns.items() if isinstance(v, Mapping)}
    names = next(iter(keyed.values()), None)
    for name, keys in keyed.items():
        if keys != names:
            raise InputError(f"{name} has the groups {keys}, another argument has {names}.")
    arrays: dict[str, NDArray[np.float64]] = {}
    for name, values in columns.items():
        numbers = [values[key] for key in keyed[name]] if name in keyed else values
        try:
            arrays[name] = np.asarray(numbers, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} is {short(values)}: give one number per group.") from None
        if arrays[name].ndim != 1 or len(arrays[name]) < 2:
            raise InputError(
                f"{name} has shape {arrays[name].shape}: give one number per group, for two "
                "groups or more."
            )
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"unequal numbers of groups: {given}.")
    return names or list(range(next(iter(lengths.values())))), arrays


def within(name: str, values: NDArray[Any], low: float, high: float) -> None:
    """Refuse per-group numbers if any of them is NaN or outside [low, high]."""
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        ends = f"at least {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise InputError(f"{name} is {values[bad][0]:g} for one group: it must be {ends}.")
