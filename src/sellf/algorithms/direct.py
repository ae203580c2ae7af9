"""SELLF-direct: the imputed disparity as a constraint on the policy, weighted by a dual variable.

SELLF lowers the advantage of every decision taken while the disparity is high, regardless of the
person. However, the imputed disparity is a differentiable function of the policy. A group's utility
is a ratio of sums over its members that are linear in their acceptance probabilities, sum(slope pi
+ level), so each person's contribution is known. For qualification, where a decision acts through
the person's next state, the change of the predicted label is credited to that decision. The dual
variable lambda follows the constraint: it rises while the disparity is above the target and falls
while it is below.

Qualification can be out of reach from the initial population (the other notions never are:
rejecting everyone gives equal opportunity, random decisions give equal accuracy). Lambda then ends
at its upper limit, where it reduces the disparity little for the reward it costs. Late in the
training the policy is therefore required to earn no less than rejecting everyone does.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sellf.algorithms import guard, sellf
from sellf.algorithms import predictor as predictors
from sellf.algorithms.advantages import standardised
from sellf.algorithms.algorithm import (
    Algorithm,
    Batch,
    Columns,
    Deciding,
    Extra,
    Figures,
    People,
    Result,
    Task,
)
from sellf.algorithms.config import PPO, hyperparameters
from sellf.algorithms.direct_statement import NEARLY, statement
from sellf.algorithms.predictor import LINEAR, PredictorConfig
from sellf.algorithms.seen import Seen, members, newest_first
from sellf.envs.policy import Actions, Categorical, Chances, Policy
from sellf.envs.space import Space
from sellf.fairness import Notion, define, utility

NOBODY = -2.0
SEMI = 0.25
"""Acceptance probability below which a semi-stochastic policy rejects."""
LATE = 0.75
"""Share of the training after which the floor applies for any lambda, and `sharpen` applies."""


@hyperparameters
class Direct(PredictorConfig, PPO):
    """PPO under the constraint that the imputed disparity stays below a share of omega."""

    omega: float = 0.05
    """Largest tolerated true disparity; the only setting that has to be chosen."""
    margin: float = 0.5
    """Share of omega below which the imputed disparity is held; the rest allows for its errors."""
    beta_renyi: float = 0.01
    """beta_2: weight of the Renyi divergence between rejected and accepted people (Eq. 5)."""
    dual_start: float = 1.0
    """Initial value of lambda."""
    dual_rate: float = 1.0
    """eta: step size of lambda; 0 keeps lambda at its initial value."""
    dual_limit: float = 10.0
    """Upper limit of lambda for opportunity and accuracy."""
    credit_rate: float = 0.01
    """eta for qualification, where lambda weighs credit against advantage and starts from 0. It is
    small, so the policy learns whom it earns from before credit determines whom to raise."""
    credit_limit: float = 0.2
    """Upper limit of lambda for qualification; starting at it, a school accepts everyone."""
    floor: float = 1000.0
    """For qualification, weight of the penalty for earning less than rejecting everyone does. It
    applies while the constraint is not met and either lambda is at its upper limit or the training
    is in its last quarter; 0 for no penalty."""
    recall: int = 5
    """Number of latest rollouts on which the policy's disparity is measured; for qualification, the
    disparity is that of the decision window."""
    estimate: str = "anchored"
    """"anchored": the disparity within a gradient step is that of all recalled people, plus the
    change since then as estimated from the minibatch; "batch": that of a batch of people alone."""
    people: int = 256
    """Number of people in that batch."""
    leveling: str = "up"
    """For qualification, "up": only raising the worst-off group is credited; "both": lowering the
    best-off group is credited as well."""
    guard: bool = False
    """Whether the constraint includes a bound on the predictor's errors (Theorem 4)."""
    guard_memory: int = 50
    """Number of latest rollouts on which these errors are measured and the bound is computed."""
    guard_delta: float = 0.05
    """Probability with which this bound may fail, at any one iteration."""
    semi_stochastic: bool = False
    """Whether people with an acceptance probability below 0.25 are always rejected."""
    sharpen: float = 0.0
    """Weight of a penalty on the policy's entropy, which rises from 0 over the last quarter of the
    training and makes decisions more certain; 0 for no penalty."""


class Recalled(NamedTuple):
    """People of the latest rollouts, the newest first."""

    profile: Array
    label: Float[Array, "recall steps"]
    """1 or 0 where the label was revealed, -1 where it was not, and NOBODY in unused entries."""

    def add(self, seen: Seen) -> "Recalled":
        """Replace the oldest rollout by a new one."""
        label = jnp.where(seen.revealed, seen.positive.astype(jnp.float32), -1.0)
        return newest_first(self, Recalled(seen.profile, label))


def start(task: Task, config: Direct, key: Key[Array, ""]) -> Extra:
    """Return a predictor, the people of the latest rollouts, the predictor's errors and lambda."""
    shape = (config.recall, config.rollout)
    return sellf.start(LINEAR, task, config, key) | {
        "recalled": Recalled(task.space.nobody(shape), jnp.full(shape, NOBODY)),
        "errors": guard.start(task.notion, config.guard_memory, len(task.space.groups)),
        "multiplier": jnp.asarray(
            0.0 if define(task.notion).delayed else config.dual_start, jnp.float32
        ),
    }


def learn(
    task: Task, config: Direct, extra: Extra, seen: Seen, deciding: Deciding, key: Array
) -> Result:
    """Train the predictor, measure the policy's disparity, and update lambda."""
    # The previous predictor has not learned from these people yet, so its errors are out-of-sample.
    predict = predictors.chances(LINEAR, task, extra["predictor"])
    least = SEMI if config.semi_stochastic else 0.0

    def policy(profile: Array) -> Categorical:
        return deciding.policy(profile).or_first(task.space.favourable, least)

    errors, recalled = extra["errors"], extra["recalled"].add(seen)
    delayed = define(task.notion).delayed
    if delayed:
        utilities, columns = credits(task, seen, predict, config.leveling)
        gains, figures = earnings(task, recalled, predict, policy)
        columns |= gains
        rate, ceiling = config.credit_rate, config.credit_limit
        # It is measured on people after the decision, whose labels have not been observed yet.
        bias = promise = jnp.ones(())
    else:
        utilities, columns, figures = shares(task, recalled, predict, policy)
        if config.estimate == "anchored":
            columns = {"slope": changing(task.notion, columns["slope"])}
        rate, ceiling = config.dual_rate, config.dual_limit
        new = guard.errors(task.notion, task.space, seen, policy(seen.profile), predict)
        errors = newest_first(errors, new)
        bias, promise = guard.bias(errors, jnp.asarray(config.guard_delta, jnp.float32))
    gap = guard.largest(utilities)
    target = config.margin * config.omega
    if config.guard:
        # If the errors alone exceed omega, no target can ensure omega.
        room = config.omega - bias
        target = jnp.where(room > 0, room, target)
    step = rate * (gap - target)
    multiplier = jnp.clip(extra["multiplier"] + step, 0.0, jnp.asarray(ceiling, jnp.float32))
    if delayed:
        columns["credit"] *= jnp.where(gap > target, multiplier, 0.0)
        late = extra["predictor"].iteration >= math.ceil(LATE * task.iterations)
        in_vain = (gap > target) & ((multiplier >= NEARLY * ceiling) | late)
        figures["floor"] = jnp.where(in_vain, config.floor, 0.0)
    learned = sellf.learn(LINEAR, task, config, extra, seen, deciding, key)
    figures |= {
        "utilities": utilities.reshape(-1),
        "gap": gap,
        "target": jnp.asarray(target, jnp.float32),
        "bias": bias,
        "promise": promise,
        "multiplier": multiplier,
        "dual_step": step,
    }
    kept = {"recalled": recalled, "errors": errors, "multiplier": multiplier}
    return Result(learned.extra | kept, learned.columns | columns, learned.figures | figures)


def people(space: Space, recalled: Recalled, predict: Chances) -> tuple[Array, Array, Array]:
    """Return all recalled people: profile, known or predicted label, and whether there is one."""
    profile, known = space.flat(recalled.profile), recalled.label.reshape(-1)
    label = jnp.where(known >= 0, known, predict(profile))
    return profile, label, (known > NOBODY).astype(jnp.float32)


def shares(
    task: Task, recalled: Recalled, predict: Chances, policy: Policy
) -> tuple[Float[Array, "rates groups"], Columns, Figures]:
    """Return each group's utility under the policy, and each person's contribution to it.

    Sums are over all recalled people, with probabilities in place of decisions, so decisions add no
    noise to the utility. The columns have a slope and a level for every rate: first those of the
    numerators, then those of the denominators.
    """
    profile, label, there = people(task.space, recalled, predict)
    chance, newest = policy(profile).chance(task.space.favourable), recalled.profile.shape[1]
    member = members(task.space.group_of(profile), len(task.space.groups)) * there[:, None]
    rates = define(task.notion).rates
    sums = [*(rate.of for rate in rates), *(rate.among for rate in rates)]
    slope, level = (
        jnp.stack([jnp.broadcast_to(x, label.shape) for x in parts])
        for parts in zip(*(part.by_chance(label) for part in sums), strict=True)
    )
    # One product per row: a joint product sums in another order, which would change lambda.
    above, below = jnp.split(jnp.stack([row @ member for row in slope * chance[None] + level]), 2)
    return (
        jax.vmap(absent)(above / jnp.maximum(below, 1e-6), below),
        {"slope": slope[:, :newest].T, "level": level[:, :newest].T},
        {"mass": below.reshape(-1) / jnp.sum(there)},
    )


def changing(notion: Notion, slope: Float[Array, "steps sums"]) -> Float[Array, "steps some"]:
    """Drop the slopes of the denominators if the policy changes none of these sums."""
    among = [rate.among for rate in define(notion).rates]
    return slope if any(sums.moves for sums in among) else slope[:, : len(among)]


def credits(
    task: Task, seen: Seen, predict: Chances, leveling: str
) -> tuple[Float[Array, "1 groups"], Columns]:
    """Return each group's qualification, and how much each decision narrowed the disparity.

    A decision about a member of the worst-off group is credited with the change of their predicted
    label, relative to the mean change of the group. With leveling "both", a decision about a member
    of the best-off group is credited with the opposite.
    """
    member = members(seen.group, len(task.space.groups))
    number = jnp.sum(member, axis=0)
    utilities = absent(utility(task.notion, seen.last), number)
    change = predict(seen.moved) - predict(seen.profile)
    mean = (change @ member) / jnp.maximum(number, 1.0)
    own = (change - mean[seen.group]) * (seen.group.shape[0] / jnp.maximum(number, 1.0))[seen.group]
    side = (seen.group == jnp.argmin(utilities)).astype(jnp.float32)
    if leveling == "both":
        side -= (seen.group == jnp.argmax(utilities)).astype(jnp.float32)
    return utilities[None], {"credit": side * own}


def earnings(
    task: Task, recalled: Recalled, predict: Chances, policy: Policy
) -> tuple[Columns, Figures]:
    """Return the gain of each action for each person, and the policy's mean earnings.

    Like a group's utility, earnings are linear in the probabilities, and imputed for hidden labels.
    """
    profile, label, there = people(task.space, recalled, predict)
    gain = jnp.stack(task.space.gains(label))
    earned = jnp.sum(there * jnp.sum(policy(profile).probabilities() * gain, axis=0))
    newest = recalled.profile.shape[1]
    return {"gain": gain[:, :newest].T}, {"earned": earned / jnp.sum(there)}


def absent(utilities: Array, number: Array) -> Float[Array, " groups"]:
    """Give groups without people the mean of the others, so they do not affect the disparity."""
    there = (number > 0) & jnp.isfinite(utilities)
    known = jnp.where(there, utilities, 0.0)
    return jnp.where(
        there, known, jnp.sum(known) / jnp.maximum(jnp.sum(there.astype(jnp.float32)), 1.0)
    )


def advantage(config: Direct, batch: Batch) -> Float[Array, " batch"]:
    """Return the advantage of a minibatch; for qualification, the credit is added."""
    plain = standardised(batch.columns["advantage"])
    return plain + batch.columns["credit"] if "credit" in batch.columns else plain


def penalty(config: Direct, batch: Batch) -> Float[Array, ""]:
    """Return beta_2 L_Renyi + lambda max(disparity - target, 0) of a minibatch.

    For qualification, whose lambda is in the advantage: beta_2 L_Renyi + floor max(loss, 0).
    """
    term, figures = sellf.penalty(config, batch), batch.figures
    if "gain" in batch.columns:
        # Any increase of an action's probability is taken from that of the first action.
        gain, numbers = batch.columns["gain"], range(batch.policy.actions)
        change = sum(
            (gain[:, a] - gain[:, 0]) * moved(config, batch, tuple(a == b for b in numbers))
            for a in numbers[1:]
        )
        earned = figures["earned"] + jnp.mean(change)  # pyright: ignore
        return term + figures["floor"] * jnp.maximum(-earned, 0.0)
    now = batched(config, batch.space, batch.people) if batch.people else anchored(config, batch)
    excess = jnp.maximum(guard.largest(now) - figures["target"], 0.0)
    return term + figures["multiplier"] * excess


def learn_late(
    task: Task, config: Direct, extra: Extra, seen: Seen, deciding: Deciding, key: Array
) -> Result:
    """Run `learn`, and add the current weight of the entropy penalty."""
    result = learn(task, config, extra, seen, deciding, key)
    done = (extra["predictor"].iteration + 1) / task.iterations
    late = jnp.clip((done - LATE) / (1 - LATE), 0.0, 1.0)
    return result._replace(figures=result.figures | {"entropy_cost": config.sharpen * late})


def penalty_late(config: Direct, batch: Batch) -> Float[Array, ""]:
    """Return `penalty` plus the entropy penalty of the minibatch."""
    cost = batch.figures["entropy_cost"] * jnp.mean(batch.policy.entropy())
    return penalty(config, batch) + cost


def chance(config: Direct, space: Space, policy: Categorical, actions: Actions) -> Array:
    """Return the probability of some favourable actions, as used in decisions.

    Where a semi-stochastic policy always rejects, it is 0 but keeps the gradient of the original
    probability; otherwise it could never rise again.
    """
    plain = policy.chance(actions)
    if not config.semi_stochastic:
        return plain
    rejected = policy.chance(space.favourable) < SEMI
    return plain - jax.lax.stop_gradient(jnp.where(rejected, plain, 0.0))


def moved(config: Direct, batch: Batch, actions: Actions) -> Float[Array, " batch"]:
    """Return the change of the probability of some actions since the start of the iteration."""
    before = chance(config, batch.space, batch.before, actions)
    return chance(config, batch.space, batch.policy, actions) - before


def anchored(config: Direct, batch: Batch) -> Float[Array, "rates groups"]:
    """Return the current utilities: those of all recalled people, plus the minibatch's change.

    The minibatch only estimates the change since the start of the iteration, which is small, so its
    noise is small too; its gradient is unbiased for the utilities of the newest people.
    """
    change, slope = moved(config, batch, batch.space.favourable), batch.columns["slope"]
    before, mass = (
        batch.figures[name].reshape(-1, len(batch.space.groups)) for name in ("utilities", "mass")
    )
    added = (slope * change[:, None]).T @ members(batch.group, mass.shape[1])
    above, under = added[: mass.shape[0]], added[mass.shape[0] :]
    # (N + n) / (D + d) = N / D + (n - N / D d) / (D + d); a few people at most halve D.
    below = jnp.maximum(mass, 1e-6) * change.shape[0]
    if under.shape[0]:
        above, below = above - before * under, jnp.maximum(below + under, below / 2)
    now = before + above / below
    return jax.vmap(absent)(now, mass)


def batched(config: Direct, space: Space, drawn: People) -> Float[Array, "rates groups"]:
    """Return the utilities among a batch of people."""
    member = members(drawn.group, len(space.groups))
    accept = chance(config, space, drawn.policy, space.favourable)[:, None]
    added = drawn.columns["slope"] * accept + drawn.columns["level"]
    above, below = jnp.split(added.T @ member, 2)
    return jax.vmap(absent)(above / jnp.maximum(below, 1e-6), below)


def variant(algorithm: Algorithm, config: Any, notion: Notion) -> Algorithm:
    """Return the algorithm adapted to its settings."""
    if config.sharpen:
        algorithm = algorithm._replace(learn=learn_late, penalty=penalty_late)
    return algorithm._replace(
        reject_below=SEMI if config.semi_stochastic else 0.0,
        people=config.people if config.estimate == "batch" else 0,
    )


direct = sellf.with_predictor(
    Algorithm(
        "sellf-direct",
        Direct,
        "constrains the policy's own imputed disparity; only omega has to be chosen",
        advantage=advantage,
        penalty=penalty,
        variant=variant,
        statement=statement,
    ),
    LINEAR,
)._replace(start=start, learn=learn)
