"""A world of one's own: a table of people, who turns out well, and what decisions do to people."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sellf.envs.build import Features, Rules, build
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness.checks import column as as_column
from sellf.fairness.checks import grouping, short

Columns: TypeAlias = dict[str, NDArray[Any]]
Transition: TypeAlias = Callable[[Columns, bool, bool], Columns | None]
"""Columns, accepted, good label -> the columns that change."""
Label: TypeAlias = Any
"""A column of probabilities, a function of the columns, or a fitted classifier."""

MOST_PROFILES = 500_000


def world_from_frame(
    frame: Any,
    *,
    group: str,
    label: Label,
    cost: float,
    transition: Transition | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    horizon: int = 2048,
    population: int = 4000,
    window: int = 4000,
    start: float = 1000.0,
    name: str = "custom",
) -> World:
    """Make a world from a table of people.

    Everyone that decisions can turn these people into is worked out beforehand, so `transition`
    and `label` are ordinary NumPy code, called a few times; the world itself is compiled.

    Args:
        frame: a data frame (pandas, Polars, PyArrow, ...) or a mapping of columns; a population
            is drawn from its rows.
        group: the column with the protected group.
        label: who turns out well: the name of a column with P(Y = 1), a function from columns to
            those probabilities, or a fitted scikit-learn classifier (called with a frame of the
            feature columns, or the columns it was fitted with).
        cost: what an acceptance costs; it is worth y - cost.
        transition: what a decision does: a function of (columns, accepted, positive) that returns
            the columns that change. It is called once for each of the four cases, with whole
            columns. None: nobody changes.
        categorical: feature columns to one-hot encode.
        numeric: feature columns that are numbers; networks see them standardised.
        horizon: after how many decisions an episode is cut off.
        population: how many people there are.
        window: how many decisions the disparity looks back.
        start: the resource to start with.
        name: what to call the world.

    >>> world = world_from_frame(
    ...     {"sex": ["f", "m"] * 50, "score": list(range(300, 500, 2))},
    ...     group="sex",
    ...     numeric=["score"],
    ...     label=lambda x: (x["score"] - 300) / 600,
    ...     transition=lambda x, accepted, positive: (
    ...         {"score": np.clip(x["score"] + (5 if positive else -5), 300, 850)}
    ...         if accepted
    ...         else None
    ...     ),
    ...     cost=0.3,
    ... )
    >>> world.groups, world.inputs
    (('f', 'm'), 3)
    """
    rules = Rules(cost, horizon, population, window, start)
    features = [*categorical, *numeric]
    if not features:
        raise InputError("there are no features: name some in categorical=[...] or numeric=[...].")
    given = [group, *features, *([label] if isinstance(label, str) else [])]
    if len(set(given)) < len(given):
        twice = next(item for item in given if given.count(item) > 1)
        raise InputError(f"the column {twice!r} is named twice: each has one part to play.")
    rows = _columns(frame, given, numeric)
    people, index = _distinct({key: rows[key] for key in (group, *features)})
    share = np.bincount(index, minlength=_length(people)) / len(index)
    everyone, moves = _closure(people, transition, group, categorical)
    profiles = _length(everyone)
    names, codes, offset = grouping(everyone[group])
    if len(names) < 2:
        raise InputError(f"{group} has one value only, {short(names[0])}: give two groups or more.")
    return build(
        name,
        rules,
        groups=[str(item) for item in names],
        group=codes.astype(np.int32) - offset,
        alpha=_probabilities(label, frame, everyone, rows, index, features),
        moves=moves,
        share=np.pad(share, (0, profiles - len(share))),
        features=_features(everyone, moves, share, categorical, numeric),
    )


def _columns(frame: Any, names: Sequence[str], numeric: Sequence[str]) -> Columns:
    """Return checked columns of a frame as arrays."""
    if not isinstance(frame, dict):
        import narwhals as nw

        try:
            frame = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise InputError(
                f"frame is a {type(frame).__name__}: give a data frame or a mapping of columns."
            ) from None
    present = list(frame) if isinstance(frame, dict) else frame.columns
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
                    f"{name} is named in numeric but holds {short(array[0])}: name it in "
                    "categorical."
                ) from None
        result[name] = array
    lengths = {name: len(array) for name, array in result.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns differ in length: {lengths}.")
    return result


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _distinct(columns: Columns) -> tuple[Columns, NDArray[np.intp]]:
    """Return the distinct rows, and which of them each row is."""
    numbers: dict[tuple[Any, ...], int] = {}
    lists = [values.tolist() for values in columns.values()]
    index = np.array([numbers.setdefault(row, len(numbers)) for row in zip(*lists, strict=True)])
    first = np.unique(index, return_index=True)[1]
    return {name: values[first] for name, values in columns.items()}, index


def _closure(
    people: Columns, transition: Transition | None, group: str, categorical: Sequence[str]
) -> tuple[Columns, NDArray[np.int32]]:
    """Return everyone that decisions can lead to, and who follows whom."""
    names = list(people)
    rows = list(zip(*(values.tolist() for values in people.values()), strict=True))
    if transition is None:
        alone = np.arange(len(rows), dtype=np.int32)
        return people, np.broadcast_to(alone[:, None, None], (len(rows), 2, 2)).copy()
    number = {row: i for i, row in enumerate(rows)}
    moves: list[NDArray[np.int32]] = []
    frontier = people
    while _length(frontier):
        known = len(rows)
        follows = np.empty((_length(frontier), 2, 2), np.int32)
        for accepted in (False, True):
            for positive in (False, True):
                moved = _moved(transition, frontier, accepted, positive, group, categorical, people)
                for i, row in enumerate(zip(*(moved[n].tolist() for n in names), strict=True)):
                    follows[i, int(accepted), int(positive)] = number.setdefault(row, len(number))
                    if len(number) > len(rows):
                        rows.append(row)
                if len(rows) > MOST_PROFILES:
                    raise InputError(
                        f"transition leads to more than {MOST_PROFILES:,} different people: keep "
                        "what changes within bounds (np.clip) and in steps (np.round)."
                    )
        moves.append(follows)
        frontier = {
            name: np.array([row[j] for row in rows[known:]], dtype=people[name].dtype)
            for j, name in enumerate(names)
        }
    everyone = {
        name: np.array([row[j] for row in rows], dtype=people[name].dtype)
        for j, name in enumerate(names)
    }
    return everyone, np.concatenate(moves)


def _moved(
    transition: Transition,
    frontier: Columns,
    accepted: bool,
    positive: bool,
    group: str,
    categorical: Sequence[str],
    people: Columns,
) -> Columns:
    """Return the rows after a transition, checked."""
    case = f"transition(x, accepted={accepted}, positive={positive})"
    changed = transition({key: v.copy() for key, v in frontier.items()}, accepted, positive) or {}
    if not isinstance(changed, dict):
        raise InputError(
            f"{case} returns {short(changed)}: return a dict of the columns that change."
        )
    moved = dict(frontier)
    for name, values in changed.items():
        if name == group:
            raise InputError(f"{case} changes {group!r}: a person's group stays what it is.")
        if name not in frontier:
            raise InputError(
                f"{case} returns the column {name!r}, which is no feature: the features are "
                f"{', '.join(repr(key) for key in frontier if key != group)}."
            )
        array = np.asarray(values)
        if array.shape != frontier[name].shape:
            raise InputError(
                f"{case} returns {name} with shape {array.shape} for {len(frontier[name])} "
                "people: return one value each."
            )
        if name in categorical:
            strange = set(array.tolist()) - set(people[name].tolist())
            if strange:
                example = sorted(strange, key=str)[0]
                raise InputError(
                    f"{case} leaves the feature space: {name} becomes {short(example)}, which "
                    "nobody in the frame has."
                )
        elif not np.isfinite(array.astype(np.float64)).all():
            raise InputError(f"{case} leaves the feature space: {name} is not finite for someone.")
        moved[name] = array.astype(frontier[name].dtype)
    return moved


def _probabilities(
    label: Label,
    frame: Any,
    everyone: Columns,
    rows: Columns,
    index: NDArray[np.intp],
    features: Sequence[str],
) -> NDArray[np.float64]:
    """Return P(Y = 1) of everyone that may occur."""
    profiles = _length(everyone)
    if isinstance(label, str):
        present = int(index.max()) + 1
        if profiles > present:
            raise InputError(
                f"label is the column {label!r}, which says nothing of the "
                f"{profiles - present:,} kinds of people that transition leads to and that are "
                "not in the frame: give a function of the columns or a classifier instead."
            )
        # People alike in all features share the mean of their probabilities.
        total = np.bincount(index, rows[label].astype(np.float64))
        chance = total / np.bincount(index)
    elif hasattr(label, "predict_proba"):
        wanted = list(getattr(label, "feature_names_in_", features))
        absent = [name for name in wanted if name not in everyone]
        if absent:
            raise InputError(f"the classifier wants {absent}, not among the group and features.")
        chance = np.asarray(label.predict_proba(_native(frame, everyone, wanted)))[:, 1]
    elif callable(label):
        chance = np.asarray(label({key: v.copy() for key, v in everyone.items()}), np.float64)
    else:
        raise InputError(
            f"label is {short(label)}: give a column's name, a function of the columns, or a "
            "fitted classifier with predict_proba."
        )
    if chance.shape != (profiles,):
        raise InputError(f"label gives shape {chance.shape} for {profiles} people: one each.")
    return chance


def _native(frame: Any, everyone: Columns, names: Sequence[str]) -> Any:
    """Return columns as a frame of the user's own kind, so that a classifier knows its names."""
    if isinstance(frame, dict):
        return np.column_stack([everyone[name] for name in names])
    import narwhals as nw

    backend = nw.from_native(frame, eager_only=True).implementation
    return nw.from_dict({name: everyone[name] for name in names}, backend=backend).to_native()


def _features(
    everyone: Columns,
    moves: NDArray[np.int32],
    share: NDArray[np.float64],
    categorical: Sequence[str],
    numeric: Sequence[str],
) -> Features:
    """Sort the features into those that change and those that stay, and encode them."""

    def changes(name: str) -> bool:
        return bool((everyone[name][moves] != everyone[name][:, None, None]).any())

    staying = [name for name in (*categorical, *numeric) if not changes(name)]
    moving = [name for name in (*categorical, *numeric) if name not in staying]
    fixed, row = _distinct({name: everyone[name] for name in staying} or _nothing(everyone))
    changing, state = _distinct({name: everyone[name] for name in moving} or _nothing(everyone))

    categories = {name: np.unique(everyone[name]) for name in categorical}
    for name, values in categories.items():
        if len(values) > 255:
            raise InputError(
                f"{name} has {len(values)} categories, more than 255: pool the rare ones."
            )
    kept = [name for name in categorical if name in staying]
    codes = [np.searchsorted(categories[name], fixed[name]) for name in kept]
    rows = _length(fixed)

    def standard(table: Columns, name: str) -> NDArray[np.float64]:
        here = everyone[name][: len(share)]
        mean = float(share @ here)
        deviation = float(np.sqrt(share @ (here - mean) ** 2)) or 1.0
        return (table[name] - mean) / deviation

    encoded: list[NDArray[np.float64]] = []
    changing_names: list[str] = []
    for name in moving:
        if name in numeric:
            encoded.append(standard(changing, name)[:, None])
            changing_names.append(name)
        else:
            encoded.append((changing[name][:, None] == categories[name][None, :]).astype(float))
            changing_names += [f"{name} = {value}" for value in categories[name]]
    numbers = [standard(fixed, name) for name in numeric if name in staying]
    return Features(
        fixed=row,
        codes=np.stack(codes, axis=1).astype(np.uint8) if codes else None,
        categories={name: [str(value) for value in categories[name]] for name in kept},
        numbers=np.stack(numbers, axis=1) if numbers else np.zeros((rows, 0)),
        number_names=[name for name in numeric if name in staying],
        changing=state,
        changes=np.concatenate([np.zeros((_length(changing), 0)), *encoded], axis=1),
        changing_names=changing_names,
    )


def _nothing(everyone: Columns) -> Columns:
    return {"": np.zeros(_length(everyone), np.int8)}
