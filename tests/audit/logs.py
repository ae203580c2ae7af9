"""Logs to audit, whose truth is known."""

import numpy as np

COLUMNS = {
    "group": "race",
    "decision": "approved",
    "outcome": "repaid",
    "propensity": "p",
    "score": "score",
}


def lending(people=3000, seed=0, gap=0.5):
    """Return a log of two groups; `gap` is how much smaller the chances of group b are."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b"], people)
    x = rng.random(people)
    p = np.where(race == "a", 0.1 + 0.8 * x, (0.1 + 0.8 * x) * (1 - gap))
    approved = (rng.random(people) < p).astype(int)
    good = rng.random(people) < 0.2 + 0.6 * x
    return {
        "race": race,
        "x": x,
        "approved": approved,
        "p": p,
        "repaid": np.where(approved == 1, good, np.nan),
        "score": 0.3 + 0.4 * x,
        "hidden": good.astype(int),
    }


def opportunity_gap(gap=0.5):
    """Return the true opportunity disparity of `lending`: group a's share times the gap."""
    x = (np.arange(100_000) + 0.5) / 100_000
    good, p = 0.2 + 0.6 * x, 0.1 + 0.8 * x
    return gap * (good * p).mean() / good.mean()
