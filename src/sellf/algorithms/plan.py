"""SELLF-plan: decide, estimate the law from observations, plan in it, and prove the result.

An iteration is a rollout of the plan with some exploration. Between compiled programs, the label
law is then estimated from revealed outcomes and the transition from the observed changes of people,
and the best policy in that law is planned under a confidence bound on the disparity. In the first
part of a training (`learn_share`) the plan is updated after every rollout. The last of these plans
is the reference of the proof: the remaining decisions explore to estimate its disparity, and bound
it from logged probabilities alone (`sellf.fairness.off_policy`). The final policy is the best one
whose own bound, from the same evidence, is within omega.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sellf.algorithms import predictor as predictors
from sellf.algorithms.algorithm import Algorithm, Deciding, Extra, Result, Task
from sellf.algorithms.knowledge import Log, Planned
from sellf.algorithms.layout import Frame, stacks
from sellf.algorithms.planner import FIRST, decide, no_proof
from sellf.algorithms.predictor import LINEAR
from sellf.algorithms.seen import Seen
from sellf.envs.policy import Chances
from sellf.fairness import Notion, define
from sellf.numbers import confidence


class Additive(NamedTuple):
    """An additive model of labels."""

    parameters: Float[Array, " size"]
    """Weights, with the bias last."""


def start(task: Task, config: Planned, key: Key[Array, ""]) -> Extra:
    """Return an empty log, and the initial label model, plan and proof."""
    decisions = task.iterations * config.rollout
    cells = Frame(task.space).cells
    whole = jnp.zeros(decisions, jnp.int32)
    return {
        "log": Log(whole, whole, whole, whole, jnp.zeros(decisions), whole),
        "time": jnp.zeros((), jnp.int32),
        "iteration": jnp.zeros((), jnp.int32),
        "predictor": Additive(jnp.zeros(task.space.inputs + 1)),
        "predicted": jnp.full((task.iterations + 1, cells), 0.5),
        "plan": jnp.zeros((len(task.space.actions), cells)),
        "proof": no_proof(task.notion, len(task.space.groups), cells),
    }


def predict(task: Task, config: Any, extra: Extra) -> Chances:
    """Return the predictions of the additive model."""
    return predictors.chances(LINEAR, task, extra["predictor"])


def learn(
    task: Task, config: Planned, extra: Extra, seen: Seen, deciding: Deciding, key: Array
) -> Result:
    """Append the rollout to the log."""
    over = seen.terminated | seen.truncated
    step = jnp.arange(config.rollout)
    # For each decision, the last earlier decision that ended an episode.
    ended = jnp.concatenate([jnp.full(1, -1), jnp.where(over, step, -1)[:-1]])
    last = jax.lax.cummax(ended)
    time = jnp.where(last < 0, extra["time"] + step, step - last - 1)
    rows = Log(
        seen.profile,
        seen.moved,
        seen.action,
        jnp.where(seen.revealed, seen.positive.astype(jnp.int32), -1),
        deciding.policy(seen.profile).chance(task.space.reveals),
        time,
    )
    place = extra["iteration"] * config.rollout
    log = Log(
        *(
            jax.lax.dynamic_update_slice(kept, new.astype(kept.dtype), (place,))
            for kept, new in zip(extra["log"], rows, strict=True)
        )
    )
    now = jnp.where(over[-1], 0, time[-1] + 1)
    kept = {"log": log, "time": now, "iteration": extra["iteration"] + 1}
    return Result(extra | kept, {}, {})


def statement(notion: Notion, config: Any, rows: list[dict[str, Any]]) -> str | None:
    """Return what the evidence proves about the final policy."""
    last = rows[-1]
    if "bound" not in last:
        return None
    spent = sum(row["exploration_cost"] for row in rows[:-1]) * config.rollout
    cost = f"Exploration cost about {spent:,.0f}."
    sure = confidence(config.delta)
    if define(notion).delayed:
        return (
            f"Nothing is proven about {notion}: decisions affect it through changes in people "
            f"whose later outcomes have not been observed. {cost}"
        )
    if not last["proven_people"]:
        few = len(rows) <= FIRST
        return (
            "Nothing is proven: no decisions were left after the policy was chosen. Train for more "
            f"steps{'' if few else ', or with a smaller learn_share'}. {cost}"
        )
    whom = (
        f"on the {last['proven_people']:,.0f} people met since the proof began, weighted to those "
        "it would meet itself,"
    )
    # Enough digits to distinguish the bound from omega.
    digits = 3 if abs(last["bound"] - config.omega) > 1e-3 else 5
    between = f"from {last['bound_low']:.{digits}f} to {last['bound']:.{digits}f}"
    if last["bound"] <= config.omega:
        return (
            f"With {sure} the true disparity of this policy {whom} is at most "
            f"{last['bound']:.3f}: omega is kept. {cost}"
        )
    return (
        f"A true disparity within {config.omega:g} is not proven: with {sure} the true disparity "
        f"of this policy {whom} is {between}. More steps, or a smaller `room`, would narrow it. "
        f"{cost}"
    )


plan = Algorithm(
    "sellf-plan",
    Planned,
    "plans in the law it has learned, and proves that the disparity is within omega",
    view="imputed",
    stacks=stacks,
    predictor=LINEAR,
    start=start,
    predict=predict,
    learn=learn,
    decide=decide,
    statement=statement,
)
