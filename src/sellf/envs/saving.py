"""Conversion of worlds to and from plain arrays and numbers, for worlds without a name."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from sellf.envs.build import Actions, Rules, accepting
from sellf.envs.space import Encoding, Raw, Space
from sellf.envs.table import Arrivals, TableWorld
from sellf.envs.world import World
from sellf.envs.worlds import WORLDS, make_world
from sellf.errors import InputError
from sellf.fairness.checks import number

RULES = ("name", "horizon", "population", "window", "start")
SPACE = ("groups", "columns", "actions", "reveals", "favourable", "gain")
TABLES = ("group", "alpha", "moves")
READS = ("microdata",)
"""Settings that name a file; loading a saved world never reads that file again."""
KINDS = {
    "alpha": "f",
    "odds": "f",
    "encoding.numbers": "f",
    "encoding.changes": "f",
    "arrivals.cumulative": "f",
}
"""Tables of floats; all others hold indices or codes."""


def rules_of(world: World) -> dict[str, Any]:
    """Return the part of a world that is stored as JSON."""
    return {name: getattr(world, name) for name in RULES} | {
        name: getattr(world.space, name) for name in SPACE
    }


def current(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules in the current format; earlier versions stored two actions and a cost."""
    if "cost" not in rules:
        return rules
    own = {name: value for name, value in rules.items() if name != "cost"}
    actions = accepting(number("the saved world's cost", rules["cost"], low=0, low_open=True))
    names, *others = SPACE[2:]
    return own | plain_settings(
        {names: actions.names, **{name: getattr(actions, name) for name in others}}
    )


def tables_of(world: TableWorld) -> dict[str, np.ndarray]:
    """Return the arrays of a world."""
    parts = {"encoding": world.encoding._asdict(), "arrivals": world.arrivals._asdict()}
    nested = {f"{part}.{key}": leaf for part, own in parts.items() for key, leaf in own.items()}
    tables = {name: getattr(world, name) for name in TABLES} | nested
    if world.odds is not None:
        tables["odds"] = world.odds
    if world.space.raw is not None:
        # Names are stored as bytes of JSON, since the file has numbers only.
        tables["raw"] = np.frombuffer(json.dumps(world.space.raw).encode(), np.uint8)
    return {name: np.asarray(leaf) for name, leaf in tables.items()}


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a world's settings as JSON values; paths become strings."""
    return json.loads(json.dumps(dict(settings), default=str))


def named(name: str, settings: Mapping[str, Any]) -> World:
    """Return a world by name; it is cached, so that many runs share one object."""
    return _named(name, json.dumps(plain_settings(settings), sort_keys=True))


@lru_cache(maxsize=8)
def _named(name: str, settings: str) -> World:
    return make_world(name, **json.loads(settings))


def by_name(world: World, settings: Mapping[str, Any]) -> bool:
    """Return whether name and settings reproduce this world without reading a file."""
    if world.name not in WORLDS or set(settings) & set(READS):
        return False
    try:
        again = named(world.name, settings)
    except InputError:
        return False
    if again is world:
        return True
    # Functions cannot be compared.
    return isinstance(again, TableWorld) and isinstance(world, TableWorld) and same(again, world)


def same(one: TableWorld, other: TableWorld) -> bool:
    """Return whether two worlds have equal rules and equal tables."""
    tables, others = tables_of(one), tables_of(other)
    alike = rules_of(one) == rules_of(other) and set(tables) == set(others)
    return alike and all(np.array_equal(tables[name], others[name]) for name in tables)


def restore(rules: dict[str, Any], tables: dict[str, np.ndarray]) -> TableWorld:
    """Restore a world from its rules and tables; refuse invalid ones."""
    try:
        _check_rules(rules)
        _check_tables(rules, tables)
    except KeyError as error:
        raise InputError(f"the saved world lacks {error}: it is damaged.") from None
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"the saved world is damaged: {error}") from None
    arrays = {name: jnp.asarray(leaf) for name, leaf in tables.items() if name != "raw"}
    fields: dict[str, Any] = {name: rules[name] for name in RULES}
    fields["start"] = float(rules["start"])
    space: dict[str, Any] = {name: tuple(rules[name]) for name in SPACE}
    space["gain"] = tuple((float(bad), float(good)) for bad, good in rules["gain"])
    return TableWorld(
        **fields,
        space=Space(
            **space,
            group=arrays["group"],
            encoding=Encoding(**{key: arrays[f"encoding.{key}"] for key in Encoding._fields}),
            raw=_raw(rules, tables),
        ),
        alpha=arrays["alpha"],
        moves=arrays["moves"],
        odds=arrays.get("odds"),
        arrivals=Arrivals(**{key: arrays[f"arrivals.{key}"] for key in Arrivals._fields}),
    )


def _raw(rules: dict[str, Any], tables: dict[str, np.ndarray]) -> tuple[Raw, ...] | None:
    """Return the raw columns of all inputs; None if an earlier version did not store them."""
    if "raw" not in tables:
        return None
    try:
        found = json.loads(tables["raw"].tobytes())
    except (ValueError, RecursionError):
        raise ValueError("the raw columns of its inputs cannot be read.") from None
    if not isinstance(found, list) or len(found) + len(rules["groups"]) != len(rules["columns"]):
        raise ValueError("it does not have one raw column for each input.")
    for each in found:
        right = (
            isinstance(each, list)
            and len(each) == len(Raw._fields)
            and isinstance(each[0], str)
            and (each[1] is None or isinstance(each[1], str))
            and all(isinstance(x, float) and np.isfinite(x) for x in each[2:])
            and each[3] > 0
        )
        if not right:
            raise ValueError("a raw column has no name, or no mean and deviation.")
    return tuple(Raw(*each) for each in found)


def _check_rules(rules: dict[str, Any]) -> None:
    Rules(1.0, *(rules[name] for name in ("horizon", "population", "window", "start")))
    numbers = [number for pair in rules["gain"] for number in pair]
    truths = [*rules["reveals"], *rules["favourable"]]
    if not all(isinstance(one, bool) for one in truths) or any(len(p) != 2 for p in rules["gain"]):
        raise ValueError("its actions do not say what they reveal, or what they are worth.")
    if not all(isinstance(n, int | float) and abs(n) < 1e30 for n in numbers):
        raise ValueError("the gains of its actions are not numbers.")
    Actions(*(tuple(rules[name]) for name in SPACE[2:]))
    for name in ("groups", "columns", "actions"):
        words = rules[name]
        if not isinstance(words, list | tuple) or not all(isinstance(one, str) for one in words):
            raise ValueError(f"{name} is not a list of names.")
    if not isinstance(rules["name"], str):
        raise ValueError("its name is not a text.")
    if len(set(rules["groups"])) < max(2, len(rules["groups"])):
        raise ValueError("it has fewer than two groups, or two of one name.")


def _check_chances(tables: dict[str, np.ndarray]) -> None:
    """Refuse missing or invalid transition probabilities."""
    if tables["moves"].ndim == 3 and "odds" not in tables:
        return
    *cases, successors = tables["moves"].shape
    odds = tables["odds"]
    if len(cases) != 3 or odds.shape != (*cases, successors - 1):
        raise ValueError(f"odds has shape {odds.shape}, and moves {tables['moves'].shape}.")
    ends = np.ones((*cases, 1))
    if (np.diff(np.concatenate([ends, odds, 0 * ends], axis=-1), axis=-1) > 1e-6).any():
        raise ValueError("the chances of what follows are not between 0 and 1.")


def _check_tables(rules: dict[str, Any], tables: dict[str, np.ndarray]) -> None:
    """Refuse tables with inconsistent shapes or indices out of range."""
    for name, table in tables.items():
        if table.dtype.kind not in KINDS.get(name, "iu"):
            raise ValueError(f"{name} holds {table.dtype}.")
    encoding = {key: tables[f"encoding.{key}"] for key in Encoding._fields}
    profiles, groups = len(tables["group"]), len(rules["groups"])
    (rows, features), onehot = encoding["codes"].shape, len(encoding["feature"])
    (states, changes), numeric = encoding["changes"].shape, encoding["numbers"].shape[1]
    arriving = len(tables["arrivals.profile"])
    shapes = {
        "group": (profiles,),
        "alpha": (profiles,),
        "moves": (profiles, len(rules["actions"]), 2, *tables["moves"].shape[3:]),
        "encoding.fixed": (profiles,),
        "encoding.changing": (profiles,),
        "encoding.feature": (onehot,),
        "encoding.category": (onehot,),
        "encoding.numbers": (rows, numeric),
        "arrivals.profile": (arriving,),
        "arrivals.cumulative": (arriving,),
    }
    for name, shape in shapes.items():
        if tables[name].shape != shape:
            raise ValueError(f"{name} has shape {tables[name].shape}, and not {shape}.")
    _check_chances(tables)
    _raw(rules, tables)
    limits = {
        "group": groups,
        "moves": profiles,
        "encoding.fixed": rows,
        "encoding.changing": states,
        "encoding.feature": max(features, 1),
        "arrivals.profile": profiles,
    }
    for name, limit in limits.items():
        if tables[name].size and not 0 <= tables[name].min() <= tables[name].max() < limit:
            raise ValueError(f"{name} has an index out of range.")
    if onehot + numeric + changes + groups != len(rules["columns"]):
        raise ValueError("the number of its columns differs from the number of its inputs.")
    alpha, shares = tables["alpha"], np.diff(tables["arrivals.cumulative"], prepend=0.0)
    if not profiles or not arriving or not ((alpha >= 0) & (alpha <= 1)).all():
        raise ValueError("the chance of a good label is not between 0 and 1.")
    if not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-3:
        raise ValueError("the shares of newcomers do not add up to 1.")
