"""People of functions: 64 populations compiled, against Gymnasium from Python; in CPU time."""

from time import process_time

import jax
import jax.numpy as jnp
import numpy as np

import sellf
from benchmarks.report import Row
from sellf.envs import world as worlds
from sellf.envs.gymnasium import WorldEnv
from sellf.envs.policy import of_chances
from sellf.envs.rollout import rollout
from sellf.envs.world import World

POPULATIONS, STEPS, ALONE = 64, 2048, 2000
WORLDS = ("market", "admission")


def rows() -> list[Row]:
    result: list[Row] = []
    for name in WORLDS:
        world = market() if name == "market" else sellf.make_world(name)
        fast, stepped = _compiled(world), _stepped(world)
        result += [
            Row(f"{name}: {POPULATIONS} populations", fast / 1e6, "million decisions/s"),
            Row(f"{name}: Gymnasium from Python", stepped / 1e6, "million decisions/s"),
            Row(
                f"{name}: {POPULATIONS} populations / Gymnasium", fast / stepped, "times", 30, True
            ),
        ]
    return result


def market() -> World:
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


def _compiled(world: World) -> float:
    accept = of_chances(lambda seen: jax.nn.sigmoid(seen[..., 0]))

    def episode(key: jax.Array) -> jax.Array:
        first, second = jax.random.split(key)
        state = worlds.reset(world, first)
        return rollout(world, second, state, STEPS, accept)[1].reward

    run = jax.jit(jax.vmap(episode))
    keys = jax.random.split(jax.random.key(0), POPULATIONS)
    run(keys).block_until_ready()
    begin = process_time()
    run(keys).block_until_ready()
    return POPULATIONS * STEPS / (process_time() - begin)


def _stepped(world: World) -> float:
    env = WorldEnv(world)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 2, ALONE)
    env.step(0)
    begin = process_time()
    for action in actions:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return ALONE / (process_time() - begin)
