"""People of functions: decisions a second, compiled for 64 populations, against Gymnasium."""

import time

import jax
import jax.numpy as jnp
import numpy as np

import sellf
from sellf.envs import world as worlds
from sellf.envs.gymnasium import WorldEnv
from sellf.envs.policy import of_chances
from sellf.envs.rollout import rollout

POPULATIONS, STEPS, ALONE = 64, 2048, 2000


def market() -> sellf.World:
    """Return wealth that grows and shrinks, with noise."""

    def arrive(key: jax.Array) -> dict[str, jax.Array]:
        one, two = jax.random.split(key)
        return {"wealth": jax.random.normal(one), "group": jax.random.randint(two, (), 0, 2)}

    def transition(
        key: jax.Array, person: dict[str, jax.Array], action: jax.Array, repaid: jax.Array
    ) -> dict[str, jax.Array]:
        change = jnp.where(action == 1, jnp.where(repaid, 0.1, -0.2), 0.0)
        return {**person, "wealth": person["wealth"] + change + 0.05 * jax.random.normal(key)}

    return sellf.world_from_functions(
        arrive,
        alpha=lambda p: jax.nn.sigmoid(1 + p["wealth"]),
        transition=transition,
        encode=lambda p: p["wealth"][None],
        group=lambda p: p["group"],
        groups=["a", "b"],
        columns=["wealth"],
        cost=0.6,
    )


def main() -> None:
    """Measure both in CPU time and print the ratio."""
    world = market()
    accept = of_chances(lambda seen: jax.nn.sigmoid(seen[..., 0]))

    def episode(key: jax.Array) -> jax.Array:
        first, second = jax.random.split(key)
        state = worlds.reset(world, first)
        return rollout(world, second, state, STEPS, accept)[1].reward

    run = jax.jit(jax.vmap(episode))
    keys = jax.random.split(jax.random.key(0), POPULATIONS)
    run(keys).block_until_ready()
    begin = time.process_time()
    run(keys).block_until_ready()
    compiled = POPULATIONS * STEPS / (time.process_time() - begin)
    env = WorldEnv(world)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 2, ALONE)
    env.step(0)
    begin = time.process_time()
    for action in actions:
        env.step(action)
    alone = ALONE / (time.process_time() - begin)
    print(f"{compiled:,.0f} against {alone:,.0f} decisions a second: {compiled / alone:.0f} times")


if __name__ == "__main__":
    main()
