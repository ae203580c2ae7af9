"""Where experience comes from: a policy goes in, and what it may learn from comes out."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Key

from sellf.algorithms.seen import Seen, disparities, members, see
from sellf.envs import world as worlds
from sellf.envs.policy import Chances, Policy
from sellf.envs.rollout import rollout
from sellf.envs.space import Space
from sellf.envs.world import State, Step, World
from sellf.fairness import VIEWS, Notion, View


class Asked(NamedTuple):
    """How experience is to be collected."""

    policy: Policy
    """Who decides."""
    predict: Chances | None
    """The predictor behind imputed labels, if there is one."""
    view: View
    """In which the disparity is told."""
    steps: int
    """How many decisions."""


@runtime_checkable
class Source(Protocol):
    """Something that decisions can be had from; hidden labels end in it."""

    @property
    def space(self) -> Space:
        """What may be known of the people and the actions."""
        ...

    def start(self, key: Key[Array, ""]) -> Any:
        """Return the state that the first decisions begin from."""
        ...

    def collect(
        self, key: Key[Array, ""], state: Any, asked: Asked
    ) -> tuple[Any, Seen, dict[str, Array]]:
        """Return the state after the decisions, what may be seen of them, and figures to log."""
        ...


class Simulator(eqx.Module):
    """Decisions in a world."""

    world: World
    notion: Notion = eqx.field(static=True)

    @property
    def space(self) -> Space:
        """What may be known of the world."""
        return self.world.space

    def start(self, key: Key[Array, ""]) -> State:
        """Draw a population."""
        return worlds.reset(self.world, key)

    def collect(
        self, key: Key[Array, ""], state: State, asked: Asked
    ) -> tuple[State, Seen, dict[str, Array]]:
        """Let the policy decide, and hide the labels that its decisions do not reveal."""
        after, steps = rollout(
            self.world, key, state, asked.steps, asked.policy, self.notion, asked.predict
        )
        steps = worlds.observed(self.world, steps)
        seen = see(self.space, steps, asked.policy, self.notion, asked.view)
        return after, seen, self._measure(steps)

    def _measure(self, steps: Step) -> dict[str, Array]:
        """Return what to log; the true figures are for people, not for the algorithm.

        A disparity is the mean over the decisions after which it is defined; NaN if it never is.
        """
        space = self.space
        member = members(space.group_of(steps.profile), len(space.groups))
        accepted = space.is_favourable(steps.outcome.action).astype(jnp.float32) @ member
        return {
            "reward": jnp.sum(steps.reward),
            "acceptance": accepted / jnp.maximum(jnp.sum(member, axis=0), 1.0),
            **{
                f"disparity_{view}": jnp.nanmean(
                    disparities(space, steps.histogram, self.notion, view)
                )
                for view in VIEWS
            },
        }
