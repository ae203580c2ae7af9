"""Evaluation of a trained agent, or of any policy, by deployments in a world."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from sellf import palette
from sellf.algorithms.algorithm import Algorithm
from sellf.algorithms.seen import disparities
from sellf.compiling import compiled, use_cache
from sellf.envs import world as worlds
from sellf.envs.policy import Categorical, Chances, Policy, chance_of, thresholds
from sellf.envs.rollout import renewed, replay
from sellf.envs.table import TableWorld
from sellf.envs.world import World
from sellf.envs.worlds import make_world
from sellf.errors import InputError
from sellf.fairness import VIEWS, Notion, define, gap, utility
from sellf.fairness.checks import seed as check_seed
from sellf.fairness.checks import whole
from sellf.fairness.tables import Table
from sellf.numbers import tick
from sellf.training.agent import Agent, decisions
from sellf.training.policies import called_back, tabulated_policy

MOST_DEPLOYMENTS = 100_000
PURPOSE = 1
"""Folded into the seed, so deployments use other random numbers than trainings."""
POINTS = 50
"""Number of time points of a deployment at which figures are recorded."""


@dataclass(frozen=True)
class Evaluation(Table):
    """Results of deployments of a policy; the first axis of arrays is the deployment."""

    notion: Notion
    groups: tuple[str, ...]
    rewards: np.ndarray
    """Final resource, of shape (deployments,)."""
    disparities: dict[str, np.ndarray]
    """By view, and "exact": |Delta_t| averaged over the times at which it is defined, of shape
    (deployments,); NaN where it never is, for example among the accepted if nobody is accepted."""
    acceptances: np.ndarray
    """Share accepted, of shape (deployments, groups)."""
    by_time: dict[str, np.ndarray]
    """"time" (points,); the rest (deployments, points) or (deployments, points, groups): "reward",
    "disparity", "disparity_imputed", "disparity_accepted", "disparity_exact", "acceptance" (the
    probability for a member of the current population) and "qualification"."""

    @property
    def deployments(self) -> int:
        """Number of deployments."""
        return len(self.rewards)

    @property
    def disparity(self) -> float:
        """Mean true disparity: averaged over time, then over deployments."""
        return defined_mean(self.disparities["true"])

    @property
    def reward(self) -> float:
        """Mean final resource."""
        return float(self.rewards.mean())

    @property
    def imputes(self) -> bool:
        """Whether labels were predicted; otherwise the imputed disparity is NaN everywhere."""
        return not np.isnan(self.disparities["imputed"]).all()

    def without_imputed(self) -> "Evaluation":
        """Return the same evaluation with imputed disparities set to NaN."""
        unknown = np.full_like(self.disparities["imputed"], np.nan)
        by_time = self.by_time["disparity_imputed"]
        return replace(
            self,
            disparities=self.disparities | {"imputed": unknown},
            by_time=self.by_time | {"disparity_imputed": np.full_like(by_time, np.nan)},
        )

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain values; None where a figure is undefined."""
        gaps = {name: _or_none(defined_mean(values)) for name, values in self.disparities.items()}
        return {
            "disparity": gaps["true"],
            "disparity_std": _or_none(float(self.disparities["true"].std())),
            "disparity_imputed": gaps["imputed"],
            "disparity_accepted": gaps["accepted"],
            "disparity_exact": gaps["exact"],
            "reward": self.reward,
            "reward_std": float(self.rewards.std()),
            "acceptance": dict(
                zip(self.groups, self.acceptances.mean(axis=0).tolist(), strict=True)
            ),
            "notion": self.notion,
            "deployments": self.deployments,
        }

    def _title(self) -> str:
        return (
            f"{self.deployments} deployments: reward {self.reward:,.1f}, true {self.notion} "
            f"disparity {self.disparity:.3f}"
        )

    def _table(self) -> dict[str, list[Any]]:
        return {
            "deployment": list(range(self.deployments)),
            "reward": self.rewards.tolist(),
            **{f"disparity_{name}": v.tolist() for name, v in self.disparities.items()},
            **{
                f"acceptance_{group}": self.acceptances[:, i].tolist()
                for i, group in enumerate(self.groups)
            },
        }

    def plot(self) -> Any:
        """Draw reward and disparity over time, with a band over the deployments."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                "plot needs matplotlib: type `pip install 'sellf[report]'`."
            ) from None
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
        time = self.by_time["time"]
        lines = {
            "reward": [("reward", "resource", "true")],
            "disparity": [
                ("disparity", "true", "true"),
                ("disparity_exact", "true, exact", "exact"),
                *([("disparity_imputed", "imputed", "imputed")] if self.imputes else []),
                ("disparity_accepted", "accepted only", "accepted"),
            ],
        }
        for axis, (title, entries) in zip(axes, lines.items(), strict=True):
            for key, label, view in entries:
                look = palette.GENERAL[palette.VIEWS[view]]
                values = self.by_time[key]
                mean, deviation = values.mean(axis=0), values.std(axis=0)
                axis.plot(time, mean, **palette.drawn(look), label=label)
                axis.fill_between(
                    time, mean - deviation, mean + deviation, color=look.light, alpha=0.15, lw=0
                )
            axis.set(xlabel="decisions (band: standard deviation over deployments)", title=title)
            axis.legend(frameon=False, fontsize=8)
            axis.xaxis.set_major_formatter(tick)
            axis.yaxis.set_major_formatter(tick)
        axes[1].set_ylim(bottom=0)
        return figure


def evaluate(
    policy: Any,
    world: World | str | None = None,
    notion: Notion | None = None,
    deployments: int = 10,
    seed: int = 0,
) -> Evaluation:
    """Deploy a policy to new populations and measure it over time.

    With the same seed, every policy is deployed to the same populations.

    Args:
        policy: an agent from `sellf.train` or `sellf.load`; an object with `predict_proba` (action
            probabilities, as for scikit-learn's classifiers) or `predict` (actions, as for
            Stable-Baselines3's models); or a function. It receives observations, one row per
            person in the order of `world.columns`, and returns actions, or rows of action
            probabilities. A randomized policy must return probabilities.
        world: a world or its name; for an agent, by default the world it was trained in.
        notion: measure of the disparity; for an agent, by default its own, otherwise
            "opportunity".
        deployments: number of new populations.
        seed: seed of the deployments, independent of the training's seed.
    """
    keys = _keys(deployments, seed)
    if isinstance(world, int):
        raise InputError(
            f"world is {world}: for the number of deployments, give deployments={world}."
        )
    if isinstance(world, str):
        world = make_world(world)
    if isinstance(policy, Agent):
        agent = policy if world is None else policy.in_world(world)
        return _deployed([_of_agent(agent, notion)], keys)[0]
    if world is None:
        raise InputError("no world given: name one for the policy, for example world='lending'.")
    return _deployed([_of_policy(policy, world, notion or "opportunity")], keys)[0]


def evaluate_all(agents: Sequence[Agent], deployments: int = 10, seed: int = 0) -> list[Evaluation]:
    """Evaluate many agents like `evaluate`, with one compiled program per world and notion.

    Args:
        agents: agents of any algorithms, worlds and notions.
        deployments: number of new populations, the same for all agents.
        seed: seed of the deployments.
    """
    keys = _keys(deployments, seed)
    return _deployed([_of_agent(agent) for agent in agents], keys)


class Deployable(NamedTuple):
    """A policy in a world, ready to be deployed."""

    world: World
    notion: Notion
    run: Callable[[Array], Any]
    """Runs one deployment, given its random key."""
    has_predictor: bool


def _of_agent(agent: Agent, notion: Notion | None = None) -> Deployable:
    _check(agent)
    world, notion = agent.world, notion or agent.notion
    if isinstance(world, TableWorld):
        run = partial(program(notion), world, *agent.tables())
    else:
        own = of_agent(notion, agent.spec.algorithm)
        run = partial(own, world, agent.parameters, agent.predictor)
    return Deployable(world, notion, run, agent.spec.has_predictor)


def _of_policy(policy: Any, world: World, notion: Notion) -> Deployable:
    define(notion)
    if isinstance(world, TableWorld):
        nothing = np.zeros(world.profiles, np.float32)
        run = partial(program(notion), world, tabulated_policy(policy, world.space), nothing)
    else:
        decide = called_back(policy, world.space)
        run = partial(compiled(partial(_run, notion, decide)), world)
    return Deployable(world, notion, run, has_predictor=False)


def _run(notion: Notion, policy: Policy, world: World, key: Array) -> dict[str, Array]:
    return deploy(world, notion, policy, None, key)


def _keys(deployments: int, seed: int) -> Key[Array, " deployments"]:
    deployments = whole("deployments", deployments, low=1, high=MOST_DEPLOYMENTS)
    return deployment_keys(check_seed("seed", seed), deployments)


def _deployed(what: Sequence[Deployable], keys: Key[Array, " deployments"]) -> list[Evaluation]:
    use_cache()
    results = []
    for one in what:
        each = [one.run(key) for key in keys]
        raw = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
        results.append(_summarise(one, raw))
    return results


def deployment_keys(seed: int, deployments: int) -> Key[Array, " deployments"]:
    """Return the random keys of deployments, distinct from those of a training."""
    return jax.random.split(jax.random.fold_in(jax.random.key(seed), PURPOSE), deployments)


def _check(agent: Agent) -> None:
    """Refuse parameters that are not finite: their decisions would look fair."""
    parts = {"parameters": agent.parameters, "predictor": agent.predictor}
    bad = [name for name, v in parts.items() if v is not None and not np.isfinite(v).all()]
    if bad:
        raise InputError(
            f"{' and '.join(bad)} of the agent contains a value that is not a number: train again."
        )


@lru_cache(maxsize=8)
def program(notion: Notion) -> Any:
    """Return a compiled deployment that takes the policy and the predictor as tables.

    The program is therefore compiled once for all algorithms and numbers of deployments.
    """

    def run(world: World, log_odds: Array, predict: Array, key: Array) -> dict[str, Array]:
        def policy(profile: Array) -> Categorical:
            return Categorical(log_odds[:, profile])

        return deploy(world, notion, policy, lambda x: predict[x], key)

    return compiled(run)


@lru_cache(maxsize=8)
def of_agent(notion: Notion, algorithm: Algorithm) -> Any:
    """Return a compiled deployment of agents in a world without a table of profiles."""

    def run(world: World, parameters: Array, predictor: Any, key: Array) -> dict[str, Array]:
        decide, predict = decisions(algorithm, world.space, parameters, predictor)
        return deploy(world, notion, decide, predict, key)

    return compiled(run)


def deploy(
    world: World, notion: Notion, policy: Policy, predict: Chances | None, key: Key[Array, ""]
) -> dict[str, Array]:
    """Simulate one episode of a policy with a new population."""
    length = -(-world.horizon // POINTS)
    key_start, key_window, key_steps = jax.random.split(key, 3)
    space, draw = world.space, thresholds(world.space, policy)
    state = worlds.reset(world, key_start)
    state = state._replace(window=worlds.refill(world, key_window, state.profile, draw, predict))

    def part(carry: tuple[Any, Array, Array], key: Array) -> tuple[Any, dict[str, Array]]:
        state, going, odds = carry
        key_chance, key_luck = jax.random.split(key)
        chance = worlds.draws(world, key_chance, (length,))
        luck = jax.random.uniform(key_luck, (length,))
        people, window = jax.tree.map(lambda leaf: leaf[None], (state.profile, state.window))
        after, steps = replay(world, state, people, window, chance, luck, draw, notion, predict)
        over = (steps.terminated | steps.truncated).astype(jnp.int32)
        # Steps count up to and including the one that ends the episode.
        counts = going & (jnp.cumsum(over) - over == 0)
        group = world.group_of(steps.profile)[:, None] == jnp.arange(len(world.groups))[None, :]
        group = group & counts[:, None]
        changed = worlds.differ(after.profile, state.profile)
        odds = renewed(world, draw, after.profile, odds, changed)
        favourable = chance_of(space.favourable, odds)
        counts_now = worlds.exact_counts(world, after.profile, favourable)
        result = {
            "counts": counts,
            "reward": jnp.where(counts, steps.reward, 0.0),
            **{f"gap_{view}": disparities(space, steps.histogram, notion, view) for view in VIEWS},
            "people": jnp.sum(group, axis=0),
            "accepted": jnp.sum(group & space.is_favourable(steps.outcome.action)[:, None], axis=0),
            "exact": gap(notion, counts_now),
            "acceptance": utility("demographic", counts_now),
            "qualification": utility("qualification", counts_now),
            "going": going,
        }
        return (after, going & (jnp.sum(over) == 0), odds), result

    begin = (state, jnp.asarray(True), draw(world.seen(state.profile)))
    return jax.lax.scan(part, begin, jax.random.split(key_steps, POINTS))[1]


def defined_mean(values: np.ndarray) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _mean_of(values: np.ndarray, counts: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Return the mean of the values that count and are not NaN; NaN where there are none."""
    there = counts & ~np.isnan(values)
    number = there.sum(axis=axis)
    total = np.where(there, values, 0).sum(axis=axis)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _summarise(what: Deployable, raw: Mapping[str, np.ndarray]) -> Evaluation:
    """Average the recorded figures; steps after the end of an episode do not count."""
    world = what.world
    counts = raw["counts"]
    going = raw["going"]

    def over_time(values: np.ndarray) -> np.ndarray:
        return _mean_of(values, counts, axis=(1, 2))

    def at_points(values: np.ndarray) -> np.ndarray:
        return _mean_of(values, counts, axis=2)

    exact = raw["exact"]
    total = world.start + raw["reward"].sum(axis=2).cumsum(axis=1)
    length = counts.shape[2]
    time = np.minimum(np.arange(1, POINTS + 1) * length, world.horizon)
    views = {view: over_time(raw[f"gap_{view}"]) for view in VIEWS}
    found = Evaluation(
        notion=what.notion,
        groups=world.groups,
        rewards=total[:, -1],
        disparities=views | {"exact": _mean_of(exact, going, axis=1)},
        acceptances=raw["accepted"].sum(axis=1) / np.maximum(raw["people"].sum(axis=1), 1),
        by_time={
            "time": time,
            "reward": total,
            "disparity": at_points(raw["gap_true"]),
            "disparity_imputed": at_points(raw["gap_imputed"]),
            "disparity_accepted": at_points(raw["gap_accepted"]),
            "disparity_exact": exact,
            "acceptance": raw["acceptance"],
            "qualification": raw["qualification"],
        },
    )
    return found if what.has_predictor else found.without_imputed()
