"""Adam on one flat vector."""

from typing import NamedTuple, Self

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

BETA1, BETA2 = 0.9, 0.999


class Learner(NamedTuple):
    """Parameters, and Adam's estimates of the moments of their gradients."""

    parameters: Float[Array, " size"]
    first: Float[Array, " size"]
    second: Float[Array, " size"]
    steps: Int[Array, ""]

    @classmethod
    def new(cls, parameters: Float[Array, " size"]) -> Self:
        """Return a learner that has taken no step yet."""
        nothing = jnp.zeros_like(parameters)
        return cls(parameters, nothing, nothing + 0.0, jnp.zeros((), jnp.int32))

    def step(
        self, gradient: Float[Array, " size"], rate: Array | float, epsilon: Array | float
    ) -> Self:
        """Take one step down the gradient."""
        steps = self.steps + 1
        count = steps.astype(jnp.float32)
        first = BETA1 * self.first + (1 - BETA1) * gradient
        second = BETA2 * self.second + (1 - BETA2) * gradient * gradient
        size = rate / (1 - BETA1**count)
        spread = jnp.sqrt(second / (1 - BETA2**count)) + epsilon
        return type(self)(self.parameters - size * first / spread, first, second, steps)


def at_most(gradient: Float[Array, " size"], norm: Array | float) -> Float[Array, " size"]:
    """Scale a gradient down to a norm, if its own norm is larger."""
    length = jnp.sqrt(jnp.sum(gradient * gradient))
    return gradient * jnp.minimum(1.0, norm / (length + 1e-6))
