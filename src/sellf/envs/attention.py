"""Attention: visited sites reveal incidents; at sites that are not visited, risk grows unseen.

After the attention-allocation world of D'Amour et al. (2020, "Fairness is not static"), which has
one site per location and a fixed number of units of attention in each round. Here a location has
many sites, and each is either visited or not when its turn comes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sellf.envs.build import Actions, Features, Rules, accepting, build
from sellf.envs.table import TableWorld
from sellf.errors import InputError
from sellf.fairness.checks import number, short

WIDTH = 0.15
"""Difference between two adjacent risk classes, in expected incidents per round."""
CLASSES = 13
"""Number of risk classes, from 0 to 1.8 expected incidents."""
RATES = {"busy": 1.2, "quiet": 0.6}
"""Expected incidents per round at a site, by location: the second and the fourth of the five
locations in the paper's experiment, divided by 5 so that an incident is uncertain."""


def attention(
    rules: Rules, rates: Mapping[str, float] = RATES, dynamic_rate: float = 0.1
) -> TableWorld:
    """Build the attention world: Y = 1 if there is an incident, A = 1 if the site is visited.

    The number of incidents at a site in a round has a Poisson distribution; a visit finds at most
    one of them. After a visit the rate falls by `dynamic_rate`; without one it rises by as much. To
    stay on the grid of risk classes, it moves by a whole class with the probability that gives this
    expected change.

    Args:
        rules: population, horizon and the other rules; the cost is that of a visit.
        rates: the initial mean of the expected incidents per round at the sites, by location.
        dynamic_rate: the change of a rate from one turn to the next.
    """
    names, means = _locations(rates)
    chance = number("dynamic_rate", dynamic_rate, low=0, high=WIDTH) / WIDTH

    # Profile = location x risk class, location-major.
    risk = np.tile(np.arange(CLASSES), len(names))
    profile = np.arange(len(risk))
    steps = np.array([1, -1])
    moved = profile[:, None] + np.clip(risk[:, None] + steps, 0, CLASSES - 1) - risk[:, None]
    either = np.stack([np.broadcast_to(profile[:, None], moved.shape), moved], axis=-1)
    moves = np.broadcast_to(either[:, :, None], (len(risk), 2, 2, 2))
    gain = accepting(rules.cost).gain
    return build(
        "attention",
        rules,
        groups=names,
        group=np.repeat(np.arange(len(names)), CLASSES),
        alpha=-np.expm1(-WIDTH * risk),
        moves=moves,
        chances=np.broadcast_to([1 - chance, chance], moves.shape),
        share=np.concatenate([_spread(mean) for mean in means]) / len(names),
        features=Features(
            changing=risk,
            changes=np.eye(CLASSES),
            changing_names=[f"risk {name}" for name in _names()],
            changing_raw=[("risk", name) for name in _names()],
        ),
        actions=Actions(("leave", "attend"), (False, True), (False, True), gain),
    )


def _locations(rates: Any) -> tuple[list[str], list[float]]:
    """Return the names of the locations and their rates; refuse invalid rates."""
    if not isinstance(rates, Mapping) or len(rates) < 2:
        raise InputError(
            f"rates is {short(rates)}: give two locations or more with the expected incidents per "
            f"round of each, rates={RATES}."
        )
    highest = WIDTH * (CLASSES - 1)
    for name, rate in rates.items():
        number(f"the rate of {name!r}", rate, low=0, high=highest, low_open=True)
    known = {str(name): float(rate) for name, rate in rates.items()}
    return sorted(known), [known[name] for name in sorted(known)]


def _spread(mean: float) -> NDArray[np.float64]:
    """Return the share of a location's sites in each risk class, a binomial with the given mean."""
    last = CLASSES - 1
    up, ways = mean / (WIDTH * last), np.ones(CLASSES)
    for k in range(1, CLASSES):
        ways[k] = ways[k - 1] * (last - k + 1) / k
    return ways * up ** np.arange(CLASSES) * (1 - up) ** (last - np.arange(CLASSES))


def _names() -> list[str]:
    return [f"{WIDTH * i:.2f}" for i in range(CLASSES)]
