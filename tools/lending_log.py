"""Lending logs with a known truth: whom PPO's policy decided about, and what a policy is worth.

The logging policy is PPO's, trained once through `sellf.train` and kept in a folder, with every
chance of acceptance raised to two percent. Everything true of a policy on these people is a sum
over the twenty profiles of the world, ten credit classes in each of two groups.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

import sellf
from sellf.planning.law import law_of

COST = 0.8
EXPLORED = 0.02
COLUMNS: dict[str, Any] = {
    "group": "race",
    "decision": "approved",
    "outcome": "repaid",
    "propensity": "p",
}
FEATURES = ["score_class"]


@dataclass(frozen=True)
class Truth:
    """The people, their outcomes and how they were decided about, by profile."""

    names: np.ndarray
    group: np.ndarray
    score: np.ndarray
    share: np.ndarray
    good: np.ndarray
    logging: np.ndarray

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """One row a profile, as a policy is given people."""
        return {"score_class": self.score, "group": self.names[self.group]}

    def reward(self, chance: np.ndarray) -> float:
        """Return what a policy earns a person."""
        return float((self.share * chance * (self.good - COST)).sum())

    def gap(self, chance: np.ndarray) -> float:
        """Return White's chance of being accepted among those who would repay, less Black's."""
        weight = self.share * self.good
        black, white = (
            float((weight * chance)[self.group == g].sum() / weight[self.group == g].sum())
            for g in (0, 1)
        )
        return white - black

    def frontier(self, omega: float, *, blind: bool = False) -> float:
        """Return the largest reward of any policy of one step within omega.

        Args:
            omega: the tolerance.
            blind: whether the policy may not see the group.
        """
        weight = self.share * self.good
        totals = np.array([weight[self.group == g].sum() for g in (0, 1)])
        row = np.where(self.group == 1, 1.0, -1.0) * weight / totals[self.group]
        count = len(self.score)
        use = np.eye(10)[self.score] if blind else np.eye(count)
        found = linprog(
            -(self.share * (self.good - COST)) @ use,
            A_ub=np.stack([row, -row]) @ use,
            b_ub=[omega, omega],
            bounds=(0, 1),
        )
        return -float(found.fun)

    def draw(self, people: int, seed: int) -> dict[str, np.ndarray]:
        """Return a log; outcomes of the rejected are hidden."""
        log, _ = self.draw_with_outcomes(people, seed)
        return log

    def draw_with_outcomes(
        self, people: int, seed: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return a log, and the outcome of everybody."""
        rng = np.random.default_rng([20, people, seed])
        who = rng.choice(len(self.share), people, p=self.share)
        p = self.logging[who]
        approved = (rng.random(people) < p).astype(int)
        repaid = (rng.random(people) < self.good[who]).astype(float)
        log = {
            "race": self.names[self.group[who]],
            "score_class": self.score[who],
            "approved": approved,
            "repaid": np.where(approved == 1, repaid, np.nan),
            "p": p,
        }
        return log, repaid


def truth(folder: Path) -> Truth:
    """Return the law of lending and PPO's policy, which is trained if the folder has none.

    Args:
        folder: where the trained policy is kept.
    """
    run = folder / "ppo"
    if run.exists():
        agent = sellf.load(run)
    else:
        agent = sellf.train("lending", "ppo", notion="opportunity", seed=0, out=run, progress=False)
    law = law_of("lending")
    accept, _ = agent.by_profile()
    return Truth(
        names=np.array(law.groups),
        group=law.group,
        score=np.arange(law.profiles) % 10,
        share=law.people / law.people.sum(),
        good=law.alpha,
        logging=np.maximum(np.asarray(accept, np.float64), EXPLORED),
    )
