"""Small laws to plan in."""

import numpy as np
from scipy.sparse import csr_array

from sellf.planning.law import Law


def random_law(
    groups: int = 2,
    profiles: int = 3,
    actions: int = 2,
    seed: int = 0,
    stay: bool = False,
    horizon: int = 60,
    population: int = 20,
) -> Law:
    """Return a law with so many profiles in each group; `stay`: nobody ever changes."""
    draw = np.random.default_rng(seed)
    number = groups * profiles
    group = np.repeat(np.arange(groups), profiles)
    alpha = draw.uniform(0.1, 0.9, number)
    transition = []
    for _ in range(actions):
        step = np.zeros((number, number))
        for g in range(groups):
            own = np.flatnonzero(group == g)
            step[np.ix_(own, own)] = draw.dirichlet(np.ones(profiles), profiles)
        transition.append(csr_array(np.eye(number) if stay else step))
    favourable = (False, *(True for _ in range(actions - 1)))
    worth = np.array([[0.0, 0.0], [-0.5, 0.5], [-0.2, 0.3], [-0.7, 0.6]])[:actions]
    return Law(
        name="random",
        groups=tuple("abcdef"[:groups]),
        actions=("none", "one", "two", "three")[:actions],
        favourable=favourable,
        group=group,
        people=draw.dirichlet(np.ones(number)),
        alpha=alpha,
        transition=tuple(transition),
        gain=worth[:, :1] + (worth[:, 1:] - worth[:, :1]) * alpha[None],
        population=population,
        horizon=horizon,
        start=100.0,
    )


def random_policy(law: Law, segments: int = 1, seed: int = 0) -> np.ndarray:
    """Return chances (segments, actions, profiles)."""
    draw = np.random.default_rng(seed)
    chances = draw.dirichlet(np.ones(len(law.actions)), (segments, law.profiles))
    return np.moveaxis(chances, 2, 1)
