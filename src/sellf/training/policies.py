"""Conversion of policies (models of other libraries, or functions) to action distributions."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sellf.envs.policy import Categorical, Policy
from sellf.envs.space import SMALL, Space, observe
from sellf.errors import InputError
from sellf.fairness.checks import short
from sellf.fairness.tables import as_pandas

Ask: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""A function from observations (rows, inputs) to action probabilities (rows, actions)."""
NEVER = 1e-30
"""Replaces a probability of 0, whose log-odds would be infinite; it is never drawn either."""
WHAT = (
    "give an agent of sellf.train, an object with predict_proba or predict (Stable-Baselines3), or "
    "a function of observations"
)


def asking(policy: Any, space: Space) -> Ask:
    """Return a policy as a function from observations to checked action probabilities.

    Args:
        policy: an object with `predict_proba`, which returns action probabilities, or with
            `predict`, which returns actions; or a function that returns either.
        space: the space of the people to decide about.
    """
    call = _call(policy, space)

    def ask(observations: np.ndarray) -> np.ndarray:
        return _chances(call(observations), len(observations), space)

    return ask


def tabulated_policy(policy: Any, space: Space) -> np.ndarray:
    """Return the log-odds of each action except the first, by profile."""
    ask = asking(policy, space)
    pieces = []
    for start in range(0, space.profiles, SMALL):
        profiles = jnp.arange(start, min(start + SMALL, space.profiles))
        rows = np.asarray(observe(space, profiles))
        chances = ask(rows)
        if not start:
            refuse_drawing(ask, rows, chances)
        pieces.append(chances)
    return log_odds(np.concatenate(pieces))


def called_back(policy: Any, space: Space) -> Policy:
    """Return a policy that a compiled program calls back, for worlds without a table."""
    ask = asking(policy, space)
    others = len(space.actions) - 1

    def decide(people: Array) -> Categorical:
        rows = observe(space, people).reshape(-1, space.inputs)
        shape = jax.ShapeDtypeStruct((others, rows.shape[0]), jnp.float32)
        found = jax.pure_callback(
            lambda x: log_odds(ask(np.asarray(x))), shape, rows, vmap_method="sequential"
        )
        return Categorical(found.reshape(others, *people.shape[:-1]))

    return decide


def log_odds(chances: np.ndarray) -> np.ndarray:
    """Convert probabilities (rows, actions) to log-odds of all actions but the first."""
    logs = np.log(np.maximum(chances.T.astype(np.float64), NEVER))
    return (logs[1:] - logs[:1]).astype(np.float32)


def refuse_drawing(ask: Ask, rows: np.ndarray, chances: np.ndarray) -> None:
    """Refuse a policy that draws its decisions itself, whose probabilities are unknown."""
    if not np.allclose(ask(rows), chances, atol=1e-5):
        raise InputError(
            "the policy returns different results when called twice: if it draws decisions, return "
            "the probability of each action instead, one row per person."
        )


def _call(policy: Any, space: Space) -> Callable[[np.ndarray], Any]:
    if hasattr(policy, "predict_proba"):
        return lambda x: np.asarray(policy.predict_proba(_columns(policy, x, space)), np.float64)
    if hasattr(policy, "predict"):
        try:
            known = inspect.signature(policy.predict).parameters
        except (TypeError, ValueError):
            known = {}
        # Stable-Baselines3 draws actions by default.
        options = {"deterministic": True} if "deterministic" in known else {}

        def predict(x: np.ndarray) -> Any:
            said = policy.predict(_columns(policy, x, space), **options)
            return said[0] if isinstance(said, tuple) else said

        return predict
    if callable(policy):
        return policy
    raise InputError(f"policy is {short(policy)}: {WHAT}.")


def _columns(policy: Any, rows: np.ndarray, space: Space) -> Any:
    """Return observations as named columns if the classifier was fitted with names."""
    names = getattr(policy, "feature_names_in_", None)
    if names is None:
        return rows
    unknown = [name for name in names if name not in space.columns]
    if unknown:
        raise InputError(
            f"the classifier expects {unknown}, which is not among the inputs: fit it on "
            f"world.columns, {', '.join(space.columns[:3])}, ..."
        )
    chosen = {name: rows[:, space.columns.index(name)] for name in names}
    frame = as_pandas(chosen)
    return np.column_stack(list(chosen.values())) if frame is None else frame


def _chances(said: Any, rows: int, space: Space) -> np.ndarray:
    """Return a policy's result as action probabilities; refuse anything else."""
    actions = len(space.actions)
    listed = ", ".join(f"{number} ({name})" for number, name in enumerate(space.actions))
    found = np.asarray(said)
    if found.shape == (rows,) and found.dtype.kind in "iub":
        strange = found[(found < 0) | (found >= actions)]
        if strange.size:
            raise InputError(f"the policy's action is {strange[0]}: return one of {listed}.")
        return np.eye(actions)[found.astype(np.int64)]
    if found.dtype.kind != "f":
        raise InputError(f"the policy returns {short(said)}: {_expected(rows, actions, listed)}")
    if found.shape == (rows,) and actions == 2:
        found = np.stack([1 - found, found], axis=1)
    if found.shape != (rows, actions):
        raise InputError(
            f"the policy returns shape {found.shape}: {_expected(rows, actions, listed)}"
        )
    total = found.sum(axis=1)
    if not (found >= 0).all() or not (abs(total - 1) <= 1e-4).all():
        worst = total[np.argmax(np.where(np.isnan(total), np.inf, abs(total - 1)))]
        raise InputError(
            f"the policy's probabilities sum to {worst:g} for someone (smallest "
            f"{found.min():g}): they must be 0 or more and sum to 1."
        )
    return found / total[:, None]


def _expected(rows: int, actions: int, listed: str) -> str:
    return (
        f"for {rows:,} people return {rows:,} actions ({listed}), or their probabilities with "
        f"shape ({rows:,}, {actions})."
    )
