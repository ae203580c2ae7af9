"""Lending: credit scores in ten classes; repayments raise the score, defaults lower it."""

from collections.abc import Sequence

import numpy as np

from sellf.envs.build import Actions, Features, Rules, accepting, build
from sellf.envs.table import TableWorld
from sellf.envs.tables import fico
from sellf.errors import InputError

CLASSES = 10
AMOUNTS = Actions(
    names=("reject", "small", "large"),
    reveals=(False, True, True),
    favourable=(False, True, True),
    gain=((0.0, 0.0), (-0.2, 0.1), (-1.0, 0.2)),
)
"""A small loan risks less relative to its gain: it is profitable from a repayment probability of
2/3, a large one from 5/6, and a large one earns more than a small one from 8/9."""


def lending(rules: Rules, groups: str | Sequence[str] = ("Black", "White")) -> TableWorld:
    """Build the lending world on FICO's figures (Liu et al. 2018; Sec. 5).

    A repaid loan raises the score by one class, a default lowers it by one class, and a rejection
    leaves it unchanged.

    Args:
        rules: population, horizon and the other rules.
        groups: the races, in equal shares; "all" for all four.
    """
    return _lending("lending", rules, groups, accepting(rules.cost), (0, 1))


def lending_amounts(rules: Rules, groups: str | Sequence[str] = ("Black", "White")) -> TableWorld:
    """Build lending with two amounts: a large loan earns twice as much, and loses five times.

    A small loan moves the score by one class, up if it is repaid and down if not; a large loan
    moves it by two. Both reveal the outcome.

    Args:
        rules: population, horizon and the other rules; the cost is not used.
        groups: the races, in equal shares; "all" for all four.
    """
    return _lending("lending-amounts", rules, groups, AMOUNTS, (0, 1, 2))


def _lending(
    name: str, rules: Rules, groups: str | Sequence[str], actions: Actions, steps: tuple[int, ...]
) -> TableWorld:
    """Build a world of scores; `steps` has the number of classes a score moves, by action."""
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
    change = np.array(steps)[:, None] * np.array([-1, 1])
    moved = np.clip(score[:, None, None] + change, 0, CLASSES - 1)
    return build(
        name,
        rules,
        groups=chosen,
        group=np.repeat(np.arange(len(chosen)), CLASSES),
        alpha=figures.p_repay[race].ravel(),
        moves=(np.arange(len(score)) - score)[:, None, None] + moved,
        share=(figures.p_class[race] / len(chosen)).ravel(),
        features=Features(
            changing=score,
            changes=np.eye(CLASSES),
            changing_names=[f"score {name}" for name in _names()],
            changing_raw=[("score", name) for name in _names()],
        ),
        actions=actions,
    )


def _names() -> list[str]:
    return [f"{10 * i}-{10 * i + 10}" for i in range(CLASSES)]
