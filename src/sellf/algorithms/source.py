"""Sources of experience: they take a policy and return the decisions it may learn from."""

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
    """A request to collect experience."""

    policy: Policy
    """The policy that decides."""
    predict: Chances | None
    """The predictor behind imputed labels, if there is one."""
    view: View
    """View in which the disparity is reported."""
    steps: int
    """Number of decisions."""


@runtime_checkable
class Source(Protocol):
    """A source of decisions, which never passes on hidden labels."""

    @property
    def space(self) -> Space:
        """What a decision-maker may know about people and actions."""
        ...

    @property
    def population(self) -> int:
        """Size of the population from which the next person is drawn."""
        ...

    @property
    def horizon(self) -> int:
        """Largest number of decisions in an episode."""
        ...

    def start(self, key: Key[Array, ""]) -> Any:
        """Return the state before the first decision."""
        ...

    def collect(
        self, key: Key[Array, ""], state: Any, asked: Asked
    ) -> tuple[Any, Seen, dict[str, Array]]:
        """Return the state after the decisions, their observable part, and values to log."""
        ...


class Simulator(eqx.Module):
    """A source that simulates decisions in a world."""

    world: World
    notion: Notion = eqx.field(static=True)

    @property
    def space(self) -> Space:
        """What a decision-maker may know about the world."""
        return self.world.space

    @property
    def population(self) -> int:
        """Size of the population."""
        return self.world.population

    @property
    def horizon(self) -> int:
        """Largest number of decisions in an episode."""
        return self.world.horizon

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
        """Return values to log; those of the true disparity are not visible to the algorithm.

        A disparity is averaged over the decisions after which it is defined; NaN if it never is.
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
