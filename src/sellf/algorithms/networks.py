"""Small networks, all of which are evaluated in a few batched products.

Parameters are stored in one flat vector, so Adam is one fused pass over it; `unflatten` splits it
into layers. Networks of one shape, such as an actor and its critic, form a *stack* and are computed
together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from sellf.envs.policy import Categorical, Policy
from sellf.envs.space import Space

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "relu": jax.nn.relu}


@dataclass(frozen=True)
class Stack:
    """Networks of one shape, each with one output."""

    policies: int = 1
    """Number of networks of the policy, which come first: one for each action but the first. The
    others are critics."""
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
        """Return the initial scale of each network's last layer."""
        return (0.01 / np.sqrt(2),) * self.policies + (1.0,) * self.critics

    def scales(self) -> tuple[float, ...]:
        """Return the factor of each network's output.

        A policy's output is doubled. Stable-Baselines3 and the published code have two outputs, one
        per decision, that Adam moves apart with equal steps: their difference, which is the logit,
        moves twice as fast as a single output would. (The initial scale is smaller for the same
        reason.)
        """
        return (2.0,) * self.policies + (1.0,) * self.critics

    @property
    def wide(self) -> bool:
        """Whether the run time is dominated by matrix products."""
        return max(self.hidden, default=0) > 64

    @property
    def actor(self) -> "Stack":
        """The policy's networks alone."""
        return replace(self, critics=0)

    def start(self, inputs: int, keys: Iterator[Key[Array, ""]]) -> list[Array]:
        """Return orthogonal weights (gain sqrt 2 in hidden layers) and zero biases."""
        parts: list[Array] = []
        orthogonal = jax.nn.initializers.orthogonal()
        shapes = self.shapes(inputs)
        for number, shape in enumerate(shapes):
            key_layer = next(keys)
            if number % 2:
                parts.append(jnp.zeros(prod(shape)))
                continue
            last = number == len(shapes) - 2
            gains = jnp.asarray(self.gains() if last else [np.sqrt(2.0)] * shape[0], jnp.float32)
            each = jax.random.split(key_layer, shape[0])
            weights = jax.vmap(lambda k, s=shape[1:]: orthogonal(k, s, jnp.float32))(each)
            parts.append((gains[:, None, None] * weights).ravel())
        return parts

    def outputs(self, layers: list[Array], x: Float[Array, "rows inputs"]) -> Array:
        """Return the output of each network for all rows."""
        act = ACTIVATIONS[self.activation]
        if self.wide:  # one product per network: a joint product would have to be transposed
            many = jnp.broadcast_to(x, (layers[0].shape[0], *x.shape))
            h = jnp.einsum("nri,nio->nro", many, layers[0]) + layers[1]
        else:
            h = jnp.einsum("ri,nio->nro", x, layers[0]) + layers[1]
        for weights, bias in zip(layers[2::2], layers[3::2], strict=True):
            h = jnp.einsum("nri,nio->nro", act(h), weights) + bias
        return h[..., 0] * jnp.asarray(self.scales(), jnp.float32)[:, None]


@dataclass(frozen=True)
class Cells:
    """A lookup table in place of networks, with one entry per cell.

    A cell is the nearest of some prototypes, in terms of selected inputs, combined with the class
    of a score. In a small world every profile is a prototype, and there is one class.
    """

    policies: int
    """Number of tables, which hold the log-odds of every action but the first."""
    prototypes: int
    classes: int
    """Number of classes of equal width of the score, on the probability scale."""
    critics: int = 0

    @property
    def wide(self) -> bool:
        """Whether the run time is dominated by matrix products, which it is not."""
        return False

    @property
    def number(self) -> int:
        """Number of cells."""
        return self.prototypes * self.classes

    @property
    def actor(self) -> "Cells":
        """The policy alone."""
        return self

    def shapes(self, inputs: int) -> list[tuple[int, ...]]:
        """Return the shapes of: input mask, prototypes, weights and bias of the score, tables."""
        table = (self.policies, self.number)
        return [(inputs,), (self.prototypes, inputs), (inputs,), (1,), table]

    def start(self, inputs: int, keys: Iterator[Key[Array, ""]]) -> list[Array]:
        """Return zeros: everyone is in one cell, in which all actions are equally likely."""
        return [jnp.zeros(prod(shape)) for shape in self.shapes(inputs)]

    def cell(self, layers: list[Array], x: Float[Array, "rows inputs"]) -> Int[Array, " rows"]:
        """Return the cell of each row."""
        matters, prototypes, weights, bias = layers[:4]
        # |x - p|^2 - |x|^2: the second term is the same for all prototypes.
        weighed = prototypes * matters[None]
        apart = jnp.sum(weighed * prototypes, axis=1)[None] - 2 * x @ weighed.T
        share = jax.nn.sigmoid(x @ weights + bias)
        found = jnp.clip((share * self.classes).astype(jnp.int32), 0, self.classes - 1)
        return jnp.argmin(apart, axis=1).astype(jnp.int32) * self.classes + found

    def outputs(self, layers: list[Array], x: Float[Array, "rows inputs"]) -> Array:
        """Return the entry of each table for all rows."""
        return layers[4][:, self.cell(layers, x)]


AnyStack: TypeAlias = Stack | Cells


def size(stacks: tuple[AnyStack, ...], inputs: int) -> int:
    """Return the number of parameters."""
    return sum(prod(shape) for stack in stacks for shape in stack.shapes(inputs))


def init(stacks: tuple[AnyStack, ...], inputs: int, key: Key[Array, ""]) -> Float[Array, " size"]:
    """Return the initial parameters of all networks as a flat vector."""
    keys = _one_by_one(key)
    return jnp.concatenate([part for stack in stacks for part in stack.start(inputs, keys)])


def _one_by_one(key: Key[Array, ""]) -> Iterator[Key[Array, ""]]:
    while True:
        key, drawn = jax.random.split(key)
        yield drawn


def unflatten(
    stacks: tuple[AnyStack, ...], inputs: int, flat: Float[Array, " size"]
) -> list[list[Array]]:
    """Split the flat vector into layers."""
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
    stacks: tuple[AnyStack, ...], layers: list[list[Array]], x: Float[Array, "rows inputs"]
) -> Float[Array, "networks rows"]:
    """Return the outputs of all networks for all rows."""
    outputs = [stack.outputs(own, x) for stack, own in zip(stacks, layers, strict=True)]
    return jnp.concatenate(outputs) if len(outputs) > 1 else outputs[0]


def run(
    stacks: tuple[AnyStack, ...], flat: Float[Array, " size"], x: Float[Array, "rows inputs"]
) -> Float[Array, "networks rows"]:
    """Return the outputs of all networks, from the flat vector of their parameters."""
    return forward(stacks, unflatten(stacks, x.shape[-1], flat), x)


def actor_of(
    stacks: tuple[AnyStack, ...], inputs: int, flat: Float[Array, " size"]
) -> Float[Array, " part"]:
    """Return the parameters of the policy's networks alone: the first of the first stack."""
    first = unflatten(stacks, inputs, flat)[0]
    return flatten([[leaf[: stacks[0].policies] for leaf in first]])


def policy(space: Space, outputs: Callable[[Array], Array], least: float = 0.0) -> Policy:
    """Return the policy: the first networks are the log-odds of all actions but the first.

    A semi-stochastic policy always takes the first action where the probability of a favourable one
    is below `least`.
    """
    others = len(space.actions) - 1

    def decide(profile: Array) -> Categorical:
        return Categorical(outputs(profile)[:others]).or_first(space.favourable, least)

    return decide
