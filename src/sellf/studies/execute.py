"""Execution of one run by a worker, from its description to the files of its folder.

Runs are trained one at a time, not side by side in one vectorised call. On one core, such a call
takes about as much time per run (lending: 17.4 to 19.0 ms per iteration at widths 2 to 12, 18.7
alone; school: 86 and 81) or more (ELBERT: 379 and 222), and longer to compile. Its numbers
also differ in the last bits with its width, so a run's result would depend on which other runs were
still missing. Runs of one program share the compiled program, which a worker keeps until it has
several others.
"""

import time
from typing import Any

import numpy as np

from sellf import files
from sellf.compiling import release
from sellf.studies import plan, run_files, store
from sellf.studies.spec import LARGEST_SEED
from sellf.training.agent import Agent
from sellf.training.evaluation import Evaluation, evaluate
from sellf.training.loop import prepare, train_spec
from sellf.training.spec import FORMAT, RunSpec

MOST_PROGRAMS = 8
"""Number of compiled programs that a worker keeps; all studies of the paper have about 180."""
EVALUATION_SEED = LARGEST_SEED + 1
"""Seed of the deployments of every run: the same populations for all, none used in training."""


def perform(run: RunSpec) -> dict[str, bytes]:
    """Train and deploy a run; return the files of its folder."""
    program = plan.program(run)
    if program not in _prepared:
        if len(_prepared) >= MOST_PROGRAMS:
            _prepared.clear()
            release()
        # Compiled beforehand, so the training time does not include compilation.
        prepare(run)
        _prepared.add(program)
    begun = time.perf_counter()
    agent = train_spec(run)
    seconds = time.perf_counter() - begun
    return _files(
        run, agent, evaluate(agent, deployments=run.deployments, seed=EVALUATION_SEED), seconds
    )


_prepared: set[str] = set()
"""The programs that this process has compiled and not released."""


def _files(run: RunSpec, agent: Agent, evaluation: Evaluation, seconds: float) -> dict[str, bytes]:
    own = {"run": run.to_json(), "seconds": seconds, **store.versions()}
    names = [name for name in agent.history[0] if name != "iteration"]
    metrics = {name: _compact([row[name] for row in agent.history]) for name in names}
    return run_files.sealed(
        {
            "config.json": files.sealed_json({"format": FORMAT, **run.to_config(), **own}),
            "results.safetensors": files.tensors_to_bytes(run_files.flat(metrics, evaluation)),
            **agent.tensors(),
        }
    )


def _compact(values: list[Any]) -> np.ndarray:
    """Return metrics in the precision of the program, 32-bit floats."""
    array = np.asarray([np.nan if value is None else value for value in values])
    return array.astype(np.float32) if array.dtype == np.float64 else array
