"""The algorithms by name."""

from typing import Any

from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.config import Settings, as_dict
from sellf.algorithms.cup import cup
from sellf.algorithms.direct import direct
from sellf.algorithms.elbert import elbert
from sellf.algorithms.focops import focops
from sellf.algorithms.lagrangian import pid_lagrangian, ppo_lagrangian
from sellf.algorithms.plan import plan
from sellf.algorithms.pocar import pocar, pocar_oracle
from sellf.algorithms.ppo import ppo
from sellf.algorithms.sellf import sellf, sellf_relu, sellf_semi
from sellf.errors import InputError
from sellf.fairness import Notion
from sellf.fairness.checks import one_of, short
from sellf.fairness.registry import Registry


def _adapt(thing: Any, name: str) -> Algorithm:
    """Return an external algorithm under the name by which it was requested."""
    right = isinstance(thing, Algorithm) and isinstance(thing.config, type)
    if not right or not issubclass(thing.config, Settings):
        raise InputError(
            f"algorithm {name!r} is {short(thing)}: give a sellf.algorithms.algorithm.Algorithm, "
            "whose config is a class of settings, such as PPO or one that extends it."
        )
    return thing._replace(name=name)


ALGORITHMS: Registry[Algorithm] = Registry("algorithm", _adapt)
ALGORITHMS.update(
    (algorithm.name, algorithm)
    for algorithm in (
        ppo,
        pocar,
        pocar_oracle,
        elbert,
        focops,
        ppo_lagrangian,
        pid_lagrangian,
        cup,
        sellf,
        sellf_semi,
        sellf_relu,
        direct,
        plan,
    )
)

CHOICES = {
    "penalty_scale": ("minmax", "none"),
    "density": ("any", "balance"),
    "cost": ("accepted", "imputed"),
    "leveling": ("up", "both"),
    "estimate": ("anchored", "batch"),
}


def find(name: str) -> Algorithm:
    """Return an algorithm by name."""
    return ALGORITHMS.find(name)


def configure(algorithm: Algorithm, settings: dict[str, Any]) -> Settings:
    """Return the algorithm's configuration with some settings changed and all of them checked."""
    known = as_dict(algorithm.config())
    for name, value in settings.items():
        if name not in known:
            one_of(f"setting of {algorithm.name}", name, tuple(known))
        if name in CHOICES:
            one_of(name, value, CHOICES[name])
        elif isinstance(known[name], bool) != isinstance(value, bool):
            raise InputError(f"{name} is {short(value)}: give {type(known[name]).__name__}.")
        elif isinstance(known[name], int) and not isinstance(value, int):
            raise InputError(f"{name} is {short(value)}: give a whole number.")
        elif isinstance(known[name], float) and not _number(value):
            raise InputError(f"{name} is {str(value)[:80]!r}: give a number.")
    exact: dict[str, Any] = {
        name: float(value) if isinstance(known[name], float) else value
        for name, value in settings.items()
    }
    return algorithm.config(**exact)


def _number(value: Any) -> bool:
    # A whole number may be too large for a float.
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)


def resolve(name: str, settings: dict[str, Any], notion: Notion) -> tuple[Algorithm, Settings]:
    """Return an algorithm by name, adapted to settings and notion, and its configuration."""
    algorithm = find(name)
    config = configure(algorithm, settings)
    return algorithm.variant(algorithm, config, notion), config
