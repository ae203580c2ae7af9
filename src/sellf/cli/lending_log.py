"""A simulated lending log with known truth, for `sellf demo` and `sellf audit --example`."""

from typing import Any

import numpy as np

from sellf.errors import InputError
from sellf.fairness.notions import TABLE, Counts, Notion

COST = 0.8
"""The cost of a loan relative to the gain from a repaid one; the midpoint of the policy."""
GROUPS = ("Black", "White")


def example(people: int = 20_000, seed: int = 1) -> dict[str, np.ndarray]:
    """Return the log as the lender has it: `repaid` is NaN for the rejected."""
    log = simulate(people, seed)
    return log | {"repaid": np.where(log["approved"] == 1, log["repaid"], np.nan)}


def as_csv() -> bytes:
    """Return the example log as the content of a CSV file; unknown outcomes are empty."""
    log = example()
    columns = {name: [str(value) for value in column.tolist()] for name, column in log.items()}
    columns["repaid"] = ["" if value == "nan" else value for value in columns["repaid"]]
    rows = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    return ("\n".join(rows) + "\n").encode()


def simulate(people: int, seed: int) -> dict[str, np.ndarray]:
    """Simulate a lending log from the FICO figures, including the hidden labels.

    The lender knows repayment rates by score, not by race; it draws its decisions at random and
    records the propensities.
    """
    if seed < 0:
        raise InputError(f"seed is {seed}: give 0 or more.")
    if people < 100:
        raise InputError(
            f"people is {people}: type --people 100 or more, so that both races occur."
        )
    p_class, p_repay, by_class = _figures()
    rng = np.random.default_rng(seed)
    race = rng.integers(0, len(GROUPS), people)
    edges = np.cumsum(p_class, axis=1)
    score = np.minimum((rng.random(people)[:, None] > edges[race]).sum(axis=1), 9)
    chance = _policy(by_class)[score]
    approved = rng.random(people) < chance
    repaid = rng.random(people) < p_repay[race, score]
    return {
        "race": np.array(GROUPS)[race],
        "score_class": score,
        "approved": approved.astype(int),
        "p_approve": chance,
        "repaid": repaid.astype(int),
        "p_repay": by_class[score],
    }


def truth() -> dict[Notion, dict[Any, float]]:
    """Return the true utility of each race under the example's policy, by notion."""
    p_class, p_repay, by_class = _figures()
    accept = _policy(by_class)
    accepted = (p_class * accept).sum(axis=1)
    both = (p_class * accept * p_repay).sum(axis=1)
    hidden = (p_class * (1 - accept) * p_repay).sum(axis=1)
    counts = Counts(np.ones(len(GROUPS)), accepted, both, hidden)
    return {
        definition.name: dict(zip(GROUPS, definition.alone.utility(counts).tolist(), strict=True))
        for definition in TABLE.values()
        if len(definition.rates) == 1
    }


def _policy(by_class: np.ndarray) -> np.ndarray:
    # All propensities are at least 6%: this overlap is what makes an audit possible.
    return 0.06 + 0.92 / (1 + np.exp(-15 * (by_class - COST)))


def _figures() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from sellf.envs.tables import fico

    figures = fico()
    row = [figures.races.index(name) for name in GROUPS]
    p_class = figures.p_class[row]
    p_class = p_class / p_class.sum(axis=1, keepdims=True)
    return p_class, figures.p_repay[row], figures.p_repay.mean(axis=0)
