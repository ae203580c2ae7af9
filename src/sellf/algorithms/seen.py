"""The part of a rollout that an algorithm may observe.

A simulation knows everyone's label. `see` removes the labels that no decision reveals: its return
type has no field for them, and the disparity in it is that of the algorithm's own view. Only the
oracle baseline has the view "true".
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
    """Decisions as observed by the decision-maker."""

    profile: Array
    """The person decided about: see `Space.tabular`."""
    moved: Array
    """The person after the decision; features are always observed."""
    following: Array
    """The next person, or who would have been next."""
    group: Int[Array, " steps"]
    action: Int[Array, " steps"]
    probability: Float[Array, " steps"]
    """Probability with which the deciding policy took the action."""
    revealed: Bool[Array, " steps"]
    """Whether the outcome is observed."""
    positive: Bool[Array, " steps"]
    """Whether the label was revealed and good: AY, which is all that is observed of labels."""
    reward: Float[Array, " steps"]
    terminated: Bool[Array, " steps"]
    truncated: Bool[Array, " steps"]
    disparity: Float[Array, " steps"]
    """|Delta_t| in the algorithm's view; 0 where it is not defined (Delta_{t+1} for qualification,
    whose window counts people after the decision)."""
    before: Float[Array, " steps"]
    """The disparity before each decision; at the start of a rollout or an episode, that of the
    refilled window. `disparity` minus this value is the contribution of the decision."""
    last: Counts
    """Counts at the end of the rollout, in the algorithm's view, per group."""


def members(group: Int[Array, " n"], groups: int) -> Float[Array, "n groups"]:
    """Return group membership as a matrix of 1 and 0."""
    return (group[:, None] == jnp.arange(groups)[None, :]).astype(jnp.float32)


def newest_first(kept: Kept, new: Kept) -> Kept:
    """Insert a new entry first and drop the oldest one, along the first axis of every leaf."""
    return jax.tree.map(lambda old, row: jnp.roll(old, 1, axis=0).at[0].set(row), kept, new)


def disparities(
    space: Space, histogram: Int[Array, "*n kinds"], notion: Notion, view: View
) -> Float[Array, "*n"]:
    """Return the disparity of the window; NaN where too few groups have a utility."""
    return gap(notion, windows.counts(space, histogram, view))


def as_signal(disparity: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return the disparity as a training signal, with 0 where it is not defined."""
    return jnp.where(jnp.isnan(disparity), 0.0, disparity)


def see(space: Space, steps: Step, policy: Policy, notion: Notion, view: View) -> Seen:
    """Return the part of a rollout that an algorithm with this view may observe."""
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
