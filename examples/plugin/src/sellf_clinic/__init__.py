"""A clinic with few places in a programme: a world, an algorithm and a notion for sellf."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import sellf
from sellf.algorithms.algorithm import Algorithm, Batch
from sellf.algorithms.config import PPO, hyperparameters
from sellf.fairness import Counts
from sellf.fairness.notions import Definition, Rate

LEVELS = 6


def clinic(population: int = 500, horizon: int = 1024, recovery: float = 0.7) -> sellf.World:
    """Fitness in six levels; a place that helps lifts it, with some luck."""

    def lifted(people: dict[str, Any], accepted: bool, positive: bool) -> Any:
        if not accepted:
            return None
        step = 1 if positive else -1
        moved = {"fitness": np.clip(people["fitness"] + step, 0, LEVELS - 1)}
        return [(recovery, moved), (1 - recovery, None)]

    return sellf.world_from_frame(
        {"sex": ["f", "m"] * LEVELS, "fitness": np.repeat(np.arange(LEVELS), 2)},
        group="sex",
        numeric=["fitness"],
        label=lambda people: 0.2 + 0.12 * people["fitness"] - 0.05 * (people["sex"] == "f"),
        transition=lifted,
        cost=0.4,
        population=population,
        window=population,
        horizon=horizon,
    )


@hyperparameters
class PPOKL(PPO):
    """PPO with a price on how far the policy moves in an iteration."""

    price: float = 1.0
    """What a nat of divergence from the policy that decided costs."""


def penalty(config: Any, batch: Batch) -> Array:
    """Return the price of the mean divergence from the policy that decided."""
    return config.price * jnp.mean(batch.policy.divergence(batch.before))


ppo_kl = Algorithm("ppo-kl", PPOKL, "PPO with a price on the divergence", penalty=penalty)

HIT_RATE = Definition(
    "hit-rate",
    (
        Rate(
            "hit-rate",
            of=Counts(accepted_positive=1),
            among=Counts(accepted=1),
            whom="accepted people",
            says=("people who are accepted", "have a good outcome"),
        ),
    ),
)
