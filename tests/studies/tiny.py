"""Studies that take no time: runs whose folders are made up, and an engine that makes them up."""

import json
from collections import deque
from hashlib import sha256

import numpy as np

from sellf import files
from sellf.studies import plan, run_files, spec
from sellf.studies.engines import base
from sellf.studies.engines.base import Job, Outcome
from sellf.training.evaluation import Evaluation

TEXT = """
name = "tiny"
cells = [["lending", "opportunity"]]
seeds = 3
steps = 512
deployments = 2

[algorithms.ppo]

[algorithms.sellf]
grid = { beta_disparity = [1, 5], beta_renyi = [0.01, 0.1] }
"""


def study(text=TEXT):
    return spec.parse(text, "tiny.toml")


def evaluation(reward, disparity, notion="opportunity"):
    """An evaluation whose views differ, so that looking at the wrong one shows."""
    gaps = {"true": disparity, "imputed": disparity / 2, "accepted": 0.0, "exact": disparity}
    return Evaluation(
        notion,
        ("black", "white"),
        np.full(2, reward),
        {name: np.full(2, value) for name, value in gaps.items()},
        np.full((2, 2), 0.5),
        {
            "time": np.arange(3),
            **{name: np.zeros((2, 3)) for name in run_files.POINTS},
            **{name: np.zeros((2, 3, 2)) for name in run_files.BY_GROUP},
        },
    )


def folder(run, result=None):
    """The files of a run as a worker would make them, but nothing was trained."""
    luck = int(sha256(plan.key(run).encode()).hexdigest()[:8], 16) / 2**32
    result = result or evaluation(1000 + 100 * luck, luck / 5)
    config = {"run": run.to_json(), "world_rules": {"groups": ["black", "white"]}}
    metrics = {"reward": np.linspace(0, luck, 4, dtype=np.float32)}
    return run_files.sealed(
        {
            "config.json": json.dumps(config | {"seconds": 1.5}).encode(),
            "results.safetensors": files.tensors_to_bytes(run_files.flat(metrics, result)),
            "agent.safetensors": b"agent",
        }
    )


class FakeEngine:
    """Does jobs at once; `outcome` may say otherwise."""

    workers = 1
    claim = staticmethod(base.anything)

    def __init__(self, outcome=lambda job: Outcome(job, folder(job.run))):
        self.outcome, self.jobs, self.did, self.closed = outcome, deque[Job](), [], False

    def submit(self, job, soon=False):
        (self.jobs.appendleft if soon else self.jobs.append)(job)

    def wait(self, seconds):
        job = self.jobs.popleft()
        if not self.claim(job):
            return [Outcome(job, kind="elsewhere")]
        self.did.append(job.name)
        return [self.outcome(job)]

    def running(self):
        return [self.jobs[0]] if self.jobs else []

    def close(self):
        self.closed = True
