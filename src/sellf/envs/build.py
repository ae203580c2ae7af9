"""Construction of a checked world from plain arrays."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sellf.envs.space import Encoding, Raw, Space
from sellf.envs.table import Arrivals, TableWorld
from sellf.errors import InputError
from sellf.fairness.checks import number, short

LARGEST = {"horizon": 2**31 - 1, "population": 10_000_000, "window": 10_000_000}
"""Upper limits: 32-bit integers for the horizon, and memory for the others."""
MOST = 1e7
"""Upper limit of costs, gains and the initial resource; 32-bit floats are too coarse above it."""


@dataclass(frozen=True)
class Rules:
    """The rules of a world, which do not depend on its people."""

    cost: float
    """c: an acceptance is worth y - c."""
    horizon: int
    """Number of decisions after which an episode is truncated."""
    population: int = 4000
    """Number of people in the population."""
    window: int = 4000
    """Number of latest decisions that the disparity at t is computed from."""
    start: float = 1000.0
    """Initial resource; an episode ends when it is used up."""

    def __post_init__(self) -> None:
        for name, least in {"horizon": 1, "population": 2, "window": 1}.items():
            value = getattr(self, name)
            right = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not right or value < least:
                raise InputError(f"{name} is {short(value)}: give a whole number, {least} or more.")
            if value > LARGEST[name]:
                raise InputError(f"{name} is too large: give {LARGEST[name]:,} or less.")
        for name in ("cost", "start"):
            number(name, getattr(self, name), low=0, high=MOST, low_open=True)

    def changed(self, **changes: Any) -> "Rules":
        """Return the rules with some of them changed; None leaves a rule unchanged."""
        return replace(self, **{name: v for name, v in changes.items() if v is not None})


@dataclass(frozen=True)
class Actions:
    """The actions and their consequences; the tuples have one entry per action."""

    names: tuple[str, ...]
    reveals: tuple[bool, ...]
    """Whether the outcome is observed after the action."""
    favourable: tuple[bool, ...]
    """Whether the action is the favourable one for the person."""
    gain: tuple[tuple[float, float], ...]
    """Gains with a bad outcome and with a good one."""

    def __post_init__(self) -> None:
        parts = (self.reveals, self.favourable, self.gain)
        if len(self.names) < 2 or any(len(part) != len(self.names) for part in parts):
            raise InputError(
                f"actions are {self.names}: give two or more, and for each whether it reveals the "
                "outcome, whether it is favourable, and its two gains."
            )
        if self.favourable[0] or not any(self.favourable) or not any(self.reveals):
            raise InputError(
                "actions: the first must not be favourable, and another must be; at least one must "
                "reveal the outcome."
            )
        if self.reveals[0] and all(self.reveals):
            raise InputError("actions: all of them reveal the outcome, so nothing is hidden.")
        for name, gains in zip(self.names, self.gain, strict=True):
            for value in gains:
                number(f"the gain of {name!r}", value, low=-MOST, high=MOST)
        if not any(map(any, self.gain)):
            raise InputError("actions: none of them is worth anything: give gains other than 0.")


def accepting(cost: float) -> Actions:
    """Return the two actions of the paper: an acceptance is worth y - cost, a rejection 0."""
    gain = ((0.0, 0.0), (-float(cost), 1 - float(cost)))
    return Actions(("reject", "accept"), (False, True), (False, True), gain)


@dataclass(frozen=True)
class Features:
    """The features of profiles; those with a default may be left out."""

    changing: NDArray[Any]
    """Row of `changes`, by profile."""
    changes: NDArray[Any]
    """Encoded features that decisions can change."""
    changing_names: list[str]
    fixed: NDArray[Any] | None = None
    """Row of `codes` and `numbers`, by profile."""
    codes: NDArray[np.uint8] | None = None
    """Categorical features that never change, as positions in `categories`."""
    categories: dict[str, list[str]] = field(default_factory=dict)
    numbers: NDArray[Any] | None = None
    """Numeric features that never change."""
    number_names: list[str] = field(default_factory=list)
    changing_raw: list[tuple[str, str | None]] | None = None
    """Feature and category (None for a number) of each entry of `changing_names`; by default, each
    is a feature of its own that holds numbers."""
    scales: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and standard deviation with which numeric features were standardised."""

    @property
    def raw(self) -> tuple[Raw, ...]:
        """The raw column of each input."""
        changing = self.changing_raw or [(name, None) for name in self.changing_names]
        pairs = [(key, value) for key, names in self.categories.items() for value in names]
        pairs += [(name, None) for name in self.number_names]
        return tuple(
            Raw(name, category) if category is not None else Raw(name, None, *self._scale(name))
            for name, category in (*pairs, *changing)
        )

    def _scale(self, name: str) -> tuple[float, float]:
        return self.scales.get(name, (0.0, 1.0))


def build(
    name: str,
    rules: Rules,
    *,
    groups: list[str],
    group: NDArray[Any],
    alpha: NDArray[Any],
    moves: NDArray[Any],
    share: NDArray[Any],
    features: Features,
    actions: Actions | None = None,
    chances: NDArray[Any] | None = None,
) -> TableWorld:
    """Check the tables and build a world.

    Args:
        name: the name of the world.
        rules: cost, horizon, population and the other rules.
        groups: the names of the groups.
        group: the position of each profile's group in `groups`.
        alpha: the probability of a good label, by profile.
        moves: the next profile, by profile, decision and label; with `chances`, several of them in
            a last axis.
        share: the share of newcomers, by profile; sums to 1.
        features: the features that networks receive.
        actions: the actions; by default, reject and accept at the cost in the rules.
        chances: the probabilities of the profiles in `moves`, which sum to 1; None if transitions
            are deterministic.
    """
    profiles, own = len(group), actions or accepting(rules.cost)
    _check_shapes(profiles, len(own.names), moves, chances)
    _check(groups, group, alpha, moves, share, rules)
    arriving = np.flatnonzero(share > 0)
    columns = [
        *(f"{key} = {value}" for key, names in features.categories.items() for value in names),
        *features.number_names,
        *features.changing_names,
        *(f"group = {value}" for value in groups),
    ]
    return TableWorld(
        name=name,
        horizon=int(rules.horizon),
        population=int(rules.population),
        window=int(rules.window),
        start=float(rules.start),
        alpha=jnp.asarray(alpha, jnp.float32),
        moves=jnp.asarray(moves, jnp.int32),
        odds=None if chances is None else jnp.asarray(_at_least(chances), jnp.float32),
        space=Space(
            groups=tuple(groups),
            columns=tuple(columns),
            actions=own.names,
            reveals=own.reveals,
            favourable=own.favourable,
            gain=own.gain,
            raw=features.raw,
            group=jnp.asarray(group, jnp.int32),
            encoding=_encoding(features, profiles),
        ),
        arrivals=Arrivals(
            profile=jnp.asarray(arriving, jnp.int32),
            cumulative=jnp.asarray(np.cumsum(share[arriving]), jnp.float32),
        ),
    )


def _at_least(chances: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of the second or a later entry, of the third or a later one, ..."""
    return np.cumsum(chances[..., :0:-1], axis=-1)[..., ::-1]


def _check_shapes(
    profiles: int, actions: int, moves: NDArray[Any], chances: NDArray[Any] | None
) -> None:
    """Refuse a transition of the wrong shape, or with invalid probabilities."""
    if moves.shape[:3] != (profiles, actions, 2) or moves.ndim != (3 if chances is None else 4):
        raise InputError(
            f"moves has shape {moves.shape}: give the profile that follows each of {profiles} "
            f"profiles, by {actions} actions and two outcomes"
            + ("." if chances is None else ", with several profiles in a fourth axis.")
        )
    if chances is None:
        return
    if chances.shape != moves.shape:
        raise InputError(
            f"chances has shape {chances.shape} and moves has {moves.shape}: give the chance of "
            "each profile that follows."
        )
    total = chances.sum(axis=-1)
    if not (chances >= 0).all() or not (abs(total - 1) <= 1e-6).all():
        worst = total.ravel()[np.argmax(abs(total - 1))]
        raise InputError(
            f"the chances of what follows sum to {worst:g} (smallest {np.min(chances):g}): for "
            "every profile, action and outcome they must be 0 or more and sum to 1."
        )


def _encoding(features: Features, profiles: int) -> Encoding:
    """Return the encoding of profiles as network inputs."""
    fixed = np.zeros(profiles, np.int32) if features.fixed is None else features.fixed
    rows = int(fixed.max()) + 1
    codes = np.zeros((rows, 0), np.uint8) if features.codes is None else features.codes
    numbers = np.zeros((rows, 0)) if features.numbers is None else features.numbers
    sizes = [len(names) for names in features.categories.values()]
    return Encoding(
        fixed=jnp.asarray(fixed, jnp.int32),
        changing=jnp.asarray(features.changing, jnp.int32),
        codes=jnp.asarray(codes, jnp.uint8),
        feature=jnp.asarray(np.repeat(np.arange(len(sizes)), sizes), jnp.int32),
        category=jnp.asarray(np.concatenate([[], *map(np.arange, sizes)]), jnp.uint8),
        numbers=jnp.asarray(numbers, jnp.float32),
        changes=jnp.asarray(features.changes, jnp.float32),
    )


def _check(
    groups: list[str],
    group: NDArray[Any],
    alpha: NDArray[Any],
    moves: NDArray[Any],
    share: NDArray[Any],
    rules: Rules,
) -> None:
    """Refuse inconsistent tables."""
    if rules.population < len(groups):
        raise InputError(
            f"population is {rules.population}, but there are {len(groups)} groups: give at "
            "least one person per group."
        )
    bad = ~((alpha >= 0) & (alpha <= 1))
    if bad.any():
        raise InputError(
            f"the chance of a good label is {alpha[bad][0]:g} for {int(bad.sum())} of "
            f"{len(alpha)} profiles: it must be between 0 and 1."
        )
    if not (share >= 0).all() or abs(share.sum() - 1) > 1e-6:
        raise InputError(
            f"the shares of newcomers sum to {share.sum():g} (smallest {share.min():g}): they "
            "must be 0 or more and sum to 1."
        )
    absent = [groups[i] for i in range(len(groups)) if not share[group == i].sum() > 0]
    if absent:
        raise InputError(f"nobody arrives of the groups {absent}: leave them out.")
    if ((moves < 0) | (moves >= len(group))).any():
        raise InputError("a transition leaves the feature space: it leads to an unknown profile.")
    if (group[moves] != group.reshape(-1, *(1,) * (moves.ndim - 1))).any():
        raise InputError("a transition changes a person's group: groups stay what they are.")
