"""Every test runs with JAX's strictest rules: no silent change of dtype or rank.

Signatures are checked too: shapes and dtypes, wherever they are written down.
"""

import ctypes
import gc
import itertools
import os
import signal
import sys
import types
import zlib
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two workers with two threads each wait for one another: planning took ten times as long.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
# Tests compile far more than they run. Without optimisation, and without the emitters that take
# every fusion through MLIR, compiling takes a quarter of the time and of the memory.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"

# Both workers, and the commands that tests start, share what is compiled; so does the next run.
CACHE = Path(__file__).parent.parent / "build" / "compiled-for-tests"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

# Examples are drawn from a fixed seed, so that a run that passed passes again.
# `make test-slow` looks at ten times as many.
THOROUGH = os.environ.get("SELLF_TESTS") == "thorough"
settings.register_profile(
    "sellf",
    max_examples=400 if THOROUGH else 40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sellf")


if find_spec("jaxtyping"):
    from jaxtyping import install_import_hook

    # Where arrays are worked on; settings hold floats outside a program and arrays inside.
    envs = [f"sellf.envs.{name}" for name in ("space", "policy", "world", "window", "rollout")]
    algorithms = ("networks", "advantages", "losses", "seen", "source", "trainer")
    install_import_hook(
        [*envs, *(f"sellf.algorithms.{n}" for n in algorithms)], "beartype.beartype"
    )


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and all they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

MOST_MEMORY = 1100 * 2**20
"""Bytes that a process may hold after a test; compiled programs take most of them."""


LONG = Path(__file__).parent / "long.txt"
"""Which tests are `long`; a list, since it follows from measured times and changes with them."""


def pytest_collection_modifyitems(items):
    lines = LONG.read_text().splitlines()
    named = {line for line in lines if line and not line.startswith("#")}
    for item in items:
        if item.nodeid in named or item.nodeid.partition("[")[0] in named:
            item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def _memory():
    """Forget compiled programs once they take much memory: a worker grew to 3.3 GB otherwise."""
    yield
    jax = sys.modules.get("jax")
    if jax is None or not sys.platform.startswith("linux"):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    if pages * os.sysconf("SC_PAGE_SIZE") > MOST_MEMORY:
        jax.clear_caches()
        gc.collect()
        # What was freed goes back to the system only if the C library is told so: of 870 MB after
        # four algorithms 850 stay without this, 310 with it.
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True)
def _seeds(request, monkeypatch):
    """Audits draw a new seed each time; in a test always the same: what passed passes again."""
    run = sys.modules.get("sellf.audit.run")
    if run is not None:
        numbers = itertools.count(zlib.crc32(request.node.nodeid.encode()))
        monkeypatch.setattr(
            run, "secrets", types.SimpleNamespace(randbits=lambda bits: next(numbers) % 2**bits)
        )


@pytest.fixture(scope="session")
def jax():
    return pytest.importorskip("jax")


REGISTRIES = (
    ("sellf.algorithms.catalogue", "ALGORITHMS"),
    ("sellf.envs.worlds", "WORLDS"),
    ("sellf.fairness.notions", "TABLE"),
)


@pytest.fixture(autouse=True)
def _registries():
    """What a test or a page registers is gone after it."""
    found = [getattr(sys.modules.get(module), name, None) for module, name in REGISTRIES]
    kept = [(registry, dict(registry)) for registry in found if registry is not None]
    yield
    for registry, before in kept:
        if registry != before:
            registry.clear()
            registry.update(before)
