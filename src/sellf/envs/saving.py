"""A world as plain arrays and numbers, and back: for worlds that no name can make again."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from sellf.envs.world import Arrivals, Encoding, World
from sellf.errors import InputError

RULES = ("name", "groups", "columns", "cost", "horizon", "population", "window", "start")
TABLES = ("group", "alpha", "moves")


def rules_of(world: World) -> dict[str, Any]:
    """Return what JSON can hold of a world."""
    return {name: getattr(world, name) for name in RULES}


def tables_of(world: World) -> dict[str, np.ndarray]:
    """Return the arrays of a world."""
    parts = {"encoding": world.encoding._asdict(), "arrivals": world.arrivals._asdict()}
    nested = {f"{part}.{key}": leaf for part, own in parts.items() for key, leaf in own.items()}
    tables = {name: getattr(world, name) for name in TABLES} | nested
    return {name: np.asarray(leaf) for name, leaf in tables.items()}


def restore(rules: dict[str, Any], tables: dict[str, np.ndarray]) -> World:
    """Put a world together again."""
    try:
        arrays = {name: jnp.asarray(leaf) for name, leaf in tables.items()}
        lists = {name: tuple(rules[name]) for name in ("groups", "columns")}
        fields: dict[str, Any] = {name: rules[name] for name in RULES} | lists
        fields |= {name: arrays[name] for name in TABLES}
        return World(
            **fields,
            encoding=Encoding(**{key: arrays[f"encoding.{key}"] for key in Encoding._fields}),
            arrivals=Arrivals(**{key: arrays[f"arrivals.{key}"] for key in Arrivals._fields}),
        )
    except KeyError as error:
        raise InputError(f"the saved world lacks {error}: it is damaged.") from None
