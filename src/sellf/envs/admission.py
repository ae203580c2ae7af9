"""Admission: rejected applicants may pay for a better score and reapply; costs differ by group.

After the college-admission world of D'Amour et al. (2020, "Fairness is not static") and the models
of strategic effort behind it (Hu et al. 2019; Milli et al. 2019). The college observes the score,
but not the part of it that was bought.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from sellf.envs.build import Actions, Rules, accepting
from sellf.envs.functions import Law, assembled
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness.checks import number, short

MEAN, DEVIATION = 0.5, 0.1
"""Mean and standard deviation of scores before any effort, in every group, as in that paper."""
THRESHOLD = 0.55
"""Ability from which an applicant is eligible, before noise."""
COSTS = {"advantaged": 5.0, "disadvantaged": 10.0}
"""Cost of raising a score by 1, by group; admission is worth 1."""
MOST = 1000.0
"""Upper limit of costs; above it, nobody can afford any effort."""


class Applicant(NamedTuple):
    """One applicant."""

    ability: Float[Array, ""]
    """Score without effort; never observed."""
    raised: Float[Array, ""]
    """Part of the score that was bought."""
    group: Int[Array, ""]


def admission(
    rules: Rules,
    costs: Mapping[str, float] = COSTS,
    again: float = 0.8,
    improvement: float = 0.0,
    noise: float = 0.05,
) -> World:
    """Build the admission world: Y = 1 if an applicant is eligible, A = 1 if admitted.

    An admitted applicant leaves and is replaced by a new one of the same group. A rejected one
    applies again with probability `again`, after spending a random share of the remaining budget
    for effort (the total is the value of admission, 1), or gives up and is replaced by a new one.

    Args:
        rules: population, horizon and the other rules; the cost is that of a place.
        costs: the cost of raising a score by 1, by group.
        again: the probability that a rejected applicant applies again.
        improvement: the share of a bought point that is a gain in ability: 0 is gaming, 1 is
            learning.
        noise: the standard deviation of the noise that is added to ability in eligibility.
    """
    names, prices = _groups(costs)
    law = _law(
        prices,
        number("again", again, low=0, high=1),
        number("improvement", improvement, low=0, high=1),
        number("noise", noise, low=0, high=1, low_open=True),
    )
    gain = accepting(rules.cost).gain
    actions = Actions(("reject", "admit"), (False, True), (False, True), gain)
    return assembled(law, rules, tuple(names), ("score",), actions, "admission")


def _groups(costs: Any) -> tuple[list[str], tuple[float, ...]]:
    """Return the names of the groups and their costs of effort; refuse invalid costs."""
    if not isinstance(costs, Mapping) or len(costs) < 2:
        raise InputError(
            f"costs is {short(costs)}: give two groups or more, each with the cost of raising a "
            f"score by 1, costs={COSTS}."
        )
    for name, cost in costs.items():
        number(f"the cost of effort of {name!r}", cost, low=0, high=MOST, low_open=True)
    known = {str(name): float(cost) for name, cost in costs.items()}
    return sorted(known), tuple(known[name] for name in sorted(known))


@lru_cache(maxsize=32)
def _law(prices: tuple[float, ...], again: float, improvement: float, noise: float) -> Law:
    """Return the functions of the law, cached by settings so that programs are compiled once."""

    def arrive(key: Array) -> Applicant:
        one, two = jax.random.split(key)
        group = jax.random.randint(one, (), 0, len(prices))
        return _newcomer(two, group)

    def alpha(person: Applicant) -> Array:
        return norm.cdf((person.ability + improvement * person.raised - THRESHOLD) / noise)

    def transition(key: Array, person: Applicant, action: Array, eligible: Array) -> Applicant:
        come, stay, spend = jax.random.split(key, 3)
        most = 1 / jnp.asarray(prices)[person.group]
        share = jax.random.uniform(spend)
        tries = (action == 0) & (jax.random.uniform(stay) < again)
        other = person._replace(raised=person.raised + share * (most - person.raised))
        new = _newcomer(come, person.group)
        return jax.tree.map(lambda yes, no: jnp.where(tries, yes, no), other, new)

    return Law(arrive, alpha, transition, _seen, _group)


def _newcomer(key: Array, group: Int[Array, ""]) -> Applicant:
    ability = jnp.clip(MEAN + DEVIATION * jax.random.normal(key), 0.0, 1.0)
    return Applicant(ability, jnp.zeros(()), group)


def _seen(person: Applicant) -> Float[Array, " 1"]:
    """Return the score, standardised by the scores before any effort."""
    return ((person.ability + person.raised - MEAN) / DEVIATION)[None]


def _group(person: Applicant) -> Int[Array, ""]:
    return person.group
