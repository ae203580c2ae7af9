"""The frontiers of a study's worlds and notions, computed once and stored with its runs."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf import files
from sellf.errors import InputError

if TYPE_CHECKING:
    from sellf.studies.plan import Group
    from sellf.studies.store import Store
    from sellf.training.spec import WorldSpec

FORMAT = 1
FOLDER = "frontiers"
STARTS = 2
"""Number of random starting policies per plan, in addition to those of neighbouring plans."""
MOST = 1_000
"""Largest number of points of a stored curve."""
LARGEST = 1e30
"""Largest absolute value in a stored curve."""


@dataclass(frozen=True)
class Curve:
    """The largest reward of any policy, as a function of its disparity averaged over time."""

    disparity: tuple[float, ...]
    """In ascending order."""
    reward: tuple[float, ...]

    def reward_at(self, disparity: float) -> float | None:
        """Return the largest reward at a disparity; None below the range of the curve."""
        found = np.interp(disparity, self.disparity, self.reward, left=np.nan)
        return None if np.isnan(found) else float(found)


def key(world: "WorldSpec", notion: str) -> str:
    """Return the name of a world and a notion in the store."""
    content = json.dumps([world.name, world.settings, notion], sort_keys=True)
    return f"{world.name}-{notion}-{sha256(content.encode()).hexdigest()[:16]}"


def stored(store: "Store", world: "WorldSpec", notion: str) -> Curve | None:
    """Return a frontier, if it has been computed."""
    path = _path(store, world, notion)
    if path.parent.is_symlink():
        raise InputError(f"{path.parent} is a link: replace it by a copy of its files.")
    files.check_own([path], "a store")
    if not path.is_file():
        return None
    content = files.read_json(path, FORMAT, {"disparity": list, "reward": list})
    columns = [content["disparity"], content["reward"]]
    numbers = all(
        isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= LARGEST
        for column in columns
        for x in column
    )
    same = len(columns[0]) == len(columns[1])
    rising = numbers and all(a <= b for a, b in pairwise(columns[0]))
    if not rising or not same or not 0 < len(columns[0]) <= MOST:
        raise InputError(f"{path} is damaged: remove it, and type `sellf study frontier` again.")
    return Curve(*(tuple(map(float, column)) for column in columns))


def compute(
    store: "Store", groups: Iterable["Group"], notify: Callable[[str], None]
) -> dict[str, Curve]:
    """Compute the missing frontiers, and return all of them by name.

    Args:
        store: the store of the frontiers.
        groups: the groups of a study, each with a world and a notion.
        notify: called with a sentence about each frontier that is computed.
    """
    found: dict[str, Curve] = {}
    for group in groups:
        name = key(group.world, group.notion)
        if name in found:
            continue
        curve = stored(store, group.world, group.notion)
        if curve is None:
            notify(f"Computing the frontier of {group.world.name}, {group.notion} ...")
            curve = computed(group.world, group.notion)
            keep(store, group.world, group.notion, curve)
        found[name] = curve
    return found


def keep(store: "Store", world: "WorldSpec", notion: str, curve: Curve) -> None:
    """Write a frontier into the store."""
    content = {"format": FORMAT, "disparity": curve.disparity, "reward": curve.reward}
    path = _path(store, world, notion)
    path.parent.mkdir(exist_ok=True)
    files.write(path, files.sealed_json(content))


def _path(store: "Store", world: "WorldSpec", notion: str) -> Path:
    return store.folder / FOLDER / f"{key(world, notion)}.json"


def computed(world: "WorldSpec", notion: str) -> Curve:
    """Compute plans for several values of omega, and return the curve through them."""
    from sellf.planning.frontier import frontier

    plans = frontier(world.make(), notion, starts=STARTS).plans
    points: list[Any] = sorted((each.mean, each.reward) for each in plans if each.within)
    gaps, rewards = np.array(points).T
    return Curve(tuple(map(float, gaps)), tuple(map(float, np.maximum.accumulate(rewards))))
