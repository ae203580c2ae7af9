"""Deployments of a trained agent, or of any policy, and what they show over time."""

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
"""Folded into the seed: deployments must not draw what a training drew."""
POINTS = 50
"""At how many moments of a deployment figures are kept."""


@dataclass(frozen=True)
class Evaluation(Table):
    """What deployments of a policy came to; arrays have one entry per deployment first."""

    notion: Notion
    groups: tuple[str, ...]
    rewards: np.ndarray
    """(deployments,), the resource at the end."""
    disparities: dict[str, np.ndarray]
    """By view, and "exact": (deployments,), |Delta_t| averaged over the time that it is defined;
    NaN where it never is, as among the accepted if nobody is."""
    acceptances: np.ndarray
    """(deployments, groups), the share accepted."""
    by_time: dict[str, np.ndarray]
    """"time" (points,); the rest (deployments, points) or (deployments, points, groups): "reward",
    "disparity", "disparity_imputed", "disparity_accepted", "disparity_exact", "acceptance" (the
    chance of a member of the population as it is then) and "qualification"."""

    @property
    def deployments(self) -> int:
        """How many there were."""
        return len(self.rewards)

    @property
    def disparity(self) -> float:
        """Mean true disparity: averaged over time, then over deployments."""
        return defined_mean(self.disparities["true"])

    @property
    def reward(self) -> float:
        """Mean resource at the end."""
        return float(self.rewards.mean())

    @property
    def imputes(self) -> bool:
        """Whether labels were predicted: without that, the imputed disparity is NaN everywhere."""
        return not np.isnan(self.disparities["imputed"]).all()

    def without_imputed(self) -> "Evaluation":
        """Return the same of an agent that predicts no labels: no disparity is imputed."""
        unknown = np.full_like(self.disparities["imputed"], np.nan)
        by_time = self.by_time["disparity_imputed"]
        return replace(
            self,
            disparities=self.disparities | {"imputed": unknown},
            by_time=self.by_time | {"disparity_imputed": np.full_like(by_time, np.nan)},
        )

    def summary(self) -> dict[str, Any]:
        """Return the figures as one plain object; None where there is none."""
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

    The same seed means the same populations for every policy.

    Args:
        policy: an agent of `sellf.train` or `sellf.load`; an object with `predict_proba` (chances
            of actions, as scikit-learn's classifiers return them) or `predict` (actions, as
            Stable-Baselines3's models return them); or a function. They are given observations,
            one row per person in the order of `world.columns`, and return actions, or the chance
            of each action in rows. A policy that draws must return chances.
        world: a world or the name of one; of an agent by default the one it was trained in.
        notion: by which the disparity is measured; of an agent by default its own, else
            "opportunity".
        deployments: how many new populations.
        seed: of the deployments; the training's seed plays no part in them.
    """
    keys = _keys(deployments, seed)
    if isinstance(world, int):
        raise InputError(f"world is {world}: if that is how many, give deployments={world}.")
    if isinstance(world, str):
        world = make_world(world)
    if isinstance(policy, Agent):
        agent = policy if world is None else policy.in_world(world)
        return _deployed([_of_agent(agent, notion)], keys)[0]
    if world is None:
        raise InputError("no world given: of a policy say where it decides, world='lending'.")
    return _deployed([_of_policy(policy, world, notion or "opportunity")], keys)[0]


def evaluate_all(agents: Sequence[Agent], deployments: int = 10, seed: int = 0) -> list[Evaluation]:
    """Deploy many agents as `evaluate` does each; one program serves all of a world and notion.

    Args:
        agents: of any algorithms, worlds and notions.
        deployments: how many new populations, the same for all agents.
        seed: of the deployments.
    """
    keys = _keys(deployments, seed)
    return _deployed([_of_agent(agent) for agent in agents], keys)


class Deployable(NamedTuple):
    """A policy in a world, ready to be deployed."""

    world: World
    notion: Notion
    run: Callable[[Array], Any]
    """One deployment, from its key."""
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
    """Return the keys of deployments: none is a key of the training with the same seed."""
    return jax.random.split(jax.random.fold_in(jax.random.key(seed), PURPOSE), deployments)


def _check(agent: Agent) -> None:
    """Refuse parameters that are not numbers: whatever they decide, it would look fair."""
    parts = {"parameters": agent.parameters, "predictor": agent.predictor}
    bad = [name for name, v in parts.items() if v is not None and not np.isfinite(v).all()]
    if bad:
        raise InputError(
            f"{' and '.join(bad)} of the agent holds what is not a number: train anew."
        )


@lru_cache(maxsize=8)
def program(notion: Notion) -> Any:
    """Return one compiled deployment of any policy and predictor, which are given as tables.

    A program for each algorithm, or each number of deployments, would have to be compiled for each.
    """

    def run(world: World, log_odds: Array, predict: Array, key: Array) -> dict[str, Array]:
        def policy(profile: Array) -> Categorical:
            return Categorical(log_odds[:, profile])

        return deploy(world, notion, policy, lambda x: predict[x], key)

    return compiled(run)


@lru_cache(maxsize=8)
def of_agent(notion: Notion, algorithm: Algorithm) -> Any:
    """Return one compiled deployment of agents whose people are in no table."""

    def run(world: World, parameters: Array, predictor: Any, key: Array) -> dict[str, Array]:
        decide, predict = decisions(algorithm, world.space, parameters, predictor)
        return deploy(world, notion, decide, predict, key)

    return compiled(run)


def deploy(
    world: World, notion: Notion, policy: Policy, predict: Chances | None, key: Key[Array, ""]
) -> dict[str, Array]:
    """Follow one policy through one episode of a new population."""
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
        # A step counts up to and with the one that ends the episode.
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
    """Return the mean of those that are defined; NaN if none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _mean_of(values: np.ndarray, counts: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Return the mean of what counts and is defined; NaN where nothing does."""
    there = counts & ~np.isnan(values)
    number = there.sum(axis=axis)
    total = np.where(there, values, 0).sum(axis=axis)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _summarise(what: Deployable, raw: Mapping[str, np.ndarray]) -> Evaluation:
    """Average what was recorded; steps after an episode's end do not count."""
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
