"""Conversion of a user's transition rule to a table of all profiles that decisions can lead to.

A rule is a function of whole columns. A random rule either returns all possible changes with their
probabilities, or draws from a generator that it receives as an argument. A rule that draws from a
generator of its own is refused, as a single draw would be fixed in the table.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sellf.errors import InputError
from sellf.fairness.checks import short

Columns: TypeAlias = dict[str, NDArray[Any]]
MOST_PROFILES = 500_000
MOST_SUCCESSORS = 20_000_000
"""Largest number of entries of a table of successors."""
DRAWS = 10_000
"""Number of draws from a transition with a generator, for each kind of person."""
MOST_DRAWS = 1_000_000
AT_ONCE = 500_000
"""Number of rows per call of a transition that is drawn many times."""
HOW = (
    "take the generator as a fourth argument, def transition(people, action, outcome, rng), and "
    "draw from it: rng.normal(size=len(people[...]))."
)


@dataclass(frozen=True)
class Transition:
    """A user's rule, and the arguments for calling it."""

    function: Callable[..., Any] | None
    """Maps columns, action and label (and a generator) to the columns that change."""
    group: str
    categorical: tuple[str, ...]
    actions: tuple[Any, ...]
    """Values that the function receives for the actions."""
    draws: int
    seed: int

    def takes_generator(self) -> bool:
        """Return whether the function takes a generator."""
        try:
            parameters = inspect.signature(self.function or print).parameters
        except (TypeError, ValueError):
            return False
        needed = [p for p in parameters.values() if p.default is p.empty]
        return "rng" in parameters or sum(p.kind not in _CATCH_ALL for p in needed) > 3


_CATCH_ALL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Successors(NamedTuple):
    """Successors of each profile, by action and outcome."""

    moves: NDArray[np.int32]
    """Next profiles, (profiles, actions, 2), with another axis if there are several."""
    chances: NDArray[np.float64] | None
    """Probabilities of the successors, if there are several."""


class Branch(NamedTuple):
    """Possible transitions of some people: their indices, new columns and probabilities."""

    owner: NDArray[np.intp]
    columns: Columns
    weight: NDArray[np.float64]


@dataclass
class _Known:
    """All profiles found so far, and their successors."""

    names: list[str]
    rows: list[tuple[Any, ...]]
    number: dict[tuple[Any, ...], int] = field(init=False)
    found: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = field(
        default_factory=list
    )
    """Case, profiles, successors and probabilities."""

    def __post_init__(self) -> None:
        self.number = {row: i for i, row in enumerate(self.rows)}

    def add(self, case: int, first: int, branch: Branch) -> None:
        """Add possible transitions of some of the newest profiles."""
        follows = np.empty(len(branch.owner), np.int64)
        lists = (branch.columns[name].tolist() for name in self.names)
        for i, row in enumerate(zip(*lists, strict=True)):
            follows[i] = self.number.setdefault(row, len(self.number))
            if len(self.number) > len(self.rows):
                self.rows.append(row)
        if len(self.rows) > MOST_PROFILES:
            raise InputError(
                f"transition leads to more than {MOST_PROFILES:,} different people: keep what "
                "changes within bounds (np.clip) and in steps (np.round), or give JAX functions to "
                "sellf.world_from_functions, where features may be continuous."
            )
        self.found.append((case, first + branch.owner, follows, branch.weight))

    def columns(self, people: Columns, since: int = 0) -> Columns:
        """Return the profiles found since a given number as columns."""
        return {
            name: np.array([row[j] for row in self.rows[since:]], dtype=people[name].dtype)
            for j, name in enumerate(self.names)
        }


def length(columns: Columns) -> int:
    """Return the number of rows."""
    return len(next(iter(columns.values())))


def distinct(columns: Columns) -> tuple[Columns, NDArray[np.intp]]:
    """Return the distinct rows, and the index of each row among them."""
    numbers: dict[tuple[Any, ...], int] = {}
    lists = [values.tolist() for values in columns.values()]
    index = np.array([numbers.setdefault(row, len(numbers)) for row in zip(*lists, strict=True)])
    first = np.unique(index, return_index=True)[1]
    return {name: values[first] for name, values in columns.items()}, index


def closure(people: Columns, asked: Transition) -> tuple[Columns, Successors]:
    """Return all profiles that decisions can lead to, and their successors."""
    cases = [(action, positive) for action in asked.actions for positive in (False, True)]
    if asked.function is None:
        alone = np.arange(length(people), dtype=np.int32)
        shape = (len(alone), len(asked.actions), 2)
        return people, Successors(np.broadcast_to(alone[:, None, None], shape).copy(), None)
    lists = (values.tolist() for values in people.values())
    known = _Known(list(people), list(zip(*lists, strict=True)))
    frontier, first = people, 0
    chance = asked.takes_generator()
    rng = np.random.default_rng(asked.seed)
    for action, positive in cases:
        _refuse_hidden_chance(asked, people, action, positive, chance)
    while length(frontier):
        since = len(known.rows)
        for case, (action, positive) in enumerate(cases):
            ask = _drawn if chance else _stated
            for branch in ask(asked, frontier, action, positive, people, rng):
                known.add(case, first, branch)
        first, frontier = since, known.columns(people, since)
    return known.columns(people), _table(known, len(asked.actions))


def _stated(
    asked: Transition,
    frontier: Columns,
    action: Any,
    positive: bool,
    people: Columns,
    rng: np.random.Generator,
) -> Iterator[Branch]:
    """Yield the transitions of a rule without a generator: one, or several with probabilities."""
    said = _call(asked, frontier, action, positive)
    case, rows = _case(asked, action, positive), length(frontier)
    everyone = np.arange(rows)
    if not isinstance(said, list):
        yield Branch(everyone, _checked(asked, case, frontier, said, people), np.ones(rows))
        return
    pairs = [pair for pair in said if _pair(pair)]
    if len(pairs) < len(said) or not pairs:
        raise InputError(
            f"{case} returns {short(said)}: for several possible changes, return a list of "
            "pairs, [(0.8, {...}), (0.2, {...})]: a probability and the columns that change."
        )
    weights = []
    for probability, _ in pairs:
        weight = np.asarray(probability, np.float64)
        if weight.shape not in ((), (rows,)):
            raise InputError(
                f"{case} returns a probability with shape {weight.shape} for {rows} people: give "
                "a number, or one each."
            )
        weights.append(np.broadcast_to(weight, (rows,)))
    total = np.sum(weights, axis=0)
    if not (np.stack(weights) >= 0).all() or not (abs(total - 1) <= 1e-6).all():
        worst = total[np.argmax(np.where(np.isnan(total), np.inf, abs(total - 1)))]
        raise InputError(
            f"{case} returns probabilities that sum to {worst:g} for someone: they must be 0 or "
            "more and sum to 1."
        )
    for weight, (_, changed) in zip(weights, pairs, strict=True):
        there = np.flatnonzero(weight > 0)
        moved = _checked(asked, case, frontier, changed, people)
        some = {name: values[there] for name, values in moved.items()}
        yield Branch(there, some, (weight / total)[there])


def _drawn(
    asked: Transition,
    frontier: Columns,
    action: Any,
    positive: bool,
    people: Columns,
    rng: np.random.Generator,
) -> Iterator[Branch]:
    """Yield the observed transitions in many draws from a rule with a generator."""
    rows = length(frontier)
    case = _case(asked, action, positive)
    part = max(1, AT_ONCE // asked.draws)
    for start in range(0, rows, part):
        some = {name: values[start : start + part] for name, values in frontier.items()}
        many = {name: np.repeat(values, asked.draws) for name, values in some.items()}
        said = _call(asked, many, action, positive, rng)
        moved = _checked(asked, case, many, said, people)
        owner = start + np.repeat(np.arange(length(some)), asked.draws)
        code = owner.astype(np.int64)
        for values in moved.values():
            kinds, place = np.unique(values, return_inverse=True)
            code = code * len(kinds) + place
        _, first, times = np.unique(code, return_index=True, return_counts=True)
        yield Branch(
            owner[first],
            {name: values[first] for name, values in moved.items()},
            times / asked.draws,
        )


def _table(known: _Known, actions: int) -> Successors:
    """Return the successors as arrays; a profile reached in two ways is one successor."""
    profiles, cases = len(known.rows), 2 * actions
    case, who, follows, weight = (
        np.concatenate(parts)
        for parts in zip(
            *((np.full(len(w), c), w, f, p) for c, w, f, p in known.found), strict=True
        )
    )
    cell = who * cases + case
    pair, place = np.unique(cell * profiles + follows, return_inverse=True)
    chance = np.bincount(place, weight)
    cell, follows = pair // profiles, pair % profiles
    number = np.bincount(cell, minlength=profiles * cases)
    most = int(number.max())
    if most == 1:
        return Successors(follows.astype(np.int32).reshape(profiles, actions, 2), None)
    if profiles * cases * most > MOST_SUCCESSORS:
        raise InputError(
            f"up to {most:,} different people may follow each of {profiles:,}, which makes too "
            "large a table: round what changes to larger steps (np.round), or give JAX functions "
            "to sellf.world_from_functions."
        )
    rank = np.arange(len(cell)) - (np.cumsum(number) - number)[cell]
    moves = np.repeat(follows[np.cumsum(number) - number][:, None], most, axis=1)
    chances = np.zeros((profiles * cases, most))
    moves[cell, rank], chances[cell, rank] = follows, chance
    shape = (profiles, actions, 2, most)
    return Successors(moves.astype(np.int32).reshape(shape), chances.reshape(shape))


def _case(asked: Transition, action: Any, positive: bool) -> str:
    name = f"accepted={action}" if isinstance(action, bool) else repr(action)
    end = ", rng" if asked.takes_generator() else ""
    return f"transition(x, {name}, positive={positive}{end})"


def _call(asked: Transition, columns: Columns, action: Any, positive: bool, *rng: Any) -> Any:
    assert asked.function is not None
    given = {name: values.copy() for name, values in columns.items()}
    return asked.function(given, action, positive, *rng)


def _refuse_hidden_chance(
    asked: Transition, people: Columns, action: Any, positive: bool, chance: bool
) -> None:
    """Refuse a rule that draws from its own generator, or one value for everybody."""
    case, copies = _case(asked, action, positive), 2
    people = {name: values[:1000] for name, values in people.items()}
    turned = {name: values[::-1] for name, values in people.items()}

    def moved(given: Columns, *seed: int) -> list[Columns]:
        generators = map(np.random.default_rng, seed)
        said = _call(asked, given, action, positive, *generators)
        # A list of anything but pairs is refused later, in `_stated`.
        branches = [pair[-1] for pair in said if _pair(pair)] if isinstance(said, list) else [said]
        return [_checked(asked, case, given, one, people) for one in branches]

    if not chance:
        # A rule that treats each person separately gives the same result in another order.
        again = [{k: v[::-1] for k, v in one.items()} for one in moved(turned)]
        if not _same(moved(people), again):
            raise InputError(
                f"{case} returns different results when called twice: if it draws, {HOW} A rule "
                "must treat each person separately, regardless of their position in the column."
            )
        return
    many = {name: np.repeat(values, copies) for name, values in people.items()}
    one, again, other = moved(many, 1), moved(many, 1), moved(many, 2)
    if not _same(one, again):
        raise InputError(
            f"{case} draws from a generator of its own beside the one it is given: draw from "
            "`rng` alone, so that the same seed makes the same world."
        )
    alike = [{k: np.repeat(v[::copies], copies) for k, v in part.items()} for part in one]
    if _same(one, alike) and not _same(one, other):
        raise InputError(
            f"{case} draws one number for everybody: draw one for each person, "
            "rng.normal(size=len(x[...]))."
        )


def _pair(said: Any) -> bool:
    return isinstance(said, tuple) and len(said) == 2


def _same(ones: list[Columns], others: list[Columns]) -> bool:
    def alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
        if one.dtype.kind == "f":
            # The last digit of vectorised functions may depend on a value's position in memory.
            return np.allclose(one, other, rtol=1e-9, atol=1e-12)
        return bool((one == other).all())

    return len(ones) == len(others) and all(
        alike(one[name], other[name])
        for one, other in zip(ones, others, strict=True)
        for name in one
    )


def _checked(
    asked: Transition, case: str, frontier: Columns, changed: Any, people: Columns
) -> Columns:
    """Return the checked rows after a transition."""
    group, changed = asked.group, changed or {}
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
        if name in asked.categorical:
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
