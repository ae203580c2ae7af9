"""Lending: credit scores in ten classes, a loan repaid lifts a score, a default lowers it."""

from collections.abc import Sequence

import numpy as np

from sellf.envs.build import Features, Rules, build
from sellf.envs.tables import fico
from sellf.envs.world import World
from sellf.errors import InputError

CLASSES = 10


def lending(rules: Rules, groups: str | Sequence[str] = ("Black", "White")) -> World:
    """Build the lending world on FICO's figures (Liu et al. 2018; Sec. 5).

    Accepted and repaid: one class up; accepted and defaulted: one down; rejected: no change.

    Args:
        rules: population, horizon and the rest.
        groups: the races, in equal shares; "all" for the four of them.
    """
    figures = fico()
    known = sorted(figures.races)
    chosen = known if groups == "all" else [groups] if isinstance(groups, str) else sorted(groups)
    unknown = [name for name in chosen if name not in known]
    if unknown or len(set(chosen)) < 2:
        raise InputError(
            f"groups is {groups!r}: give 'all', or two or more of {', '.join(map(repr, known))}."
        )
    race = [figures.races.index(name) for name in chosen]

    # Profile = group x class, group-major.
    score = np.tile(np.arange(CLASSES), len(chosen))
    moves = np.empty((len(score), 2, 2), np.int32)
    moves[:, 0, :] = np.arange(len(score))[:, None]
    moves[:, 1, 1] = np.arange(len(score)) + (score < CLASSES - 1)
    moves[:, 1, 0] = np.arange(len(score)) - (score > 0)
    return build(
        "lending",
        rules,
        groups=chosen,
        group=np.repeat(np.arange(len(chosen)), CLASSES),
        alpha=figures.p_repay[race].ravel(),
        moves=moves,
        share=(figures.p_class[race] / len(chosen)).ravel(),
        features=Features(changing=score, changes=np.eye(CLASSES), changing_names=_names()),
    )


def _names() -> list[str]:
    return [f"score {10 * i}-{10 * i + 10}" for i in range(CLASSES)]
