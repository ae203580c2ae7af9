"""Fair decisions over time when outcomes are only seen for the accepted.

The names below are the public interface. Importing them requires NumPy only: functions that train
or simulate import JAX when they are first used.
"""

import sellf.interrupts as _interrupts  # noqa: F401, I001 - before what takes a while to import
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from sellf import errors, report
from sellf._version import __version__ as __version__
from sellf.audit import Audit, Audits, audit, audit_all
from sellf.fairness import (
    Certificate,
    Counts,
    Decomposition,
    Disparity,
    UndefinedUtilityWarning,
    accepted_by_any,
    accepted_in_pool,
    certify,
    cortes,
    cortes_two_sided,
    decompose,
    disparity,
    effective_sample_size,
    importance_weights,
    renyi,
    renyi_population,
    self_normalised_mean,
)
from sellf.logs import Limits

if _TYPE_CHECKING:
    from sellf import datasets
    from sellf.envs.build import Actions
    from sellf.envs.custom import world_from_frame
    from sellf.envs.functions import world_from_functions
    from sellf.envs.world import World
    from sellf.envs.worlds import make_world
    from sellf.offline.cutoffs import Cutoffs, cutoffs
    from sellf.offline.improve import Improvement, improve
    from sellf.offline.policy import LearnedPolicy, load_policy
    from sellf.offline.result import WhatIf
    from sellf.offline.whatif import whatif
    from sellf.planning.frontier import Frontier, frontier
    from sellf.planning.plan import plan
    from sellf.planning.result import Plan
    from sellf.training.agent import Agent, load
    from sellf.training.evaluation import Evaluation, evaluate
    from sellf.training.loop import resume, train
    from sellf.training.registering import register

_LAZY = {
    "Agent": "sellf.training.agent",
    "Evaluation": "sellf.training.evaluation",
    "evaluate": "sellf.training.evaluation",
    "Frontier": "sellf.planning.frontier",
    "frontier": "sellf.planning.frontier",
    "Plan": "sellf.planning.result",
    "plan": "sellf.planning.plan",
    "load": "sellf.training.agent",
    "resume": "sellf.training.loop",
    "train": "sellf.training.loop",
    "register": "sellf.training.registering",
    "World": "sellf.envs.world",
    "make_world": "sellf.envs.worlds",
    "world_from_frame": "sellf.envs.custom",
    "world_from_functions": "sellf.envs.functions",
    "Actions": "sellf.envs.build",
}
"""Names that need JAX, and their modules, which are imported when they are first used."""

_LATER = {
    "Cutoffs": "sellf.offline.cutoffs",
    "cutoffs": "sellf.offline.cutoffs",
    "Improvement": "sellf.offline.improve",
    "improve": "sellf.offline.improve",
    "LearnedPolicy": "sellf.offline.policy",
    "load_policy": "sellf.offline.policy",
    "WhatIf": "sellf.offline.result",
    "whatif": "sellf.offline.whatif",
}
"""Names that do not need JAX but are slow to import, and their modules."""

if "gymnasium" in _sys.modules:
    from sellf.envs.registration import register as _register

    _register()


def __getattr__(name: str) -> _Any:
    from importlib import import_module
    from importlib.util import find_spec

    if name == "datasets":
        return import_module("sellf.datasets")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name not in _LAZY:
        raise AttributeError(f"module 'sellf' has no attribute {name!r}")
    if find_spec("jax") is None:
        raise ImportError(f"sellf.{name} needs JAX: type `pip install 'sellf[train]'`.")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LATER, "datasets"})


__all__ = [
    "Actions",
    "Agent",
    "Audit",
    "Audits",
    "Certificate",
    "Counts",
    "Cutoffs",
    "Decomposition",
    "Disparity",
    "Evaluation",
    "Frontier",
    "Improvement",
    "LearnedPolicy",
    "Limits",
    "Plan",
    "UndefinedUtilityWarning",
    "WhatIf",
    "World",
    "accepted_by_any",
    "accepted_in_pool",
    "audit",
    "audit_all",
    "certify",
    "cortes",
    "cortes_two_sided",
    "cutoffs",
    "datasets",
    "decompose",
    "disparity",
    "effective_sample_size",
    "errors",
    "evaluate",
    "frontier",
    "importance_weights",
    "improve",
    "load",
    "load_policy",
    "make_world",
    "plan",
    "register",
    "renyi",
    "renyi_population",
    "report",
    "resume",
    "self_normalised_mean",
    "train",
    "whatif",
    "world_from_frame",
    "world_from_functions",
]
