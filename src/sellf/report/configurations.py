"""Runs that differ only in their seed, and their results taken together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sellf import palette
from sellf.report.charts import distinct
from sellf.report.run_data import Run
from sellf.studies.statistics import Estimate, curve, estimate
from sellf.studies.summary import format_settings
from sellf.training.evaluation import Evaluation

MOST_LINES = 8
"""The largest number of lines in a chart, and of algorithms with their own; tables have all."""
OMEGA = 0.05
"""The tolerated disparity if no run has one."""


@dataclass(frozen=True)
class Configuration:
    """Runs that differ only in their seed."""

    name: str
    runs: list[Run]

    @cached_property
    def done(self) -> list[Run]:
        """The runs that were deployed."""
        return [run for run in self.runs if run.evaluation is not None]

    @cached_property
    def evaluations(self) -> list[Evaluation]:
        """The evaluations of the runs that were deployed."""
        return [run.evaluation for run in self.runs if run.evaluation is not None]

    def estimate(self, what: str) -> Estimate:
        """Return the reward, or a view's disparity, over seeds and deployments."""
        found = self.evaluations
        return estimate([e.rewards if what == "reward" else e.disparities[what] for e in found])

    def mean(self, what: str) -> float:
        """Return the mean over runs."""
        return self.estimate(what).mean

    def over_time(self, what: str) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and spread of a figure over deployment."""
        return curve([found.by_time[what] for found in self.evaluations])

    @property
    def imputes(self) -> bool:
        """Whether labels are predicted; otherwise the imputed figures are meaningless."""
        return self.runs[0].spec.has_predictor

    @property
    def learned(self) -> list[Run]:
        """The runs with metrics that have the same number of iterations."""
        found = [run for run in self.runs if len(run.metrics.get("reward", ()))]
        length = min((len(run.metrics["reward"]) for run in found), default=0)
        return [run for run in found if len(run.metrics["reward"]) == length]


def configurations_of(runs: Sequence[Run]) -> list[Configuration]:
    """Return runs by algorithm, and by settings where those differ."""
    by_key: dict[str, list[Run]] = {}
    for run in runs:
        spec = run.spec
        by_key.setdefault(repr((spec.algorithm.name, spec.steps, spec.config)), []).append(run)
    groups = list(by_key.values())
    firsts = [group[0].spec for group in groups]
    names = []
    for spec in firsts:
        alike = [other for other in firsts if other.algorithm.name == spec.algorithm.name]
        own = {
            name: value
            for name, value in spec.hyperparameters.items()
            if len({str(other.hyperparameters.get(name)) for other in alike}) > 1
        }
        texts = [format_settings(own)] if own else []
        if len({other.steps for other in alike}) > 1:
            texts.append(f"{spec.steps:,} steps")
        name = spec.algorithm.name
        names.append(f"{name} ({', '.join(texts)})" if texts else name)
    return [Configuration(name, g) for name, g in zip(distinct(names), groups, strict=True)]


def looks_of(configurations: Sequence[Configuration]) -> list[int]:
    """Return the look of each configuration, the same as in the figures of studies."""
    return palette.places_of([one.runs[0].spec.algorithm.name for one in configurations])


def omega_of(configurations: Sequence[Configuration]) -> float:
    """Return the tolerated disparity."""
    specs = [run.spec for configuration in configurations for run in configuration.runs]
    known = [spec.omega for spec in specs if spec.omega is not None]
    return known[0] if known else OMEGA


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration in a sentence; if there are many, only the first ones."""
    names = list(names)
    if len(names) > MOST_LINES:
        names = [*names[:MOST_LINES], f"{len(names) - MOST_LINES} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
