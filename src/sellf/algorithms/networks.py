"""Small networks, many at once: all of an algorithm's networks in a few batched products.

Parameters live in one flat vector, so that Adam is one fused pass over it; `unflatten` cuts it
into layers. Networks of one shape (an actor and its critic, say) are a *stack*, computed together.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from sellf.envs.policy import Categorical, Policy
from sellf.envs.space import Space

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "relu": jax.nn.relu}


@dataclass(frozen=True)
class Stack:
    """Networks of one shape, each with one output."""

    policies: int = 1
    """How many of the networks, the first ones, are the policy: one for each action but the first.
    The others are critics."""
    critics: int = 1
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"

    def shapes(self, inputs: int) -> list[tuple[int, ...]]:
        """Return the shapes of weights and biases, layer by layer."""
        sizes = (inputs, *self.hidden, 1)
        layers = pairwise(sizes)
        count = self.policies + self.critics
        return [shape for i, o in layers for shape in ((count, i, o), (count, 1, o))]

    def gains(self) -> tuple[float, ...]:
        """Return the scale of each network's last layer at the start."""
        return (0.01 / np.sqrt(2),) * self.policies + (1.0,) * self.critics

    def scales(self) -> tuple[float, ...]:
        """Return what each network's output is multiplied with.

        A policy's is doubled. Stable-Baselines3 and the published code have two outputs, one per
        decision, that Adam moves apart with equal steps: the difference, which is the logit, moves
        twice as fast as a single output would. (The start is smaller for the same reason.)
        """
        return (2.0,) * self.policies + (1.0,) * self.critics

    @property
    def wide(self) -> bool:
        """Whether its products, and not the steps between them, are what takes time."""
        return max(self.hidden, default=0) > 64

    @property
    def actor(self) -> "Stack":
        """The policy's networks alone."""
        return replace(self, critics=0)


def size(stacks: tuple[Stack, ...], inputs: int) -> int:
    """Return how many parameters there are."""
    return sum(prod(shape) for stack in stacks for shape in stack.shapes(inputs))


def init(stacks: tuple[Stack, ...], inputs: int, key: Key[Array, ""]) -> Float[Array, " size"]:
    """Return orthogonal weights (gain sqrt 2 in hidden layers) and zero biases, flat."""
    parts: list[Array] = []
    orthogonal = jax.nn.initializers.orthogonal()
    for stack in stacks:
        shapes = stack.shapes(inputs)
        for number, shape in enumerate(shapes):
            key, key_layer = jax.random.split(key)
            if number % 2:
                parts.append(jnp.zeros(prod(shape)))
                continue
            last = number == len(shapes) - 2
            gains = jnp.asarray(stack.gains() if last else [np.sqrt(2.0)] * shape[0], jnp.float32)
            keys = jax.random.split(key_layer, shape[0])
            weights = jax.vmap(lambda k, s=shape[1:]: orthogonal(k, s, jnp.float32))(keys)
            parts.append((gains[:, None, None] * weights).ravel())
    return jnp.concatenate(parts)


def unflatten(
    stacks: tuple[Stack, ...], inputs: int, flat: Float[Array, " size"]
) -> list[list[Array]]:
    """Cut the flat vector into layers."""
    layers: list[list[Array]] = []
    start = 0
    for stack in stacks:
        own: list[Array] = []
        for shape in stack.shapes(inputs):
            own.append(flat[start : start + prod(shape)].reshape(shape))
            start += prod(shape)
        layers.append(own)
    return layers


def flatten(layers: list[list[Array]]) -> Float[Array, " size"]:
    """Join layers into one vector."""
    return jnp.concatenate([leaf.ravel() for own in layers for leaf in own])


def forward(
    stacks: tuple[Stack, ...], layers: list[list[Array]], x: Float[Array, "rows inputs"]
) -> Float[Array, "networks rows"]:
    """Return the outputs of all networks for all rows."""
    outputs: list[Array] = []
    for stack, own in zip(stacks, layers, strict=True):
        act = ACTIVATIONS[stack.activation]
        if stack.wide:  # as many products as networks: one of all would be transposed after it
            many = jnp.broadcast_to(x, (own[0].shape[0], *x.shape))
            h = jnp.einsum("nri,nio->nro", many, own[0]) + own[1]
        else:
            h = jnp.einsum("ri,nio->nro", x, own[0]) + own[1]
        for weights, bias in zip(own[2::2], own[3::2], strict=True):
            h = jnp.einsum("nri,nio->nro", act(h), weights) + bias
        scale = jnp.asarray(stack.scales(), jnp.float32)
        outputs.append(h[..., 0] * scale[:, None])
    return jnp.concatenate(outputs) if len(outputs) > 1 else outputs[0]


def run(
    stacks: tuple[Stack, ...], flat: Float[Array, " size"], x: Float[Array, "rows inputs"]
) -> Float[Array, "networks rows"]:
    """Return the outputs of all networks, from the flat vector of their parameters."""
    return forward(stacks, unflatten(stacks, x.shape[-1], flat), x)


def actor_of(
    stacks: tuple[Stack, ...], inputs: int, flat: Float[Array, " size"]
) -> Float[Array, " part"]:
    """Return the parameters of the policy's networks alone: the first of the first stack."""
    first = unflatten(stacks, inputs, flat)[0]
    return flatten([[leaf[: stacks[0].policies] for leaf in first]])


def policy(space: Space, outputs: Callable[[Array], Array], least: float = 0.0) -> Policy:
    """Return the policy: the first networks are the log-odds of all actions but the first.

    A semi-stochastic policy takes the first action for certain wherever a favourable one would be
    less likely than `least`.
    """
    others = len(space.actions) - 1

    def decide(profile: Array) -> Categorical:
        return Categorical(outputs(profile)[:others]).or_first(space.favourable, least)

    return decide
