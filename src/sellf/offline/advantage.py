"""The optimal policy under a disparity constraint, given known probabilities.

Over policies pi(x), the reward E[pi (m - c)] plus lambda_g times each group's utility is linear in
pi to first order, so the optimal policy accepts everybody with a positive advantage

    a(x) = m(x) - c + sum_g lambda_g q_g(x) (of'(x) - u_g among'(x)) / (r_g w_g)

where m is the probability of a good outcome, q_g the probability of membership in group g (1 or 0
for a policy that may use the group), r_g the group's share, u_g and w_g its utility and level, and
of', among' the contributions of accepting the person to numerator and denominator. The multipliers
sum to 0, since only differences between groups are constrained. They are found by bisection for two
groups and by dual ascent for more.
"""

from dataclasses import dataclass

import numpy as np

from sellf.fairness.notions import Rate
from sellf.logs.person import Floats

STEPS = 60
"""Maximum number of bisection steps; the dual takes at most twice as many."""
LARGEST = 8.0
"""Largest multiplier, in units of the reward."""


@dataclass(frozen=True)
class Outlook:
    """Predictions about people that policies are planned with."""

    label: Floats
    """Probability m of a good outcome."""
    score: Floats
    """Probability of a good outcome, calibrated within each group, for evaluating policies."""
    group: Floats
    """Probabilities q of group membership given what the policy observes, one column per group."""
    square: Floats
    """Expected square of the weighted outcome, which determines the standard error."""
    furthest: Floats
    """Largest possible deviation of the weighted outcome from its mean."""
    weak: Floats
    """1 for people about whom the log has no information, as similar people are not accepted."""
    codes: np.ndarray
    """The group of each person, for measuring the disparity."""
    cost: float
    rate: Rate

    @property
    def groups(self) -> int:
        """Number of groups."""
        return self.group.shape[1]

    def utilities(self, chance: Floats) -> tuple[Floats, Floats]:
        """Return each group's utility and level under a policy, computed from the scores."""
        slope, level = self.rate.of.by_label(chance)
        below, base = self.rate.among.by_label(chance)
        of, among = slope * self.score + level, below * self.score + base
        size = np.bincount(self.codes, minlength=self.groups)
        sums = [
            np.bincount(self.codes, np.broadcast_to(x, self.codes.shape), self.groups) / size
            for x in (of, among)
        ]
        levels = np.maximum(sums[1], 1e-6)
        return sums[0] / levels, levels

    def reward(self, chance: Floats) -> float:
        """Return the reward of a policy per person."""
        return float((chance * (self.score - self.cost)).mean())

    def advantage(self, prices: Floats, chance: Floats) -> Floats:
        """Return the advantage of accepting each person.

        Args:
            prices: the multiplier of each group's utility.
            chance: acceptance probabilities of the policy at which utilities and levels are taken.
        """
        utility, level = self.utilities(chance)
        share = np.bincount(self.codes, minlength=self.groups) / len(self.codes)
        of, _ = self.rate.of.by_chance(self.label)
        among, _ = self.rate.among.by_chance(self.label)
        weight = prices / (share * level)
        gain = np.outer(np.broadcast_to(of, self.label.shape), np.ones(self.groups))
        gain -= np.outer(np.broadcast_to(among, self.label.shape), utility)
        return self.label - self.cost + (self.group * gain) @ weight


def plan(outlook: Outlook, omega: float) -> tuple[Floats, Floats]:
    """Return the multipliers and the best rule with an estimated disparity of at most omega.

    Args:
        outlook: predictions about people.
        omega: the tolerated disparity, computed from the scores.
    """
    start = (outlook.label > outlook.cost).astype(np.float64)
    free = _rule(outlook, np.zeros(outlook.groups), start)
    utility, _ = outlook.utilities(free)
    if np.ptp(utility) <= omega:
        return np.zeros(outlook.groups), free
    if outlook.groups == 2:
        return _bisect(outlook, omega, free)
    return _dual(outlook, omega, free)


def _rule(outlook: Outlook, prices: Floats, chance: Floats) -> Floats:
    """Return the best rule at given multipliers; utilities converge in a few rounds."""
    for _ in range(3):
        chance = (outlook.advantage(prices, chance) > 0).astype(np.float64)
    return chance


def _bisect(outlook: Outlook, omega: float, free: Floats) -> tuple[Floats, Floats]:
    utility, _ = outlook.utilities(free)
    behind = int(np.argmin(utility))
    direction = np.where(np.arange(2) == behind, 1.0, -1.0)
    low, high, kept = 0.0, LARGEST, free
    for step in range(STEPS):
        middle = LARGEST / 2 ** (12 - step) if step < 12 and high == LARGEST else (low + high) / 2
        rule = _rule(outlook, direction * middle, kept)
        found, _ = outlook.utilities(rule)
        if found[1 - behind] - found[behind] <= omega:
            high, kept = middle, rule
        else:
            low = middle
        if high - low < 1e-4 * high:
            break
    return direction * high, _rule(outlook, direction * high, kept)


def _dual(outlook: Outlook, omega: float, free: Floats) -> tuple[Floats, Floats]:
    prices, rule = np.zeros(outlook.groups), free
    best = (np.inf, -np.inf, prices, rule)
    for step in range(2 * STEPS):
        utility, _ = outlook.utilities(rule)
        gap = float(np.ptp(utility))
        reward = outlook.reward(rule)
        # The smallest excess first, then the largest reward.
        key = (max(gap - omega, 0.0), -reward)
        best = min(best, (*key, prices, rule), key=lambda one: one[:2])
        if gap <= omega and step > STEPS:
            break
        middle = (utility.max() + utility.min()) / 2
        push = np.clip(middle - utility, -0.5, 0.5)
        push = np.sign(push) * np.maximum(np.abs(push) - omega / 2, 0.0)
        prices = np.clip(prices + 0.3 / (1 + step / 20) * push, -LARGEST, LARGEST)
        prices = prices - prices.mean()
        rule = _rule(outlook, prices, rule)
    return best[2], best[3]
