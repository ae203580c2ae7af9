"""The update of SELLF-plan, in NumPy: planning, exploration by design, and the proof."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sellf.algorithms.algorithm import Extra, Task
from sellf.algorithms.knowledge import Knowledge, Planned, Planning, know
from sellf.algorithms.layout import Frame
from sellf.fairness import Notion, define
from sellf.fairness.off_policy import (
    LEANS,
    Bound,
    Directions,
    Expected,
    Shares,
    bound,
    directions,
    gather,
)
from sellf.planning.law import Floats
from sellf.planning.result import NEVER

FIRST = 2
"""Earliest rollout after which a proof can begin."""
TURNS = 6
"""Largest number of adjustments of the final plan to the slack of its bound."""
LEAST = 0.02
"""Smallest disparity limit of a plan, as a share of omega: with a limit of 0, all groups would have
to be equal at every time, and the optimiser takes a minute instead of a second."""
ROUNDED = 1e-5
"""Allowance for rounding: the final policy's log-odds have 32 bits and errors of up to 2e-6. Its
probabilities have the same error, relative to their size, and ratios have twice that."""
KEPT = 0.5
"""Share of the initial exploration probabilities that the proof relies on later."""


class Proof(NamedTuple):
    """Quantities fixed at the start of the proof."""

    begun: Int[Array, ""]
    """Iteration at which the proof began; 0 if it has not."""
    directions: Any
    """`Directions`."""
    least: Float[Array, " cells"]
    """Lower bound of the probability with which outcomes will be revealed."""


def no_proof(notion: Notion, groups: int, cells: int) -> Proof:
    """Return a proof that has not begun."""
    size, pairs = len(define(notion).rates), max(1, groups * (groups - 1) // 2)
    over_cells = [jnp.zeros((size, cells))] * 2
    stakes = [jnp.ones((size, pairs)), jnp.ones((2, size, groups)), jnp.ones(cells)]
    none: Any = (*over_cells, *stakes, jnp.ones((size, pairs)))
    return Proof(jnp.zeros((), jnp.int32), Directions(*none), jnp.zeros(cells))


def decide(
    task: Task, config: Planned, iteration: int, extra: Extra
) -> tuple[Floats, Extra, dict[str, Any]]:
    """Return the policy of the next rollout or, after the last one, the final policy."""
    if not iteration:
        return _first(task, config), extra, {}
    known = know(task, config, iteration, extra)
    begins = max(FIRST, int(np.ceil(config.learn_share * task.iterations)))
    delayed = define(task.notion).delayed
    proof: Proof = extra["proof"]
    chance = np.asarray(extra["plan"], np.float64)
    planned = float("nan")
    if not proof.begun:
        near = [chance] if chance.any() else []
        found = _cautious(known, near)
        chance, planned = found.chance, found.disparity
    behaviour = chance
    proven, as_met = Bound(0.0, 0.0, 1.0, config.delta, 0), 1.0
    evidence = None
    if proof.begun:
        evidence = _evidence(known, proof, extra, iteration)
        proven = evidence(chance)
    if not delayed and iteration < task.iterations:
        enough = proven.high - proven.estimate <= config.room * config.omega
        behaviour = _exploring(known, proof, chance, begins, enough)
        if iteration == begins:
            proof = _begin(known, chance, behaviour, begins)
    if evidence is not None:
        if iteration == task.iterations:
            found, proven = _final(known, chance, evidence)
            chance, planned = found.chance, found.disparity
            behaviour = chance
        as_met = evidence(chance, as_met=True).high
    predicted = np.array(extra["predicted"])
    predicted[iteration] = known.labels.chance
    kept = extra | {
        "predictor": extra["predictor"]._replace(parameters=known.weights),
        "predicted": predicted,
        "plan": chance,
        "proof": proof,
    }
    lost = float((known.people * ((chance - behaviour) * known.gain).sum(axis=0)).sum())
    figures = {
        "planned": planned if np.isfinite(planned) else 0.0,
        "standard_error": known.error(chance) if not delayed else 0.0,
        "estimate": proven.estimate if np.isfinite(proven.estimate) else 1.0,
        "bound_low": proven.low,
        "bound": proven.high,
        "bound_as_met": as_met,
        "proven_people": float(proven.people),
        "exploration_cost": lost,
    }
    return _parameters(known.frame, known.weights, behaviour), kept, figures


def _first(task: Task, config: Planned) -> Floats:
    """Return the initial policy, which takes revealing actions with a fixed probability."""
    frame, space = Frame(task.space), task.space
    reveals = np.asarray(space.reveals)
    chance = np.where(reveals, config.first / reveals.sum(), 0.0)
    chance[~reveals] = (1 - config.first) / max(1, (~reveals).sum())
    chance = np.tile((chance / chance.sum())[:, None], (1, frame.cells))
    return _parameters(frame, np.zeros(space.inputs + 1), chance)


def _parameters(frame: Frame, weights: Floats, chance: Floats) -> Floats:
    logs = np.log(np.maximum(chance, NEVER))
    return frame.parameters(weights, logs[1:] - logs[:1])


def _cautious(known: Knowledge, near: list[Floats]) -> Planning:
    """Return the best policy whose estimated disparity is below omega by a margin for its error."""
    config = known.config
    found, room = None, config.omega / 2
    if near:
        room = config.omega - known.margin(near[0])
    for _ in range(2):
        found = known.plan(max(room, config.omega / 10), near)
        near = [found.chance]
        if define(known.task.notion).delayed:
            break
        before, room = room, config.omega - known.margin(found.chance)
        if abs(room - before) < 0.02 * config.omega:
            break
    assert found is not None
    return found


def _exploring(known: Knowledge, proof: Proof, chance: Floats, begins: int, enough: bool) -> Floats:
    """Return the plan with as much exploration as the proof needs."""
    config, task = known.config, known.task
    # Without a proof, the target applies to all decisions together.
    left = task.iterations - begins
    decisions = (left if left > 0 else task.iterations) * config.rollout
    least = np.full(known.frame.cells, config.floor)
    if proof.begun:
        # The exploration that the proof expects; half of it once the bound is narrow enough.
        least = np.asarray(proof.least, np.float64) / (1 if enough else KEPT)
        return known.explored(chance, np.inf, 1.0, least)
    alpha = Shares(known.who, config.delta).pair * LEANS
    target = config.room * config.omega / np.sqrt(2 * np.log(1 / alpha))
    return known.explored(chance, decisions, target, least)


def _begin(known: Knowledge, chance: Floats, behaviour: Floats, begins: int) -> Proof:
    """Fix the quantities of the proof, before the people it is based on are met."""
    config, task = known.config, known.task
    decisions = (task.iterations - begins) * config.rollout
    reveal = known.revealed(behaviour)
    least = np.maximum(KEPT * reveal, NEVER)
    expected = Expected(
        known.favoured(chance),
        known.labels.chance,
        decisions * known.people,
        reveal,
        least,
        known.changed(chance, behaviour),
        known.favoured(known.greedy),
    )
    fixed = directions(known.who, expected, config.delta)
    return Proof(np.asarray(begins), fixed, least)  # pyright: ignore


def _evidence(known: Knowledge, proof: Proof, extra: Extra, iteration: int) -> Any:
    """Return a function that bounds a policy's disparity on people met since the proof began."""
    config = known.config
    first, last = int(proof.begun) * config.rollout, iteration * config.rollout
    cell = known.cell[first:last]
    rollout = np.arange(first, last) // config.rollout
    predicted = np.asarray(extra["predicted"], np.float64)[rollout, cell]
    fixed = Directions(*(np.asarray(part, np.float64) for part in proof.directions))
    reveal = np.asarray(extra["log"].reveal[first:last], np.float64)
    label = np.asarray(extra["log"].label[first:last], np.int64)
    sums = gather(known.who, fixed, cell, predicted, reveal, label)

    def proven(chance: Floats, *, as_met: bool = False) -> Bound:
        weight = None if as_met else known.changed(chance, known.decided, first)
        favoured = known.favoured(chance)
        found = bound(known.who, fixed, sums, favoured, config.delta, weight)
        low, high = max(0.0, found.low - ROUNDED), min(1.0, found.high + ROUNDED)
        return replace(found, low=low, high=high)

    return proven


def _final(known: Knowledge, reference: Floats, evidence: Any) -> tuple[Planning, Bound]:
    """Return the best policy that is proven to be within omega, if there is one."""
    config = known.config
    most = config.omega - known.margin(reference)
    at = evidence(reference)
    limit = min(most, config.omega - (at.high - at.estimate))
    best: tuple[Planning, Bound] | None = None
    near = [reference]
    least = LEAST * config.omega
    for _ in range(TURNS):
        found = known.plan(max(limit, least), near)
        proven = evidence(found.chance)
        spare = config.omega - proven.high
        if spare >= 0 and (best is None or found.reward > best[0].reward):
            best = found, proven
        near = [found.chance]
        if 0 <= spare < 0.01 * config.omega or (limit <= least if spare < 0 else limit >= most):
            break
        limit = min(most, max(limit, least) + spare - 0.002 * config.omega)
    if best is not None:
        return best
    found = _cautious(known, near)
    return found, evidence(found.chance)
