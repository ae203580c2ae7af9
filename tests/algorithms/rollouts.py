"""Rollouts made by hand, for tests of what is done with them."""

import jax.numpy as jnp
import numpy as np

from sellf.algorithms.algorithm import Batch, Task
from sellf.algorithms.networks import Stack
from sellf.algorithms.seen import Seen
from sellf.envs.policy import Categorical
from sellf.fairness import Counts


def task_of(world, notion, iterations=1):
    """Return a task in a world, with the usual policy."""
    actor = Stack(policies=len(world.space.actions) - 1, critics=0)
    return Task(world.space, notion, iterations, actor, world.population, world.horizon)


def seen_of(space, profile, moved, action, positive, last=None):
    """Return a rollout with these people; what the tested functions do not look at is empty."""
    profile, moved, action = (jnp.asarray(x).astype(jnp.int32) for x in (profile, moved, action))
    nothing = jnp.zeros(len(profile))
    return Seen(
        profile=profile,
        moved=moved,
        following=profile,
        group=space.group[profile],
        action=action,
        probability=nothing + 1,
        revealed=space.is_revealed(action),
        positive=jnp.asarray(positive),
        reward=nothing,
        terminated=nothing > 1,
        truncated=nothing > 1,
        disparity=nothing,
        before=nothing,
        last=last or Counts(*jnp.zeros((4, len(space.groups)))),
    )


def batch_of(space, group, logit, before, columns, figures, people=None):
    """Return a minibatch of two actions; what the tested functions do not look at is empty."""
    number = len(group)
    return Batch(
        space=space,
        policy=Categorical(jnp.asarray(logit)[None]),
        before=Categorical(jnp.asarray(before)[None]),
        values=jnp.zeros((1, number)),
        layers=[],
        group=jnp.asarray(group),
        action=jnp.zeros(number, jnp.int32),
        log_probability=jnp.zeros(number),
        target=jnp.zeros((number, 1)),
        columns={name: jnp.asarray(np.asarray(column)) for name, column in columns.items()},
        people=people,
        figures=figures,
    )
