"""Settings as frozen dataclasses: floats are traced by JAX, all other fields are static."""

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, get_type_hints

import jax

from sellf.errors import InputError

T = TypeVar("T")
LARGEST = 10_000_000
"""Upper limit of settings that are whole numbers; larger values do not fit into memory."""
LATER = {"sharpen": 0.0}
"""Settings that were added after studies with stored runs existed. With these values a run is the
same as before, so its name in a store does not include them."""


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
    """Settings shared by all algorithms."""

    rollout: int = 2048
    """Decisions per iteration."""

    def __post_init__(self) -> None:
        check(self)


@hyperparameters
class PPO(Settings):
    """PPO, with the settings that all algorithms but sellf-plan share (App. "Exp.")."""

    learning_rate: float = 1e-5
    """Step size of Adam for the policy and its critics."""
    adam_epsilon: float = 1e-5
    """Added to the denominator in Adam."""
    gamma: float = 1.0
    """Discount of rewards."""
    gae_lambda: float = 0.95
    """lambda of the generalised advantage estimates."""
    clip: float = 0.2
    """Clipping range of the probability ratio between the new and the old policy."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    value: float = 0.5
    """Weight of the value loss."""
    gradient_norm: float = 0.5
    """Largest norm of a gradient; larger gradients are scaled down."""
    batch: int = 64
    """Decisions per gradient step."""
    epochs: int = 10
    """Passes over the decisions of a rollout."""


def check(config: Settings) -> None:
    """Refuse invalid settings; traced values are skipped, as they were checked before."""
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
