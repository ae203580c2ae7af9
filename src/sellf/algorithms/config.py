"""Settings as frozen dataclasses: floats are leaves of a program, everything else shapes it."""

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, get_type_hints

import jax

from sellf.errors import InputError

T = TypeVar("T")
LARGEST = 10_000_000
"""Of settings that are whole numbers: what is larger fits into no memory."""
LATER = {"sharpen": 0.0}
"""Settings that were added when there were studies with kept runs. With these values a run is the
run that it was before, so its name in a store does not mention them."""


@dataclass_transform(frozen_default=True)
def hyperparameters(cls: type[T]) -> type[T]:
    """Make a frozen dataclass whose floats JAX may vary within one compiled program."""
    frozen = dataclass(frozen=True)(cls)
    hints = get_type_hints(frozen)
    names = [field.name for field in dataclasses.fields(frozen)]  # pyright: ignore
    leaves = [name for name in names if hints[name] is float]
    static = [name for name in names if name not in leaves]
    jax.tree_util.register_dataclass(frozen, leaves, static)
    return frozen


@hyperparameters
class Settings:
    """What all algorithms share."""

    rollout: int = 2048
    """Decisions per iteration."""

    def __post_init__(self) -> None:
        check(self)


@hyperparameters
class PPO(Settings):
    """Proximal policy optimisation, with the settings that all algorithms share (App. "Exp.")."""

    learning_rate: float = 1e-5
    """Step size of Adam for the policy and its critics."""
    adam_epsilon: float = 1e-5
    """Added to the denominator in Adam."""
    gamma: float = 1.0
    """Discount of rewards."""
    gae_lambda: float = 0.95
    """lambda of the advantage estimates."""
    clip: float = 0.2
    """How far the probability of a decision may move from where it was collected."""
    entropy: float = 0.0
    """Weight of the policy's entropy."""
    value: float = 0.5
    """Weight of the value loss."""
    gradient_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    batch: int = 64
    """Decisions per gradient step."""
    epochs: int = 10
    """How often each decision is used."""


def check(config: Settings) -> None:
    """Refuse settings that cannot work; values that a program varies are checked before."""
    for field in dataclasses.fields(config):  # pyright: ignore[reportArgumentType]
        value = getattr(config, field.name)
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            continue
        if value != value or value in (float("inf"), float("-inf")):
            raise InputError(f"{field.name} is {value}: give a finite number.")
        if isinstance(value, int) and field.type is int and value < 1:
            raise InputError(f"{field.name} is {value}: give 1 or more.")
        if isinstance(value, int) and field.type is int and value > LARGEST:
            raise InputError(f"{field.name} is too large: give {LARGEST:,} or less.")
        if value < 0 and field.name != "predictor_start":  # log-odds
            raise InputError(f"{field.name} is {value}: give 0 or more.")
        if field.name in ("learning_rate", "adam_epsilon") and value == 0:
            raise InputError(f"{field.name} is 0: give a number above 0.")
        if field.name in ("guard_delta", "delta") and not 0 < value < 1:
            raise InputError(f"{field.name} is {value}: give a number above 0 and below 1.")
        if field.name in ("gamma", "gae_lambda", "omega") and value > 1:
            raise InputError(f"{field.name} is {value}: give a number from 0 to 1.")
    for name in ("rollout", "batch"):
        if getattr(config, name, 2) == 1:
            raise InputError(
                f"{name} is 1: give 2 or more, as decisions are compared within a batch."
            )
    if isinstance(config, PPO) and config.rollout % config.batch:
        near = config.rollout // config.batch * config.batch or config.batch
        raise InputError(
            f"batch is {config.batch}, which does not divide rollout, {config.rollout}: change "
            f"one of them, for example rollout to {near}."
        )


def as_dict(config: Any) -> dict[str, Any]:
    """Return the settings as plain values."""
    return dataclasses.asdict(config)
