"""Engines, which execute runs."""

from sellf.errors import InputError
from sellf.fairness.checks import one_of
from sellf.studies.engines.base import Engine

ENGINES = ("local", "ray")


def make(engine: str, workers: int | None = None, address: str | None = None) -> Engine:
    """Return an engine by name.

    Args:
        engine: "local" or "ray".
        workers: number of runs at a time; 0 executes them in this process (local).
        address: address of a Ray cluster, or "auto"; None starts a temporary one.
    """
    one_of("engine", engine, ENGINES)
    if workers is not None and workers < 0:
        raise InputError(f"workers is {workers}: give 0 or more.")
    if engine == "ray":
        from sellf.studies.engines.ray import RayEngine

        return RayEngine(address, workers)
    if address is not None:
        raise InputError("--address is for Ray clusters: type --engine ray as well.")
    from sellf.studies.engines.local import HereEngine, LocalEngine

    return HereEngine() if workers == 0 else LocalEngine(workers)
