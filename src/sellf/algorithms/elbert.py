"""ELBERT (Xu et al. 2024): the squared difference of long-term benefit rates, by the chain rule."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sellf.algorithms.algorithm import Algorithm, Critique, Extra, Result, Task
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.networks import Stack
from sellf.algorithms.seen import Seen, members
from sellf.envs.space import Space
from sellf.fairness import Counts, define


@hyperparameters
class ELBERT(PPO):
    """PPO whose advantage goes against the bias of groups' long-term supply over demand."""

    beta_bias: float = 200.0
    """beta: weight of the squared bias."""
    fairness_gamma: float = 0.99
    """Discount of supply and demand, so that their critics have something to learn."""


def signals(task: Task, config: ELBERT, extra: Extra, seen: Seen) -> tuple[Array, Array]:
    """Return the reward, then each group's supply and demand, where outcomes are revealed.

    They are what is above and below the line of the notion's utility. Qualification and accuracy:
    of the accepted (demand), those with a good label (supply). Opportunity: of the accepted with a
    good label, those accepted, which is all of them; as Prop. 1 says, there is no bias to be seen.
    """
    rate = define(task.notion).alone
    favourable = task.space.is_favourable(seen.action)
    parts = (seen.revealed, seen.revealed & favourable, favourable & seen.positive)
    counts = Counts(*(x.astype(jnp.float32) for x in (*parts, ~favourable & seen.positive)))
    member = members(seen.group, len(task.space.groups))
    parts = [sums.total(counts)[:, None] * member for sums in rate.sums]
    gamma = jnp.full(2 * member.shape[1], config.fairness_gamma)
    first = jnp.asarray(config.gamma, jnp.float32)[None]
    return jnp.concatenate([seen.reward[:, None], *parts], 1), jnp.concatenate([first, gamma])


def squared_bias(supply: Float[Array, " groups"], demand: Float[Array, " groups"]) -> Array:
    """Return (max - min)^2 of supply over demand; two groups: the square of their difference."""
    rate = supply / jnp.maximum(demand, 1e-6)
    return (jnp.max(rate) - jnp.min(rate)) ** 2


def weigh(task: Task, config: ELBERT, extra: Extra, seen: Seen, critique: Critique) -> Result:
    """Return A - beta d(bias^2), the bias's derivative along supply's and demand's advantages."""
    groups = len(task.space.groups)
    total = jnp.mean(critique.target, axis=0)
    supply, demand = total[1 : 1 + groups], total[1 + groups :]
    slopes = jax.grad(squared_bias, argnums=(0, 1))(supply, demand)
    change = critique.advantage[:, 1:] @ jnp.concatenate(slopes)
    columns = {"advantage": critique.advantage[:, 0] - config.beta_bias * change}
    return Result(extra, columns, {})


def stacks(space: Space) -> tuple[Stack, ...]:
    """Have the policy, and larger critics of the reward and each group's supply and demand."""
    critics = 1 + 2 * len(space.groups)
    return (
        Stack(policies=len(space.actions) - 1, critics=0),
        Stack(policies=0, critics=critics, hidden=(256, 128), activation="relu"),
    )


elbert = Algorithm(
    "elbert",
    ELBERT,
    "against the bias of long-term benefit rates among the accepted",
    stacks=stacks,
    signals=signals,
    weigh=weigh,
)
