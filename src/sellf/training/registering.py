"""`sellf.register`: custom algorithms, worlds and notions by name."""

from typing import Any

from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.catalogue import ALGORITHMS
from sellf.envs.world import World
from sellf.envs.worlds import WORLDS
from sellf.errors import InputError
from sellf.fairness.checks import short
from sellf.fairness.notions import TABLE, Definition


def register(thing: Any, name: str | None = None) -> None:
    """Register an algorithm, a world or a notion under a name.

    Within the current process, the name is then accepted by `sellf.train`, `sellf.evaluate`,
    `sellf.make_world` and study files. An installed package registers its own for every process
    with entry points in the groups `sellf.algorithms`, `sellf.worlds` and `sellf.notions`.

    Args:
        thing: an `Algorithm`; a notion's `Definition`; a world, or a function that makes one from
            its settings, given by keyword.
        name: by default the name of `thing`; for a function, its name with hyphens.

    """
    if isinstance(thing, Algorithm):
        ALGORITHMS.register(thing, name or thing.name)
    elif isinstance(thing, Definition):
        TABLE.register(thing, name or thing.name)
    elif isinstance(thing, World):
        WORLDS.register(thing, name or thing.name)
    elif callable(thing):
        WORLDS.register(thing, name or getattr(thing, "__name__", "").replace("_", "-"))
    else:
        raise InputError(
            f"{short(thing)} cannot be registered: give an algorithm, a notion's definition, a "
            "world, or a function that makes one."
        )
