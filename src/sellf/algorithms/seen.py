"""What an algorithm may see of decisions.

Whoever simulates holds everyone's label. `see` is where those that no decision reveals end: the
type that it returns has no place for them, and the disparity it holds is the one of the algorithm's
own view. Only the oracle baseline has the view "true".
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sellf.envs import window as windows
from sellf.envs.policy import Policy
from sellf.envs.space import Space
from sellf.envs.world import Step
from sellf.fairness import Counts, Notion, View, gap

Kept = TypeVar("Kept")


class Seen(NamedTuple):
    """Decisions as the decision-maker knows them."""

    profile: Array
    """The person decided about: see `Space.tabular`."""
    moved: Array
    """The person after the decision: features are always seen."""
    following: Array
    """Who came next, or would have."""
    group: Int[Array, " steps"]
    action: Int[Array, " steps"]
    probability: Float[Array, " steps"]
    """With which the action was taken, by whoever decided."""
    revealed: Bool[Array, " steps"]
    """Whether the outcome is seen."""
    positive: Bool[Array, " steps"]
    """Revealed, and the label was good: AY, which is all that is seen of labels."""
    reward: Float[Array, " steps"]
    terminated: Bool[Array, " steps"]
    truncated: Bool[Array, " steps"]
    disparity: Float[Array, " steps"]
    """|Delta_t| in the algorithm's view; 0 where it is not defined (Delta_{t+1} for qualification,
    whose window counts people after the decision)."""
    before: Float[Array, " steps"]
    """The same as each decision found it; at the start of a rollout and of an episode, that of the
    refilled window. What `disparity` is above it is what the decision added."""
    last: Counts
    """The counts at the end of the rollout, in the algorithm's view, per group."""


def members(group: Int[Array, " n"], groups: int) -> Float[Array, "n groups"]:
    """Return who belongs to which group, as 1 and 0."""
    return (group[:, None] == jnp.arange(groups)[None, :]).astype(jnp.float32)


def newest_first(kept: Kept, new: Kept) -> Kept:
    """Put what is new before what is kept, in place of the oldest; every leaf's first axis."""
    return jax.tree.map(lambda old, row: jnp.roll(old, 1, axis=0).at[0].set(row), kept, new)


def disparities(
    space: Space, histogram: Int[Array, "*n kinds"], notion: Notion, view: View
) -> Float[Array, "*n"]:
    """Return the window's disparity, NaN where too few groups have a utility."""
    return gap(notion, windows.counts(space, histogram, view))


def as_signal(disparity: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return a disparity to learn from: one that is not defined gives no reason to change."""
    return jnp.where(jnp.isnan(disparity), 0.0, disparity)


def see(space: Space, steps: Step, policy: Policy, notion: Notion, view: View) -> Seen:
    """Return what an algorithm with this view may see of a rollout."""
    action = steps.outcome.action
    revealed = space.is_revealed(action)
    return Seen(
        profile=steps.profile,
        moved=steps.outcome.moved,
        following=steps.following,
        group=space.group_of(steps.profile),
        action=action,
        probability=jnp.exp(policy(steps.profile).log_probability(action)),
        revealed=revealed,
        positive=revealed & steps.outcome.label,
        reward=steps.reward,
        terminated=steps.terminated,
        truncated=steps.truncated,
        disparity=as_signal(disparities(space, steps.histogram, notion, view)),
        before=as_signal(disparities(space, steps.before, notion, view)),
        last=windows.counts(space, steps.histogram[-1], view),
    )
