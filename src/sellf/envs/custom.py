"""User-defined worlds: a table of people, a label law, and a transition rule."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sellf.envs.build import Actions, Features, Rules, build
from sellf.envs.frames import read
from sellf.envs.table import TableWorld
from sellf.envs.transitions import (
    DRAWS,
    MOST_DRAWS,
    Columns,
    Successors,
    Transition,
    closure,
    distinct,
    length,
)
from sellf.errors import InputError
from sellf.fairness.checks import grouping, short, whole

Label: TypeAlias = Any
"""A column of probabilities, a function of the columns, or a fitted classifier."""


def world_from_frame(
    frame: Any,
    *,
    group: str,
    label: Label,
    cost: float | None = None,
    transition: Callable[..., Any] | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    horizon: int = 2048,
    population: int = 4000,
    window: int = 4000,
    start: float = 1000.0,
    name: str = "custom",
    actions: Actions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> TableWorld:
    """Make a world from a table of people.

    All profiles that decisions can lead to are computed beforehand, so `transition` and `label` are
    ordinary NumPy code that is called a few times; the world itself is compiled. For continuous or
    unbounded features, see `sellf.world_from_functions`.

    Args:
        frame: a data frame (pandas, Polars, PyArrow, ...) or a mapping of columns; a population
            is drawn from its rows.
        group: the column with the protected group.
        label: the label law: the name of a column with P(Y = 1), a function from columns to these
            probabilities, or a fitted scikit-learn classifier (called with a frame of the feature
            columns, or of the columns it was fitted with).
        cost: the cost of an acceptance, which is worth y - cost.
        transition: the effect of a decision: a function of (columns, accepted, positive) that
            returns the columns that change. It is called with whole columns, for each of the four
            cases. A random transition either returns a list of pairs (probability, columns that
            change), where a probability is a number or a column, and the law is exact; or it takes
            a fourth argument, a NumPy generator `rng`, from which it draws one value per person,
            and the law is given by the frequencies among `draws` draws for each kind of person.
            With None, nobody changes.
        categorical: feature columns to one-hot encode.
        numeric: feature columns that are numbers; networks receive them standardised.
        horizon: the number of decisions after which an episode is truncated.
        population: the number of people.
        window: the number of latest decisions that the disparity is computed from.
        start: the initial resource.
        name: the name of the world.
        actions: the actions, instead of rejecting and accepting at a cost; `transition` then
            receives the action's name in place of `accepted`.
        draws: the number of draws from a transition with `rng`.
        seed: the seed of these draws.

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
    if (cost is None) == (actions is None):
        raise InputError("give cost=, what an acceptance costs, or actions=, and not both.")
    rules = Rules(1.0 if cost is None else cost, horizon, population, window, start)
    draws = whole("draws", draws, low=2, high=MOST_DRAWS)
    features = [*categorical, *numeric]
    if not features:
        raise InputError("there are no features: name some in categorical=[...] or numeric=[...].")
    given = [group, *features, *([label] if isinstance(label, str) else [])]
    if len(set(given)) < len(given):
        twice = next(item for item in given if given.count(item) > 1)
        raise InputError(f"the column {twice!r} is named twice: give each column one role.")
    strange = [name for name in given if not isinstance(name, str)]
    if strange:
        raise InputError(f"the column {strange[0]!r} is not named by a text: rename it.")
    rows = read(frame, given, numeric)
    people, index = distinct({key: rows[key] for key in (group, *features)})
    share = np.bincount(index, minlength=length(people)) / len(index)
    named = (False, True) if actions is None else actions.names
    asked = Transition(transition, group, tuple(categorical), named, draws, seed)
    everyone, follows = closure(people, asked)
    profiles = length(everyone)
    names, codes, offset = grouping(everyone[group])
    if len({str(item) for item in names}) < len(names):
        raise InputError(f"{group} has different values of one name, as 1 and '1': rename them.")
    if len(names) < 2:
        raise InputError(f"{group} has one value only, {short(names[0])}: give two groups or more.")
    return build(
        name,
        rules,
        groups=[str(item) for item in names],
        group=codes.astype(np.int32) - offset,
        alpha=_probabilities(label, frame, everyone, rows, index, features),
        moves=follows.moves,
        chances=follows.chances,
        share=np.pad(share, (0, profiles - len(share))),
        features=_features(everyone, follows, share, categorical, numeric),
        actions=actions,
    )


def _probabilities(
    label: Label,
    frame: Any,
    everyone: Columns,
    rows: Columns,
    index: NDArray[np.intp],
    features: Sequence[str],
) -> NDArray[np.float64]:
    """Return P(Y = 1) of all profiles that can occur."""
    profiles = length(everyone)
    if isinstance(label, str):
        present = int(index.max()) + 1
        if profiles > present:
            raise InputError(
                f"label is the column {label!r}, which has no value for the "
                f"{profiles - present:,} kinds of people that transition leads to and that are "
                "not in the frame: give a function of the columns or a classifier instead."
            )
        # People with equal features get the mean of their probabilities.
        total = np.bincount(index, rows[label].astype(np.float64))
        chance = total / np.bincount(index)
    elif hasattr(label, "predict_proba"):
        wanted = list(getattr(label, "feature_names_in_", features))
        absent = [name for name in wanted if name not in everyone]
        if absent:
            raise InputError(f"the classifier needs {absent}, not among the group and features.")
        chance = np.asarray(label.predict_proba(_native(frame, everyone, wanted)))[:, 1]
    elif callable(label):
        chance = np.asarray(label({key: v.copy() for key, v in everyone.items()}), np.float64)
    else:
        raise InputError(
            f"label is {short(label)}: give a column's name, a function of the columns, or a "
            "fitted classifier with predict_proba."
        )
    if chance.shape != (profiles,):
        raise InputError(f"label gives shape {chance.shape} for {profiles} people: give one each.")
    return chance


def _native(frame: Any, everyone: Columns, names: Sequence[str]) -> Any:
    """Return columns as a frame of the user's own type, so a classifier finds its column names."""
    if isinstance(frame, dict):
        return np.column_stack([everyone[name] for name in names])
    import narwhals as nw

    backend = nw.from_native(frame, eager_only=True).implementation
    return nw.from_dict({name: everyone[name] for name in names}, backend=backend).to_native()


def _features(
    everyone: Columns,
    follows: Successors,
    share: NDArray[np.float64],
    categorical: Sequence[str],
    numeric: Sequence[str],
) -> Features:
    """Split the features into those that change and those that do not, and encode them."""
    possible = follows.moves.reshape(length(everyone), -1)

    def changes(name: str) -> bool:
        return bool((everyone[name][possible] != everyone[name][:, None]).any())

    staying = [name for name in (*categorical, *numeric) if not changes(name)]
    moving = [name for name in (*categorical, *numeric) if name not in staying]
    fixed, row = distinct({name: everyone[name] for name in staying} or _nothing(everyone))
    changing, state = distinct({name: everyone[name] for name in moving} or _nothing(everyone))

    categories = {name: _different(name, everyone[name]) for name in categorical}
    for name, values in categories.items():
        if len(values) > 255:
            raise InputError(
                f"{name} has {len(values)} categories, more than 255: pool the rare ones."
            )
    kept = [name for name in categorical if name in staying]
    codes = [np.searchsorted(categories[name], fixed[name]) for name in kept]
    rows = length(fixed)

    def scale(name: str) -> tuple[float, float]:
        here = everyone[name][: len(share)]
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(share @ here)
            deviation = float(np.sqrt(share @ (here - mean) ** 2)) or 1.0
        if not np.isfinite([mean, deviation]).all():
            raise InputError(f"{name} holds numbers too large to standardise: divide them.")
        return mean, deviation

    scales = {name: scale(name) for name in numeric}

    def standard(table: Columns, name: str) -> NDArray[np.float64]:
        mean, deviation = scales[name]
        return (table[name] - mean) / deviation

    encoded: list[NDArray[np.float64]] = []
    changing_names: list[str] = []
    raw: list[tuple[str, str | None]] = []
    for name in moving:
        if name in numeric:
            encoded.append(standard(changing, name)[:, None])
            changing_names.append(name)
        else:
            encoded.append((changing[name][:, None] == categories[name][None, :]).astype(float))
            changing_names += [f"{name} = {value}" for value in categories[name]]
        raw += [(name, None)] if name in numeric else [(name, str(v)) for v in categories[name]]
    numbers = [standard(fixed, name) for name in numeric if name in staying]
    return Features(
        fixed=row,
        codes=np.stack(codes, axis=1).astype(np.uint8) if codes else None,
        categories={name: [str(value) for value in categories[name]] for name in kept},
        numbers=np.stack(numbers, axis=1) if numbers else np.zeros((rows, 0)),
        number_names=[name for name in numeric if name in staying],
        changing=state,
        changes=np.concatenate([np.zeros((length(changing), 0)), *encoded], axis=1),
        changing_names=changing_names,
        changing_raw=raw,
        scales=scales,
    )


def _different(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values of a column, whose names must differ too."""
    try:
        found = np.unique(values)
    except TypeError:
        raise InputError(f"{name} holds values of several types: give text or numbers.") from None
    named = [str(value) for value in found]
    if len(set(named)) < len(named):
        twice = next(text for text in named if named.count(text) > 1)
        raise InputError(f"{name} has several values that read {twice!r}: give them one type.")
    return found


def _nothing(everyone: Columns) -> Columns:
    return {"": np.zeros(length(everyone), np.int8)}
