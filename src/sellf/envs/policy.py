"""Policies: a distribution over actions for every person.

A policy is given by the log-odds of each action but the first, relative to the first. With two
actions there is one number, the logit of acceptance, and every formula reduces to its sigmoid.
"""

from functools import reduce
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sellf.envs.space import Space

Actions = tuple[bool, ...]
"""A subset of the actions: `Space.reveals`, `Space.favourable`, or others."""


class Categorical(NamedTuple):
    """Distributions over actions, one for each person."""

    log_odds: Float[Array, "others ..."]

    @property
    def actions(self) -> int:
        """Number of actions."""
        return self.log_odds.shape[0] + 1

    def logit(self, actions: Actions) -> Float[Array, "*n"]:
        """Return the log-odds of taking one of these actions, against all others."""
        rows = [jnp.zeros_like(self.log_odds[0]), *self.log_odds]
        inside, outside = (
            reduce(jnp.logaddexp, [row for row, yes in zip(rows, actions, strict=True) if yes == w])
            for w in (True, False)
        )
        return inside - outside

    def chance(self, actions: Actions) -> Float[Array, "*n"]:
        """Return the probability that one of these actions is taken."""
        return jax.nn.sigmoid(self.logit(actions))

    def each(self) -> list[Array]:
        """Return the log-odds of every action against all others."""
        numbers = range(self.actions)
        return [self.logit(tuple(a == b for b in numbers)) for a in numbers]

    def probabilities(self) -> Float[Array, "actions ..."]:
        """Return the probability of every action."""
        return jax.nn.sigmoid(jnp.stack(self.each()))

    def log_probability(self, action: Int[Array, "*n"]) -> Float[Array, "*n"]:
        """Return the log-probability of each decision."""
        first, *others = self.each()
        for number, logit in enumerate(others, start=1):
            first = jnp.where(action == number, logit, first)
        return -jax.nn.softplus(-first)

    def entropy(self) -> Float[Array, "*n"]:
        """Return the entropy of each decision."""
        return self._normaliser() - self._mean(self.log_odds)

    def divergence(self, old: "Categorical") -> Float[Array, "*n"]:
        """Return KL(self || old) of each decision."""
        moved = self._mean(self.log_odds - old.log_odds)
        return moved - self._normaliser() + old._normaliser()

    def at_least(self) -> Float[Array, "others ..."]:
        """Return the probability that an action is the second or later, the third or later, ..."""
        numbers = range(self.actions)
        return jnp.stack([self.chance(tuple(b >= a for b in numbers)) for a in numbers[1:]])

    def sample(self, luck: Float[Array, "*n"]) -> Int[Array, "*n"]:
        """Return sampled decisions; `luck` is uniform on [0, 1)."""
        return drawn(self.at_least(), luck)

    def or_first(self, actions: Actions, least: float) -> "Categorical":
        """Return the distribution that takes the first action where others are too unlikely.

        Args:
            actions: a subset of the actions, without the first.
            least: the probability of this subset below which the first action is certain.
        """
        if not least:
            return self
        return Categorical(jnp.where((self.chance(actions) < least)[None], -jnp.inf, self.log_odds))

    def _mean(self, values: Float[Array, "others ..."]) -> Float[Array, "*n"]:
        """Return the expectation of a value that is given for each action but the first."""
        logits = self.each()[1:]
        return sum(jax.nn.sigmoid(x) * v for x, v in zip(logits, values, strict=True))  # pyright: ignore

    def _normaliser(self) -> Float[Array, "*n"]:
        return reduce(jnp.logaddexp, [*self.log_odds, jnp.zeros_like(self.log_odds[0])])


@runtime_checkable
class Policy(Protocol):
    """A function from profiles to distributions over actions."""

    def __call__(self, profile: Int[Array, "*n"], /) -> Categorical: ...


@runtime_checkable
class Chances(Protocol):
    """A predictor: a function from profiles to probabilities of a good label."""

    def __call__(self, profile: Int[Array, "*n"], /) -> Float[Array, "*n"]: ...


@runtime_checkable
class Thresholds(Protocol):
    """A policy in the form used for sampling, by profile: `Categorical.at_least`."""

    def __call__(self, profile: Int[Array, "*n"], /) -> Float[Array, "others ..."]: ...


def thresholds(space: Space, policy: Policy) -> Thresholds:
    """Return a policy in the form used for sampling; in a small world it is a table."""
    if space.small:
        table = policy(jnp.arange(space.profiles)).at_least()
        return lambda profile: table[:, profile]
    return lambda profile: policy(profile).at_least()


def drawn(at_least: Float[Array, "others ..."], luck: Float[Array, "*n"]) -> Int[Array, "*n"]:
    """Return sampled decisions from the probabilities of `Categorical.at_least`."""
    return jnp.sum(luck[None] < at_least, axis=0, dtype=jnp.int32)


def chance_of(actions: Actions, at_least: Float[Array, "others ..."]) -> Float[Array, "*n"]:
    """Return the probability of some actions from the probabilities of `Categorical.at_least`."""
    steps = [jnp.ones_like(at_least[0]), *at_least, jnp.zeros_like(at_least[0])]
    return sum(
        (steps[a] - steps[a + 1] for a, yes in enumerate(actions) if yes), jnp.zeros_like(steps[0])
    )


def of_chances(accept: Chances) -> Policy:
    """Return a policy with two actions from the probabilities of the second."""
    return lambda profile: Categorical(jax.scipy.special.logit(accept(profile))[None])
