"""A world of functions: people with continuous features, or any pytree of arrays.

The functions are JAX code for one person; the world vectorises them over people and populations.
There is no table of profiles, so a policy receives the output of `encode`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from sellf.envs.build import Actions, Rules, accepting
from sellf.envs.space import Encoding, Raw, Space
from sellf.envs.world import People, World
from sellf.errors import InputError
from sellf.fairness.checks import short

Person: TypeAlias = Any
"""One person: a pytree of arrays."""
TRIED = 1000
"""Number of newcomers on which the functions are tested when a world is made."""
STEPS = 20
"""Number of decisions about each of these newcomers."""


class FunctionWorld(World):
    """A world whose law is given by functions of one person; populations are pytrees of arrays."""

    arrive: Callable[[Array], Person] = eqx.field(static=True)
    alpha: Callable[[Person], Array] = eqx.field(static=True)
    transition: Callable[[Array, Person, Array, Array], Person] = eqx.field(static=True)
    encode: Callable[[Person], Array] = eqx.field(static=True)
    group: Callable[[Person], Array] = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    """Number of axes of one person's first array."""

    def arriving(self, key: Key[Array, ""], shape: tuple[int, ...]) -> People:
        """Draw newcomers."""
        return self._each(self.arrive, len(shape))(jax.random.split(key, shape))

    def seen(self, people: People) -> Float[Array, "*n inputs"]:
        """Return the output of `encode` for people, and their groups."""
        features = self._over(people, self.encode).astype(jnp.float32)
        member = jax.nn.one_hot(self.group_of(people), len(self.groups))
        return jnp.concatenate([features, member], axis=-1)

    def group_of(self, people: People) -> Int[Array, "*n"]:
        """Return the group of each person."""
        return self._over(people, self.group).astype(jnp.int32)

    def label_chance(self, people: People) -> Float[Array, "*n"]:
        """Return alpha of each person."""
        return self._over(people, self.alpha).astype(jnp.float32)

    def luck(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Array:
        """Return a random key for each transition."""
        return jax.random.split(key, shape) if shape else key

    def follow(self, people: People, action: Array, label: Array, luck: Any) -> People:
        """Return people after the transition."""
        return self._each(self.transition, self._axes(people))(luck, people, action, label)

    def _axes(self, people: People) -> int:
        """Return the number of axes over people."""
        return jax.tree.leaves(people)[0].ndim - self.rank

    def _over(self, people: People, function: Callable[[Person], Array]) -> Array:
        return self._each(function, self._axes(people))(people)

    def _each(self, function: Callable[..., Any], axes: int) -> Callable[..., Any]:
        for _ in range(axes):
            function = jax.vmap(function)
        return function


def world_from_functions(
    arrive: Callable[[Array], Person],
    *,
    alpha: Callable[[Person], Array],
    transition: Callable[[Array, Person, Array, Array], Person],
    encode: Callable[[Person], Array],
    group: Callable[[Person], Array],
    groups: Sequence[str],
    columns: Sequence[str],
    cost: float | None = None,
    actions: Actions | None = None,
    horizon: int = 2048,
    population: int = 4000,
    window: int = 4000,
    start: float = 1000.0,
    name: str = "custom",
) -> World:
    """Make a world from JAX functions of one person.

    A person is a pytree of arrays, for example a dictionary of numbers. Each function handles one
    person; the world vectorises it over whole populations.

    Args:
        arrive: maps a random key to a newcomer.
        alpha: maps a person to the probability of a good outcome.
        transition: maps a key, a person, the action (its position among the actions; 1 is to
            accept) and whether the outcome was good to the person afterwards.
        encode: maps a person to an array of the features that a decision-maker observes, preferably
            scaled to the order of 1. The group is added.
        group: maps a person to the position of their group in `groups`, which never changes.
        groups: the names of the groups.
        columns: the names of the entries of `encode`.
        cost: the cost of an acceptance, which is worth y - cost.
        actions: the actions, instead of rejecting and accepting at a cost.
        horizon: the number of decisions after which an episode is truncated.
        population: the number of people.
        window: the number of latest decisions that the disparity is computed from.
        start: the initial resource.
        name: the name of the world.

    >>> def arrive(key):
    ...     one, two = jax.random.split(key)
    ...     return {"skill": jax.random.normal(one), "group": jax.random.randint(two, (), 0, 2)}
    >>> world = world_from_functions(
    ...     arrive,
    ...     alpha=lambda p: jax.nn.sigmoid(p["skill"]),
    ...     transition=lambda key, p, action, good: {
    ...         **p, "skill": p["skill"] + 0.1 * jax.random.normal(key)
    ...     },
    ...     encode=lambda p: p["skill"][None],
    ...     group=lambda p: p["group"],
    ...     groups=["a", "b"],
    ...     columns=["skill"],
    ...     cost=0.5,
    ... )
    >>> world.columns
    ('skill', 'group = a', 'group = b')
    """
    if (cost is None) == (actions is None):
        raise InputError("give cost=, what an acceptance costs, or actions=, and not both.")
    rules = Rules(1.0 if cost is None else cost, horizon, population, window, start)
    own = accepting(rules.cost) if actions is None else actions
    names = tuple(map(str, groups))
    if len(set(names)) < max(2, len(names)):
        raise InputError(f"groups is {short(groups)}: give two names or more, all different.")
    if len(set(map(str, columns))) < len(columns):
        raise InputError(f"columns is {short(columns)}: give different names.")
    person = _shapes("arrive", arrive, jax.random.key(0))
    if not jax.tree.leaves(person):
        raise InputError("arrive returns nobody: return a person, a dict of numbers for example.")
    world = assembled(
        Law(arrive, alpha, transition, encode, group),
        rules,
        names,
        tuple(map(str, columns)),
        own,
        name,
    )
    _check_shapes(world, person, len(columns))
    _try_out(world)
    return world


class Law(NamedTuple):
    """The functions of one person that a world is made of; see `world_from_functions`."""

    arrive: Callable[[Array], Person]
    alpha: Callable[[Person], Array]
    transition: Callable[[Array, Person, Array, Array], Person]
    encode: Callable[[Person], Array]
    group: Callable[[Person], Array]


def assembled(
    law: Law,
    rules: Rules,
    groups: tuple[str, ...],
    columns: tuple[str, ...],
    actions: Actions,
    name: str,
) -> FunctionWorld:
    """Build a world from trusted functions, without the tests, which take seconds."""
    person = jax.eval_shape(law.arrive, jax.random.key(0))
    return FunctionWorld(
        name=name,
        space=_space(groups, columns, actions),
        horizon=int(rules.horizon),
        population=int(rules.population),
        window=int(rules.window),
        start=float(rules.start),
        rank=jax.tree.leaves(person)[0].ndim,
        **law._asdict(),
    )


def _space(groups: tuple[str, ...], columns: tuple[str, ...], actions: Actions) -> Space:
    nobody, width = jnp.zeros(0, jnp.int32), len(columns)
    # Observations have no known bounds other than those of floats.
    ends = jnp.asarray(np.finfo(np.float32).max * np.array([[-1.0], [1.0]]).repeat(width, axis=1))
    return Space(
        groups=groups,
        columns=(*columns, *(f"group = {name}" for name in groups)),
        actions=actions.names,
        reveals=actions.reveals,
        favourable=actions.favourable,
        gain=actions.gain,
        raw=tuple(map(Raw, columns)),
        group=nobody,
        encoding=Encoding(
            fixed=nobody,
            changing=nobody,
            codes=jnp.zeros((1, 0), jnp.uint8),
            feature=nobody,
            category=jnp.zeros(0, jnp.uint8),
            numbers=jnp.zeros((1, 0)),
            changes=ends.astype(jnp.float32),
        ),
    )


def _shapes(name: str, function: Callable[..., Any], *given: Any) -> Any:
    """Return the shapes of a function's result; refuse a function that JAX cannot trace."""
    try:
        return jax.eval_shape(function, *given)
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"{name} cannot be traced by JAX: {type(error).__name__}: {first}. Write it for one "
            "person, with jax.numpy and without `if` on values (jnp.where)."
        ) from error


def _check_shapes(world: FunctionWorld, person: Person, columns: int) -> None:
    """Refuse functions whose results have the wrong shape."""
    action, good = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), jnp.bool_)
    expected: dict[str, tuple[str, tuple[int, ...]]] = {
        "alpha": ("one number", ()),
        "group": ("a whole number", ()),
        "encode": (f"an array of the {columns} columns", (columns,)),
    }
    for name, (what, shape) in expected.items():
        found = _shapes(name, getattr(world, name), person)
        if not hasattr(found, "shape") or found.shape != shape:
            raise InputError(f"{name} returns {short(found)}: return {what}.")
    if not jnp.issubdtype(_shapes("group", world.group, person).dtype, jnp.integer):
        raise InputError("group returns no whole number: return a position in `groups`.")
    key = jax.eval_shape(lambda: jax.random.key(0))
    after = _shapes("transition", world.transition, key, person, action, good)
    same = jax.tree.structure(after) == jax.tree.structure(person) and all(
        (a.shape, a.dtype) == (b.shape, b.dtype)
        for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(person), strict=True)
    )
    if not same:
        raise InputError(
            f"transition returns {short(after)} for {short(person)}: return a person of the same "
            "parts, shapes and types (x.astype(jnp.float32))."
        )


def _try_out(world: FunctionWorld) -> None:
    """Refuse a world that leaves its space in a test with random decisions."""

    def told(people: People) -> tuple[Array, Array, Array]:
        return world.seen(people), world.label_chance(people), world.group_of(people)

    def turn(people: People, key: Array) -> tuple[People, tuple[Array, Array, Array]]:
        now = told(people)
        luck, chance, choice = jax.random.split(key, 3)
        action = jax.random.randint(choice, (TRIED,), 0, len(world.space.actions))
        label = jax.random.uniform(chance, (TRIED,)) < now[1]
        return world.follow(people, action, label, world.luck(luck, (TRIED,))), now

    def lived(key: Array) -> tuple[Array, ...]:
        first, then = jax.random.split(key)
        people, now = jax.lax.scan(
            turn, world.arriving(first, (TRIED,)), jax.random.split(then, STEPS)
        )
        return tuple(
            jnp.concatenate([before, after[None]])
            for before, after in zip(now, told(people), strict=True)
        )

    seen, alpha, group = map(np.asarray, jax.jit(lived)(jax.random.key(0)))
    if not np.isfinite(seen).all():
        raise InputError("the world leaves its space: encode is not finite for someone.")
    bad = ~((alpha >= 0) & (alpha <= 1))
    if bad.any():
        raise InputError(
            f"the chance of a good label is {alpha[bad][0]:g} for someone: alpha must be between 0 "
            "and 1 (jax.nn.sigmoid, jnp.clip)."
        )
    if (group < 0).any() or (group >= len(world.groups)).any():
        raise InputError(
            f"group is {group.min()} to {group.max()}: it is a place among {len(world.groups)}."
        )
    if (group != group[0]).any():
        raise InputError("transition changes a person's group: groups stay what they are.")
    absent = [name for i, name in enumerate(world.groups) if not (group[0] == i).any()]
    if absent:
        raise InputError(f"nobody arrives of the groups {absent}: leave them out.")
