"""The worlds as plain Gymnasium environments, for any reinforcement-learning library.

Hidden labels stay hidden: the label of a rejected person is in no observation, reward or info,
unless `oracle=True`.
"""

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from jaxtyping import Array

from sellf.compiling import compiled
from sellf.envs import window as windows
from sellf.envs import world as worlds
from sellf.envs.registration import register
from sellf.envs.space import bounds, observe
from sellf.envs.world import Draws, State, World
from sellf.envs.worlds import make_world
from sellf.errors import InputError
from sellf.fairness import VIEWS, Notion, define, gap
from sellf.fairness.checks import short

register()

EXACT = 2**24
"""Whole numbers below this value are exact as 32-bit floats."""
EXTRAS = 5 + len(VIEWS)
"""Number of extra values: reward, label, group, terminated, truncated, disparities."""


FIRST = "there is nobody to decide about yet: call reset() before step()."


class Unknown(float):
    """A NaN that is equal to itself, so that identical episodes compare equal."""

    def __new__(cls, *_: object) -> "Unknown":
        """Return NaN; the argument passed by copying is ignored."""
        return super().__new__(cls, "nan")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown)

    def __hash__(self) -> int:
        return hash(Unknown)


def _known(value: np.ndarray) -> float:
    return Unknown() if np.isnan(value) else float(value)


class _Told(NamedTuple):
    """Unpacked result of one call of the compiled world; arrays in a vector environment."""

    observation: np.ndarray
    reward: np.ndarray
    label: np.ndarray
    group: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    disparity: dict[str, np.ndarray]


class _Machine:
    """A world compiled for stepping from Python, with one call and one array per step."""

    def __init__(self, world: World | str, notion: Notion, settings: dict[str, Any]) -> None:
        define(notion)
        if isinstance(world, World) and settings:
            raise InputError(f"settings {list(settings)} need a world's name, not a World.")
        self.world = make_world(world, **settings) if isinstance(world, str) else world
        self.notion: Notion = notion
        low, high = bounds(self.world.space)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        # Whether transitions are random; a step then also receives a random key.
        self.draws = self.world.luck(jax.random.key(0), ()) is not None
        self.action_space = gymnasium.spaces.Discrete(len(self.world.space.actions))

    def reset(self, key: Array) -> tuple[State, Array]:
        state = worlds.reset(self.world, key)
        first = self.world.seen(worlds.at(state.profile, state.person))
        return state, observe(self.world.space, first)

    def step(self, state: State, given: Array) -> tuple[State, Array]:
        """Advance by the action and the random numbers in one array, made by `given`."""
        # A population has at most a few million people, which floats hold exactly.
        person = given[..., 4].astype(jnp.int32)
        label, later, guess = given[..., 1], given[..., 2], given[..., 3]
        move = self.world.luck(_key(given[..., 5], given[..., 6]), ()) if self.draws else None
        chance = Draws(label, later, guess, jnp.zeros_like(label), person, move)
        state, step = worlds.advance(self.world, state, given[..., 0], chance, self.notion)
        gaps = [
            gap(self.notion, windows.counts(self.world.space, step.histogram, view))
            for view in VIEWS
        ]
        extras = (
            step.reward,
            step.outcome.label.astype(jnp.float32),
            self.world.group_of(step.profile).astype(jnp.float32),
            step.terminated.astype(jnp.float32),
            step.truncated.astype(jnp.float32),
            *gaps,
        )
        told = jnp.concatenate(
            [observe(self.world.space, self.world.seen(step.following)), jnp.stack(extras)],
            dtype=jnp.float32,
        )
        return state, told

    def given(self, rng: np.random.Generator, action: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return the action and all random numbers of a step as one array."""
        given = np.empty((*shape, 7 if self.draws else 5), np.float32)
        given[..., 0] = action
        given[..., 1:4] = rng.random((*shape, 3), dtype=np.float32)
        given[..., 4] = rng.integers(self.world.population, size=shape or None)
        if self.draws:
            given[..., 5:] = rng.integers(EXACT, size=(*shape, 2))
        return given

    def checked(self, action: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return the actions as an array; refuse invalid ones."""
        try:
            given = np.asarray(action)
        except ValueError:  # lists of unequal length
            given = np.empty(0)
        names = self.world.space.actions
        known = given.dtype.kind in "iub" and given.shape == shape
        if not known or (given < 0).any() or (given >= len(names)).any():
            each = f" for each of the {shape[0]} populations" if shape else ""
            listed = ", ".join(f"{number} ({name})" for number, name in enumerate(names))
            raise InputError(f"action is {short(action)}: give one of {listed}{each}.")
        return given.astype(np.int64)

    def revealed(self, action: np.ndarray) -> np.ndarray:
        """Return whether each decision reveals the outcome."""
        return np.array(self.world.space.reveals)[action]

    def read(self, told: Array) -> _Told:
        numbers = np.asarray(told)
        extras = numbers[..., -EXTRAS:]
        return _Told(
            numbers[..., :-EXTRAS].copy(),
            *(extras[..., i] for i in range(5)),
            disparity={view: extras[..., 5 + i] for i, view in enumerate(VIEWS)},
        )


def _key(one: Array, other: Array) -> Array:
    """Return a random key from two whole numbers given as floats."""
    return jax.random.fold_in(jax.random.key(one.astype(jnp.uint32)), other.astype(jnp.uint32))


class WorldEnv(gymnasium.Env[np.ndarray, np.int64]):
    """An environment with one population, in which each step decides about one person.

    The observation is the features and group of the current person. The action is a position in
    `Space.actions`; in the paper's worlds 1 accepts. The reward is the change of the resource.
    `info` has the `group` and `label` (NaN if not revealed) of the person just decided about, the
    `resource`, and `disparity`, the accepted-only disparity of the decisions so far (NaN while a
    group has none); with `oracle=True` also `hidden_label` and `disparity_true`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        world: World | str = "lending",
        notion: Notion = "opportunity",
        oracle: bool = False,
        render_mode: None = None,
        **settings: Any,
    ) -> None:
        """Make the environment.

        Args:
            world: a world, or the name of one.
            notion: the fairness notion of the disparity in `info`.
            oracle: whether `info` includes what a decision-maker cannot know.
            render_mode: not used; there is nothing to render.
            settings: settings of the world, as in `sellf.make_world`.
        """
        self.machine = _Machine(world, notion, settings)
        self.oracle = oracle
        self.render_mode = render_mode
        self.observation_space = self.machine.observation_space
        self.action_space = self.machine.action_space
        self._state: State | None = None
        self._reset = compiled(self.machine.reset)
        # The old state is donated, which avoids copying the population.
        self._step = compiled(self.machine.step, donate_argnums=0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw a new population; the seed determines it and everything that follows."""
        super().reset(seed=seed)
        key = jax.random.key(int(self.np_random.integers(2**31)))
        self._state, observation = self._reset(key)
        self._resource = self.machine.world.start
        return np.asarray(observation), {"resource": self._resource}

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Decide about the current person."""
        if self._state is None:
            raise InputError(FIRST)
        checked = self.machine.checked(action, ())
        given = self.machine.given(self.np_random, checked, ())
        self._state, told = self._step(self._state, given)
        read = self.machine.read(told)
        self._resource += float(read.reward)
        info = {
            "group": self.machine.world.groups[int(read.group)],
            "label": float(read.label) if self.machine.revealed(checked) else Unknown(),
            "resource": self._resource,
            "disparity": _known(read.disparity["accepted"]),
        }
        if self.oracle:
            info["hidden_label"] = float(read.label)
            info["disparity_true"] = _known(read.disparity["true"])
        over = bool(read.terminated), bool(read.truncated)
        return read.observation, float(read.reward), *over, info


class WorldVectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Several independent populations, each like a `WorldEnv`, compiled together.

    A population whose episode has ended is reset at the next step, and the action is ignored.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        world: World | str = "lending",
        notion: Notion = "opportunity",
        oracle: bool = False,
        render_mode: None = None,
        **settings: Any,
    ) -> None:
        """Make the environments; the arguments are those of `WorldEnv`."""
        self.machine = _Machine(world, notion, settings)
        self.num_envs = num_envs
        self.oracle = oracle
        self.render_mode = render_mode
        self.single_observation_space = self.machine.observation_space
        self.single_action_space = self.machine.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._reset = compiled(jax.vmap(self.machine.reset))
        self._step = compiled(jax.vmap(self.machine.step), donate_argnums=0)
        self._choose = compiled(_choose, donate_argnums=2)
        self._over = np.zeros(num_envs, bool)
        self._state: State | None = None

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw new populations."""
        if isinstance(seed, list):
            raise InputError("seed is a list: give one number; the populations differ anyway.")
        super().reset(seed=seed)
        self._state, observation = self._new_populations()
        self._resource = np.full(self.num_envs, self.machine.world.start)
        self._over = np.zeros(self.num_envs, bool)
        return np.asarray(observation), {"resource": self._resource.copy()}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Decide about the current person of every population."""
        if self._state is None:
            raise InputError(FIRST)
        actions = self.machine.checked(actions, (self.num_envs,))
        anew = self._over
        given = self.machine.given(self.np_random, actions, (self.num_envs,))
        self._state, told = self._step(self._state, given)
        read = self.machine.read(told)
        seen, reward = read.observation, read.reward.astype(np.float64)
        label = np.where(self.machine.revealed(actions), read.label, np.nan)
        terminated, truncated = read.terminated > 0, read.truncated > 0
        if anew.any():
            # Their episodes had ended already, so the decisions of this step are ignored.
            fresh, first = self._new_populations()
            self._state = self._choose(anew, fresh, self._state)
            seen = np.where(anew[:, None], np.asarray(first), seen)
            reward, label = np.where(anew, 0.0, reward), np.where(anew, np.nan, label)
            terminated, truncated = terminated & ~anew, truncated & ~anew
        self._over = terminated | truncated
        self._resource = np.where(anew, self.machine.world.start, self._resource + reward)
        info: dict[str, Any] = {
            "group": np.array(self.machine.world.groups)[read.group.astype(int)],
            "label": label,
            "resource": self._resource.copy(),
            "disparity": read.disparity["accepted"],
        }
        if self.oracle:
            info |= {"hidden_label": read.label, "disparity_true": read.disparity["true"]}
        return seen, reward, terminated, truncated, info

    def _new_populations(self) -> tuple[State, Array]:
        key = jax.random.key(int(self.np_random.integers(2**31)))
        return self._reset(jax.random.split(key, self.num_envs))


def _choose(anew: Array, fresh: State, going_on: State) -> State:
    def one(new: Array, old: Array) -> Array:
        return jnp.where(anew.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

    return jax.tree.map(one, fresh, going_on)
