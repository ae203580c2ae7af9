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

IS = " = "
"""Separates a feature from its category in the name of a one-hot input."""


def is_frame(given: Any) -> bool:
    """Return whether this is a mapping of columns or a data frame, and not an array."""
    return isinstance(given, Mapping) or hasattr(given, "columns")


def names_of(frame: Any) -> list[str]:
    """Return the names of the columns of a mapping or a data frame."""
    return list(frame) if isinstance(frame, Mapping) else list(_narwhal(frame).columns)


def read(frame: Any, names: Sequence[str], numeric: Sequence[str]) -> Columns:
    """Return columns of a frame as checked arrays."""
    if not isinstance(frame, Mapping):
        frame = _narwhal(frame)
    present = list(frame) if isinstance(frame, Mapping) else frame.columns
    result: Columns = {}
    for name in names:
        if name not in present:
            near = get_close_matches(str(name), map(str, present), n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            listed = ", ".join(map(repr, present[:20]))
            raise InputError(f"there is no column {name!r}: {hint}The columns are {listed}.")
        values = frame[name]
        array = as_column(name, values.to_numpy() if hasattr(values, "to_numpy") else values)
        missing = np.array([item is None or item != item for item in array.tolist()])
        if missing.any():
            raise InputError(
                f"{name} is missing at row {int(np.argmax(missing))}: fill it in or leave the "
                "row out."
            )
        if name in numeric:
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                raise InputError(
                    f"{name} must be numeric but holds {short(array[0])}: give numbers, or name "
                    "it in categorical where the world is made."
                ) from None
        result[name] = array
    lengths = {name: len(array) for name, array in result.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns differ in length: {lengths}.")
    return result


def _narwhal(frame: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"frame is a {type(frame).__name__}: give a data frame or a mapping of columns."
        ) from None


def encode(space: Space, frame: Any) -> NDArray[np.float32]:
    """Return the network inputs of people, without those of the group, from raw columns.

    A number is standardised as in the world; a category becomes one input per possible value.

    Args:
        space: the space whose inputs are wanted.
        frame: a data frame or a mapping of columns; columns that are no feature are ignored.
    """
    if space.scales is None:
        raise InputError(
            "the agent was saved by an earlier version, without the scales of its numeric "
            "features: give features as an array that is encoded as world.columns, or train again."
        )
    present = set(names_of(frame))
    inputs = space.columns[: -len(space.groups)]
    of = {name: _feature(name, present) for name in inputs}
    numeric = [name for name, (feature, category) in of.items() if category is None]
    rows = read(frame, list(dict.fromkeys(feature for feature, _ in of.values())), numeric)
    encoded: list[NDArray[np.float64]] = []
    for name, (mean, deviation) in zip(inputs, space.scales, strict=False):
        feature, category = of[name]
        if category is None:
            encoded.append((rows[feature] - mean) / deviation)
        else:
            encoded.append((rows[feature].astype(str) == category).astype(np.float64))
    result = np.stack(encoded, axis=1)
    _check_categories(of, rows, result)
    if not np.isfinite(result).all():
        row, place = np.argwhere(~np.isfinite(result))[0]
        raise InputError(f"{inputs[place]} is not finite at row {row}: give a number.")
    return result.astype(np.float32)


def _feature(name: str, present: set[str]) -> tuple[str, str | None]:
    """Return the raw column of an input, and its category if it is one input of several."""
    if name not in present:
        for at in range(len(name)):
            if name.startswith(IS, at) and name[:at] in present:
                return name[:at], name[at + len(IS) :]
        if IS in name:
            return name.partition(IS)[0], name.partition(IS)[2]
    return name, None


def _check_categories(
    of: dict[str, tuple[str, str | None]], rows: Columns, encoded: NDArray[np.float64]
) -> None:
    """Refuse a category that the world does not have, for which all inputs would be 0."""
    for feature in rows:
        places = [i for i, (own, category) in enumerate(of.values()) if own == feature and category]
        unknown = places and encoded[:, places].sum(axis=1) == 0
        if places and np.any(unknown):
            row = int(np.argmax(unknown))
            known = ", ".join(repr(list(of.values())[i][1]) for i in places[:20])
            raise InputError(
                f"{feature} is {short(rows[feature][row])} at row {row}: it is one of {known}."
            )
