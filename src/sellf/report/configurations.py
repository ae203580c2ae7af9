"""Runs that differ in their seed alone, and what they came to together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sellf.report.charts import distinct
from sellf.report.run_data import Deed

MOST_LINES = 8
"""Lines in one picture, and algorithms with pictures of their own; the table has all."""
OMEGA = 0.05
"""What is tolerated where no run says."""


@dataclass(frozen=True)
class Kind:
    """Runs that differ in their seed alone."""

    name: str
    deeds: list[Deed]

    @cached_property
    def done(self) -> list[Deed]:
        """Those that were deployed."""
        return [deed for deed in self.deeds if deed.evaluation is not None]

    def figures(self, what: str) -> np.ndarray:
        """Return the reward, or a view's disparity, of each run: the mean over deployments."""
        found = [deed.evaluation for deed in self.done if deed.evaluation is not None]
        if what == "reward":
            return np.array([one.reward for one in found])
        return np.array([one.disparities[what].mean() for one in found])

    def mean(self, what: str) -> float:
        """Return the mean over runs."""
        return float(self.figures(what).mean())

    def spread(self, what: str) -> float:
        """Return the standard deviation: over runs, or over the deployments of a single one."""
        if len(self.done) > 1:
            return float(self.figures(what).std(ddof=1))
        found = self.done[0].evaluation
        assert found is not None
        return float((found.rewards if what == "reward" else found.disparities[what]).std())

    def over_time(self, what: str) -> np.ndarray:
        """Return a figure over deployment: one row a run, or a deployment of a single one."""
        each = [deed.evaluation.by_time[what] for deed in self.done if deed.evaluation is not None]
        return each[0] if len(each) == 1 else np.stack([mean_over(values) for values in each])

    @property
    def imputes(self) -> bool:
        """Whether it has a predictor: without one the imputed figures mean nothing."""
        return any(name.startswith("predictor") for name in self.deeds[0].settings)

    @property
    def learned(self) -> list[Deed]:
        """Its runs with metrics, as many iterations each."""
        found = [deed for deed in self.deeds if len(deed.history.get("reward", ()))]
        length = min((len(deed.history["reward"]) for deed in found), default=0)
        return [deed for deed in found if len(deed.history["reward"]) == length]


def kinds_of(deeds: Sequence[Deed]) -> list[Kind]:
    """Return runs by algorithm, and by settings where those differ."""
    by_key: dict[str, list[Deed]] = {}
    for deed in deeds:
        settings = json.dumps(deed.settings, sort_keys=True, default=str)
        by_key.setdefault(f"{deed.algorithm} {deed.steps} {settings}", []).append(deed)
    groups = list(by_key.values())
    names = []
    for group in groups:
        first = group[0]
        alike = [other[0] for other in groups if other[0].algorithm == first.algorithm]
        differ = [
            name
            for name in first.settings
            if len({str(other.settings.get(name)) for other in alike}) > 1
        ]
        said = [f"{name} {short(first.settings[name])}" for name in differ]
        if len({other.steps for other in alike}) > 1:
            said.append(f"{first.steps:,} steps")
        names.append(f"{first.algorithm} ({', '.join(said)})" if said else first.algorithm)
    return [Kind(name, group) for name, group in zip(distinct(names), groups, strict=True)]


def omega_of(kinds: Sequence[Kind]) -> float:
    """Return what is tolerated."""
    known = [deed.omega for kind in kinds for deed in kind.deeds if deed.omega is not None]
    return known[0] if known else OMEGA


def short(value: object) -> str:
    """Return a setting as one types it."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def listed(words: Sequence[str]) -> str:
    """Return words as a list within a sentence; of many, the first."""
    words = list(words)
    if len(words) > MOST_LINES:
        words = [*words[:MOST_LINES], f"{len(words) - MOST_LINES} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def mean_over(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis, of those that are numbers."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
