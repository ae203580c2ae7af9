"""Every test runs with JAX's strictest rules: no silent change of dtype or rank.

Signatures are checked too: shapes and dtypes, wherever they are written down.
"""

import itertools
import os
import sys
import types
import zlib
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
# Tests compile far more than they run: half the compile time for somewhat slower programs.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"

# Examples are drawn from a fixed seed, so that a run that passed passes again.
settings.register_profile(
    "sellf", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
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
